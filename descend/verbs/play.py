"""descend play: a trained policy plays whole episodes, is scored and filmed."""

from __future__ import annotations

import json as json_module
import statistics
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from descend.data.video.writing import check_video_out, write_video
from descend.errors import Mistake
from descend.files import write_bytes
from descend.inference.player import Player
from descend.inference.saving import check_out
from descend.own_code import use_code
from descend.report.film import MOST as MOST_FRAMES
from descend.report.film import encode_film
from descend.report.sheet import write_png
from descend.verbs.table import format_table
from descend.views.worlds import choose_frames

MOST = 10_000  # episodes
STRIP = 8  # pictures of an episode in a .png
ROWS = 10  # episodes in a film or a strip
SHOWN = 20  # episodes in the table
STILLS, VIDEOS = (".png", ".gif"), (".mp4", ".mkv", ".mov")


def play(
    run: str | Path,
    episodes: int = 1,
    out: str | Path = "",
    env: str = "",
    seed: int = 0,
    checkpoint: str | int = "best",
    replace: bool = False,
) -> list[dict[str, Any]]:
    """Whole episodes of a trained policy, played without exploring.

    Args:
        run: a run's folder, a model folder, or a policy that Stable-Baselines3 saved (.zip).
        episodes: how many.
        out: pictures to write: .gif or .mp4 for a film, .png for a strip; the first 10 episodes.
        env: the environment, where it is not the one of the run.
        seed: of the episodes; the same seed gives the same ones.
        checkpoint: best, last or a step.
        replace: write `out` anew where it exists.

    Returns:
        {"return", "steps"} of each episode.
    """
    if not 1 <= episodes <= MOST:
        raise Mistake(f"--episodes {episodes}: give 1 to {MOST:,}")
    if str(out):
        check_place(Path(out), replace)
    player = Player.open(run, checkpoint)
    if str(out):
        write_film(Path(out), player, min(episodes, ROWS), seed, env)
    found = player.outcome(episodes, seed, env)
    rows = zip(found.returns.tolist(), found.lengths.int().tolist(), strict=True)
    return [{"return": total, "steps": steps} for total, steps in rows]


def check_place(path: Path, replace: bool) -> None:
    """Refuse a place that cannot be written, before anything is computed."""
    check_out(path, replace, (*STILLS, *VIDEOS))
    if path.suffix in VIDEOS:
        check_video_out(path, replace)


def write_film(path: Path, player: Player, episodes: int, seed: int, env: str) -> None:
    """The first episodes: one after another in a film, each in a row of a strip."""
    filmed = player.film(episodes, seed, env)
    if path.suffix in VIDEOS:
        first, rate = next(filmed)
        with write_video(path, rate) as sink:
            for frames in (first.frames, *(found.frames for found, _ in filmed)):
                for frame in frames:
                    sink.write(frame)
        return
    films = [found.frames for found, _ in filmed]
    if path.suffix == ".gif":
        each = max(2, MOST_FRAMES // len(films))
        write_bytes(path, encode_film(np.stack([f for film in films for f in choose_frames(film, each)]) / 255))
        return
    rows = [choose_frames(film, STRIP) for film in films]
    wide = max(map(len, rows))
    write_png(path, [row + [np.full_like(row[0], 255)] * (wide - len(row)) for row in rows], "--out", 1)


def choose_out(out: str, run: str, json: bool) -> Path | None:
    """Where the pictures go; a film is written even if no place is named, unless the answer is for a program."""
    if out or json:
        return Path(out) if out else None
    return Path(f"{Path(run).resolve().stem}-episode.gif")


def command(
    run: str,
    /,
    *,
    episodes: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 1,
    out: str = "",
    env: str = "",
    seed: int = 0,
    checkpoint: str = "best",
    replace: bool = False,
    code: str = "",
    json: bool = False,
) -> None:
    """Play whole episodes with a trained policy: their returns, and a film.

    Args:
        run: a run's folder, a model folder, or a policy that Stable-Baselines3 saved (.zip).
        episodes: how many.
        out: pictures to write: .gif or .mp4 for a film, .png for a strip; the first 10 episodes. Without it a .gif with
            the run's name.
        env: the environment, where it is not the one of the run.
        seed: of the episodes; the same seed gives the same ones.
        checkpoint: best, last or a step.
        replace: write --out anew where it exists.
        code: the file of an environment, recipe or model of your own.
        json: print JSON.

    Examples:
        descend play runs/ppo-cartpole
        descend play runs/ppo-cartpole -n 100 --json
        descend play runs/dqn-cartpole -n 3 --out strip.png
        descend play sb3.zip --env CartPole-v1 --out film.mp4
    """
    use_code(code)
    path, said = choose_out(out, run, json), ""
    if path:
        check_place(path, replace)
    try:
        found = play(run, episodes, path or "", env, seed, checkpoint, replace)
    except Mistake as mistake:
        if out or not path:
            raise
        found, path, said = play(run, episodes, "", env, seed, checkpoint), None, f"no film: {mistake}"
    if json:
        print(json_module.dumps(found))
        return
    rows = [[str(i), f"{row['return']:.6g}", str(row["steps"])] for i, row in enumerate(found[:SHOWN])]
    print(format_table(["episode", "return", "steps"], rows))
    totals, steps = [row["return"] for row in found], [row["steps"] for row in found]
    if len(found) > 1:
        print(
            f"return {statistics.fmean(totals):.6g} ± {statistics.pstdev(totals):.3g}, "
            f"{statistics.fmean(steps):.6g} steps: means of {len(found):,} episodes"
        )
    if path or said:
        print(said or f"written {path}")
