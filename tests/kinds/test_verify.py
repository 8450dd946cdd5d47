"""The verification recipe: pairs, a threshold from known pairs, and what the report shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from descend import recipes
from descend.engine.evaluation import score_set
from descend.errors import Mistake
from descend.kinds.verify import VerifyPairs


def short(**changes: Any) -> VerifyPairs:
    recipe: Any = recipes.get("verify-digits")
    return replace(recipe, loop=replace(recipe.loop, steps=2, batch=16, threads=1), **changes)


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "threshold")
def test_the_threshold_comes_from_known_pairs_and_others_are_judged() -> None:
    parts = short().build()
    batches = list(parts.valid)
    scores = score_set(parts.task, batches)
    assert set(scores) == {"loss", "accuracy", "threshold", "auc", "eer"}
    with torch.no_grad():
        d = torch.cat([parts.task.eval().measure(b) for b in batches if not b["known"].any()])
        same = torch.cat([b["y1"] == b["y2"] for b in batches if not b["known"].any()])
    assert 0.4 < same.float().mean() < 0.6
    expected = ((d <= scores["threshold"]) == same).float().mean().item()
    assert scores["accuracy"] == pytest.approx(expected)
    trained = {int(i) for b in batches if b["known"].all() for i in b["ids"]}
    judged = {int(i) for b in batches if not b["known"].any() for i in b["ids"]}
    assert not trained & judged


def test_exhibits_and_mistakes() -> None:
    parts = short().build()
    assert [exhibit.title for exhibit in parts.exhibits()] == ["Distances of pairs", "Hardest pairs"]
    with pytest.raises(Mistake, match="too small"):
        short(model=replace(short().model, local_kernels=(9,))).build()
