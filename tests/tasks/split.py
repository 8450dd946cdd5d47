"""Steps of every task's case in one process of two: what test_split starts, and what it compares with."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.sliced import Sliced
from descend.engine.distributed import World, gather, join
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from tests.engine.test_training import Repeat
from tests.tasks.cases import CASES, ONE_PROCESS, B, make

STEPS = 2
MODES = ("ddp", "fsdp")


def train(
    name: str, accumulate: int, world: World, parallel: str = "ddp"
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The weights after some steps, and the metrics of the last one."""
    task, batch = make(name)
    stream = Sliced(Repeat(batch), B, accumulate, world.rank, world.size)
    rules = {player: SGD(0.1) for player in task.players}
    first = getattr(task, task.players[0])
    loop = Loop(accumulate=accumulate, precision="float32", compile="off", parallel=parallel, clip=10.0)
    run = Training(Parts(task, first, stream, [batch], rules), loop, Constant(), world)
    metrics: dict[str, float] = {}
    for _ in range(STEPS):
        metrics = run.advance()
    return {key: x.clone() for key, x in gather(task.state_dict()).items()}, metrics


def keep(batch: Batch) -> Batch:
    return {name: x.contiguous() for name, x in batch.items()}


def save_steps(name: str, mode: str, where: Path, world: World) -> None:
    """The steps of one case among the processes, written by the first."""
    state, metrics = train(name, 2, world, mode)
    losses = {f"metric {key}": torch.tensor(value, dtype=torch.float64) for key, value in metrics.items()}
    if world.first:
        save_file(keep(state | losses), where / f"{name}-{mode}.safetensors")


def main(args: list[str]) -> None:
    """Every case in both modes."""
    torch.set_num_threads(1)
    where, processes = Path(args[0]), join()
    for mode in MODES:
        for name in CASES:
            if name not in ONE_PROCESS:
                save_steps(name, mode, where, processes)
    torch.distributed.destroy_process_group()
