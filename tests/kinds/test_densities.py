"""Recipes for points in the plane: what is read and drawn, whatever model learns it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.toys.densities import entropy
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.kinds.densities import GeneratePoints, Plane, PointSplits
from descend.kinds.generate_images import Learner
from descend.models.gan import GANConfig, Generator
from descend.report.exhibits import make_section
from descend.tasks.supervise import Supervise
from descend.views.densities import show_density, show_field


@dataclass(frozen=True)
class Stub(GeneratePoints):
    """A network from points to points; what it learns is not asked here."""

    model: Any = field(default_factory=lambda: GANConfig(width=4, depth=1))
    loop: Loop = field(default_factory=lambda: Loop(batch=8))

    def assemble(self, points: PointSplits) -> Learner:
        model = Generator(self.model)
        task = Supervise(model, lambda y, x: (y - x).square().mean(1))
        return Learner(task, model, {"model": self.optim})


@dataclass(frozen=True)
class StubWithTimes(Stub):
    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        return {"t": torch.rand(n, generator=random)}


def write_points(path: Path, n: int = 200, head: str = "a,b\n") -> str:
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 0.5]) + 7
    path.write_text(head + "".join(f"{a:.6f},{b:.6f}\n" for a, b in x.tolist()))
    return str(path)


@pytest.mark.parametrize("shape", ["moons", "ring", "checkerboard", "pinwheel"])
def test_a_shape_is_drawn_and_its_entropy_told(shape: Any) -> None:
    recipe = Stub(data=Plane(shape=shape, valid=50))
    parts = recipe.build()
    first, second = next(parts.stream), next(parts.stream)
    assert first["x"].shape == (8, 2)
    assert not torch.equal(first["x"], second["x"])
    (valid,), (again,) = parts.valid, recipe.build().valid
    assert torch.equal(valid["x"], again["x"])
    assert len(valid["x"]) == 50
    assert sum(len(batch["x"]) for batch in recipe.test()) == 10_000
    assert parts.facts["exact NLL"] == round(entropy(recipe.data.density(), 200), 4)


def test_times_come_with_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ones in every batch, the same ones in every validation, and two processes share those of a batch."""
    recipe = StubWithTimes(data=Plane(valid=20))
    parts = recipe.build()
    whole = next(parts.stream)
    assert not torch.equal(whole["t"], next(parts.stream)["t"])
    (valid,), (again,) = parts.valid, parts.valid
    assert torch.equal(valid["t"], again["t"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    halves: list[Batch] = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        halves.append(next(recipe.build().stream))
    assert all(torch.equal(whole[name], torch.cat([half[name] for half in halves])) for name in whole)


@pytest.mark.parametrize("head", ["a,b\n", ""])
def test_points_of_a_file(tmp_path: Path, head: str) -> None:
    """Three parts without a point in common, standardized by the training points; the way back is saved."""
    recipe = Stub(data=Plane(path=write_points(tmp_path / "mine.csv", head=head)))
    parts = recipe.build()
    assert [parts.facts[name] for name in ("training points", "validation points", "test points")] == [160, 20, 20]
    splits = recipe.data.read()
    assert splits.train is not None
    assert splits.train.mean(0).abs().max() < 1e-5
    assert (splits.train.std(0, correction=0) - 1).abs().max() < 1e-5
    assert splits.log_scale == pytest.approx(math.log(3 * 0.5), abs=0.2)
    assert parts.save_extra is not None
    parts.save_extra(tmp_path)
    saved = json.loads((tmp_path / "points.json").read_text())
    (held,) = recipe.test()
    back = held["x"] * torch.tensor(saved["std"]) + torch.tensor(saved["mean"])
    lines = (tmp_path / "mine.csv").read_text().split()[bool(head) :]
    written = torch.tensor([[float(number) for number in line.split(",")] for line in lines]).double()
    assert torch.cdist(back.double(), written).amin(1).max() < 1e-4
    assert list(recipe.files()) == ["mine.csv"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1,2\n3,x\n", r"mine\.csv, line 2: '3 x' are not 2 numbers"),
        ("1,2\n3,nan\n", r"mine\.csv, line 2: 3 nan is not finite"),
        ("1,2,3\n", r"mine\.csv, line 1: 3 columns; points in the plane need 2"),
        ("a,b\n", "holds no points"),
        ("1.5,2.5\n" * 30, "1 distinct points; give at least 20"),
        ("".join(f"{i}.5,4.5\n" for i in range(30)), "column 2 is constant"),
        ("".join(f"{i}.5,{i}\n" for i in range(30)), r"column 2 holds whole numbers only.*--data\.dequantise"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(Mistake, match=told):
        Stub(data=Plane(path=str(tmp_path / "mine.csv"))).build()


@pytest.mark.system("normalizing-flow", "named-layer")
def test_whole_numbers_are_dequantised_when_asked(tmp_path: Path) -> None:
    """Noise in 0..1 on the whole column alone, the same each time."""
    (tmp_path / "mine.csv").write_text("".join(f"{i % 7},{i}.25\n" for i in range(60)))
    data = Plane(path=str(tmp_path / "mine.csv"), dequantise=True)
    first, again = data.read(), data.read()
    assert first.train is not None
    assert again.train is not None
    assert torch.equal(first.train, again.train)
    back = first.train.double() * first.std + first.mean
    assert len(back[:, 0].unique()) == len(back)
    assert ((back[:, 1] - 0.25) - (back[:, 1] - 0.25).round()).abs().max() < 1e-4
    assert back[:, 0].min() >= 0
    assert back[:, 0].max() < 7


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (lambda: Stub(data=Plane(shape="grid")), r"--data\.modes 8: a grid needs a square number"),
        (lambda: Stub(data=Plane(noise=0.001)), r"--data\.noise 0\.001: must be"),
        (lambda: Stub(loop=Loop(batch=0)), "--batch 0: points of a shape are drawn without end"),
        (lambda: replace(Stub(), loop=Loop(batch=9, accumulate=2)), "--batch 9 does not divide"),
    ],
)
def test_mistakes(recipe: Callable[[], Stub], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        recipe().build()


def test_density_and_field_can_be_drawn() -> None:
    """The highest value of a Gaussian is in the middle; arrows of −x all point there."""
    box = (-2.0, 2.0, -1.0, 1.0)
    density = show_density(lambda x: -x.square().sum(1), box)
    values = torch.tensor(density.content["values"])
    assert values.max() == 1
    assert values.argmax().item() // 96 in (47, 48)
    field_shown = show_field(lambda x: -x, box, "Velocity", torch.zeros(3, 2))
    arrows = torch.tensor(field_shown.content["arrows"])
    assert ((arrows[:, :2] * arrows[:, 2:]) <= 0).all()
    for exhibit in (density, field_shown):
        page = str(make_section(exhibit))
        assert "could not be drawn" not in page
        assert ("<image" in page) or ("<polyline" in page)
