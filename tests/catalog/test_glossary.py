"""The glossary of the transformer book: each formula written out, beside the library's function of that name."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.catalog.search import search
from descend.losses.classification import nll, smooth_targets
from descend.metrics.language import perplexity
from descend.models.gpt2 import GPT2, GPT2Config
from descend.nn.mlp import MLP
from descend.nn.residual import add_pre_norm
from descend.ops.activations import sigmoid, tanh
from descend.ops.attention.dot_product import attention
from descend.ops.dense import neuron
from descend.ops.embedding import one_hot
from descend.ops.math.calculus import chain_rule
from descend.ops.math.information import cross_entropy, entropy, kl
from descend.ops.math.matrices import independent
from descend.ops.math.probability import expectation, variance
from descend.ops.math.transforms import eigen
from descend.ops.math.vectors import dot, norm
from descend.ops.normalization import batch_norm, layer_norm
from descend.ops.recurrent import RNN, Gates, Memory, lstm, rnn, unroll
from descend.ops.softmax import softmax
from descend.text.bpe import merge_pair, pair_counts, top_pairs
from descend.theory.law_shapes import growth_exponent
from tests.close import close

SLUG = "notation-glossary-bibliography"
mark = pytest.mark.system(SLUG, "glossary-formulas")
RANDOM = torch.Generator().manual_seed(7)
U, V, X = (torch.randn(4, generator=RANDOM, dtype=torch.float64) for _ in range(3))
W = torch.randn(4, 4, generator=RANDOM, dtype=torch.float64)
P = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
Q = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
VALUES = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
PAIRS: dict[str, Callable[[], tuple[Tensor | float, Tensor | float]]] = {
    "dot product: Σ u_i v_i": lambda: (dot(U, V), sum(a * b for a, b in zip(U, V, strict=True))),
    "Euclidean norm: √Σ v_i²": lambda: (norm(V), math.sqrt(sum(float(a) ** 2 for a in V))),
    "expectation: Σ p x": lambda: (expectation(VALUES, P), 0.2 * 1 + 0.5 * 2 + 0.3 * 4),
    "variance: E[(x − E x)²]": lambda: (variance(VALUES, P), 0.2 * 1.4**2 + 0.5 * 0.4**2 + 0.3 * 1.6**2),
    "neuron: σ(w·x + b)": lambda: (neuron(X, U, V[0], sigmoid), 1 / (1 + torch.exp(-((X * U).sum() + V[0])))),
    "sigmoid: 1 / (1 + e^−x)": lambda: (sigmoid(X), 1 / (1 + torch.exp(-X))),
    "tanh: (e^x − e^−x) / (e^x + e^−x)": lambda: (tanh(X), (X.exp() - (-X).exp()) / (X.exp() + (-X).exp())),
    "softmax: e^x / Σ e^x": lambda: (softmax(X), X.exp() / X.exp().sum()),
    "one-hot": lambda: (one_hot(torch.tensor([2]), 4).float(), torch.tensor([[0.0, 0.0, 1.0, 0.0]])),
    "cross-entropy: −Σ y log p": lambda: (cross_entropy(P, Q), -(P * Q.log()).sum()),
    "KL: Σ P log(P / Q)": lambda: (kl(P, Q), (P * (P / Q).log()).sum()),
    "logit: log(p / (1 − p))": lambda: (sigmoid((P / (1 - P)).log()), P),
    "perplexity: e^loss": lambda: (perplexity(-Q.log()), Q.prod() ** (-1 / 3)),
    "label smoothing": lambda: (
        smooth_targets(torch.tensor([1]), 3, 0.15, torch.float64),
        torch.tensor([[0.05, 0.9, 0.05]], dtype=torch.float64),
    ),
    "negative log-likelihood": lambda: (nll(Q.log()[None], torch.tensor([1]))[0], -math.log(0.4)),
}


@mark
@pytest.mark.parametrize("name", list(PAIRS))
def test_a_formula_is_the_function(name: str) -> None:
    ours, formula = PAIRS[name]()
    close(ours, formula)


@mark
def test_chain_rule_and_gradient_descent() -> None:
    """dy/dx is the product of the links' slopes; θ − α ∇L is torch's plain step."""
    links = [torch.sin, lambda u: u**2, lambda u: 3 * u]
    x = torch.tensor(0.7, dtype=torch.float64)
    close(chain_rule(links, x)[0], 6 * math.sin(0.7) * math.cos(0.7) * torch.ones((), dtype=torch.float64))
    theta = nn.Parameter(X.clone())
    (theta**3).sum().backward()
    torch.optim.SGD([theta], lr=0.1).step()
    close(theta, X - 0.1 * 3 * X**2)


@mark
def test_matrices() -> None:
    """A v = λ v; W x is a combination of W's columns; vectors are independent when none is made of the others."""
    values, vectors = eigen(W)
    close((W.to(vectors.dtype) @ vectors).real, (values * vectors).real)
    close(W @ X, sum(x * column for x, column in zip(X, W.T, strict=True)))
    assert independent(torch.stack([U, V]))
    assert not independent(torch.stack([U, V, 2 * U - V]))


