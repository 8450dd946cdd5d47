"""Several tasks one after another in one run: pre-training, instruction tuning, a reward model, PPO or DPO.

    stage    learns            from                       begins with
    1        language model    plain text                 random weights
    2        language model    prompts and responses      stage 1
    3        reward model      rankings                   the trunk of stage 2
    4        language model    its own texts, judged      a copy of stage 2 becomes the reference

Never are two trained at once (VOM 13.7): what a stage does not train stays as it is, bit for bit. A batch says its
stage. A stage begins once, with its first batch, by handing weights on (`begin`); how far the run has come is part of
its state, as are the copies, so a run that is stopped in any stage goes on exactly. Only what learns now is in training
mode. Of the last stage the scores have their own names, of the others "stage_name"; before the last stage has begun its
scores are NaN, which no score is worse than.

Systems: multi-stage-training, rlhf
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from descend.contracts import Batch, JointMove, Move, Task


class Link(NamedTuple):
    """A stage of a chain."""

    name: str
    player: str
    """Which of the chain's parts learns."""
    task: Task
    begin: Callable[[], None] = lambda: None
    """What is handed on when the stage begins."""


class Chain(Task):
    """`parts` are all networks of all stages, by name; the tasks of the links share them."""

    begun: Tensor

    def __init__(self, parts: Mapping[str, nn.Module], links: Sequence[Link], frozen: tuple[str, ...] = ()):
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)
        object.__setattr__(self, "links", tuple(links))  # their networks are the parts: not to be saved twice
        self.players = tuple(dict.fromkeys(link.player for link in links))
        self.frozen = frozen
        self.register_buffer("begun", torch.tensor(-1))  # the last stage that has begun

    links: tuple[Link, ...]

    @property
    def stage(self) -> int:
        """Where the run is."""
        return max(int(self.begun), 0)

    def enter(self, stage: int) -> None:
        """Begin all stages up to this one that have not begun."""
        for number in range(int(self.begun) + 1, stage + 1):
            with torch.no_grad():
                self.links[number].begin()
            self.begun.fill_(number)
            self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Only what learns now."""
        super().train(False)
        self.training = mode
        getattr(self, self.links[self.stage].player).train(mode)
        return self

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        stage = int(batch["stage"][0])
        self.enter(stage)
        link = self.links[stage]
        for move in link.task.moves({name: x for name, x in batch.items() if name != "stage"}):
            yield move._replace(player=link.player)

    def score(self, batch: Batch) -> dict[str, Any]:
        """Of the stage that the batch is of."""
        stage, last = int(batch["stage"][0]), len(self.links) - 1
        found = self.links[stage].task.score({name: x for name, x in batch.items() if name != "stage"})
        if stage < last:
            return {f"{self.links[stage].name}_{name}": values for name, values in found.items()}
        if int(self.begun) < last:
            return {name: torch.full_like(values, torch.nan) for name, values in found.items()}
        return dict(found)


def hand_over(source: nn.Module, target: nn.Module) -> Callable[[], None]:
    """Gives `target` the weights of `source`, of the same shapes."""
    return lambda: copy_weights(source, target)


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Every tensor."""
    for mine, theirs in zip(target.state_dict().values(), source.state_dict().values(), strict=True):
        mine.copy_(theirs)
