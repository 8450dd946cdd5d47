"""What every answerer starts from: a model in evaluation mode, and the folder that it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import field, read_json
from descend.models import is_policy_file, load
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.pipeline import Pipeline

CALIBRATION = "calibration.json"  # beside the weights: {"temperature": T}
BATCH = 64  # inputs that go through a model together


@dataclass(frozen=True)
class Trained:
    """A model and its folder: a checkpoint of a run, or a public model folder."""

    model: Any
    folder: Path

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property
    def temperature(self) -> float:
        """By which the logits are divided: what `descend calibrate` found, 1 where nobody asked for it."""
        path = self.folder / CALIBRATION
        if self.folder.is_file() or not path.exists():
            return 1.0
        found = field(read_json(path), "temperature", float, path)
        if not (isfinite(found) and found > 0):
            raise Mistake(f"{path}: the temperature {found} is not a positive number; give descend calibrate again")
        return found

    def probabilities(self, z: Tensor) -> Tensor:
        """softmax(z / T) of logits z (.., K)"""
        return (z / self.temperature).softmax(dim=-1)

    @property
    def kind(self) -> str:
        """The name of the model's class, for messages."""
        return type(self.model).__name__


def load_trained(run: str | Path, checkpoint: str | int = "best") -> Trained:
    """The model of a run's checkpoint (best, last or a step), of a model folder, or of a policy's .zip."""
    if is_policy_file(run):
        return Trained(load(run), Path(run))
    folder = resolve_checkpoint(run, checkpoint)
    model = load(folder)
    if isinstance(model, Pipeline):
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # as its convolutions read their weights: not turned in each call
    return Trained(model, folder)
