"""The repetition penalty, stop strings, contrastive search and distinct n-grams."""

from __future__ import annotations

from pathlib import Path

import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.errors import Mistake
from descend.metrics.repetition import distinct, loop_length
from descend.models.gpt2 import GPT2, TINY
from descend.sampling.contrastive import contrastive_search
from descend.sampling.decoder import Recompute
from descend.sampling.filters import GREEDY, TokenSampler, penalise
from descend.sampling.generate import generate
from descend.sampling.stop import until
from tests.close import close


def small() -> GPT2:
    torch.manual_seed(3)
    model = GPT2(TINY).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return model


@pytest.mark.system("likelihood-trap")
@pytest.mark.system("likelihood-trap", "remedies")
def test_the_penalty_is_transformers() -> None:
    from transformers import RepetitionPenaltyLogitsProcessor

    z = torch.randn(3, 20, generator=torch.Generator().manual_seed(1))
    tokens = torch.randint(20, (3, 6), generator=torch.Generator().manual_seed(2))
    seen = torch.zeros(3, 20, dtype=torch.bool).scatter(1, tokens, True)
    close(penalise(z, seen, 1.7), RepetitionPenaltyLogitsProcessor(1.7)(tokens, z.clone()))
    close(penalise(z, seen, 1.0), z)


@pytest.mark.system("likelihood-trap")
@pytest.mark.system("likelihood-trap", "remedies")
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_generation_with_a_penalty_is_transformers_or_its_own_loop(temperature: float, tmp_path: Path) -> None:
    model = small()
    prompts = [[5, 6, 7], [9, 8, 7, 6, 5]]
    sampler = TokenSampler(temperature, repetition=1.5)
    ours = generate(model.decoder(), prompts, tokens=12, sampler=sampler, seed=4)
    assert ours == generate(Recompute(model, 24), prompts, tokens=12, sampler=sampler, seed=4), "cache on or off"
    assert ours != generate(model.decoder(), prompts, tokens=12, sampler=TokenSampler(temperature), seed=4)
    if temperature == 0:
        from transformers import AutoModelForCausalLM

        model.save_pretrained(tmp_path)
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
        for prompt, found in zip(prompts, ours, strict=True):
            said = theirs.generate(
                torch.tensor([prompt]), max_new_tokens=12, do_sample=False, repetition_penalty=1.5, pad_token_id=0
            )
            assert said[0, len(prompt) :].tolist() == found


@pytest.mark.system("ancestral-sampling")
def test_penalised_draws_follow_the_penalised_distribution() -> None:
    z = torch.tensor([[1.0, -0.5, 0.3, 2.0]])
    seen = torch.tensor([[True, True, False, False]])
    sampler = TokenSampler(repetition=2.0)
    draws = sampler.draw(z.expand(20_000, -1), torch.Generator().manual_seed(0), seen.expand(20_000, -1))
    counts = draws.bincount(minlength=4).numpy()
    p = torch.tensor([0.5, -1.0, 0.3, 2.0]).softmax(-1).double()
    p = (p / p.sum()).numpy()
    assert scipy.stats.chisquare(counts, 20_000 * p).pvalue > 0.01
    plain = z[0].softmax(-1).double()
    assert scipy.stats.chisquare(counts, 20_000 * (plain / plain.sum()).numpy()).pvalue < 1e-6


def test_a_penalty_of_nothing_is_refused() -> None:
    with pytest.raises(Mistake, match="repetition is 0"):
        TokenSampler(repetition=0.0)


@given(
    st.text(alphabet="ab.", max_size=30),
    st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_stop_strings_end_the_text_however_it_is_cut(text: str, stops: list[str], sizes: list[int]) -> None:
    cut, rest, i = [], text, 0
    while rest:
        size = sizes[i % len(sizes)]
        cut.append(rest[:size])
        rest, i = rest[size:], i + 1
    found = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    assert "".join(until(cut, stops)) == text[: min(found)[1] if found else len(text)]


def test_stop_strings_hold_back_only_what_they_must() -> None:
    found = until(iter(["one ", "tw", "o END", " three"]), ["END"])
    assert next(found) == "one "
    assert next(found) == "tw"
    assert list(found) == ["o "]
    with pytest.raises(Mistake, match="empty"):
        list(until(["x"], [""]))


def states(model: GPT2, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        x = model.embed(tokens, torch.arange(tokens.shape[1]))
        for block in model.h:
            x = block(x)
        h = model.ln_f(x)
        return h @ model.wte.weight.T, h


@pytest.mark.system("likelihood-trap")
@pytest.mark.system("likelihood-trap", "remedies")
def test_contrastive_search_is_its_equation() -> None:
    model = small()
    found = contrastive_search(lambda t: states(model, t), [3, 4], tokens=5, k=3, alpha=0.6)
    text = [3, 4]
    for token in found:
        p = states(model, torch.tensor([text]))[0][0, -1].softmax(-1)
        scores = {}
        for v in p.topk(3).indices.tolist():
            h = states(model, torch.tensor([[*text, v]]))[1][0]
            alike = torch.nn.functional.cosine_similarity(h[:-1], h[-1:], dim=-1).max()
            scores[v] = float(0.4 * p[v] - 0.6 * alike)
        assert token == max(scores, key=scores.__getitem__)
        text.append(token)


@pytest.mark.system("likelihood-trap")
@pytest.mark.system("likelihood-trap", "remedies")
@pytest.mark.parametrize(("k", "alpha"), [(1, 0.6), (5, 0.0)])
def test_contrastive_search_without_contrast_is_greedy(k: int, alpha: float) -> None:
    model = small()
    greedy = generate(model.decoder(), [[3, 4]], tokens=6, sampler=GREEDY)[0]
    assert contrastive_search(lambda t: states(model, t), [3, 4], 6, k, alpha) == greedy
    with pytest.raises(Mistake, match="alpha"):
        contrastive_search(lambda t: states(model, t), [3, 4], 6, k=2, alpha=2.0)


@pytest.mark.system("likelihood-trap")
@pytest.mark.system("likelihood-trap", "distinct")
def test_distinct_n_grams_and_loops() -> None:
    assert distinct("abcabc", 1) == 3 / 6
    assert distinct("abcabc", 2) == 3 / 5
    assert distinct("abcdef", 3) == 1
    assert distinct("a", 3) == 1
    assert loop_length("xyabcabcabc") == 3
    assert loop_length("aaaa") == 1
    assert loop_length("abcdabc") == 0
    with pytest.raises(ValueError, match="n is 0"):
        distinct("abc", 0)
