"""Models of codes: replaced, saved, opened, asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.models import load, make_model, model_class
from descend.models.bert import BertConfig
from descend.models.gpt2 import TINY as GPT2
from descend.models.lenet import LeNetConfig
from descend.models.llama import TINY as LLAMA
from descend.models.yolo_v8 import TINY as YOLO
from descend.nn.quantized import Coded, QuantizedLinear, find_matrices, quantize, write_out
from descend.weights.pretrained import Pretrained
from tests.close import close

SLUG = "post-training-quantization"
TOKENS = torch.arange(12).view(2, 6) * 5 % 61


def make(name: str) -> tuple[Pretrained, Tensor]:
    """A model with random weights, and an input."""
    torch.manual_seed(0)
    if name == "lenet":
        return make_model(LeNetConfig(classes=3)).eval(), torch.randn(2, 1, 32, 32)
    if name == "yolo_v8":
        return make_model(YOLO).eval(), torch.randn(1, 3, 64, 64)
    config = {"gpt2": GPT2, "llama": LLAMA, "bert": BertConfig(61, 24, 32, 2, 4, 48)}[name]
    return make_model(config).eval(), TOKENS


def answer(model: nn.Module, x: Tensor) -> Tensor:
    """All numbers that a model gives, end to end."""
    with torch.no_grad():
        found = model(x)
    parts = [found] if isinstance(found, Tensor) else list(torch.utils._pytree.tree_leaves(found))
    return torch.cat([part.flatten() for part in parts if isinstance(part, Tensor)])


@pytest.mark.system(SLUG, "models", "memory")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("bits", "group"), [(8, 0), (4, 32)])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "lenet", "yolo_v8"])
def test_saved_and_opened(name: str, bits: int, group: int, tmp_path: Path) -> None:
    """The same bits of every answer; what the matrices take is a half or a quarter of 16 bits, and the steps."""
    model, x = make(name)
    plain = answer(model, x)
    matrices = {n: layer.weight.numel() for n, layer in find_matrices(model).items()}
    model.kept_as = quantize(model, bits, group)
    found = answer(model, x)
    assert not torch.equal(found, plain)
    assert (found - plain).norm() < (0.02 if bits == 8 else 0.5) * plain.norm()
    coded = {n: part for n, part in model.named_modules() if isinstance(part, Coded)}
    assert list(coded) == list(matrices)
    for n, part in coded.items():
        rows, columns = part.shape[0], matrices[n] // part.shape[0]
        assert part.codes.nbytes == rows * (columns if bits == 8 else -(-columns // 2))
        assert part.scales.nbytes == 4 * rows * (-(-columns // group) if group else 1)
    model.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert torch.equal(answer(again, x), found)
    assert again.kept_as == model.kept_as
    size = (tmp_path / "model.safetensors").stat().st_size
    assert size < sum(x.nbytes for x in make(name)[0].state_dict().values())
    again.save_pretrained(tmp_path / "second")
    assert torch.equal(answer(load(tmp_path / "second"), x), found)


@pytest.mark.system(SLUG, "models")
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_language_model_of_codes_writes(name: str, tmp_path: Path) -> None:
    """Token by token with the cache, as its forward says; and as the same model with plain weights."""
    model, _ = make(name)
    model.kept_as = quantize(model, 4, 16)
    tokens = torch.arange(8)[None] * 7 % 61
    with torch.no_grad():
        logits = model(tokens)
        decoder = model.decoder()  # type: ignore[operator]
        close(decoder.start(tokens[:, :5], torch.zeros(1, dtype=torch.long), 8), logits[:, 4])
        for t in range(5, 8):
            close(decoder.step(tokens[:, t]), logits[:, t])
    write_out(model)
    assert not any(isinstance(part, QuantizedLinear) for part in model.modules())
    assert torch.equal(model(tokens), logits)


def test_what_shares_its_matrix_stays() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head, self.free = nn.Embedding(5, 4), nn.Linear(4, 5), nn.Linear(4, 4)
            self.head.weight = self.embed.weight

    assert list(find_matrices(Tied())) == ["free"]


@pytest.mark.system(SLUG, "models")
def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    model, _ = make("lenet")
    model.kept_as = quantize(model, 8)
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    form = values["quantization_config"]
    for wrong, said in (
        ({**form, "quant_method": "gptq"}, "method 'gptq' cannot be read, only descend"),
        ({**form, "bits": 5}, "bits 5"),
        ({**form, "group": -1}, "group -1"),
        ({**form, "modules": ["f5", "f9"]}, "LeNet has no linear layer or convolution 'f9'"),
        ({**form, "modules": ["pool"]}, "LeNet has no linear layer or convolution 'pool'"),
        ("int8", "method 'int8'"),
    ):
        path.write_text(json.dumps({**values, "quantization_config": wrong}))
        with pytest.raises(Mistake, match=said):
            load(tmp_path)
    path.write_text(json.dumps({**values, "quantization_config": {**form, "bits": 4}}))
    with pytest.raises(Mistake, match="shape"):
        load(tmp_path)
    path.write_text(json.dumps({name: value for name, value in values.items() if name != "quantization_config"}))
    with pytest.raises(Mistake, match=r"unknown key '\w+\.(codes|scales)' for LeNet"):
        model_class("lenet").from_pretrained(tmp_path)


@pytest.mark.system(SLUG, "models")
def test_what_cannot_be_quantized_is_refused() -> None:
    with pytest.raises(Mistake, match="a ReLU has no linear layer and no convolution"):
        quantize(nn.ReLU())
    model, _ = make("lenet")
    with torch.no_grad():
        model.f6.weight[0, 0] = torch.inf  # type: ignore[union-attr, index]
    with pytest.raises(Mistake, match=r"f6.weight: infinite numbers or NaN"):
        quantize(model)
