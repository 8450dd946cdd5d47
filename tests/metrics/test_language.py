from __future__ import annotations

import math

import pytest
import torch

from descend.engine.evaluation import score_set
from descend.losses.language import causal_lm_loss, causal_lm_sum, token_losses
from descend.metrics.language import bits_per_byte, exponentiate, perplexity, sequence_perplexity
from descend.tasks.language import Language
from tests.close import close


@pytest.mark.system("perplexity")
@pytest.mark.system("perplexity", "uniform")
def test_a_uniform_model_is_undecided_between_all_tokens() -> None:
    losses = token_losses(torch.zeros(2, 5, 37), torch.randint(37, (2, 5)))
    close(perplexity(losses), torch.tensor(37.0))
    close(2 ** (losses.mean() / math.log(2)), perplexity(losses))


@pytest.mark.system("perplexity")
@pytest.mark.system("perplexity", "tokens", "sequences")
def test_tokens_or_sequences_weigh_the_same() -> None:
    """VOM weighs tokens, MF-B.84 sequences; with lengths 1 and 3 they differ."""
    short, long = torch.tensor([2.0]), torch.tensor([1.0, 1.0, 1.0])
    close(perplexity(torch.cat([short, long])), torch.tensor(math.exp(5 / 4)))
    close(sequence_perplexity([short, long]), torch.tensor(math.exp(3 / 2)))
    close(sequence_perplexity([long, long]), perplexity(long))


@pytest.mark.system("perplexity")
@pytest.mark.system("perplexity", "bytes")
def test_bits_per_byte_do_not_depend_on_the_tokens() -> None:
    """Four bytes of 2 bits each, as four tokens or as one."""
    assert bits_per_byte(4 * math.log(4), 4) == pytest.approx(bits_per_byte(math.log(4**4), 4)) == pytest.approx(2)


@pytest.mark.system("causal-lm-loss")
@pytest.mark.system("causal-lm-loss", "reductions", "gradients")
def test_the_loss_is_the_mean_or_the_sum_of_the_token_losses() -> None:
    torch.manual_seed(0)
    z, y = torch.randn(2, 4, 9, dtype=torch.float64, requires_grad=True), torch.randint(9, (2, 4))
    by_hand = -z.log_softmax(-1).gather(-1, y[..., None]).squeeze(-1)
    close(token_losses(z, y), by_hand)
    close(causal_lm_loss(z, y), by_hand.mean())
    close(causal_lm_sum(z, y), by_hand.sum())
    close(causal_lm_sum(z, y), 8 * causal_lm_loss(z, y))
    assert torch.autograd.gradcheck(lambda z: causal_lm_loss(z, y), (z,))
    [gradient] = torch.autograd.grad(causal_lm_loss(z, y), z)
    close(gradient, (z.softmax(-1) - torch.eye(9, dtype=torch.float64)[y]) / 8)


@pytest.mark.system("perplexity", "corpus")
@pytest.mark.parametrize("size", [1, 3, 7])
def test_the_perplexity_of_a_set_does_not_depend_on_its_batches(size: int) -> None:
    """Seven texts in batches of any size: exp of the mean over all tokens."""
    torch.manual_seed(0)
    table, x = torch.randn(9, 9), torch.randint(9, (7, 6))
    task = Language(lambda tokens: table[tokens])
    batches = [{"x": rows[:, :-1], "y": rows[:, 1:]} for rows in x.split(size)]
    found = score_set(task, batches)["perplexity"]
    close(torch.tensor(found), perplexity(token_losses(table[x[:, :-1]], x[:, 1:])))


def test_a_loss_beyond_all_numbers_has_a_perplexity() -> None:
    assert exponentiate(1000.0) == math.inf
    assert exponentiate(2.0) == math.exp(2.0)
    assert math.isnan(exponentiate(math.nan))
