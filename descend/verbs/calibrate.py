"""descend calibrate: how far a classifier's confidence is from the truth, and a temperature that corrects it."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.classic.temperature import fit_temperature
from descend.contracts import Batch, Chooses, HasDecoder
from descend.engine.hardware import move_batch, one_thread
from descend.engine.run import Run
from descend.errors import Mistake
from descend.files import write_json
from descend.inference.trained import CALIBRATION
from descend.kinds.saved import read_saved
from descend.metrics.classification import bin_confidence, mean_gap
from descend.own_code import use_code
from descend.report.showing import build_parts, take_weights
from descend.weights.checkpoints import resolve_checkpoint

BINS = 10


class Chosen(NamedTuple):
    """What was chosen of each example, at one temperature."""

    sure: Tensor
    right: Tensor
    loss: Tensor

    def describe(self) -> dict[str, Any]:
        """ECE, log-loss, accuracy and the bins that hold examples."""
        bins = bin_confidence(self.sure, self.right, BINS)
        rows = [
            {"from": k / BINS, "to": (k + 1) / BINS, "count": int(n), "confidence": float(c), "accuracy": float(a)}
            for k, (n, c, a) in enumerate(zip(*bins, strict=True))
            if n
        ]
        means = {"loss": float(self.loss.mean()), "accuracy": float(self.right.double().mean())}
        return {"ece": mean_gap(*bins), **means, "count": len(self.sure), "bins": rows}


def calibrate(run: str | Path, checkpoint: str | int = "best", dry: bool = False) -> dict[str, Any]:
    """Learn a temperature from a run's validation data; whoever opens the checkpoint uses it from then on.

    Args:
        run: the run's folder.
        checkpoint: best, last or a step.
        dry: only measure; nothing is written.

    Returns:
        {"checkpoint", "temperature", "valid": {"before", "after"}, "test": {"before", "after"}}, each with "ece",
        "loss", "accuracy", "count" and "bins"; `test` is left out where the data has none. Of a language model only
        "before": its texts are written at the temperature that is asked for.
    """
    found = Run.open(run)
    saved = read_saved(found.recipe, found.folder / "recipe.json")
    folder = resolve_checkpoint(found.folder, checkpoint)
    parts = build_parts(saved.recipe)
    task = parts.task
    if not isinstance(task, Chooses):
        raise Mistake(f"{found.folder} holds a {type(parts.model).__name__}, which does not choose among classes")
    take_weights(parts, folder)
    torch.set_num_threads(saved.threads)
    writes = isinstance(parts.model, HasDecoder)
    answers: dict[str, Any] = {"checkpoint": folder.name}
    temperature = 1.0
    if not writes:
        z, y = collect(task, parts.valid)
        answers["temperature"] = temperature = fit_temperature(z, y)
    with one_thread():
        splits = {"valid": parts.valid, "test": saved.recipe.test()}
    for name, batches in splits.items():
        if before := judge(task, batches, 1.0):
            answers[name] = {"before": before} | ({} if writes else {"after": judge(task, batches, temperature)})
    if not dry and not writes:
        write_json(folder / CALIBRATION, {"temperature": temperature})
    return answers


@torch.no_grad()
def collect(task: Any, batches: Iterable[Batch]) -> tuple[Tensor, Tensor]:
    """Logits (n, classes) and classes (n) of all examples."""
    device = next(task.parameters()).device
    task.eval()
    found = [task.choices(move_batch(batch, device)) for batch in batches]
    if not found:
        raise Mistake("the run has no validation data to learn a temperature from")
    return torch.cat([z.cpu() for z, _ in found]), torch.cat([y.cpu() for _, y in found])


@torch.no_grad()
def judge(task: Any, batches: Iterable[Batch], temperature: float) -> dict[str, Any]:
    """How sure the answers are, and how right; nothing where there are no examples."""
    device = next(task.parameters()).device
    task.eval()
    parts: list[Chosen] = []
    for batch in batches:
        z, y = task.choices(move_batch(batch, device))
        log_p = (z.double() / temperature).log_softmax(dim=-1)
        best = log_p.max(dim=-1)
        loss = -log_p.gather(1, y[:, None])[:, 0]
        parts.append(Chosen(best.values.exp().cpu(), (best.indices == y).cpu(), loss.cpu()))
    return Chosen(*map(torch.cat, zip(*parts, strict=True))).describe() if parts else {}


def command(run: str, /, *, checkpoint: str = "best", dry: bool = False, code: str = "", json: bool = False) -> None:
    """Measure how far a classifier's confidence is from the truth, and correct it by a temperature.

    Args:
        run: the run's folder.
        checkpoint: best, last or a step.
        dry: only measure; nothing is written.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend calibrate runs/demo
        descend calibrate runs/demo --dry --json
    """
    use_code(code)
    found = calibrate(run, checkpoint, dry)
    if json:
        print(json_module.dumps(found, indent=2))
        return
    for name in ("valid", "test"):
        for when, told in found.get(name, {}).items():
            said = f"ECE {told['ece']:.4f}, log-loss {told['loss']:.4f}, accuracy {told['accuracy']:.4f}"
            print(f"{name:5} {when:6} {said} of {told['count']:,}")
    shown = found.get("test") or found["valid"]
    print("confidence      count  mean confidence  accuracy")
    for row in shown.get("after", shown["before"])["bins"]:
        place, right = f"{row['from']:.1f} to {row['to']:.1f}", row["accuracy"]
        print(f"{place} {row['count']:10,} {row['confidence']:16.4f} {right:9.4f}")
    if "temperature" not in found:
        print("a language model writes at the temperature that it is given: nothing was kept")
        return
    if "test" in found and found["test"]["after"]["loss"] >= found["test"]["before"]["loss"]:
        print("no gain on the test data")
    kept = f"kept in {found['checkpoint']}/{CALIBRATION}: predict and serve use it until the file is deleted"
    print(f"temperature {found['temperature']:.4f}; {'nothing was kept (--dry)' if dry else kept}")
