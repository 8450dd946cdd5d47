"""Values and scores are read from a language model's own states."""

from __future__ import annotations

import torch

from descend.models.gpt2 import GPT2, TINY
from descend.nn.value_head import TextScore, WithValues
from tests.close import close


def tokens() -> torch.Tensor:
    return torch.randint(TINY.vocab, (3, 7), generator=torch.Generator().manual_seed(0))


def test_logits_are_the_models_and_values_begin_at_zero() -> None:
    torch.manual_seed(0)
    model = GPT2(TINY)
    logits, value = WithValues(model, TINY.width)(tokens())
    close(logits, model(tokens()))
    assert value.shape == (3, 7)
    assert not value.any()


def test_a_value_sees_no_later_token() -> None:
    torch.manual_seed(0)
    policy = WithValues(GPT2(TINY), TINY.width)
    torch.nn.init.normal_(policy.value.read.weight)
    changed = tokens()
    changed[:, 4:] = (changed[:, 4:] + 1) % TINY.vocab
    before, after = policy(tokens())[1], policy(changed)[1]
    close(after[:, :4], before[:, :4])
    assert (after[:, 4:] != before[:, 4:]).all()


def test_a_text_is_scored_at_its_last_token() -> None:
    """Whatever pads it; the score is that of the text alone."""
    torch.manual_seed(0)
    judge = TextScore(GPT2(TINY), TINY.width)
    torch.nn.init.normal_(judge.score.read.weight)
    written = (torch.arange(7) > 1) & (torch.arange(7) < torch.tensor([[4], [7], [5]]))
    found = judge(tokens(), written)
    for i, end in enumerate((4, 7, 5)):
        close(found[i], judge(tokens()[i : i + 1, :end], written[i : i + 1, :end])[0])
