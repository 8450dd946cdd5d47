"""The next-token table and the chain rule, over a real model: probabilities of all sequences sum to 1."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.models.gpt2 import GPT2, TINY
from descend.sampling.sequence import sequence_log_probability
from descend.sampling.table import next_token_table, rows_that_differ, sentence_probability
from tests.close import close


@pytest.mark.system("autoregressive-factorization")
@pytest.mark.system("autoregressive-factorization", "table")
def test_the_table_is_a_sorted_distribution() -> None:
    z = torch.randn(61, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    names = [f"w{i}" for i in range(61)]
    table = next_token_table(z, names)
    assert [name for name, _ in table] == [names[i] for i in z.argsort(descending=True)]
    assert sum(p for _, p in table) == pytest.approx(1)
    assert next_token_table(z, names, 3) == table[:3]
    assert rows_that_differ({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5}) == ["b", "c"]


@pytest.mark.system("autoregressive-factorization")
@pytest.mark.system("autoregressive-factorization", "chain-rule", "sum-to-one")
@pytest.mark.system("causal-lm-loss")
@pytest.mark.system("causal-lm-loss", "start")
@pytest.mark.parametrize("length", [1, 2, 3])
def test_all_sequences_of_a_length_sum_to_one(length: int) -> None:
    """A GPT over four tokens after a start token: 4^T sequences."""
    torch.manual_seed(0)
    model = GPT2(replace(TINY, vocab=5)).double()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    tokens = torch.cartesian_prod(*(torch.arange(5),) * length).view(-1, length)
    start = torch.zeros(len(tokens), 1, dtype=torch.long)
    with torch.no_grad():
        logits = model(torch.cat([start, tokens], 1)[:, :-1])
    log_p = sequence_log_probability(logits, tokens)
    close(log_p.exp().sum(), torch.tensor(1.0, dtype=torch.float64))
    conditionals = logits.softmax(-1).gather(-1, tokens[..., None])[..., 0]
    close(sentence_probability(conditionals[7 % len(tokens)]), log_p[7 % len(tokens)].exp())
