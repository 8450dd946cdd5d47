"""Entropy, cross-entropy and divergence against scipy and torch, their identity and gradients, and real codes."""

from __future__ import annotations

import math

import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.ops.math.information import (
    bits,
    blocks,
    cross_entropy,
    cross_entropy_terms,
    entropy,
    entropy_of_logits,
    entropy_terms,
    huffman_lengths,
    kl,
    kl_of_logits,
    label_cross_entropy,
    surprise,
)
from descend.ops.math.probability import expectation, sample_pmf
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# One distribution


@pytest.mark.system("entropy-and-surprise")
@pytest.mark.system("entropy-and-surprise", "nats-and-bits", "zero-log-zero", "logits")
@given(n=st.integers(1, 8), seed=st.integers(0, 99), sharp=st.floats(0.1, 5.0))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_entropy_equals_scipy(n: int, seed: int, sharp: float) -> None:
    z = sharp * noise(4, n, seed=seed)
    p = z.softmax(-1)
    close(entropy(p), t(scipy.stats.entropy(p.numpy(), axis=-1).tolist()))
    close(bits(entropy(p)), t(scipy.stats.entropy(p.numpy(), base=2, axis=-1).tolist()))
    close(entropy_of_logits(z), entropy(p))
    close(entropy(p), expectation(surprise(p), p))
    assert bool((entropy(p) <= math.log(n) + 1e-12).all())
    assert bool((entropy(p) >= 0).all())


@pytest.mark.system("entropy-and-surprise")
@pytest.mark.system("entropy-and-surprise", "erratum")
def test_the_numbers_of_the_book() -> None:
    close(surprise(t([1.0, 0.5, 0.1, 0.01])), t([0.0, 0.6931471805599453, 2.302585092994046, 4.605170185988091]))
    certain = t([0.95, 0.03, 0.01, 0.01])
    assert round(entropy(certain).item(), 3) == 0.246  # erratum VOM 3.9: printed 0.29
    close(entropy(t([0.25] * 4)), t(math.log(4)))
    close(bits(entropy(t([0.5, 0.5]))), t(1.0))
    assert round(bits(entropy(t([0.99, 0.01]))).item(), 2) == 0.08


@pytest.mark.system("entropy-and-surprise")
@pytest.mark.system("entropy-and-surprise", "zero-log-zero")
def test_zero_log_zero_is_zero() -> None:
    one_hot = torch.eye(4, dtype=torch.float64)
    assert entropy(one_hot).tolist() == [0.0] * 4
    assert entropy_terms(one_hot[0]).tolist() == [0.0] * 4
    close(entropy(t([0.5, 0.5, 0.0])), t(math.log(2)))
    z = t([1.0, 2.0, -math.inf]).requires_grad_()  # a masked class
    h = entropy_of_logits(z)
    close(h, entropy(t([1.0, 2.0]).softmax(-1)))
    (gradient,) = torch.autograd.grad(h, z)
    assert bool(gradient.isfinite().all())
    assert gradient[2] == 0
    assert entropy_of_logits(t([1e4, -1e4, 0.0])) == 0


@pytest.mark.system("entropy-and-surprise")
@pytest.mark.system("entropy-and-surprise", "training")
def test_prediction_entropy_falls_in_training() -> None:
    """VOM 3.9: a classifier that learns becomes surer; it starts at log n."""
    x, w = noise(60, 5), torch.zeros(5, 3, dtype=torch.float64, requires_grad=True)
    y = (x @ noise(5, 3, seed=1)).argmax(-1)
    seen = []
    for _ in range(5):
        seen.append(entropy_of_logits(x @ w).mean().item())
        for _ in range(10):
            (gradient,) = torch.autograd.grad(F.cross_entropy(x @ w, y), w)
            w = (w - gradient).detach().requires_grad_()
    close(t(seen[0]), t(math.log(3)))
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] < 0.6 * seen[0]


