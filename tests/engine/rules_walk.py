"""Steps by every optimizer rule in one process of two: what test_rules_walk starts, and what it compares with."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from inspect import isclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from descend.data.streams.sliced import Sliced
from descend.engine.distributed import World, gather, join
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.errors import Mistake
from descend.optim import book_rules, rules
from descend.optim.by_part import ByPart, Part
from descend.optim.schedules import Constant
from descend.tasks.regress import Regress
from tests.engine.test_training import Repeat

STEPS, B = 2, 8
INNER = 3  # searches in one step of a rule that has them: enough for a direction that depends on the one before
MODES = ("ddp", "fsdp")


def find_rules() -> dict[str, Any]:
    """Every rule of the two files with its defaults, and one that thaws a parameter later."""
    found = {**vars(rules), **vars(book_rules)}
    kinds = {name: kind for name, kind in sorted(found.items()) if isclass(kind) and is_dataclass(kind)}
    few = {name: {f.name: INNER for f in fields(kind) if f.name == "inner"} for name, kind in kinds.items()}
    late = ByPart(rules.SGD(), (Part("weight"), Part("bias", begins=1)))  # a parameter that takes no part at first
    return {name: kind(**few[name]) for name, kind in kinds.items()} | {"ByPart": late}


def take_steps(rule: Any, world: World, mode: str = "ddp", accumulate: int = 1) -> dict[str, Tensor]:
    """The weights of a linear regression after some steps on one batch; empty when the rule refuses the mode.

    It has one minimum: a search that ends anywhere would magnify rounding.
    """
    torch.manual_seed(0)
    model = nn.Linear(5, 1).double()
    batch = {"x": torch.randn(B, 5, dtype=torch.float64), "y": torch.randn(B, dtype=torch.float64)}
    stream = Sliced(Repeat({**batch, "ids": torch.arange(B)}), B, accumulate, world.rank, world.size)
    parts = Parts(Regress(model), model, stream, [batch], {"model": rule})
    loop = Loop(accumulate=accumulate, precision="float32", compile="off", parallel=mode)
    try:
        run = Training(parts, loop, Constant(), world)
    except Mistake:
        return {}
    for _ in range(STEPS):
        run.advance()
    return {key: x.clone() for key, x in gather(model.state_dict()).items()}


def main(args: list[str]) -> None:
    """Every rule in both modes."""
    torch.set_num_threads(1)
    where, processes = Path(args[0]), join()
    for mode in MODES:
        for name, rule in find_rules().items():
            weights = take_steps(rule, processes, mode)
            if processes.first:
                save_file(weights, where / f"{name}-{mode}.safetensors")
    torch.distributed.destroy_process_group()
