"""Sequence probabilities by hand, and exhaustive search against enumeration."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from descend.errors import Mistake
from descend.sampling.beam import beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from descend.sampling.sequence import exhaustive_search, sequence_log_probability, token_log_probabilities
from tests.close import close
from tests.sampling.chain import chain, random_chain, tree, words


@pytest.mark.system("sequence-probability-search")
@pytest.mark.system("sequence-probability-search", "chain-rule")
def test_the_chain_rule_of_the_cat_sat() -> None:
    """p(The cat sat) = 0.05 · 0.02 · 0.15 = 0.00015"""
    p = torch.tensor([[0.05, 0.95], [0.02, 0.98], [0.15, 0.85]], dtype=torch.float64)
    tokens = torch.zeros(1, 3, dtype=torch.long)
    close(sequence_log_probability(p.log()[None], tokens).exp(), torch.tensor([0.00015], dtype=torch.float64))
    close(token_log_probabilities(p.log()[None], tokens).exp()[0], p[:, 0])


@pytest.mark.system("sequence-probability-search")
@pytest.mark.system("sequence-probability-search", "chain-rule")
def test_padding_counts_nothing() -> None:
    logits = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tokens = torch.tensor([[1, 2, 3, 0, 0], [4, 5, 6, 1, 2]])
    real = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    found = sequence_log_probability(logits, tokens, real)
    close(found[0], sequence_log_probability(logits[:1, :3], tokens[:1, :3])[0])
    close(found[1], torch.stack([logits[1, i].softmax(-1)[t] for i, t in enumerate(tokens[1])]).log().sum())


@pytest.mark.system("sequence-probability-search")
@pytest.mark.system("sequence-probability-search", "brute-force")
@pytest.mark.parametrize("n", [1, 2, 4])
def test_exhaustive_search_is_enumeration(n: int) -> None:
    k, p = 4, random_chain(4, seed=n)
    best, log_p = exhaustive_search(chain(p), [[2]], n)
    every = torch.tensor(list(product(range(k), repeat=n)))
    before = torch.cat([torch.full((len(every), 1), 2), every[:, :-1]], dim=1)
    scores = sequence_log_probability(p.log()[before], every)
    assert len(every) == k**n
    assert best == every[scores.argmax()].tolist()
    close(torch.tensor(log_p, dtype=torch.float64), scores.max())


@pytest.mark.system("sequence-probability-search")
@pytest.mark.system("sequence-probability-search", "brute-force")
@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "tree")
def test_the_books_tree() -> None:
    best, log_p = exhaustive_search(chain(tree()), [[0]], 2)
    assert words(best) == ["dog", "has"]
    close(torch.tensor(log_p, dtype=torch.float64).exp(), torch.tensor(0.36, dtype=torch.float64))


@pytest.mark.system("sequence-probability-search")
@pytest.mark.system("sequence-probability-search", "order")
def test_brute_force_beats_beam_and_beam_beats_greedy() -> None:
    """The first always; the second usually: never less here, and more in a quarter of these chains."""
    better = 0
    for seed in range(20):
        p = random_chain(5, seed, sharpness=1.0)
        top = exhaustive_search(chain(p), [[0]], 4)[1]
        beam = beam_search(chain(p), [[0]], beams=3, tokens=4)[0][0].log_p
        greedy = torch.tensor([[0, *generate(chain(p), [[0]], 4)[0]]])
        plain = float(sequence_log_probability(p.log()[greedy[:, :-1]], greedy[:, 1:]))
        assert top >= beam - 1e-12 >= plain - 2e-12
        better += beam > plain + 1e-12
    assert better >= 5


class Counting(Recompute):
    """Counts the continuations that were scored."""

    scored = 0

    def last(self) -> torch.Tensor:
        logits = super().last()
        self.scored += logits.numel()
        return logits


@pytest.mark.system("sequence-probability-search")
@pytest.mark.system("sequence-probability-search", "costs")
@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "hypotheses")
def test_costs_of_the_three_searches() -> None:
    """K = 3, N = 2, B = 2: greedy scores K N = 6; beam B K = 6 in its last step, not B² = 4; there are K^N = 9."""
    table = random_chain(3, seed=0).log()
    costs = {}
    for name, search in {
        "greedy": lambda d: generate(d, [[0]], 2),
        "beam": lambda d: beam_search(d, [[0]], beams=2, tokens=2),
        "exhaustive": lambda d: exhaustive_search(d, [[0]], 2),
    }.items():
        decoder = Counting(lambda tokens: table[tokens], 8)
        search(decoder)
        costs[name] = decoder.scored - 3  # the first step scores K = 3 in each of them
    assert costs == {"greedy": 3, "beam": 6, "exhaustive": 9}


@pytest.mark.system("likelihood-trap", "traces")
def test_the_trace_of_a_text_and_of_what_a_beam_writes() -> None:
    """p of each token: the beam's product is its own log p, above that of any other text of the length."""
    p = random_chain(5, seed=3, sharpness=1.0)
    (found,) = (beam_search(chain(p), [[0]], beams=125, tokens=4)[0][:1],)
    other = torch.tensor([[0, 4, 3, 2, 1]])
    beam = torch.tensor([[0, *found[0].tokens]])
    traces = [token_log_probabilities(p.log()[text[:, :-1]], text[:, 1:])[0] for text in (beam, other)]
    assert [len(trace) for trace in traces] == [4, 4]
    close(traces[1].exp(), torch.stack([p[0, 4], p[4, 3], p[3, 2], p[2, 1]]))
    close(traces[0].sum(), torch.tensor(found[0].log_p, dtype=torch.float64))
    assert traces[0].sum() > traces[1].sum()


def test_what_it_refuses() -> None:
    with pytest.raises(Mistake, match="one prompt, not 2"):
        exhaustive_search(chain(random_chain(3, 0)), [[0], [1]], 2)
    with pytest.raises(Mistake, match=r"100\^4 sequences"):
        exhaustive_search(chain(random_chain(100, 0)), [[0]], 4)
