"""What every answerer starts from: a model in evaluation mode, and the folder that it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.models import is_policy_file, load
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.pipeline import Pipeline

BATCH = 64  # inputs that go through a model together


@dataclass(frozen=True)
class Trained:
    """A model and its folder: a checkpoint of a run, or a public model folder."""

    model: Any
    folder: Path

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

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
