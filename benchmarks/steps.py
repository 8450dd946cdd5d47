"""A training step, as both sides take it: descend's engine, and a plain loop with the same fused AdamW.

Both in float32, or in bfloat16 under torch's autocast where BENCHMARK_PRECISION says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Batch = dict[str, torch.Tensor]
PRECISION = os.environ.get("BENCHMARK_PRECISION", "float32")


def engine(task: Any, batch: Batch, compiled: str = "off") -> Callable[[], object]:
    """A step of Training, as `descend train` takes it, always on this batch."""
    from descend.engine.distributed import World
    from descend.engine.hardware import keep_memory
    from descend.engine.loop import Loop
    from descend.engine.parts import Parts
    from descend.engine.training import Training
    from descend.optim.rules import AdamW
    from descend.optim.schedules import Constant

    class Same:
        def __next__(self) -> Batch:
            return dict(batch)

        def state_dict(self) -> dict[str, object]:
            return {}

        def load_state_dict(self, state: dict[str, object]) -> None:
            pass

    keep_memory()
    parts = Parts(task, task.model, Same(), [], {"model": AdamW(lr=1e-3)})
    return Training(parts, Loop(compile=compiled, precision=PRECISION), Constant(), World()).advance


def plain(model: nn.Module, loss: Callable[[Any], torch.Tensor], compiled: bool = False) -> Callable[[], object]:
    """zero_grad, backward, step."""
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3, fused=True)
    run: Any = torch.compile(model) if compiled else model

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=PRECISION == "bfloat16"):
            value = loss(run)
        value.backward()
        optimizer.step()
        return float(value.detach())

    return step
