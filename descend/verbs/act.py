"""descend act: a trained policy moves its arm, told in words where it reads them, and filmed."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from descend.errors import Mistake
from descend.files import write_bytes
from descend.inference.arm_player import ArmPlayer, name_cube
from descend.own_code import use_code
from descend.report.film import encode_film
from descend.theory.latency import Budget
from descend.verbs.table import format_table

MOST = 10_000  # episodes


def act(
    run: str | Path,
    instruction: str = "",
    episodes: int = 10,
    seed: int = 0,
    film: str | Path = "",
    checkpoint: str | int = "best",
    replace: bool = False,
) -> dict[str, Any]:
    """Play episodes with a trained policy of the arm.

    Args:
        run: a run's folder.
        instruction: what to do, for a policy that reads: "pick the red cube and place it in the blue bin"; empty: what
            each scene says.
        episodes: how many.
        seed: of the scenes; the same seed gives the same ones.
        film: a .gif to write, the first episodes one after another.
        checkpoint: best, last or a step.
        replace: write `film` anew where it exists.

    Returns:
        {"episodes": [{"success", "steps", "grasped"}, ..], "success": share, "milliseconds": {stage: time}, "hertz"}
    """
    if not 1 <= episodes <= MOST:
        raise Mistake(f"--episodes {episodes}: give 1 to {MOST:,}")
    if film:
        check_film(Path(film), replace)
    player = ArmPlayer.open(run, checkpoint)
    played = player.play(episodes, seed, instruction, bool(film))
    good = (played.scores["success"] > 0).tolist()
    rows = [
        {"success": done, "steps": steps, "grasped": name_cube(played.scene, i)}
        for i, (done, steps) in enumerate(zip(good, played.steps.tolist(), strict=True))
    ]
    if film:
        frames = torch.stack(played.frames)[:, : max(1, 280 // len(played.frames))]  # (steps, b, 3, h, w)
        write_bytes(Path(film), encode_film(frames.transpose(0, 1).flatten(0, 1).movedim(1, -1).numpy()))
    took = player.time_stages()
    return {
        "episodes": rows,
        "success": sum(good) / len(good),
        "milliseconds": took,
        "hertz": Budget(took).hertz,
    }


def check_film(path: Path, replace: bool) -> None:
    """Refuse a name that cannot be written, before anything is computed."""
    if path.suffix != ".gif" or not path.parent.is_dir() or path.is_dir():
        raise Mistake(f"--film {path}: give the name of a .gif file in a folder that exists")
    if path.exists() and not replace:
        raise Mistake(f"--film {path} exists; give --replace to write it anew, or another name")


def command(
    run: str,
    instruction: str = "",
    /,
    *,
    episodes: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 10,
    seed: int = 0,
    film: str = "",
    checkpoint: str = "best",
    replace: bool = False,
    code: str = "",
    json: bool = False,
) -> None:
    """Let a trained policy move its arm, and say how its episodes ended and how long it thought.

    Args:
        run: a run's folder.
        instruction: what to do, for a policy that reads; empty: what each scene says.
        episodes: how many.
        seed: of the scenes; the same seed gives the same ones.
        film: a .gif to write, the first episodes one after another.
        checkpoint: best, last or a step.
        replace: write --film anew where it exists.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend act runs/act-pick-place -n 20
        descend act runs/vla-sort "pick the red cube and place it in the blue bin" --film red.gif
    """
    use_code(code)
    found = act(run, instruction, episodes, seed, film, checkpoint, replace)
    if json:
        print(json_module.dumps(found, indent=2))
        return
    rows = [
        [str(i), "done" if row["success"] else "failed", str(row["steps"]), row["grasped"]]
        for i, row in enumerate(found["episodes"])
    ]
    print(format_table(["episode", "ended", "steps", "grasped"], rows))
    print(f"success {found['success']:.1%} of {len(rows)} episodes")
    stages = ", ".join(f"{name} {took:.1f} ms" for name, took in found["milliseconds"].items())
    print(f"{stages}: a new plan up to {found['hertz']:.0f} times a second")
    if film:
        print(f"written {film}")
