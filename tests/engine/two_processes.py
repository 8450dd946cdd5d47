"""What each of two processes does in test_distributed: train the same things, spread in one way, save the result."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from descend.engine.distributed import World, gather, join
from descend.engine.fit import fit
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.engine.training import Training
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from tests.engine.small import small
from tests.engine.test_training import Game, Repeat


def spread_by(mode: str) -> str:
    """The flag; for one process alone any will do."""
    return "fsdp" if "fsdp" in mode else "ddp"


def language(folder: Path, mode: str, world: World, ends: tuple[int, ...] = (6, 12)) -> None:
    """A run in float64, so that only rounding may differ; resumed from a checkpoint where it has ended before."""
    for steps in ends:
        resume = steps > 6
        recipe = small(folder / "data", steps=steps, parallel=spread_by(mode), accumulate=2, save_every=6)
        parts = recipe.build()
        parts.task.double()
        if world.first and not resume:
            Run.create(folder / mode, {"name": "small"})
        world.wait()
        fit(parts, recipe.loop, Constant(), Run(folder / mode), Quiet(), world, resume=resume)


def game(folder: Path, mode: str, world: World) -> None:
    """Two players: each must train, sharded or not."""
    torch.manual_seed(0)
    task = Game().double()
    x = torch.arange(16.0, dtype=torch.float64).view(8, 2) / 10
    batch = {"x": x.chunk(world.size)[world.rank]}
    rules = {"d": SGD(0.01), "g": SGD(0.02)}
    parts = Parts(task, task.d, Repeat(batch), [batch], rules)
    run = Training(parts, Loop(parallel=spread_by(mode)), Constant(), world)
    for _ in range(4):
        run.advance()
    state = gather(task.state_dict())
    if world.first:
        save_file({k: v.contiguous() for k, v in state.items()}, folder / f"game-{mode}.safetensors")


def main(args: list[str]) -> None:
    """In each way of two processes, and a run that one process began."""
    torch.set_num_threads(1)
    where, processes = Path(args[0]), join()
    for spread in ("ddp", "fsdp"):
        language(where, spread, processes)
        game(where, spread, processes)
    language(where, "ddp-then-alone", processes, ends=(6,))
    language(where, "fsdp-then-alone", processes, ends=(6,))
    for later in ("ddp", "fsdp"):
        language(where, f"alone-then-{later}", processes, ends=(12,))
    torch.distributed.destroy_process_group()
