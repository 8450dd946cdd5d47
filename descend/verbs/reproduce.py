"""descend reproduce: train a published figure again, and put what comes out beside it."""

from __future__ import annotations

import json as json_format
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from descend.catalog.figures import DATA, Figure, figures, find_figures
from descend.engine.hardware import describe_environment
from descend.errors import Mistake
from descend.verbs.table import format_table, paint_state

FOLDER = Path("runs/reproduce")


class Outcome(NamedTuple):
    """What a run came to."""

    scores: dict[str, dict[str, float]]
    """By split."""
    seconds: float
    folder: Path


def measure_run(recipe: str, words: Sequence[str], folder: Path, threads: int = 0) -> Outcome:
    """Train a recipe, or go on with what is there, and evaluate it, in processes of their own, as in the shell."""
    limits = {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
    if any(folder.glob("checkpoints/step-*")):
        call(["resume", str(folder), "--quiet"], limits)
    else:
        call(["train", recipe, "--out", str(folder), "--replace", "--quiet", *words], limits)
    scores = json_format.loads(call(["evaluate", str(folder), "--json"], limits))
    lines = map(json_format.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    seconds = max(line["time"] for line in lines if "time" in line)  # the test score has none
    return Outcome(scores, seconds, folder)


def call(words: list[str], environment: dict[str, str]) -> str:
    """What `descend WORDS` prints; what it refuses is a mistake in its words."""
    line = [sys.executable, "-m", "descend", *words]
    done = subprocess.run(line, capture_output=True, env=environment, check=False, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise Mistake(said[-1].removeprefix("descend: "))
    return done.stdout


def reproduce(
    recipe: str, data: str | Path = "", seeds: Sequence[int] = (), folder: str | Path = FOLDER
) -> list[dict[str, Any]]:
    """Train the figures of a recipe again, and compare.

    Args:
        recipe: whose figures.
        data: where the public data is, for a figure that needs it.
        seeds: which of the recorded seeds; empty: all.
        folder: where the runs go; an interrupted one goes on from there.

    Returns:
        For each figure {"claim", "split", "seeds", "values", "mean", "spread", "seconds", "recorded",
        "recorded spread", "band", "in band", "bar", "source", "recorded on", "machine"}.
    """
    found = find_figures(recipe)
    if any(one.needs for one in found) and not data:
        raise Mistake(f"{recipe} is measured on public data: give --data, {DATA[found[0].needs]}")
    chosen = [seed for seed in found[0].seeds if not seeds or seed in seeds]
    if not chosen:
        raise Mistake(f"--seeds: the figure was measured on {', '.join(map(str, found[0].seeds))}")
    runs: dict[tuple[str, int], Outcome] = {}
    for one in found:
        for seed in chosen:
            if (one.precision, seed) not in runs:
                words = ["--seed", str(seed), *one.flags.split(), *(["--data.path", str(data)] if one.needs else [])]
                words += ["--precision", one.precision] if one.precision else []
                place = Path(folder) / "-".join(filter(None, (recipe, one.precision, str(seed))))
                print(f"{recipe}, seed {seed} …", file=sys.stderr, flush=True)
                runs[one.precision, seed] = measure_run(recipe, words, place)
    return [compare(one, chosen, [runs[one.precision, seed] for seed in chosen]) for one in found]


def compare(figure: Figure, seeds: Sequence[int], runs: Sequence[Outcome]) -> dict[str, Any]:
    """Ours beside the recorded one."""
    values = [run.scores[figure.split][figure.score] for run in runs]
    mean, (low, high) = statistics.mean(values), figure.band
    here = describe_environment()
    return {
        "claim": figure.claim,
        "split": figure.split,
        "seeds": list(seeds),
        "values": values,
        "mean": mean,
        "spread": statistics.stdev(values) if len(values) > 1 else 0.0,
        "seconds": [run.seconds for run in runs],
        "recorded": figure.mean,
        "recorded spread": figure.spread,
        "band": [low, high],
        "in band": low <= mean <= high,
        "bar": figure.bar,
        "source": figure.source,
        "recorded on": f"{figure.date}, {figure.machine}",
        "machine": f"{here['cpu']}, {here['cores']} cores, torch {here['torch']}",
    }


def command(
    recipe: str = "",
    /,
    *,
    list: bool = False,
    data: str = "",
    seeds: tuple[int, ...] = (),
    out: Path = FOLDER,
    json: bool = False,
) -> None:
    """Train a published figure again, with the recorded seeds, and put what comes out beside it.

    Args:
        recipe: whose figures; without one they are listed.
        list: list the figures.
        data: where the public data is, for a figure that needs it.
        seeds: which of the recorded seeds; by default all.
        out: where the runs go; an interrupted one goes on from there.
        json: print JSON instead of a table.

    Examples:
        descend reproduce --list
        descend reproduce gcn-karate
        descend reproduce gcn-cora --data cora/ --seeds 0 1 2
    """
    if list or not recipe:
        print(json_format.dumps([vars(one) for one in figures()], indent=1) if json else format_list())
        return
    found = reproduce(recipe, data, seeds, out)
    print(json_format.dumps(found, indent=1) if json else "\n\n".join(map(format_comparison, found)))


def format_list() -> str:
    """Every figure in a line."""
    rows = [
        [one.recipe, one.claim.removeprefix(f"{one.recipe} "), f"{one.mean:.4g} ± {one.spread:.1g}", one.bar,
         len(one.seeds), f"{sum(one.seconds) / 60:.0f}", one.needs, one.source]
        for one in figures()
    ]  # fmt: skip
    return format_table(
        ["recipe", "score", "recorded", "demanded", "seeds", "minutes", "--data", "others report"], rows
    )


def format_comparison(found: dict[str, Any]) -> str:
    """A figure in a few lines."""
    low, high = found["band"]
    verdict = "in band" if found["in band"] else "out of band"
    each = ", ".join(f"{value:.4g}" for value in found["values"])
    lines = [
        f"{found['claim']} ({found['split']})",
        f"  here      {found['mean']:.4g} ± {found['spread']:.2g} ({each}), {sum(found['seconds']) / 60:.1f} min",
        f"  recorded  {found['recorded']:.4g} ± {found['recorded spread']:.2g}, {found['recorded on']}",
        f"  band      {low:.4g} to {high:.4g}, demanded {found['bar']}",
        *([f"  others    {found['source']}"] if found["source"] else []),
        f"  machine   {found['machine']}",
    ]
    return "\n".join([*lines, paint_state(f"  verdict   {verdict}")])
