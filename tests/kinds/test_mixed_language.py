"""A run on several texts by shares and stages: what it tells, what it sees, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.engine.distributed import World
from descend.engine.training import Training
from descend.errors import Mistake
from descend.models.gpt2 import GPT2Config

SLUG = "data-mixture-sampler"


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, str]:
    """One text has small letters alone, the other capitals."""
    for name, text in (("low.txt", "the cat sat on the mat. "), ("high.txt", "A DOG RAN OVER THE HILL! ")):
        (tmp_path / name).write_text(text * 60)
    return str(tmp_path / "low.txt"), str(tmp_path / "high.txt")


def recipe(sources: tuple[str, ...] = (), **data: Any) -> Any:
    whole: Any = recipes.get("gpt2-mixture")
    given = {"shares": ("75,25", "20,80"), "until": (0.25,), "tokenizer": "characters"} | data
    return replace(
        whole,
        model=GPT2Config(context=16, width=16, depth=1, heads=2, dropout=0.0),
        data=replace(whole.data, sources=sources, **given),
        loop=replace(whole.loop, steps=20, batch=20, eval_every=10, precision="float32"),
    )


@pytest.mark.system(SLUG, "training")
@pytest.mark.system(SLUG, "stages")
def test_a_run_sees_the_shares_of_each_stage_and_tells_every_loss(texts: tuple[str, str]) -> None:
    torch.set_num_threads(1)
    made = recipe(texts)
    parts = made.build()
    assert parts.facts["source low"].startswith("75%, then 20%; 1.71 epochs of 79")
    assert parts.facts["source high"].startswith("25%, then 80%; ")
    stream = parts.stream
    batches = [next(stream) for _ in range(20)]
    counts = [torch.cat([b["source"] for b in part]).bincount().tolist() for part in (batches[:5], batches[5:])]
    assert [sum(count) for count in counts] == [100, 300]
    assert abs(counts[0][0] - 75) <= 5
    assert abs(counts[1][0] - 60) <= 8
    run = Training(made.build(), made.loop, made.schedule, World())
    first = run.evaluate()
    assert {"loss", "low_loss", "high_loss", "perplexity", "bits_per_byte"} <= first.keys()
    for _ in range(20):
        run.advance()
    last = run.evaluate()
    assert last["low_loss"] < first["low_loss"]
    assert last["high_loss"] < first["high_loss"]
    assert last["loss"] == pytest.approx((last["low_loss"] + last["high_loss"]) / 2, rel=0.2)


def test_without_shares_sizes_decide(texts: tuple[str, str]) -> None:
    Path(texts[1]).write_text("A DOG RAN OVER THE HILL! " * 180)
    shares = []
    for temperature in (1.0, 1e4):
        made = recipe(texts, shares=(), until=(), temperature=temperature)
        train = made.data.open(16).train
        [stage] = made.data.stages(train, 16, 100)
        shares.append(stage.shares["low"])
    assert 0.2 < shares[0] < 0.3
    assert shares[1] == pytest.approx(0.5, abs=1e-3)


def test_the_embedded_sources() -> None:
    texts = recipe().data.read()
    assert list(texts) == ["documentation", "library"]
    assert "class OrderedDict" in texts["library"]
    assert min(map(len, texts.values())) > 200_000


@pytest.mark.system(SLUG, "checked")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"shares": ("75,30",), "until": ()}, "the shares sum to 105"),
        ({"shares": ("75;25",), "until": ()}, "numbers with commas between them"),
        ({"shares": ("75,20,5",), "until": ()}, r"3 shares for 2 sources \(low, high\)"),
        ({"until": (0.2, 0.6)}, "2 ends for 2 stages; the last one needs none"),
        ({"until": (), "shares": ("100,0", "0,100", "-1,101")}, "a share is 0 or more"),
        ({"valid": 0.0}, "the validation share must be between 0 and 1"),
    ],
)
def test_shares_that_cannot_be(texts: tuple[str, str], data: dict[str, Any], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        recipe(texts, **data).build()


def test_sources_that_cannot_be(texts: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="needs two sources or more"):
        recipe(texts[:1]).build()
    with pytest.raises(Mistake, match="two are called 'low'; rename one"):
        recipe((texts[0], texts[0])).build()
    with pytest.raises(Mistake, match=r"none.txt: no such file"):
        recipe((texts[0], str(tmp_path / "none.txt"))).build()
