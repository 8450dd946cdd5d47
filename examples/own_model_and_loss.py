"""A model and a loss of your own, in one file.

The recipe at the end joins them: `descend train own_model_and_loss.py --model.width 32` gives every field a flag, and
the run resumes, evaluates and reports like any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

import descend
from descend.contracts import Batch, Move
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.tasks.classify import Classify
from descend.weights.pretrained import Pretrained

STEPS = 200  # in the tests: 4


@dataclass(frozen=True)
class PatchConfig:
    image: tuple[int, int, int] = (1, 8, 8)  # set by the data
    classes: int = 10  # set by the data
    width: int = 64


class PatchNet(Pretrained):
    Config = PatchConfig

    def __init__(self, config: PatchConfig):
        super().__init__()
        self.config = config
        self.patches = nn.Conv2d(config.image[0], config.width, kernel_size=2, stride=2)
        self.head = nn.Linear(config.width, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.gelu(self.patches(x)).mean(dim=(2, 3)))


def focal_loss(logits: Tensor, y: Tensor, gamma: float) -> Tensor:
    """−(1 − p_y)^γ log p_y: what is already right counts less."""
    log_p = logits.log_softmax(-1).gather(1, y[:, None])[:, 0]
    return -((1 - log_p.exp()) ** gamma * log_p).mean()


class ClassifyFocally(Classify):
    """The task: what a batch means, and what is minimised."""

    def __init__(self, model: nn.Module, gamma: float):
        super().__init__(model)
        self.gamma = gamma

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: focal_loss(self.logits(batch), batch["y"], self.gamma))


@dataclass(frozen=True)
class FocalImages(ClassifyImages):
    """Image classification with this loss."""

    model: Any = field(default_factory=PatchConfig)
    gamma: float = 2.0  # a flag: --gamma

    def task(self, model: Pretrained, prepare: Any) -> Any:
        return ClassifyFocally(model, self.gamma)


RECIPE = FocalImages(loop=Loop(steps=STEPS, batch=64, eval_every=STEPS, save_every=STEPS, watch="max accuracy"))

if __name__ == "__main__":
    run, result = descend.train(__file__, {"gamma": 1.5}, out="runs/focal", quiet=True)
    print(f"best validation accuracy {result.best:.3f}")
    print(type(descend.load("runs/focal")).__name__)
