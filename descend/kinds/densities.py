"""Recipes for models of points in the plane: a density that is known, or two columns of the user's own file.

A family says in `assemble` what learns (task, model, optimizers) and, where training needs random numbers beside the
points (times, noise), in `draw` which ones; the base reads the points and makes the stream, fixed validation and test
points, facts and exhibits. Points of a file are standardized, x → (x − mean) / std, and the two numbers of each column
saved in points.json: a negative log-likelihood in the file's units is that of the standardized points + Σ log std.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit, Generates, Stream
from descend.data.streams.arrays import Drawn, InOrder, Shuffled, generator
from descend.data.streams.beside import Beside, BesideOnce
from descend.data.streams.shards import process
from descend.data.streams.splits import split_by_group
from descend.data.tables.points import PointScale, dequantise, find_whole, read_points
from descend.data.toys.densities import (
    Box,
    Checkerboard,
    Density,
    Moons,
    Pinwheel,
    entropy,
    grid_of_gaussians,
    ring_of_gaussians,
)
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.generate_images import Learner
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine
from descend.ranges import Count, Positive, Range
from descend.views.densities import fit_box, show_density, show_samples

VALID, TEST = 1, 2  # keys of the points that are never trained on
DEQUANTISED = 3  # key of the noise that is added to whole numbers
SHARES = (0.8, 0.1)  # of a file's points: for training and for validation
LEAST = 20  # distinct points of a file


@dataclass(frozen=True)
class Plane:
    """The points to learn."""

    shape: Literal["moons", "ring", "grid", "checkerboard", "pinwheel"] = "moons"
    """A density that is known, so that the best negative log-likelihood is, too."""
    noise: Annotated[float, Range(float, least=0.01, most=10)] = 0.1
    """Width of the Gaussian noise of moons, of each Gaussian, or across an arm of the pinwheel."""
    modes: Annotated[int, Range(int, least=1, most=10**4)] = 8
    """Gaussians of a ring or grid, arms of a pinwheel."""
    radius: Positive = 2.0
    """Of a ring; of a grid or checkerboard, half its side."""
    path: str = ""
    """Points of your own instead: a .csv or .tsv file of two columns."""
    dequantise: bool = False
    """Add uniform noise in 0..1 to columns of whole numbers, which have no density otherwise."""
    valid: Count = 2000
    """Points for validation; of a file, a tenth."""
    test: Count = 10_000
    """Points for the final test; of a file, a tenth."""

    def read(self) -> PointSplits:
        if self.path:
            return PointSplits.of_file(self.path, self.dequantise)
        density = self.density()
        return PointSplits(density.sample(self.valid, generator(VALID)), density.box, density, exact=find_entropy(self))

    def density(self) -> Density:
        """The density that is known."""
        match self.shape:
            case "moons":
                return Moons(self.noise)
            case "ring":
                return ring_of_gaussians(self.modes, self.radius, self.noise)
            case "grid":
                return grid_of_gaussians(self.modes, self.radius, self.noise)
            case "checkerboard":
                return Checkerboard(radius=self.radius)
            case "pinwheel":
                return Pinwheel(self.modes, self.noise)


@cache
def find_entropy(data: Plane) -> float:
    """Of the density that is known, computed once."""
    return entropy(data.density())


@dataclass(frozen=True)
class PointSplits:
    """The points of a recipe: drawn from a density as often as asked, or those of a file, standardized."""

    valid: Tensor
    box: Box
    """Where nearly all points are."""
    density: Density | None = None
    exact: float | None = None
    """The entropy of the density: the least negative log-likelihood."""
    train: Tensor | None = None
    rest: Tensor | None = None
    """The test points of a file."""
    mean: Tensor = field(default_factory=lambda: torch.zeros(2, dtype=torch.float64))
    std: Tensor = field(default_factory=lambda: torch.ones(2, dtype=torch.float64))

    @classmethod
    def of_file(cls, path: str, noisy: bool = False) -> PointSplits:
        """Equal points stay in one part; the training points say what is standard."""
        points = read_points(path)
        if noisy:
            points = dequantise(points, generator(DEQUANTISED))
        elif whole := find_whole(points):
            raise Mistake(
                f"--data.path {path}: column {whole[0] + 1} holds whole numbers only, which have no density; add noise "
                f"in 0..1 to them with --data.dequantise"
            )
        if len(points.unique(dim=0)) < LEAST:
            raise Mistake(f"--data.path {path}: {len(points.unique(dim=0))} distinct points; give at least {LEAST}")
        rows = split_by_group([tuple(point) for point in points.tolist()], SHARES)
        mean, std = points[rows[0]].mean(0), points[rows[0]].std(0, correction=0)
        for column, width in enumerate(std.tolist(), start=1):
            if not width > 0:
                raise Mistake(f"--data.path {path}: column {column} is constant; points need two columns that vary")
        train, valid, test = (((points[part] - mean) / std).float() for part in rows)
        return cls(valid, fit_box(train), train=train, rest=test, mean=mean, std=std)

    def test(self, n: int) -> Tensor:
        """Points that selected nothing; n of them, where they are drawn."""
        if self.density is not None:
            return self.density.sample(n, generator(TEST))
        assert self.rest is not None
        return self.rest

    @property
    def log_scale(self) -> float:
        """Σ log std: what a negative log-likelihood of standardized points lacks in the file's units; 0 for a shape."""
        return float(self.std.log().sum())

    def facts(self) -> dict[str, Any]:
        if self.exact is not None:
            return {"validation points": len(self.valid), "exact NLL": round(self.exact, 4)}
        sizes = {"training points": self.train, "validation points": self.valid, "test points": self.rest}
        told = {name: len(x) for name, x in sizes.items() if x is not None}
        return {**told, "NLL is of": "the points in the file's own units"}

    def save(self, folder: Path) -> None:
        """points.json: how to bring standardized points back to the file's units."""
        PointScale(tuple(self.mean.tolist()), tuple(self.std.tolist())).save(folder)


