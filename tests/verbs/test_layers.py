"""The verb layers: by module, by name, by folder, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import descend
from descend import cli
from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.models.lenet import LeNet, LeNetConfig


def test_lenet_by_name_module_and_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["layers", "lenet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["parameters"] == 61_706
    assert [row["output"][-1] for row in told["layers"]] == [28, 14, 10, 5, 120, 84, 10]
    model = LeNet(LeNetConfig())
    found = descend.layers(model, torch.zeros(1, 1, 32, 32))
    assert found.flops == told["flops"]
    model.save_pretrained(tmp_path)
    assert cli.main(["layers", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(found)


def test_other_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert descend.layers("gpt2", size="gpt2").parameters == 124_439_808
    assert cli.main(["layers", "mlp"]) == 0
    assert "Linear" in capsys.readouterr().out


def test_mistakes() -> None:
    with pytest.raises(Mistake, match="Did you mean 'lenet'"):
        descend.layers("lenet5")
    with pytest.raises(Mistake, match="Its sizes: lenet-5"):
        descend.layers("lenet", size="small")
    with pytest.raises(Mistake, match="needs an input"):
        descend.layers(nn.Linear(2, 2))
    with pytest.raises(Mistake, match="does not run on 1×64"):
        descend.layers("t5")


def test_a_config_whose_fields_mean_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    """In a CLIP `image` is a config, and in sequence to sequence `context` is a word."""
    from descend.models import clip, seq2seq

    for name, network in (("clip", clip.Clip(clip.TINY)), ("seq2seq", seq2seq.Seq2Seq(seq2seq.TINY))):
        network.save_pretrained(tmp_path / name)
        with pytest.raises(Mistake, match=r"from Python: descend\.layers"):
            descend.layers(str(tmp_path / name))


def test_a_run_is_shown_at_its_own_size(tmp_path: Path) -> None:
    """The images that it was trained on, not the 224 pixels of ImageNet."""
    from descend.models.resnet import ResNet, ResNetConfig

    config = ResNetConfig(stem=4, widths=(4, 8), depths=(1, 1), block="basic")
    ResNet(config).save_pretrained(tmp_path)
    by_default = descend.layers(str(tmp_path))
    Preprocessing((3, 32, 32), (0.5,) * 3, (0.5,) * 3).save(tmp_path)
    found = descend.layers(str(tmp_path))
    assert found.flops == descend.layers(ResNet(config), torch.zeros(1, 3, 32, 32)).flops < by_default.flops
    assert descend.layers(str(tmp_path), side=224).flops == by_default.flops


@pytest.mark.parametrize(("name", "parameters"), [("gcn", 23_040), ("gat", 92_373)])
def test_a_graph_network_is_shown_on_a_ring(name: str, parameters: int) -> None:
    found = descend.layers(name)
    assert found.parameters == parameters
    assert found.flops > 2 * 8 * parameters * 0.9, "8 nodes, a multiply-add for each weight"
