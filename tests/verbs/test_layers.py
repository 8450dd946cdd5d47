"""The verb layers: by module, by name, by folder, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import descend
from descend import cli
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
