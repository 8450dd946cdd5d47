"""One file of public tensors, both ways, and everything that can be wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from descend.errors import Mistake
from descend.weights.flat import read_flat, write_flat
from descend.weights.rules import drop, rename, stack, transpose

RULES = [
    transpose("dense.weight", "fc.kernel"),
    transpose("dense.weight", "fc.weight"),  # an older name
    rename("dense.bias", "fc.bias"),
    *(rename(f"norm.{p}", f"bn.{p}") for p in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")),
    stack("kernels", "conv{}.weight"),
    drop("fc.mask"),
]


class Small(nn.Module):
    def __init__(self, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        self.dense, self.norm = nn.Linear(3, 5), nn.BatchNorm1d(5)
        self.kernels = nn.Parameter(torch.randn(2, 4))
        self.norm(torch.randn(6, 5))


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def public() -> dict[str, Tensor]:
    torch.manual_seed(2)
    norm = {p: torch.rand(5) for p in ("weight", "bias", "running_mean", "running_var")}
    return {
        "fc.kernel": torch.randn(3, 5), "fc.bias": torch.randn(5), "fc.mask": torch.ones(1),
        **{f"bn.{p}": x for p, x in norm.items()}, "bn.num_batches_tracked": torch.tensor(7),
        "conv0.weight": torch.randn(4), "conv1.weight": torch.randn(4),
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["safetensors", "pth", "pt"])
def test_both_ways(ending: str, tmp_path: Path) -> None:
    one, other = Small(0), Small(1)
    write_flat(one, tmp_path / f"w.{ending}", RULES)
    assert not same(one, other)
    read_flat(other, tmp_path / f"w.{ending}", RULES)
    assert same(one, other)
    assert [p.name for p in tmp_path.iterdir()] == [f"w.{ending}"]  # nothing is left aside


def test_names_and_layout_of_the_file(tmp_path: Path) -> None:
    save_file(public(), tmp_path / "in.safetensors")
    model = Small(0)
    read_flat(model, tmp_path / "in.safetensors", RULES)
    assert torch.equal(model.dense.weight, public()["fc.kernel"].t())
    assert torch.equal(model.kernels[1], public()["conv1.weight"])
    assert model.norm.num_batches_tracked == 7
    write_flat(model, tmp_path / "out.safetensors", RULES)
    written, expected = load_file(tmp_path / "out.safetensors"), public()
    del expected["fc.mask"]
    assert written.keys() == expected.keys()
    assert all(torch.equal(written[key], expected[key]) for key in expected)


def test_an_older_file_without_the_count_of_batches(tmp_path: Path) -> None:
    tensors = public()
    del tensors["bn.num_batches_tracked"]
    torch.save(tensors, tmp_path / "w.pth")
    model = Small(0)
    read_flat(model, tmp_path / "w.pth", RULES)
    assert model.norm.num_batches_tracked == 0
    assert model.norm.running_var is not None
    assert torch.equal(model.norm.running_var, tensors["bn.running_var"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fc.kernal": torch.zeros(1)}, "unknown key 'fc.kernal' for Small. Did you mean 'fc.kernel'?"),
        ({"fc.kernel": None}, "missing key 'fc.kernel'"),
        ({"fc.bias": None, "bn.bias": None, "conv1.weight": None}, "missing key 'bn.bias' and 2 more"),
        ({"fc.kernel": torch.zeros(5, 3)}, "key 'fc.kernel' has shape (5, 3), this Small expects (3, 5)"),
        ({"conv2.weight": torch.zeros(4)}, "key 'conv2.weight' does not exist in this Small"),
        ({"fc.weight": torch.zeros(3, 5)}, "key 'fc.weight' is a duplicate of 'fc.kernel'"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_copied(
    change: dict[str, Tensor | None], message: str, tmp_path: Path
) -> None:
    tensors = {key: x for key, x in (public() | change).items() if x is not None}
    save_file(tensors, tmp_path / "w.safetensors")
    model, before = Small(0), Small(0)
    with pytest.raises(Mistake) as error:
        read_flat(model, tmp_path / "w.safetensors", RULES)
    assert message in str(error.value)
    assert same(model, before)


class Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("1",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.pth", None, "does not exist"),
        ("w.bin", b"x", "ends in .safetensors, .pth or .pt"),
        ("w.safetensors", b"x", "is damaged or not a safetensors file"),
        ("w.pth", b"x", "is damaged, or holds more than tensors"),
    ],
)
def test_files_that_cannot_be_read(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Mistake, match=message):
        read_flat(Small(0), tmp_path / name, RULES)


@pytest.mark.parametrize(
    ("value", "message"),
    [(Harmful(), "holds more than tensors"), ([1, 2], "not a state dict"), ({"a": 1}, "not a state")],
)
def test_code_is_never_run(value: object, message: str, tmp_path: Path) -> None:
    torch.save(value, tmp_path / "w.pth")
    with pytest.raises(Mistake, match=message):
        read_flat(Small(0), tmp_path / "w.pth", RULES)


def test_a_model_tensor_without_a_rule(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no key rule for 'kernels'"):
        write_flat(Small(0), tmp_path / "w.pth", RULES[:-2])
    with pytest.raises(Mistake, match="give a name that ends in"):
        write_flat(Small(0), tmp_path / "w.onnx", RULES)
