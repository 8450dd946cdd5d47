"""Two processes started by torchrun train to the same weights as one, as copies (DDP) and as shards (FSDP2)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.close import close
from tests.engine.small import text_file

ROOT = Path(__file__).parents[2]
WORKER = "tests.engine.two_processes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one process ("alone") and of two ("ddp", "fsdp")."""
    where = tmp_path_factory.mktemp("processes")
    (where / "data").mkdir()
    text_file(where / "data")
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m", WORKER]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for command in ([sys.executable, "-m", WORKER, str(where), "alone"], [*launch, str(where), "ddp", "fsdp"]):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    return where


@pytest.mark.system("pathways-training")
@pytest.mark.system("pathways-training", "data-parallel", "sharded")
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes_are_one(folder: Path, mode: str) -> None:
    one, two = (load_file(folder / m / "checkpoints/last/model.safetensors") for m in ("alone", mode))
    assert one.keys() == two.keys()
    for key in one:
        close(two[key], one[key])


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_players_train_in_two_processes(folder: Path, mode: str) -> None:
    one, two = (load_file(folder / f"game-{m}.safetensors") for m in ("alone", mode))
    for key in one:
        close(two[key], one[key])


def test_the_checkpoint_of_two_processes_opens_as_a_model(folder: Path) -> None:
    import descend

    assert descend.load(folder / "fsdp").config.width == 16
