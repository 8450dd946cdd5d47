"""GloVe by triples: its gradient, its limit, and what it may not draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from descend.classic.glove import GloVeByTriples, drawable, ratios, sufficient_width
from descend.errors import Mistake
from tests.close import close

SLUG = "glove"
P = np.random.default_rng(1).dirichlet(np.ones(4), 3).T  # 4 words, 3 contexts


@pytest.mark.system(SLUG)
def test_a_step_is_that_of_autograd() -> None:
    random = np.random.default_rng(0)
    model = GloVeByTriples.start(4, 2, random)
    model.context = model.context[:3]
    w, c = (torch.tensor(a, requires_grad=True) for a in (model.w, model.context))
    i, s, g = np.stack(drawable(P), 1)[np.random.default_rng(5).integers(len(drawable(P)[0]), size=1)][0]
    loss = ((w[i] - w[s]) @ c[g] - ratios(P)[i, s, g]) ** 2
    loss.backward()
    model.fit(P, 0.1, 1, np.random.default_rng(5))
    assert w.grad is not None
    assert c.grad is not None
    close(model.w, w - 0.1 * w.grad)
    close(model.context, c - 0.1 * c.grad)


@pytest.mark.system(SLUG)
def test_the_loss_goes_to_zero_if_the_width_suffices_and_not_if_not() -> None:
    assert sufficient_width(P) == 3
    ends = []
    for width in (3, 1):
        random = np.random.default_rng(0)
        model = GloVeByTriples.start(4, width, random)
        model.context = model.context[:3]
        ends.append(model.fit(P, 0.03, 12_000, random).loss(P))
    assert ends[0] < 1e-6 < 1e-2 < ends[1]


@pytest.mark.system(SLUG)
def test_one_vector_added_to_all_changes_nothing() -> None:
    model = GloVeByTriples.start(4, 3, np.random.default_rng(0))
    before = model.scores()
    model.w += np.array([1.0, -2.0, 3.0])
    close(model.scores(), before)


@pytest.mark.system(SLUG)
def test_zero_probabilities_are_never_drawn() -> None:
    p = np.array([[0.5, 0.0], [0.5, 0.4], [0.0, 0.6]])
    found = set(zip(*(a.tolist() for a in drawable(p)), strict=True))
    assert found == {(0, 1, 0), (1, 0, 0), (1, 2, 1), (2, 1, 1)}
    assert np.isfinite(GloVeByTriples.start(3, 2, np.random.default_rng(0)).loss(np.c_[p, p[:, :1]]))
    with pytest.raises(Mistake, match="no two words share a context word"):
        drawable(np.eye(3))
    with pytest.raises(Mistake, match="none negative"):
        drawable(-p)
