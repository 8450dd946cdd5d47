"""The four norms: who sees the batch, who sees the padding, and what the verdict follows."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import normalization_methods
from descend.labs._evidence import judge_seed
from descend.labs.normalization_methods import (
    BATCH,
    CHUNKS,
    NORMS,
    SHORT,
    SequenceNet,
    chunk_effect,
    figure,
    measure,
    sequences,
)

verdict = partial(judge_seed, normalization_methods)

SLUG = "normalization-comparison"


@pytest.mark.system(SLUG)
@pytest.mark.parametrize("name", NORMS)
def test_only_batch_normalization_sees_how_many_there_are(name: str) -> None:
    assert (chunk_effect(name, 0) > 1e-2) == (name == "batch")


@pytest.mark.system(SLUG)
@pytest.mark.parametrize("name", NORMS)
def test_norms_across_tokens_see_the_padding(name: str) -> None:
    torch.manual_seed(0)
    model = SequenceNet(name)
    x, _ = sequences(BATCH, SHORT, torch.Generator().manual_seed(1))
    with torch.no_grad():
        moved = (model(torch.nn.functional.pad(x, (0, 8), value=-1)) - model(x)).abs().max()
    assert (moved > 1e-3) == (name in ("batch", "instance"))
    assert moved > 1e-3 or moved < 1e-5


def test_sequences_are_what_their_labels_say() -> None:
    x, y = sequences(500, SHORT, torch.Generator().manual_seed(0))
    follows = ((x[:, :-1] == 0) & (x[:, 1:] == 1)).any(1)
    assert torch.equal(follows.long(), y)
    lengths = (x >= 0).sum(1)
    assert (int(lengths.min()), int(lengths.max())) == (SHORT // 2, SHORT)


def good() -> dict[str, Any]:
    flat = [0.4] * len(CHUNKS)
    return {"norm": list(NORMS), "chunk_effect": [0.5, 0.0, 0.0, 0.0], "padding_effect": [0.5, 0.0, 0.0, 0.2],
            "longer_loss": [0.5] * 4, "steps": 100,
            "images": {"examples": list(CHUNKS), "batch": [2.0, 1.0, 0.6, 0.5, 0.4, 0.3], "layer": flat, "group": flat,
                       "instance": flat}}  # fmt: skip


def test_verdicts() -> None:
    assert verdict(good()) == "supported"
    assert verdict({**good(), "steps": 10}) == "open"
    changes: tuple[tuple[str, list[float]], ...] = (
        ("chunk_effect", [0.5, 0.1, 0.0, 0.0]),
        ("chunk_effect", [0.0, 0.0, 0.0, 0.0]),
        ("padding_effect", [0.5, 0.1, 0.0, 0.2]),
        ("padding_effect", [0.0, 0.0, 0.0, 0.2]),
    )
    for name, values in changes:
        assert verdict({**good(), name: values}) == "refuted", name
    lost = deepcopy(good())
    lost["images"]["batch"] = [0.3] * len(CHUNKS)
    assert verdict(lost) == "refuted"
    lost["images"]["batch"] = [2.0] * len(CHUNKS)
    assert verdict(lost) == "open"


def test_numbers_and_figure() -> None:
    numbers = measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"
    assert {len(numbers["images"][name]) for name in NORMS} == {len(CHUNKS)}
    assert len(figure(numbers).axes[0].get_lines()) == 4
