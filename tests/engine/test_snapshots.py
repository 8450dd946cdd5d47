"""The samples that a run keeps of itself."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import torch

from descend.engine.parts import Parts
from descend.engine.snapshots import forget_after, keep_images, list_images, read_film, read_images
from tests.close import close
from tests.engine.small import small, train


def test_images_are_kept_and_read_again(tmp_path: Path) -> None:
    grey, colour = torch.rand(3, 1, 4, 5), torch.rand(2, 3, 4, 5)
    keep_images(tmp_path, 5, grey)
    keep_images(tmp_path, 1_000_000, colour)
    assert [step for step, _ in list_images(tmp_path)] == [5, 1_000_000]
    for x, (_, path) in zip((grey, colour), list_images(tmp_path), strict=True):
        close(read_images(path), (x * 255).round() / 255)
    forget_after(tmp_path, 5)
    assert [step for step, _ in list_images(tmp_path)] == [5]


def test_a_film_goes_from_the_first_step_to_the_last(tmp_path: Path) -> None:
    assert read_film(tmp_path) == {}
    for step in range(0, 210, 10):
        keep_images(tmp_path, step, torch.rand(2, 1, 2, 2))
    assert list(read_film(tmp_path, most=3)) == [0, 100, 200]


def test_a_run_keeps_images_of_every_evaluation_and_no_failure_costs_training(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=4, eval_every=2)

    class Shown(type(recipe)):  # type: ignore[misc]
        def build(self) -> Parts:
            parts = super().build()
            return replace(parts, snapshot=lambda: self.draw(parts))

        def draw(self, parts: Parts) -> torch.Tensor:
            assert not parts.task.training
            if failing:
                raise ValueError("nothing to be seen")
            return torch.rand(2, 1, 2, 2)

    failing = False
    shown = Shown(**{f.name: getattr(recipe, f.name) for f in fields(recipe)})
    train(shown, tmp_path / "run")
    assert [step for step, _ in list_images(tmp_path / "run")] == [2, 4]
    failing = True
    train(shown, tmp_path / "other")
    assert list_images(tmp_path / "other") == []
