"""Generation: greedy and sampled, stop tokens, padded batches; cache = no cache; the same tokens as transformers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import scipy.stats
import torch
from torch import nn

from descend.errors import Mistake
from descend.models.gpt2 import GPT2
from descend.sampling.decoder import Recompute, pad_left
from descend.sampling.filters import GREEDY, TokenSampler
from descend.sampling.generate import ENDED, generate, stream
from tests.sampling.chain import chain, random_chain, tree, words

PROMPTS = [[3, 1, 4, 1, 5], [9], [2, 6, 5]]
SAMPLERS = {"greedy": GREEDY, "sampled": TokenSampler(0.9, top_k=20, top_p=0.9)}


@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "loop")
def test_greedy_takes_the_most_probable_token() -> None:
    """After "Thanks for all the": fish 0.13, support 0.84, gun 0.01, and 0.02 for the rest."""
    p = torch.tensor([0.13, 0.84, 0.01, 0.02]).expand(4, 4)
    assert generate(chain(p), [[0]], 1) == [[1]]
    assert words(generate(chain(tree()), [[0]], 2)[0]) == ["nice", "woman"]


@pytest.mark.system("gpt", "sequential")
@pytest.mark.system("autoregressive-factorization", "generation")
@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "loop")
def test_is_the_loop_of_the_books(gpt2: GPT2) -> None:
    """Run the model on all tokens so far, take the argmax of the last row, append, repeat."""
    tokens = torch.tensor([PROMPTS[0]])
    with torch.no_grad():
        for _ in range(12):
            tokens = torch.cat([tokens, gpt2(tokens)[:, -1].argmax(-1, keepdim=True)], dim=1)
    written = generate(gpt2.decoder(), PROMPTS[:1], 12)[0]
    assert written == tokens[0, 5:].tolist()
    assert len(set(written)) > 4  # a text that says something about the model


@pytest.mark.system("gpt", "sequential")
@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "cache")
@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "switchable")
@pytest.mark.parametrize("name", SAMPLERS)
def test_cache_on_or_off_same_tokens(gpt2: GPT2, name: str) -> None:
    with torch.no_grad():
        slow = generate(Recompute(gpt2, 24), PROMPTS, 16, SAMPLERS[name], seed=3)
    assert generate(gpt2.decoder(), PROMPTS, 16, SAMPLERS[name], seed=3) == slow


@pytest.mark.system("autoregressive-generation")
def test_batched_is_single(gpt2: GPT2) -> None:
    together = generate(gpt2.decoder(), PROMPTS, 16)
    assert together == [generate(gpt2.decoder(), [prompt], 16)[0] for prompt in PROMPTS]


@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("gpt-2")
def test_one_prompt_is_transformers(gpt2: GPT2, theirs: nn.Module) -> None:
    prompt = torch.tensor(PROMPTS[:1])
    expected = theirs.generate(  # type: ignore[operator]
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=19, do_sample=False, pad_token_id=0
    )
    assert generate(gpt2.decoder(), prompt, 19)[0] == expected[0, 5:].tolist()


@pytest.mark.system("padding-mask", "causal")
@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("gpt-2")
@pytest.mark.system("padding-mask")
def test_prompts_of_different_lengths_are_transformers(gpt2: GPT2, theirs: nn.Module) -> None:
    tokens, pad = pad_left(PROMPTS)
    mask = (torch.arange(5) >= pad[:, None]).long()
    expected = theirs.generate(  # type: ignore[operator]
        tokens, attention_mask=mask, max_new_tokens=19, do_sample=False, pad_token_id=0
    )
    assert generate(gpt2.decoder(), PROMPTS, 19) == expected[:, 5:].tolist()


def test_left_padding() -> None:
    tokens, pad = pad_left(PROMPTS)
    assert tokens.tolist() == [[3, 1, 4, 1, 5], [0, 0, 0, 0, 9], [0, 0, 2, 6, 5]]
    assert pad.tolist() == [0, 4, 2]


@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "stop")
def test_stop_tokens_end_their_row_only() -> None:
    """0 -> 1 -> 2 -> 3 -> 0, always: a row ends after its first 3, or after as many tokens as asked for."""
    p = torch.eye(4).roll(1, dims=1)
    assert generate(chain(p), [[0], [2], [3]], 5, stop=[3]) == [[1, 2, 3], [3], [0, 1, 2, 3]]
    assert generate(chain(p), [[0], [2], [3]], 2, stop=[3, 1]) == [[1], [3], [0, 1]]
    assert generate(chain(p), [[0]], 5) == [[1, 2, 3, 0, 1]]


@pytest.mark.system("autoregressive-generation")
def test_stream_gives_the_same_tokens_as_they_come() -> None:
    p = torch.eye(4).roll(1, dims=1)
    steps: Iterator[torch.Tensor] = stream(chain(p), [[0], [2]], 9, stop=[3])
    assert next(steps).tolist() == [1, 3]
    assert [y.tolist() for y in steps] == [[2, ENDED], [3, ENDED]]  # and no more: all rows have ended


@pytest.mark.system("autoregressive-factorization", "generation")
@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "frequencies")
@pytest.mark.system("ancestral-sampling")
@pytest.mark.system("ancestral-sampling", "sequences")
def test_sampled_tokens_follow_the_model() -> None:
    """The frequencies of first and second tokens are p(y_1) and p(y_1) p(y_2 | y_1)."""
    p, n = random_chain(4, seed=1, sharpness=0.7), 8000
    written = torch.tensor(generate(chain(p), torch.zeros(n, 1, dtype=torch.long), 2, TokenSampler(), seed=5))
    pairs = torch.bincount(4 * written[:, 0] + written[:, 1], minlength=16)
    expected = n * (p[0][:, None] * p).flatten()
    assert scipy.stats.chisquare(pairs.numpy(), expected.numpy()).pvalue > 0.01
    assert scipy.stats.chisquare(pairs.numpy(), expected.view(4, 4).T.flatten().numpy()).pvalue < 1e-6


@pytest.mark.system("autoregressive-generation")
@pytest.mark.system("autoregressive-generation", "stop", "frequencies")
@pytest.mark.system("temperature-sampling")
@pytest.mark.system("temperature-sampling", "frequencies")
def test_the_seed_decides(gpt2: GPT2) -> None:
    first, again, other = (generate(gpt2.decoder(), PROMPTS, 12, TokenSampler(), seed=s) for s in (1, 1, 2))
    assert first == again != other
    cold = generate(gpt2.decoder(), PROMPTS, 12, TokenSampler(temperature=1e-4), seed=2)
    assert cold == generate(gpt2.decoder(), PROMPTS, 12)


@pytest.mark.parametrize(
    ("prompts", "tokens", "message"),
    [
        ([[1], []], 4, "prompt 1 is empty"),
        ([], 4, "give a list of lists"),
        (torch.tensor([1, 2]), 4, "give a list of lists"),
        ([[1], [1] * 10], 16, "prompt 1 has 10 tokens; with 16 new ones .* context of 24: shorten"),
        ([[1]], 0, "at least 1 new token"),
    ],
)
def test_what_it_refuses(gpt2: GPT2, prompts: list[list[int]], tokens: int, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        generate(gpt2.decoder(), prompts, tokens)


def test_the_context_can_be_filled(gpt2: GPT2) -> None:
    """10 + 15 tokens: the last one is written and never read, so 24 positions are enough."""
    assert len(generate(gpt2.decoder(), [[1] * 10], 15)[0]) == 15
