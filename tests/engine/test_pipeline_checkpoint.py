"""A checkpoint may hold folders: the parts of a pipeline are written once, checked, and found again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import descend
from descend.engine import checkpoint
from descend.errors import Mistake
from descend.models.ldm_pipeline import TINY, LDMPipeline
from descend.weights.checkpoints import is_complete
from descend.weights.digests import Damaged, lies_outside

WEIGHTS = "unet/diffusion_pytorch_model.safetensors"


def write(folder: Path, step: int) -> LDMPipeline:
    torch.manual_seed(step)
    model = LDMPipeline(TINY)
    checkpoint.save(folder, step, model.save_pretrained, {"task": model.state_dict()})
    return model


def test_a_pipeline_is_written_once_and_read_again(tmp_path: Path) -> None:
    model = write(tmp_path, 3)
    found = tmp_path / "step-000003"
    assert is_complete(found)
    step, state = checkpoint.load(found)
    assert step == 3
    assert all(torch.equal(state["task"][name], x) for name, x in model.state_dict().items())
    large = sum(x.nbytes for x in model.state_dict().values() if x.nbytes >= 4096)
    assert (found / "state.safetensors").stat().st_size < sum(x.nbytes for x in model.state_dict().values()) - large / 2
    again = descend.load(found)
    assert all(torch.equal(a, b) for a, b in zip(again.state_dict().values(), model.state_dict().values(), strict=True))


@pytest.mark.parametrize("name", [WEIGHTS, "vqvae/config.json", "scheduler/scheduler_config.json", "model_index.json"])
def test_damage_in_a_folder_is_named_and_the_checkpoint_before_it_is_used(name: str, tmp_path: Path) -> None:
    write(tmp_path, 3)
    write(tmp_path, 4)
    path = tmp_path / "step-000004" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(Damaged, match=name):
        checkpoint.load(tmp_path / "step-000004")
    with pytest.raises(Mistake, match=f"{name}.*altered"):
        descend.load(tmp_path / "step-000004")
    told: list[str] = []
    assert checkpoint.newest(tmp_path, told.append)[1] == 3
    assert name in told[0]
    path.unlink()
    assert not is_complete(tmp_path / "step-000004")


def test_a_list_that_leads_out_of_its_folder_is_refused() -> None:
    assert not lies_outside("unet/config.json")
    assert all(map(lies_outside, ("/etc/passwd", "../other/config.json", "unet/../../x", "a//b")))
