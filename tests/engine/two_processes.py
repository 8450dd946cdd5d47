"""What each of two processes does in test_distributed: train the same things, spread in one way, save the result."""

from __future__ import annotations

import sys
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
    return "ddp" if mode == "alone" else mode


def language(folder: Path, mode: str, world: World) -> None:
    """A whole run with a checkpoint, resumed once, in float64 so that only rounding may differ."""
    for resume, steps in ((False, 6), (True, 12)):
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


if __name__ == "__main__":
    torch.set_num_threads(1)
    where, processes = Path(sys.argv[1]), join()
    for spread in sys.argv[2:]:
        language(where, spread, processes)
        game(where, spread, processes)
    if processes.size > 1:
        torch.distributed.destroy_process_group()
