from __future__ import annotations

import math

import pytest
import torch

from descend.losses.language import causal_lm_loss, token_losses
from descend.metrics.language import bits_per_byte, perplexity, sequence_perplexity
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
@pytest.mark.system("causal-lm-loss", "gradients")
def test_the_loss_is_the_mean_or_the_sum_of_the_token_losses() -> None:
    torch.manual_seed(0)
    z, y = torch.randn(2, 4, 9, dtype=torch.float64, requires_grad=True), torch.randint(9, (2, 4))
    by_hand = -z.log_softmax(-1).gather(-1, y[..., None]).squeeze(-1)
    close(token_losses(z, y), by_hand)
    close(causal_lm_loss(z, y), by_hand.mean())
    assert torch.autograd.gradcheck(lambda z: causal_lm_loss(z, y), (z,))
    [gradient] = torch.autograd.grad(causal_lm_loss(z, y), z)
    close(gradient, (z.softmax(-1) - torch.eye(9, dtype=torch.float64)[y]) / 8)
