"""Word vectors: the scores of the equations, closed-form gradients, and folders of every form."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from descend.data.text.contexts import pairs
from descend.losses.classification import cross_entropy
from descend.models import load
from descend.models.word_vectors import ARCHITECTURES, CBOW, TINY, GloVe, GloVeTriples, SkipGram
from tests.close import close

IDS = torch.tensor([0, 4, 10, 4])


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.system("skip-gram")
@pytest.mark.system("skip-gram", "softmax", "trained")
def test_skip_gram_scores_loss_and_gradient() -> None:
    model = SkipGram(TINY).double()
    w, context = model.centre.weight, model.context.weight
    logits = model(IDS)
    close(logits, w[IDS] @ context.T)
    words = torch.tensor([[1, 2], [0, 5], [7, 7], [3, 9]])
    close(model(IDS, words), logits.gather(1, words))
    # dlogP/dw_c = w'_o − Σ_w P(w|c) w'_w
    o = torch.tensor([6])
    (gradient,) = torch.autograd.grad(-cross_entropy(model(IDS[:1]), o).sum(), w)
    close(gradient[0], context[6] - model(IDS[:1]).softmax(-1)[0] @ context)
    assert not gradient[1:].any()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    close(cross_entropy(model(IDS), IDS), torch.full((4,), math.log(TINY.vocab), dtype=torch.float64))
    assert torch.equal(model.vectors(), model.centre.weight)  # W, the first layer


@pytest.mark.system("skip-gram", "sum")
def test_the_objective_is_the_sum_over_all_pairs() -> None:
    """VOM 7.3.2: Σ log P(o | c) over the 10 pairs of the sentence, and so is its gradient."""
    model = SkipGram(TINY).double()
    centres, near = pairs(torch.tensor([0, 1, 2, 3, 0, 4]), 1)
    w, context = model.centre.weight.detach(), model.context.weight.detach()
    total, slope = torch.zeros((), dtype=torch.float64), torch.zeros_like(w)
    for c, o in zip(centres.tolist(), near.tolist(), strict=True):
        p = (context @ w[c]).softmax(0)
        total, slope[c] = total + p[o].log(), slope[c] + context[o] - p @ context
    found = -cross_entropy(model(centres), near).sum()
    close(found, total)
    close(torch.autograd.grad(found, model.centre.weight)[0], slope)
    assert len(centres) == 10


@pytest.mark.system("cbow")
@pytest.mark.system("cbow", "mean", "one-word", "second-layer")
def test_cbow_is_the_mean_of_the_context_and_with_one_word_skip_gram_reversed() -> None:
    model, other = CBOW(TINY), SkipGram(TINY)
    near = torch.tensor([[1, 2, -1, -1], [3, 3, 4, 0], [-1, -1, -1, -1]])
    h = torch.stack([model.context.weight[[1, 2]].mean(0), model.context.weight[[3, 3, 4, 0]].mean(0)])
    close(model(near)[:2], h @ model.centre.weight.T)
    assert not model(near)[2].any()
    with torch.no_grad():
        other.centre.weight.copy_(model.context.weight)
        other.context.weight.copy_(model.centre.weight)
    close(model(IDS[:, None]), other(IDS))
    words = torch.tensor([[1, 2], [0, 5], [7, 7]])
    close(model(near, words), model(near).gather(1, words))
    assert torch.equal(model.vectors(), model.centre.weight)  # DLN: the second layer
    assert torch.equal(model.first_layer(), model.context.weight)
    assert torch.autograd.gradcheck(
        lambda w: torch.func.functional_call(model.double(), {"context.weight": w}, (near,)),
        torch.randn(TINY.vocab, TINY.width, dtype=torch.float64, requires_grad=True),
    )


@pytest.mark.system("glove")
@pytest.mark.system("glove", "triples", "published", "gauge")
def test_both_forms_of_glove_and_the_freedom_of_the_triples() -> None:
    model, triples = GloVe(TINY), GloVeTriples(TINY)
    with torch.no_grad():
        model.centre_bias.weight.normal_()
        model.context_bias.weight.normal_()
    table = model.centre.weight @ model.context.weight.T + model.centre_bias.weight + model.context_bias.weight.T
    close(model(IDS, IDS.flip(0)), table[IDS, IDS.flip(0)])
    close(model.vectors(), model.centre.weight + model.context.weight)
    i, s, g = torch.tensor([1, 2]), torch.tensor([3, 4]), torch.tensor([5, 6])
    before = triples(i, s, g)
    dots = triples.centre.weight @ triples.context.weight.T
    close(before, dots[i, g] - dots[s, g])
    with torch.no_grad():
        triples.centre.weight += torch.randn(TINY.width)
    close(triples(i, s, g), before, loosen=10)  # rounding of the shift
    close(triples(i, i, g), torch.zeros(2))


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_every_form_comes_back_from_its_folder(name: str, tmp_path: Path) -> None:
    model = ARCHITECTURES[name](TINY)
    model.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert type(again) is type(model)
    for (key, a), b in zip(model.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
