"""Zero-shot classification and retrieval: prompts, ensembles, recall."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import top_k_accuracy_score
from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake
from descend.metrics.retrieval import hits, pairs, recall
from descend.metrics.zero_shot import class_scores, class_vectors, prompts
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def letters(texts: list[str]) -> Tensor:
    """A text encoder for tests: how often each letter occurs."""
    return torch.tensor([[text.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts], dtype=torch.float64)


@pytest.mark.system("zero-shot-classification")
@pytest.mark.system("zero-shot-classification", "prompts")
def test_prompts() -> None:
    assert prompts(["cat", "dog"]) == ["a photo of cat", "a photo of dog"]
    said = prompts(["a cat", "a dog"], ["a photo of {}", "there is {}"])
    assert said == ["a photo of a cat", "there is a cat", "a photo of a dog", "there is a dog"]
    with pytest.raises(Mistake, match=r"write \{\} once"):
        prompts(["cat"], ["a photo"])
    with pytest.raises(Mistake, match="0 classes"):
        prompts([])


@pytest.mark.system("zero-shot-classification")
@pytest.mark.system("zero-shot-classification", "nearest-text")
def test_it_is_retrieval_of_the_nearest_text() -> None:
    """argmax of the cosine is the nearest text in Euclidean distance of unit vectors; scale does not matter."""
    names = ["a red star", "a blue ring", "an old fox"]
    images, classes = normal(20, 26).abs(), class_vectors(letters, names)
    close(classes, normalize(letters([f"a photo of {n}" for n in names]), dim=-1))
    nearest = torch.cdist(normalize(images, dim=-1), classes).argmin(1)
    assert torch.equal(class_scores(images, classes).argmax(1), nearest)
    close(class_scores(7 * images, 3 * classes), class_scores(images, classes))


@pytest.mark.system("zero-shot-classification")
@pytest.mark.system("zero-shot-classification", "prompts")
def test_an_ensemble_is_the_mean_direction() -> None:
    templates = ["a photo of {}", "zzzzzzzz {} zzzzzzzzz", "{}"]
    found = class_vectors(letters, ["fox", "ring"], templates)
    by_hand = torch.stack(
        [normalize(letters([t.format(name) for t in templates]), dim=-1).sum(0) for name in ("fox", "ring")]
    )
    close(found, normalize(by_hand, dim=-1))
    close(found.norm(dim=-1), torch.ones(2, dtype=torch.float64))


@pytest.mark.system("zero-shot-classification")
@pytest.mark.system("zero-shot-classification", "new-classes")
def test_classes_that_no_image_had() -> None:
    """New names need no training: the scores of the old classes stay as they are."""
    images = normal(5, 26)
    few, more = (class_scores(images, class_vectors(letters, names)) for names in (["fox"], ["fox", "owl"]))
    close(more[:, :1], few)


@pytest.mark.system("clip")
@pytest.mark.parametrize("k", [1, 3, 10])
def test_recall_is_top_k_accuracy(k: int) -> None:
    scores = normal(30, 30)
    known = top_k_accuracy_score(range(30), scores.numpy(), k=k, labels=range(30))
    assert recall(scores, pairs(30), k) == pytest.approx(known)
    assert recall(scores.T, pairs(30), k) == pytest.approx(
        top_k_accuracy_score(range(30), scores.T.numpy(), k=k, labels=range(30))
    )


@pytest.mark.system("clip")
def test_several_right_answers_and_none() -> None:
    scores = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    belongs = torch.tensor([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=torch.bool)
    assert hits(scores, belongs, 2).tolist() == [1, 0, 0]
    assert recall(scores, belongs, 2) == 0.5  # of the two that have an answer
    assert recall(scores, belongs, 3) == 1.0
    with pytest.raises(Mistake, match="recall@4 among 3"):
        hits(scores, belongs, 4)
    with pytest.raises(Mistake, match="no query"):
        recall(scores, torch.zeros(3, 3, dtype=torch.bool))
