"""Inception-v3: outputs that torchvision computed for the same weights, and the layout of its public file."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import descend
from descend.models.inception_v3 import (
    SIZES,
    TINY,
    TINY_INPUT,
    TORCHVISION,
    InceptionV3,
    InceptionV3Config,
    InceptionV3WithAuxiliary,
)
from descend.weights.flat import read_flat, write_flat
from descend.weights.rules import find
from tests.close import close

pytestmark = pytest.mark.system("inception-v3")
FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "torchvision_keys.json").read_text())


def number(key: str, shape: list[int]) -> Tensor:
    """Weights that follow from the key alone: torchvision was given the same."""
    random = torch.Generator().manual_seed(zlib.crc32(key.encode()))
    if key.endswith("num_batches_tracked"):
        return torch.tensor(3)
    if key.endswith("running_var"):
        return torch.rand(shape, generator=random) + 0.5
    x = torch.randn(shape, generator=random)
    if len(shape) == 1:
        return 0.1 * x + key.endswith("weight")
    return x * (2 / x[0].numel()) ** 0.5


def public() -> dict[str, Tensor]:
    lines = (line.split(" ") for line in FACTS["keys"]["inception_v3"])
    return {key: number(key, [int(n) for n in shape.split("x") if n]) for key, shape in lines}


@pytest.mark.system("inception-v3", "outputs", "features")
def test_outputs_of_torchvision_for_the_same_weights(tmp_path: Path) -> None:
    """All 580 tensors of the public file find their place, with the auxiliary classifier and without."""
    tensors = public()
    torch.save(tensors, tmp_path / "public.pth")
    x = torch.randn(2, 3, 107, 107, generator=torch.Generator().manual_seed(0))
    model = InceptionV3WithAuxiliary(SIZES["inception-v3"]).eval()
    read_flat(model, tmp_path / "public.pth", TORCHVISION)
    with torch.no_grad():
        close(model(x)[:, :5], torch.tensor(FACTS["inception_v3"]["first logits"]), loosen=10)  # 94 layers
        assert model.features(x).shape == (2, 2048)
    assert sum(p.numel() for p in model.parameters()) == 27_161_264
    named = [(find(name, TORCHVISION, "ours"), tensor) for name, tensor in model.state_dict().items()]
    assert {found[1] for found, _ in named if found} == set(tensors)
    assert all(torch.equal(tensor, tensors[found[1]]) for found, tensor in named if found)


@pytest.mark.system("inception-v3", "auxiliary")
def test_the_auxiliary_classifier_is_left_out_of_a_model_without_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    full, x = InceptionV3WithAuxiliary(TINY).eval(), TINY_INPUT()
    write_flat(full, tmp_path / "w.safetensors", TORCHVISION)
    bare = InceptionV3(TINY).eval()
    read_flat(bare, tmp_path / "w.safetensors", TORCHVISION)
    assert torch.equal(bare(x), full(x))
    full.save_pretrained(tmp_path / "folder")
    assert isinstance(descend.load(tmp_path / "folder"), InceptionV3WithAuxiliary)


@pytest.mark.system("inception-v3", "auxiliary")
def test_both_classifiers_train() -> None:
    torch.manual_seed(0)
    model, x, y = InceptionV3WithAuxiliary(TINY), torch.randn(3, 2, 299, 299), torch.arange(3)
    logits, side = model.both(x)
    assert torch.equal(logits, model.eval()(x)) is False  # batch statistics against running ones
    assert logits.shape == side.shape == (3, 3)
    loss = F.cross_entropy(logits, y) + 0.3 * F.cross_entropy(side, y)
    loss.backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name


@pytest.mark.system("inception-v3", "features")
def test_sizes_of_the_modules() -> None:
    """299 pixels: 35, 17 and 8 places on a side; 256, 288, 288, 768 (five times), 1280, 2048, 2048 channels."""
    with torch.device("meta"):
        model = InceptionV3(InceptionV3Config())
        x, seen = model.stem(torch.zeros(1, 3, 299, 299)), []
        for module in (*model.to_17, *model.to_8):
            x = module(x)
            seen.append((x.shape[1], x.shape[2]))
    expected = [(256, 35), (288, 35), (288, 35), *[(768, 17)] * 5, (1280, 8), (2048, 8), (2048, 8)]
    assert seen == expected


@pytest.mark.system("inception-v3", "modules")
def test_a_module_stacks_its_branches() -> None:
    torch.manual_seed(0)
    module: Any = InceptionV3(TINY).eval().to_17[0]
    x = torch.randn(2, 12, 9, 9)
    parts = [branch(x) for branch in module]
    close(module(x), torch.cat(parts, 1))
    averaged = F.avg_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 1)  # zeros outside count
    close(parts[-1], module[3][1](averaged))


def test_width_in_sixteenths() -> None:
    with pytest.raises(ValueError, match=r"width 0\.3: give a multiple of 1/16"):
        InceptionV3Config(width=0.3)
