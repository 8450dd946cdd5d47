"""Two processes train to the same weights as one, as copies (DDP) and as shards (FSDP2), also when
their number changes between a checkpoint and the resume."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch.distributed as dist
from safetensors.torch import load_file
from torch import nn

from descend.contracts import Loss
from descend.engine.distributed import Replica, World, tell_lost_processes
from descend.errors import Mistake
from tests.close import close
from tests.engine.small import text_file
from tests.engine.two_processes import game, language
from tests.pair import run_pair

CHANGED = ["ddp-then-alone", "fsdp-then-alone", "alone-then-ddp", "alone-then-fsdp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one process ("alone"), of two ("ddp", "fsdp"), and of one and then the other."""
    where = tmp_path_factory.mktemp("processes")
    (where / "data").mkdir()
    text_file(where / "data")
    language(where, "alone", World())
    game(where, "alone", World())
    for mode in ("ddp", "fsdp"):
        language(where, f"alone-then-{mode}", World(), ends=(6,))
    done = run_pair("tests.engine.two_processes", str(where))
    assert done.returncode == 0, done.stderr
    for mode in ("ddp", "fsdp"):
        language(where, f"{mode}-then-alone", World(), ends=(12,))
    return where


@pytest.mark.system("pathways-training")
@pytest.mark.system("pathways-training", "data-parallel", "sharded")
@pytest.mark.parametrize("mode", ["ddp", "fsdp", *CHANGED])
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


def test_a_parameter_without_a_part_in_the_loss_is_named() -> None:
    class Waiting(nn.Module):
        """Says what torch says at the step after."""

        def forward(self, computation: object) -> None:
            raise RuntimeError("your module has parameters that were not used in producing loss.")

    replica = Replica(nn.Linear(2, 1), World(), "ddp")
    with pytest.raises(Mistake, match=r"Linear has parameters that take no part in its loss \(weight\)"):
        replica.run_copies(Waiting(), lambda: Loss({}))


def test_a_lost_process_is_told_in_one_line_and_other_errors_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    with pytest.raises(Mistake, match="process 0 of 2 stops, since another one has gone"), tell_lost_processes():
        raise RuntimeError("[gloo] Connection closed by peer [127.0.0.1]:4242")
    with pytest.raises(RuntimeError, match="shapes differ"), tell_lost_processes():
        raise RuntimeError("shapes differ")