@mark
def test_normalizations_differ_in_what_they_average_over() -> None:
    x = torch.randn(64, 4, generator=RANDOM, dtype=torch.float64)
    close(batch_norm(x, 0.0), (x - x.mean(0)) / x.std(0, correction=0))
    close(layer_norm(x, 0.0), (x - x.mean(1, keepdim=True)) / x.std(1, correction=0, keepdim=True))


@mark
def test_residual_connection() -> None:
    """y = f(x) + x, twice in a block."""
    f, nothing = (lambda x: 0.5 * x), nn.Identity()
    close(add_pre_norm(X, nothing, f, nothing, f), 1.5 * 1.5 * X)


@mark
def test_byte_pairs_merge_the_most_frequent_neighbours() -> None:
    counts = pair_counts([(tuple("lower"), 2), (tuple("low"), 5), (tuple("new"), 1)])
    assert counts[("l", "o")] == 7
    assert set(top_pairs(counts)) == {("l", "o"), ("o", "w")}
    assert merge_pair(list("lower"), ("l", "o"), "lo") == ["lo", "w", "e", "r"]


@mark
def test_recurrent_networks_share_their_weights_over_time() -> None:
    """h_t = tanh(W_h h + W_x x + b) with the same weights at every step; an LSTM has three gates and a candidate."""
    w = RNN(W / 4, W.flip(0) / 4, U)
    x = torch.randn(3, 4, generator=RANDOM, dtype=torch.float64)
    zero = torch.zeros(4, dtype=torch.float64)
    h = zero
    for x_t, ours in zip(x, unroll(lambda x_t, h: rnn(x_t, h, w), x, zero), strict=True):
        h = torch.tanh(w.w_hh @ h + w.w_xh @ x_t + w.b_h)
        close(ours, h)
    maps = torch.randn(16, 8, generator=RANDOM, dtype=torch.float64)
    f, i, o, c = (maps @ torch.cat([zero, x[0]])).split(4)
    cell = torch.sigmoid(i) * torch.tanh(c) + torch.sigmoid(f) * zero
    ours = lstm(x[0], Memory(zero, zero), Gates(maps, torch.zeros(16, dtype=torch.float64)))
    close(ours.c, cell)
    close(ours.h, torch.sigmoid(o) * torch.tanh(cell))


@mark
def test_a_transformer_shares_its_weights_over_positions() -> None:
    """One layer maps every position alike: rows in another order come out in that order."""
    layer, x = MLP(4, 8, nn.ReLU()).double(), torch.randn(5, 4, generator=RANDOM, dtype=torch.float64)
    close(layer(x.flip(0)), layer(x).flip(0))


TERMS = {
    "chain rule": "scalar-chain-rule",
    "dot product": "dot-product-and-cosine",
    "eigenvector": "eigendecomposition-and-powers",
    "expected value": "expectation-and-variance",
    "gradient descent": "gradient-descent",
    "neuron": "neuron-and-dense-layer",
    "Euclidean norm": "vector-norms",
    "one-hot": "one-hot-words",
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "tanh": "tanh",
    "variance": "expectation-and-variance",
    "linear independence": "basis-rank-and-null-space",
    "batch normalization": "batch-norm",
    "byte pair encoding": "bpe",
    "recurrent neural network": "vanilla-rnn",
    "LSTM": "lstm",
    "RMSprop": "rmsprop",
    "cross-entropy": "cross-entropy",
    "KL divergence": "kl-and-cross-entropy-identity",
    "label smoothing": "label-smoothing",
    "scaling laws": "scaling-law-sweep",
    "chinchilla": "chinchilla-allocation",
    "emergent abilities": "emergent-abilities",
    "power law": "power-law-versus-exponential",
    "perplexity": "perplexity",
    "residual connection": "residual-block",
    "glossary": "notation-glossary-bibliography",
}


@pytest.mark.system(SLUG, "terms-found")
@pytest.mark.parametrize("term", list(TERMS))
def test_a_term_is_found(term: str) -> None:
    assert TERMS[term] in [system.slug for system in search(term, 3)]


@pytest.mark.system(SLUG, "conventions")
def test_conventions_of_the_book() -> None:
    """Logarithms are natural; bits are asked for; the norm is the Euclidean one; tokens come as (batch, length)."""
    half = torch.tensor([0.5, 0.5], dtype=torch.float64)
    close(entropy(half), math.log(2))
    close(norm(torch.tensor([3.0, 4.0])), 5.0)
    model = GPT2(GPT2Config(vocab=8, context=4, width=8, depth=1, heads=2))
    assert model(torch.zeros(2, 3, dtype=torch.long)).shape == (2, 3, 8)


@pytest.mark.system(SLUG, "growth-rate")
def test_growth_of_attention_and_of_a_dense_layer() -> None:
    """Counted FLOPs over the length n: O(n²) for attention's products, O(n) for a layer at each position."""
    lengths = [64, 128, 256, 512]
    squares, lines = [], []
    layer = MLP(8, 32, nn.ReLU())
    for n in lengths:
        x = torch.zeros(1, n, 8)
        with FlopCounterMode(display=False) as count:
            attention(x, x, x)
        squares.append(count.get_total_flops())
        with FlopCounterMode(display=False) as count:
            layer(x)
        lines.append(count.get_total_flops())
    close([growth_exponent(lengths, squares), growth_exponent(lengths, lines)], [2.0, 1.0])
