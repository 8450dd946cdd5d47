"""Beam search: between greedy and exhaustive, against transformers, and its length normalisation by hand."""

from __future__ import annotations

import math

import pytest
import torch

from descend.errors import Mistake
from descend.models.gpt2 import GPT2
from descend.sampling.beam import Beam, beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from descend.sampling.sequence import exhaustive_search
from tests.close import close
from tests.sampling.chain import chain, random_chain, tree, words


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "tree")
@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "greedy")
def test_the_books_tree() -> None:
    """Two beams keep "nice" and "dog", and find "dog has" (0.36), which greedy search misses (0.20)."""
    found = beam_search(chain(tree()), [[0]], beams=2, tokens=2)[0]
    assert [words(h.tokens) for h in found] == [["dog", "has"], ["nice", "woman"]]
    probabilities = torch.tensor([math.exp(h.log_p) for h in found], dtype=torch.float64)
    close(probabilities, torch.tensor([0.36, 0.2], dtype=torch.float64))
    assert words(generate(chain(tree()), [[0]], 2)[0]) == ["nice", "woman"]
    kept = beam_search(chain(tree()), [[0]], beams=2, tokens=1)[0]
    assert [words(h.tokens) for h in kept] == [["nice"], ["dog"]]


@pytest.mark.system("autoregressive-generation", "greedy")
@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "limits")
def test_one_beam_is_greedy_search() -> None:
    for seed in range(5):
        p, prompts = random_chain(7, seed), [[0], [3, 1], [6]]
        found = beam_search(chain(p), prompts, beams=1, tokens=9)
        assert [h[0].tokens for h in found] == generate(chain(p), prompts, 9)


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "limits")
@pytest.mark.system("sequence-probability-search")
@pytest.mark.parametrize(("k", "n"), [(3, 4), (4, 3), (2, 6)])
def test_enough_beams_are_exhaustive_search(k: int, n: int) -> None:
    """B = K^(N-1): nothing is ever dropped before the last step."""
    for seed in range(4):
        p = random_chain(k, seed, sharpness=1.0)
        found = beam_search(chain(p), [[1]], beams=k ** (n - 1), tokens=n)[0]
        best, log_p = exhaustive_search(chain(p), [[1]], n)
        assert found[0].tokens == best
        close(torch.tensor(found[0].log_p, dtype=torch.float64), torch.tensor(log_p, dtype=torch.float64))
        assert [h.log_p for h in found] == sorted((h.log_p for h in found), reverse=True)


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "hypotheses")
def test_keeping_the_best_b_of_each_first_gives_the_same_beam() -> None:
    """The books' B² against all B K continuations: the same B survive."""
    b, k = 3, 8
    scores = torch.randn(50, b, k, generator=torch.Generator().manual_seed(0))
    every = scores.flatten(1).topk(b, dim=1).values
    few = scores.topk(b, dim=2).values
    assert few.flatten(1).shape[1] == b**2
    assert torch.equal(few.flatten(1).topk(b, dim=1).values, every)


STOP = 1


def long_or_short() -> Recompute:
    """From 0: stop at once with 0.4, or go 0 -> 2 -> 3 -> stop with 0.6 · 0.9 · 0.7 = 0.378."""
    p = torch.full((4, 4), 1e-30, dtype=torch.float64)
    p[0, STOP], p[0, 2], p[2, 3], p[2, 2], p[3, STOP], p[3, 0] = 0.4, 0.6, 0.9, 0.1, 0.7, 0.3
    return chain(p)


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "length")
def test_scores_are_divided_by_the_length() -> None:
    """log 0.4 = -0.92 beats log 0.378 = -0.97; per token -0.92 loses against -0.97 / 3 = -0.32."""
    short = beam_search(long_or_short(), [[0]], beams=3, tokens=6, alpha=0.0, stop=[STOP])[0][0]
    long = beam_search(long_or_short(), [[0]], beams=3, tokens=6, alpha=1.0, stop=[STOP])[0][0]
    assert (short.tokens, long.tokens) == ([STOP], [2, 3, STOP])
    expected = torch.tensor([math.log(0.4), math.log(0.378) / 3], dtype=torch.float64)
    close(torch.tensor([short.score, long.score], dtype=torch.float64), expected)


@pytest.mark.system("beam-search")
def test_stopping_early_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends when no open hypothesis can win any more: the result is that of going on to the end."""
    runs = []
    for patient in (False, True):
        steps = 0

        class Counted(Recompute):
            def step(self, tokens: torch.Tensor) -> torch.Tensor:
                nonlocal steps
                steps += 1
                return super().step(tokens)

        if patient:
            monkeypatch.setattr(Beam, "is_settled", lambda self: False)
        found = []
        for seed in range(8):
            p = random_chain(6, seed, sharpness=3.0)
            p[:, STOP] = 0.5
            table = (p / p.sum(-1, keepdim=True)).log()
            found.append(beam_search(Counted(lambda x: table[x], 99), [[0], [2]], 3, 20, alpha=0.6, stop=[STOP]))
        runs.append((found, steps))
    assert runs[0][0] == runs[1][0]
    assert runs[0][1] < runs[1][1]


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "transformers")
def test_batched_is_single(gpt2: GPT2) -> None:
    prompts = [[1, 2, 3, 4], [5], [6, 7]]
    together = beam_search(gpt2.decoder(), prompts, beams=3, tokens=8, stop=[9])
    for prompt, found in zip(prompts, together, strict=True):
        alone = beam_search(gpt2.decoder(), [prompt], beams=3, tokens=8, stop=[9])[0]
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        close(torch.tensor([h.score for h in alone]), torch.tensor([h.score for h in found]))


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "transformers")
@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "padding-and-beams")
def test_the_cache_follows_the_beams(gpt2: GPT2) -> None:
    prompts = [[1, 2, 3, 4], [5]]
    with torch.no_grad():
        fast = beam_search(gpt2.decoder(), prompts, beams=4, tokens=10, stop=[9])
        slow = beam_search(Recompute(gpt2, 24), prompts, beams=4, tokens=10, stop=[9])
    assert [[h.tokens for h in row] for row in fast] == [[h.tokens for h in row] for row in slow]


@pytest.mark.system("beam-search")
@pytest.mark.system("beam-search", "transformers")
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("beams", [2, 5])
def test_is_transformers_beam_search(gpt2: GPT2, theirs: object, alpha: float, beams: int) -> None:
    """With early_stopping="never", which is the bound used here; its default stops by a guess and may miss the best."""
    prompts = torch.tensor([[1, 2, 3], [40, 5, 6], [7, 50, 9], [33, 22, 11]])
    found = theirs.generate(  # type: ignore[attr-defined]
        prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=9, num_beams=beams, do_sample=False,
        length_penalty=alpha, early_stopping="never", eos_token_id=[9, 30, 44], pad_token_id=60,
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    ours = beam_search(gpt2.decoder(), prompts, beams, tokens=9, alpha=alpha, stop=[9, 30, 44])
    assert min(len(h[0].tokens) for h in ours) < 9 or alpha > 1  # some of them stop
    for row, hypotheses in zip(found.sequences[:, 3:].tolist(), ours, strict=True):
        best = hypotheses[0].tokens
        assert row[: len(best)] == best
        assert set(row[len(best) :]) <= {60}
    close(torch.tensor([h[0].score for h in ours]), found.sequences_scores)


def test_what_it_refuses() -> None:
    with pytest.raises(Mistake, match="beams is 0"):
        beam_search(chain(tree()), [[0]], beams=0)
    with pytest.raises(Mistake, match="alpha is -1"):
        beam_search(chain(tree()), [[0]], alpha=-1)
