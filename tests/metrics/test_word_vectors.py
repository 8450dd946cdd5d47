"""Analogies, neighbours and the shape of a cloud, on vectors whose answers are known."""

from __future__ import annotations

import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity

from descend.data.toys.toy_language import FEATURES, NOUNS, quadruples
from descend.errors import Mistake
from descend.metrics.geometry import (
    anisotropy,
    center_rows,
    class_contrast,
    components,
    flat_map,
    mean_direction,
    principal_direction,
    projection,
    without_top,
)
from descend.metrics.word_vectors import Words, analogies, analogy_accuracy, neighbours
from tests.close import close

NAMES = [*NOUNS, "bread", "stone"]


def additive(noise: float = 0.0) -> torch.Tensor:
    """Every noun the sum of its features' vectors."""
    random = torch.Generator().manual_seed(0)
    parts = dict(zip(FEATURES, torch.randn(len(FEATURES), 12, generator=random), strict=True))
    nouns = [torch.stack([parts[f] for f in features]).sum(0) for features in NOUNS.values()]
    rows = torch.stack([*nouns, *torch.randn(2, 12, generator=random)])
    return rows + noise * torch.randn(rows.shape, generator=random)


@pytest.mark.system("embedding-analogies")
@pytest.mark.system("embedding-analogies", "exact", "excluded", "accuracy")
def test_additive_vectors_answer_every_analogy() -> None:
    words = Words(NAMES, additive())
    assert words.analogy("man", "king", "woman") == "queen"
    assert words.analogy("king", "man", "queen") == "woman"
    assert analogy_accuracy(additive(), quadruples()) == 1
    assert analogy_accuracy(additive(0.1), quadruples()) > 0.9
    question = torch.tensor([[0, 0, 0]])
    assert int(analogies(additive(), question)) != 0  # the words asked about are left out


@pytest.mark.system("embedding-analogies")
@pytest.mark.system("embedding-analogies", "accuracy")
def test_neighbours_are_those_of_scikit_learn() -> None:
    e = additive()
    cosine = torch.from_numpy(cosine_similarity(e.numpy()))
    ids, values = neighbours(e, e[2], 4, [2])
    expected = cosine[2].clone()
    expected[2] = -2
    assert ids.tolist() == expected.topk(4).indices.tolist()
    close(values, expected.topk(4).values)
    assert len(neighbours(e, e[0], 99, [0])[0]) == len(e) - 1


def test_mistakes_name_the_word_and_the_fix() -> None:
    words = Words(NAMES, additive())
    assert len(words.near("king", 3)) == 3
    with pytest.raises(Mistake, match=r"'quen' has no vector\. Did you mean 'queen'"):
        words.near("quen")
    with pytest.raises(Mistake, match="3 words for 10 vectors: they do not belong together"):
        Words(NAMES[:3], additive())


@pytest.mark.system("embedding-geometry")
@pytest.mark.system("embedding-geometry", "anisotropy")
def test_anisotropy_of_round_and_narrow_clouds_and_its_remedy() -> None:
    e = torch.randn(400, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cosine = torch.from_numpy(cosine_similarity(e.numpy()))
    close(anisotropy(e), (cosine.sum() - 400) / (400 * 399), loosen=1e3)  # cancellation of two large sums
    cone = e + 10
    assert abs(float(anisotropy(e))) < 0.01
    assert anisotropy(cone) > 0.95
    assert abs(float(anisotropy(center_rows(cone)))) < 0.01
    with pytest.raises(ValueError, match="1 row has no pairs"):
        anisotropy(e[:1])


@pytest.mark.system("embedding-analogies", "map")
@pytest.mark.system("embedding-geometry")
@pytest.mark.system("embedding-geometry", "top-components")
def test_components_are_those_of_scikit_learn() -> None:
    e = additive().double()
    theirs = PCA(2).fit(e.numpy())
    close(components(e, 2).abs(), torch.from_numpy(abs(theirs.components_)))
    close(flat_map(e).abs(), torch.from_numpy(abs(theirs.transform(e.numpy()))))
    rest = without_top(e, 2)
    close((rest @ components(e, 2).T).abs().max() + 1, torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.system("embedding-geometry")
@pytest.mark.system("embedding-geometry", "directions")
def test_concept_directions_tell_the_concept() -> None:
    e, features = additive(0.1), list(NOUNS.values())
    male, female = ([n for n, f in enumerate(features) if f[1] == g] for g in ("male", "female"))
    for direction in (mean_direction(e[male], e[female]), principal_direction(e[male], e[female])):
        close(direction.norm(), torch.tensor(1.0))
        assert projection(e[male], direction).max() < projection(e[female], direction).min()


@pytest.mark.system("embedding-geometry")
@pytest.mark.system("embedding-geometry", "classes")
def test_classes_are_closer_within_than_between() -> None:
    e, classes = additive(), torch.tensor([int(f[0] == "royal") for f in NOUNS.values()])
    within, between = class_contrast(e[:8], classes)
    assert within > between
    same = torch.cat([torch.eye(2).repeat_interleave(3, 0)])
    close(torch.stack(class_contrast(same, torch.tensor([0, 0, 0, 1, 1, 1]))), torch.tensor([1.0, 0.0]))
