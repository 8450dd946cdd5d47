"""Graphs beside their models, a family of each kind; `python -m proofs.exports` walks all of them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.exports import onnx
from descend.exports.entries import Entry, find_entry, sample_inputs
from descend.exports.onnx import write_onnx
from descend.exports.traced import Given, flatten_outputs, numbers_as_numbers
from descend.models import model_class
from tests.close import close

FAMILIES = {  # a family of each kind -> the inputs and outputs of its graph
    "lenet": (["x"], ["output"]),
    "conv_encoder_decoder": (["x"], ["output"]),
    "yolo_v1": (["x"], ["boxes", "confidence", "classes"]),
    "gpt2": (["tokens"], ["output"]),
    "bert": (["tokens", "mask"], ["hidden", "pooled"]),
    "mlp": (["x"], ["output"]),
    "gan": (["z"], ["output"]),
    "vae": (["input"], ["output"]),
    "denoiser_mlp": (["x", "t", "y"], ["output"]),
    "cloning_policy": (["state"], ["output"]),
    "actor_critic": (["observation"], ["output_0", "output_1"]),
}


def build(name: str) -> Any:
    torch.manual_seed(0)
    return model_class(name)(import_module(f"descend.models.{name}").TINY).eval()


@pytest.mark.parametrize("name", list(FAMILIES))
def test_file_and_model_answer_alike(name: str, tmp_path: Path) -> None:
    """At sizes that were not recorded, and to numbers that this test draws itself."""
    model = build(name)
    entry = find_entry(model, None, sample_inputs(model))
    graph = write_onnx(entry, tmp_path / "m.onnx")
    inputs, outputs = FAMILIES[name]
    assert list(graph.inputs) == inputs
    assert set(outputs) <= set(graph.outputs)
    assert [check.sizes["batch"] for check in graph.checks] == [1, 3]
    assert graph.apart <= 1e-4
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    sizes = {"batch": 5, "length": 4}
    given = {part.name: draw(part, sizes) for part in entry.given}
    with torch.no_grad():
        expected = [x for _, x in flatten_outputs(entry.module(**given, **entry.constants)) if x is not None]
    named = {one.name for one in session.get_inputs()}
    found = session.run(None, {key: x.numpy() for key, x in given.items() if key in named})
    for ours, theirs in zip(expected, found, strict=True):
        close(theirs, ours, loosen=5)  # another order of sums


def draw(part: Given, sizes: dict[str, int]) -> Tensor:
    """Other numbers than the example's, in its range."""
    x = part.resize(sizes)
    return x.roll(1, 0).flip(-1) if not x.is_floating_point() else x * torch.linspace(0.5, 1.5, x.numel()).view_as(x)


def test_lengths_vary(tmp_path: Path) -> None:
    """Of a text every length from 1 to the context, beyond the window of a Mistral and within it."""
    model = build("mistral")
    write_onnx(find_entry(model), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    for length in (1, 5, 24):
        tokens = torch.randint(61, (2, length), generator=torch.Generator().manual_seed(length))
        close(session.run(None, {"tokens": tokens.numpy()})[0], model(tokens), loosen=5)


def test_a_file_that_disagrees_is_not_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Shifting(nn.Module):
        """Answers otherwise each time, which no graph does."""

        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x + self.calls

    entry = Entry(Shifting(), (Given("x", torch.randn(2, 3), ("batch", "")),), "")
    with pytest.raises(Mistake, match=r"differs from the model by [\d.]+ at batch [13]; it is not written"):
        write_onnx(entry, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gcn", "takes a graph, whose links decide"),
        ("mamba", "a loop in it runs over the 12 positions"),
        ("text_classifier", "depends on the values of tensors"),
        ("cnf", "its forward pass takes derivatives"),
    ],
)
def test_what_has_no_graph_says_why_in_one_line(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=why) as caught:
        write_onnx(find_entry(build(name)), tmp_path / "m.onnx")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_packages_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(Mistake, match=r"pip install 'descend\[onnx\]'"):
        write_onnx(find_entry(build("lenet"), None, (torch.zeros(2, 1, 11, 13),)), tmp_path / "m.onnx")


def test_what_lies_apart_is_measured() -> None:
    a = torch.tensor([1.0, 2.0, 4.0])
    assert onnx.measure_apart(a, a) == 0
    assert onnx.measure_apart(a, a + torch.tensor([0.0, 0.0, 0.4])) == pytest.approx(0.1)
    assert onnx.measure_apart(a, a[:2]) == float("inf")
    assert onnx.measure_apart(a, torch.tensor([1.0, float("nan"), 4.0])) == float("inf")
    assert onnx.measure_apart(torch.tensor([-torch.inf, 1.0]), torch.tensor([-torch.inf, 1.0])) == 0


def test_sizes_are_no_recorded_ones() -> None:
    given = Given("tokens", torch.arange(24).view(2, 12), ("batch", "length"))
    assert onnx.choose_sizes([given]) == [{"batch": 1, "length": 11}, {"batch": 3, "length": 6}]
    resized = given.resize({"batch": 3, "length": 6})
    assert resized.tolist() == [list(range(6)), list(range(12, 18)), list(range(6))]


def test_a_number_in_a_buffer_is_a_number_inside() -> None:
    model = build("progressive_gan")
    before = {name: x.clone() for name, x in model.state_dict().items()}
    with numbers_as_numbers(model):
        assert isinstance(model.growth, float)
    for (name, x), (other, y) in zip(before.items(), model.state_dict().items(), strict=True):
        assert name == other
        assert torch.equal(x, y)


def test_experts_windows_and_splines_compute_the_same_when_recorded() -> None:
    """Where recording takes another way (all experts, a masked window, a count instead of a search), numbers agree."""
    for name in ("mixtral", "spline_flow"):
        model = build(name)
        entry = find_entry(model)
        tensors = tuple(part.example for part in entry.given)
        recorded = torch.export.export(entry.module, tensors, strict=False).module()
        for ours, theirs in zip(
            flatten_outputs(entry.module(*tensors)), flatten_outputs(recorded(*tensors)), strict=True
        ):
            assert ours[1] is not None
            assert theirs[1] is not None
            close(theirs[1], ours[1])


def test_inputs_come_from_config_and_preprocessing(tmp_path: Path) -> None:
    from descend.data.images.labelled import Preprocessing
    from descend.models.resnet import TINY, ResNet

    model = ResNet(replace(TINY)).eval()
    Preprocessing((3, 40, 48), (0.5,) * 3, (0.5,) * 3, ("a", "b")).save(tmp_path)
    assert find_entry(model, tmp_path).given[0].example.shape == (2, 3, 40, 48)
    assert find_entry(model).given[0].example.shape == (2, 3, 224, 224)
    tokens = find_entry(build("clip")).given[1].example
    assert np.array_equal(tokens[:, -1].numpy(), [60, 60]), "the end, where a CLIP reads the text"