@dataclass(frozen=True)
class GeneratePoints(Recipe):
    """A model of points in the plane."""

    model: Any = None
    data: Plane = field(default_factory=Plane)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Cosine)

    def assemble(self, points: PointSplits) -> Learner:
        """The family's task, model and optimizers; the random seed is set."""
        raise NotImplementedError

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """Random numbers that n points need beside them, besides their own; none for most."""
        return {}

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        """log p(x), or up to a constant, of points (n, 2) for the heat map; None where a model has none."""
        return None

    def build(self) -> Parts:
        points, loop = self.data.read(), self.loop
        if points.train is None and not loop.batch:
            raise Mistake("--batch 0: points of a shape are drawn without end; give a number")
        batch = loop.batch if points.train is None else fit_batch(loop, len(points.train))
        torch.manual_seed(loop.seed)
        task, model, optims = self.assemble(points)
        shape = f"{self.data.shape}, noise {self.data.noise}" if points.density else self.data.path
        return Parts(
            task=task,
            model=model,
            stream=self.stream(points, micro_batch(loop, batch)),
            valid=self.held_out(points.valid, VALID),
            optims=optims,
            unit="points",
            units_per_batch=batch,
            facts={"data": shape, **points.facts(), **describe_batch(loop, batch)},
            save_extra=points.save if self.data.path else None,
            exhibits=lambda: self.exhibits(model, points),
        )

    def stream(self, points: PointSplits, batch: int) -> Stream:
        """Training points, with what `draw` adds."""
        seed, place, density = self.loop.seed, process(), points.density
        if density is not None:
            return self.beside(Drawn(lambda random, n: {"x": density.sample(n, random)}, batch, seed, *place))
        assert points.train is not None
        return self.beside(Shuffled({"x": points.train}, batch, seed, *place))

    def beside(self, source: Stream) -> Stream:
        """The stream with the numbers of `draw` beside each point."""
        drawn = self.draw(generator(0), 1)
        return Beside(source, self.draw, self.loop.seed, *process()) if drawn else source

    def held_out(self, x: Tensor, key: int) -> Iterable[Batch]:
        """Points that are not trained on, with their true log-density where it is known, each with the same numbers of
        `draw` every time."""
        known = {} if self.data.path else {"log_p": self.data.density().log_prob(x)}
        batches = InOrder({"x": x, **known})
        return BesideOnce(batches, self.draw, key) if self.draw(generator(0), 1) else batches

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        """Real and generated points, and the density where there is one."""
        log_density = self.log_density(model)
        shown = [show_samples(model, points.valid)] if isinstance(model, Generates) else []
        return shown + ([show_density(log_density, points.box)] if log_density else [])

    def test(self) -> Iterable[Batch]:
        """Points that selected nothing."""
        return self.held_out(self.data.read().test(self.data.test), TEST)