# Two distributions


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "identity", "forms", "asymmetric")
@given(n=st.integers(2, 8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_divergence_equals_scipy_and_torch(n: int, seed: int) -> None:
    z_p, z_q = noise(4, n, seed=seed), noise(4, n, seed=seed + 1)
    p, q = z_p.softmax(-1), z_q.softmax(-1)
    close(kl(p, q), t(scipy.stats.entropy(p.numpy(), q.numpy(), axis=-1).tolist()))
    close(kl(p, q), F.kl_div(q.log(), p, reduction="none").sum(-1))
    close(kl_of_logits(z_p, z_q), kl(p, q))
    close(cross_entropy(p, q), F.cross_entropy(z_q, p, reduction="none"))
    close(cross_entropy_terms(p, q).sum(-1), cross_entropy(p, q))
    close(cross_entropy(p, q), entropy(p) + kl(p, q))  # the identity
    assert bool((kl(p, q) > 0).all())
    assert kl(p, p).abs().max() < 1e-12
    close(cross_entropy(p, p), entropy(p))


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "identity")
def test_the_first_term_of_kl_is_minus_the_entropy() -> None:
    """Erratum DLN: KL = Σ p log p − Σ p log q, and Σ p log p = −H(p) < 0."""
    p, q = t([0.5, 0.25, 0.25]), t([0.25, 0.25, 0.5])
    first = (p * p.log()).sum()
    assert first < 0
    close(first, -entropy(p))
    close(first - (p * q.log()).sum(), kl(p, q))


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "asymmetric")
def test_divergence_is_not_symmetric_and_can_be_infinite() -> None:
    p, q = t([0.7, 0.3]), t([0.5, 0.5])
    close(kl(p, q), t(0.0822828785), loosen=10)  # printed to ten digits
    close(kl(q, p), t(0.0871766936), loosen=10)
    assert kl(q, t([1.0, 0.0])) == math.inf
    assert cross_entropy(q, t([1.0, 0.0])) == math.inf
    close(kl(t([1.0, 0.0]), q), t(math.log(2)))
    assert kl(t([1.0, 0.0]), t([1.0, 0.0])) == 0


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "forms")
def test_labels_are_one_hot_distributions() -> None:
    q, y = noise(5, 4).softmax(-1), torch.tensor([0, 3, 1, 2, 2])
    close(label_cross_entropy(y, q), cross_entropy(F.one_hot(y, 4).double(), q))
    close(label_cross_entropy(y, q), kl(F.one_hot(y, 4).double(), q))  # H(one-hot) = 0
    close(label_cross_entropy(y, q), F.nll_loss(q.log(), y, reduction="none"))


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "same-minimizer")
@pytest.mark.system("entropy-and-surprise")
def test_both_losses_have_one_gradient_and_one_minimum() -> None:
    p, z = noise(4).softmax(-1), noise(4, seed=1).requires_grad_()
    gradients = [torch.autograd.grad(f(p, z.softmax(-1)), z)[0] for f in (cross_entropy, kl)]
    close(gradients[0], gradients[1])
    close(gradients[0], z.softmax(-1) - p)
    best = p.log().requires_grad_()
    (at_best,) = torch.autograd.grad(cross_entropy(p, best.softmax(-1)), best)
    assert at_best.abs().max() < 1e-12
    assert torch.autograd.gradcheck(lambda z: kl_of_logits(p.log(), z), z)
    assert torch.autograd.gradcheck(lambda z: kl_of_logits(z, p.log()), z)
    assert torch.autograd.gradcheck(entropy_of_logits, z)
    assert torch.autograd.gradcheck(entropy, z.softmax(-1).detach().requires_grad_())


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logits_far_apart(dtype: torch.dtype) -> None:
    z = torch.tensor([1e4, 0.0], dtype=dtype)
    close(kl_of_logits(z, -z), torch.tensor(1e4, dtype=dtype))
    assert kl_of_logits(z, z) == 0


# Codes


def best_length(q: Tensor, k: int) -> float:
    """Bits a symbol of a Huffman code for blocks of k."""
    joint = blocks(q, k)
    return expectation(huffman_lengths(joint).double(), joint).item() / k


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "code-length")
def test_a_code_for_q_spends_the_cross_entropy_on_p() -> None:
    """Powers of ½ are coded without waste: on samples of p the code spends H(p, q) bits, KL more than the best."""
    p, q = t([0.1, 0.2, 0.3, 0.4]), t([0.5, 0.25, 0.125, 0.125])
    lengths = huffman_lengths(q)
    assert lengths.tolist() == [1, 2, 3, 3]
    close(lengths.double(), bits(surprise(q)))
    close(expectation(lengths.double(), p), bits(cross_entropy(p, q)))
    drawn = sample_pmf(p, 20_000, torch.Generator().manual_seed(0))
    spent = lengths[drawn].double()
    assert abs(spent.mean() - bits(cross_entropy(p, q))) < 4 * spent.std() / math.sqrt(20_000)
    waste = expectation(lengths.double(), p) - bits(entropy(p))
    close(waste, bits(kl(p, q)))


@pytest.mark.system("kl-and-cross-entropy-identity")
@pytest.mark.system("kl-and-cross-entropy-identity", "code-length")
@pytest.mark.system("entropy-and-surprise")
def test_blocks_approach_the_entropy_and_the_cross_entropy() -> None:
    p, q = t([0.9, 0.1]), t([0.7, 0.3])
    spent = [best_length(p, k) for k in (1, 2, 4, 8)]
    h = bits(entropy(p)).item()
    for k, bits_each in zip((1, 2, 4, 8), spent, strict=True):
        assert h <= bits_each < h + 1 / k  # Shannon's bound
    assert spent[0] == 1.0
    assert spent[-1] < 1.03 * h
    wrong = expectation(huffman_lengths(blocks(q, 8)).double(), blocks(p, 8)).item() / 8
    assert abs(wrong - bits(cross_entropy(p, q)).item()) < 0.05  # coded for q, spent on p
    assert wrong > spent[-1] + 0.8 * bits(kl(p, q)).item()


@pytest.mark.system("entropy-and-surprise")
@given(n=st.integers(1, 9), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_huffman_codes_are_prefix_codes_within_one_bit(n: int, seed: int) -> None:
    q = (2 * noise(n, seed=seed)).softmax(-1)
    lengths = huffman_lengths(q).double()
    if n > 1:
        close((0.5**lengths).sum(), t(1.0))  # Kraft: a full binary tree
    assert bits(entropy(q)) - 1e-9 <= expectation(lengths, q) < bits(entropy(q)) + 1
