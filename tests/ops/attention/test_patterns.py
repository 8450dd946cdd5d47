"""Attention patterns: the books' sets by enumeration, closed counts, reach, and what connects in how many layers."""

from __future__ import annotations

import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.ops.attention import patterns as p
from descend.theory.attention_cost import (
    causal_pairs,
    fit_exponent,
    full_pairs,
    global_pairs_bound,
    strided_pairs_bound,
    window_pairs,
)


def enumerated(t: int, rule: object) -> Tensor:
    return torch.tensor([[bool(rule(i, j)) for j in range(t)] for i in range(t)])  # type: ignore[operator]


@pytest.mark.system("sliding-window-attention", "radius", "dilated")
@pytest.mark.system("sliding-window-attention")
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(1, 20), st.integers(0, 25), st.integers(1, 5))
def test_windows_are_their_definition(t: int, w: int, d: int) -> None:
    assert torch.equal(p.window(t, w), enumerated(t, lambda i, j: abs(i - j) <= w))
    sets = [{i + m * d for m in range(-w, w + 1)} for i in range(t)]
    assert torch.equal(p.dilated(t, w, d), enumerated(t, lambda i, j: j in sets[i]))
    assert torch.equal(p.dilated(t, w, 1), p.window(t, w))
    assert p.pairs(p.window(t, w)) == window_pairs(t, w)


@pytest.mark.system("sliding-window-attention", "reach")
@pytest.mark.system("sliding-window-attention")
def test_reach_is_l_w() -> None:
    for layers in (1, 2, 4):
        assert torch.equal(p.reach(p.window(30, 3), layers), p.window(30, 3 * layers))
    strides = p.dilated(60, 1, 1), p.dilated(60, 1, 3), p.dilated(60, 1, 9)  # a stride for each layer: 1 + 3 + 9
    found = (strides[2].double() @ strides[1].double() @ strides[0].double()) > 0
    assert torch.equal(found[13:-13], p.window(60, 13)[13:-13])  # near the ends a path would leave the text


@pytest.mark.system("longformer", "global")
@pytest.mark.system("longformer")
def test_global_tokens_see_all_and_are_seen_by_all() -> None:
    places = torch.tensor([0, 32])
    mask = p.with_global(p.window(64, 4), places)
    assert mask[places].all()
    assert mask[:, places].all()
    assert torch.equal(mask, mask.T)
    others = torch.ones(64, dtype=torch.bool)
    others[places] = False
    assert torch.equal(mask[others][:, others], p.window(64, 4)[others][:, others])
    assert p.pairs(mask) <= global_pairs_bound(64, 4, 2)
    assert not p.window(64, 4)[0, 32]  # the mask that was given is not changed


@pytest.mark.system("longformer", "selectors")
@pytest.mark.system("longformer")
def test_selectors() -> None:
    assert p.first_token(512).tolist() == [0]
    assert p.question_tokens(17).tolist() == list(range(17))
    for t, s in ((64, 32), (65, 32), (10, 3), (9, 3)):
        assert len(p.every(t, s)) == math.ceil(t / s)
    assert p.every(10, 3).tolist() == [0, 3, 6, 9]


@pytest.mark.system("longformer")
def test_any_token_reaches_any_other_through_a_global_one_in_two_layers() -> None:
    assert p.layers_to_connect(p.window(50, 2)) == math.ceil(49 / 2)
    assert p.layers_to_connect(p.with_global(p.window(50, 2), p.first_token(50))) == 2


