"""Steps of MoCo, PIRL and SimCLR in one process of two: what test_self_supervised_split starts."""

from __future__ import annotations

from pathlib import Path

import torch

from descend.engine.distributed import join
from tests.tasks.split import save_steps

NAMES = ("MoCo", "PIRL", "SimCLR")


def main(args: list[str]) -> None:
    torch.set_num_threads(1)
    where, processes = Path(args[0]), join()
    for name in NAMES:
        save_steps(name, "ddp", where, processes)
    torch.distributed.destroy_process_group()
