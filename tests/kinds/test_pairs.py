"""Recipes of pairs: answers, scores and the exhibits of a small run; files of the user's; mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend import recipes
from descend.engine.distributed import World
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.pairs import PairsRecipe
from descend.models import load
from descend.verbs.generate import generate
from tests.close import close


def small(name: str, **data: object) -> PairsRecipe:
    recipe = recipes.get(name)
    assert isinstance(recipe, PairsRecipe)
    return replace(
        recipe,
        model=replace(recipe.model, width=32, hidden=64, **({"head_size": 8} if name == "t5-tasks" else {})),
        data=replace(recipe.data, **{"count": 300, **data}),
        loop=replace(recipe.loop, batch=16, steps=4),
    )


@pytest.mark.system("encoder-decoder-transformer", "translation")
@pytest.mark.system("teacher-forcing", "exposure")
@pytest.mark.system("text-to-text-framework")
@pytest.mark.system("text-to-text-framework", "answers")
@pytest.mark.system("encoder-decoder-transformer")
@pytest.mark.parametrize("name", ["t5-tasks", "transformer-translate"])
def test_a_small_run(name: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    recipe = small(name)
    parts = recipe.build()
    run = Training(parts, recipe.loop, recipe.schedule, World())
    first = run.evaluate()
    for _ in range(4):
        run.advance()
    scores = run.evaluate()
    assert scores["loss"] < first["loss"]
    parts.task.eval()
    assert scores["exact_text"] == scores["exact"]
    assert scores["perplexity"] == pytest.approx(torch.tensor(scores["loss"]).exp().item(), rel=1e-4)
    assert parts.exhibits is not None
    shown = parts.exhibits()
    assert [e.title for e in shown][:3] == ["Answers", "Text scores", "Exposure bias"]
    parts.model.save_pretrained(tmp_path)
    assert parts.save_extra is not None
    parts.save_extra(tmp_path)
    assert load(tmp_path).config.pad == parts.model.config.vocab - 1
    assert list(recipe.test()) == []
    source, answer = recipe.data.read().valid[0][0], shown[0].content[0]["text"].partition("   (reference")[0]
    assert generate(tmp_path, source, recipe.data.longest, temperature=0) == answer
    with pytest.raises(Mistake, match="answers a source text"):
        generate(tmp_path, "")


@pytest.mark.system("text-to-text-framework")
@pytest.mark.system("text-to-text-framework", "mixture")
def test_one_set_of_weights_learns_several_tasks(tmp_path: Path) -> None:
    """Two tasks that only the prefix tells apart."""
    torch.set_num_threads(1)
    path = tmp_path / "pairs.tsv"
    lines = [f"{task}: {a}\t{a if task == 'same' else b}\n" for a, b in zip("abcdef", "bcdefa", strict=True)
             for task in ("same", "next")]  # fmt: skip
    path.write_text("".join(lines * 6))
    recipe = replace(small("t5-tasks", path=str(path)), smoothing=0.0)
    recipe = replace(recipe, optim=replace(recipe.optim, lr=1e-2), loop=replace(recipe.loop, steps=150))
    run = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    for _ in range(150):
        run.advance()
        if run.step % 25 == 0 and run.evaluate()["exact"] == 1.0:
            break
    assert run.evaluate()["exact"] == 1.0


@pytest.mark.system("length-bucketed-batches", "budget")
@pytest.mark.system("length-bucketed-batches", "exact")
def test_batches_of_so_many_tokens() -> None:
    """A step over micro-batches is that of the whole batch, and the run tells its batches."""
    torch.set_num_threads(1)
    weights = []
    for accumulate in (1, 3):
        recipe = small("transformer-translate", budget=400, tasks=("words",))
        recipe = replace(recipe, loop=replace(recipe.loop, accumulate=accumulate, precision="float32"))
        recipe = replace(recipe, model=replace(recipe.model, dropout=0.0))
        parts = recipe.build()
        assert parts.facts["batches"].endswith("% padding")
        pad = parts.model.config.pad
        run = Training(parts, recipe.loop, recipe.schedule, World())
        run.advance()
        batch = next(parts.stream)
        assert all(x.numel() * accumulate <= 400 + 2 * x.shape[1] * (accumulate > 1) for x in (batch["x"], batch["y"]))
        assert (batch["x"] != pad).any(0).all()  # cut to the longest
        weights.append([p.detach().clone() for p in parts.model.parameters()])
    close(torch.cat([p.flatten() for p in weights[0]]), torch.cat([p.flatten() for p in weights[1]]), 20)
    with pytest.raises(Mistake, match=r"fits into no batch of --data.budget 5"):
        small("transformer-translate", budget=5).build()


def test_parallel_text_with_a_test_part(tmp_path: Path) -> None:
    for part, words in {"train": ["eins zwei", "drei"] * 10, "val": ["zwei"], "test": ["drei eins"]}.items():
        for ending in ("de", "en"):
            (tmp_path / f"{part}.{ending}").write_text("\n".join(words) + "\n")
    recipe = small("transformer-translate", path=str(tmp_path), tokenizer="bpe", vocab=270)
    assert [len(batch["x"]) for batch in recipe.test()] == [1]
    assert recipe.build().facts["validation pairs"] == 1


def test_mistakes() -> None:
    recipe = small("transformer-translate")
    with pytest.raises(Mistake, match="--model: tied is 'x'"):
        replace(recipe, model=replace(recipe.model, tied="x")).build()
    with pytest.raises(Mistake, match="choose bpe or characters"):
        replace(recipe, data=replace(recipe.data, tokenizer="words")).build()