@pytest.mark.system("sparse-transformer-attention", "patterns")
@pytest.mark.system("sparse-transformer-attention")
@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(1, 24), st.integers(1, 9), st.integers(1, 3))
def test_strided_and_fixed_are_their_definition(t: int, l: int, c: int) -> None:  # noqa: E741
    assert torch.equal(p.strided(t, l), enumerated(t, lambda i, j: j <= i and (i - j < l or (i - j) % l == 0)))
    rule = enumerated(t, lambda i, j: j <= i and (j // l == i // l or j % l >= l - c))
    assert torch.equal(p.fixed(t, l, c), rule)


@pytest.mark.system("sparse-transformer-attention", "count", "connected")
@pytest.mark.system("sparse-transformer-attention")
def test_t_root_t_scores_connect_all_in_two_layers() -> None:
    sizes = [64, 256, 1024]
    for pattern in (p.strided, p.fixed):
        counts = [p.pairs(pattern(t, math.isqrt(t))) for t in sizes]
        assert 1.35 < fit_exponent(sizes, counts) < 1.6
        assert all(c < strided_pairs_bound(t) for c, t in zip(counts, sizes, strict=True))
        assert p.layers_to_connect(pattern(64, 8)) == 2
    dense = [p.pairs(torch.ones(t, t).tril()) for t in sizes]
    assert dense == [causal_pairs(t) for t in sizes]
    assert fit_exponent(sizes, [full_pairs(t) for t in sizes]) == pytest.approx(2)


@pytest.mark.system("bigbird", "blocks")
@pytest.mark.system("bigbird")
def test_big_bird_blocks() -> None:
    n, r = 16, 3
    mask = p.big_bird(n, 1, 1, r, heads=2, seed=0)
    known = p.big_bird_blocks(n)
    assert mask[:, [0, -1]].all()
    assert mask[:, :, [0, -1]].all()
    assert (mask & known == known).all()
    per_row = mask[:, 1:-1].sum(-1)
    assert per_row.max() <= 3 + 2 + r
    assert torch.equal(per_row - known[1:-1].sum(-1), torch.full_like(per_row, r))  # r new ones in every row
    assert torch.equal(mask, p.big_bird(n, 1, 1, r, heads=2, seed=0))
    assert not torch.equal(mask, p.big_bird(n, 1, 1, r, heads=2, seed=1))
    assert not torch.equal(mask[0], mask[1])  # each head draws its own
    assert p.big_bird(4, 1, 1, 3, 1, 0).all()  # no more blocks than it may see


@pytest.mark.system("bigbird", "blocks")
@pytest.mark.system("bigbird")
@pytest.mark.parametrize(("n", "ends", "count"), [(7, 1, 2), (6, 0, 3), (5, 1, 4), (4, 2, 3)])
def test_big_bird_sees_window_ends_and_the_drawn_blocks(n: int, ends: int, count: int) -> None:
    """Also where fewer than `count` are left to draw, and -1 stands for none."""
    found, drawn = p.big_bird(n, 1, ends, count, 2, 0), p.random_blocks(p.big_bird_blocks(n, 1, ends), count, 2, 0)
    for head in range(2):
        for i in range(n):
            blocks = {j for j in range(n) if abs(i - j) <= 1 or min(i, j) < ends or max(i, j) >= n - ends}
            blocks |= {j for j in drawn[head, i].tolist() if j >= 0}
            assert set(found[head, i].nonzero().flatten().tolist()) == blocks


@pytest.mark.system("bigbird", "linear", "diameter")
@pytest.mark.system("bigbird")
def test_pairs_are_linear_and_the_diameter_is_small() -> None:
    sizes = [32, 64, 128, 256]
    assert fit_exponent(sizes, [p.pairs(p.big_bird(n, 1, 1, 3, 1, 0)) for n in sizes]) == pytest.approx(1, abs=0.05)
    assert p.layers_to_connect(p.big_bird(64, 1, 1, 3, 1, 0)[0]) == 2
    random_only = p.window(64, 1) | p.big_bird(64, 1, 0, 3, 1, 0)[0]  # no global blocks: random edges alone
    found = p.layers_to_connect(random_only)
    assert found < 10 < p.layers_to_connect(p.window(64, 1)) == 63
    graph = nx.from_numpy_array(random_only.numpy(), create_using=nx.DiGraph)
    assert found == nx.diameter(graph)


def test_counts_of_listed_blocks() -> None:
    look = torch.tensor([[0, 2, -1], [1, 1, 0]])
    assert p.block_counts(look, 3).tolist() == [[1, 0, 1], [1, 2, 0]]
    assert p.of_tokens(torch.eye(2), 2, 3).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_a_pattern_that_never_connects_is_named() -> None:
    with pytest.raises(ValueError, match="never connects"):
        p.layers_to_connect(torch.eye(4, dtype=torch.bool))
