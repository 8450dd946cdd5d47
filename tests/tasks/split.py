"""Steps of every task's case in one process of two: what test_split starts with torchrun, and what it compares with."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.sliced import Sliced
from descend.engine.distributed import World, join
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from tests.engine.test_training import Repeat
from tests.tasks.cases import CASES, ONE_PROCESS, B, make

STEPS = 2


def train(name: str, accumulate: int, world: World) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The weights after some steps, and the metrics of the last one."""
    task, batch = make(name)
    stream = Sliced(Repeat(batch), B, accumulate, world.rank, world.size)
    rules = {player: SGD(0.1) for player in task.players}
    first = getattr(task, task.players[0])
    loop = Loop(accumulate=accumulate, precision="float32", compile="off")
    run = Training(Parts(task, first, stream, [batch], rules), loop, Constant(), world)
    metrics: dict[str, float] = {}
    for _ in range(STEPS):
        metrics = run.advance()
    return {key: x.clone() for key, x in task.state_dict().items()}, metrics


def keep(batch: Batch) -> Batch:
    return {name: x.contiguous() for name, x in batch.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    where, processes = Path(sys.argv[1]), join()
    for name in CASES:
        if name not in ONE_PROCESS:
            state, metrics = train(name, 2, processes)
            if processes.first:
                losses = {f"metric {key}": torch.tensor(value, dtype=torch.float64) for key, value in metrics.items()}
                save_file(keep(state | losses), where / f"{name}.safetensors")
    torch.distributed.destroy_process_group()
