"""Word vectors from text: every method learns, saves its words, and shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from descend import recipes
from descend.engine.distributed import World
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.words import LearnWords, Method, NearWords
from descend.metrics.word_vectors import Words
from descend.models import load
from descend.report.exhibits import make_section
from descend.text.tokenizer import Tokenizer

LINES = [
    f"the {a} {verb} in {place} and the {b} {verb} in {place}."
    for a, b in (("cat", "dog"), ("horse", "cow"))
    for verb in ("sleeps", "eats")
    for place in ("houses", "fields")
]
TEXT = " ".join(LINES * 30)
RECIPE = recipes.get("skip-gram-pydoc")
SLUGS = {
    "negative-sampling": "skip-gram-negative-sampling",
    "softmax": "skip-gram",
    "cbow": "cbow",
    "cbow-negative-sampling": "cbow",
    "glove": "glove",
    "glove-triples": "glove",
}


def small(folder: Path, method: Method) -> LearnWords:
    path = folder / "text.txt"
    path.write_text(TEXT)
    assert isinstance(RECIPE, LearnWords)
    return replace(
        RECIPE,
        method=method,
        model=replace(RECIPE.model, width=8),
        data=NearWords(path=str(path), window=3, subsample=0.0, valid=0.1 if not method.startswith("glove") else 0.3),
        loop=replace(RECIPE.loop, steps=40, batch=32, threads=1),
        optim=replace(RECIPE.optim, lr=0.03),
    )


@pytest.mark.system("glove", "trained")
@pytest.mark.system("skip-gram-negative-sampling", "trained")
@pytest.mark.system("cbow", "trained", "negative-sampling")
@pytest.mark.system("skip-gram", "trained")
@pytest.mark.parametrize("method", [pytest.param(m, marks=pytest.mark.system(SLUGS[m])) for m in get_args(Method)])
def test_every_method_learns_and_saves_its_words(method: Method, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    recipe = small(tmp_path, method)
    parts = recipe.build()
    training = Training(parts, recipe.loop, recipe.schedule, World())
    before = training.evaluate()["loss"]
    for _ in range(recipe.loop.steps):
        training.advance()
    assert training.evaluate()["loss"] < 0.95 * before
    folder = tmp_path / "model"
    parts.model.save_pretrained(folder)
    assert parts.save_extra is not None
    parts.save_extra(folder)
    tokenizer, model = Tokenizer.load(folder), load(folder)
    tokenizer.check_fits(model.config.vocab)
    names = [str(tokenizer.inner.id_to_token(n)) for n in range(tokenizer.vocab)]
    assert Words(names, parts.model.vectors()).near("cat", 2)
    assert tokenizer.encode("The Cat") == [names.index("the"), names.index("cat")]
    assert parts.exhibits is not None
    shown = "".join(make_section(exhibit) for exhibit in parts.exhibits())
    assert "could not be drawn" not in shown
    assert ">horse</text>" in shown
    assert "mean cosine of two words" in shown


@pytest.mark.system("skip-gram", "interchangeable")
@pytest.mark.system("embedding-geometry")
@pytest.mark.system("cbow", "interchangeable")
@pytest.mark.parametrize("method", ["softmax", "cbow"])
def test_words_of_like_use_are_nearer(method: Method, tmp_path: Path) -> None:
    """Verbs stand where verbs stand, places where places stand."""
    torch.set_num_threads(1)
    recipe = small(tmp_path, method)
    parts = recipe.build()
    training = Training(parts, replace(recipe.loop, steps=80), recipe.schedule, World())
    for _ in range(80):
        training.advance()
    vocabulary, _ = recipe.data.read()
    words = Words([*vocabulary.words, "<unk>"], parts.model.vectors())
    assert words.near("sleeps", 1)[0][0] == "eats"
    assert words.near("fields", 1)[0][0] == "houses"


def test_mistakes_name_the_fix(tmp_path: Path) -> None:
    recipe = small(tmp_path, "negative-sampling")
    with pytest.raises(Mistake, match=r"--noise\.negatives 0"):
        replace(recipe, noise=replace(recipe.noise, negatives=0)).build()
    with pytest.raises(Mistake, match=r"--data\.window 0"):
        replace(recipe, data=replace(recipe.data, window=0)).build()
    (tmp_path / "text.txt").write_text("a a a a a a b")
    with pytest.raises(Mistake, match="too few; give more text"):
        recipe.build()
    with pytest.raises(Mistake, match="vocabulary would be empty"):
        replace(recipe, data=replace(recipe.data, least=50)).build()
    (tmp_path / "text.txt").write_bytes(b"caf\xe9 " * 99)
    with pytest.raises(Mistake, match="not UTF-8"):
        recipe.build()


@pytest.mark.system("skip-gram-negative-sampling", "outside")
@pytest.mark.parametrize("method", ["negative-sampling", "cbow-negative-sampling"])
def test_noise_from_outside_the_window(method: Method, tmp_path: Path) -> None:
    recipe = small(tmp_path, method)
    recipe = replace(recipe, data=replace(recipe.data, window=2), noise=replace(recipe.noise, words="outside"))
    stream = recipe.build().stream
    for _ in range(5):
        batch = next(stream)
        if method == "cbow-negative-sampling":
            inside = torch.cat([batch["x"], batch["y"][:, None]], dim=1)
            assert not (batch["words"][:, 1:, None] == inside[:, None]).any()
        else:
            assert not (batch["words"][:, 1:] == batch["y"][:, None]).any()
