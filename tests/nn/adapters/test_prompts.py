"""Soft prompts and deep prefixes: a hard prompt reproduced, places of the context, writing, what is trained."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.kinds.adapters import Lora, Prefix, SoftPrompt
from descend.losses.language import causal_lm_loss
from descend.models import make_model
from descend.models._adapted import Adapted, adapt
from descend.models.gpt2 import TINY
from descend.models.llama import TINY as LLAMA
from descend.models.mistral import TINY as MISTRAL
from descend.nn.adapters.prefix import PrefixVectors
from descend.nn.adapters.soft_prompt import PromptVectors
from descend.nn.adapters.virtual import put_in_front
from descend.nn.decoding.rows import RowDecoder
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from descend.theory.adapters import prefix_parameters, soft_prompt_parameters, usable_context
from tests.close import close

CONFIGS = [TINY, LLAMA, MISTRAL]
HARD = torch.tensor([7, 3, 11])


def base(config: object) -> Any:
    torch.manual_seed(0)
    return make_model(config).eval()


def moved(model: Adapted) -> Adapted:
    """The model with other numbers in its adapter."""
    with torch.no_grad():
        for p in model.adapters.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return model.eval()


@pytest.mark.system("prefix-tuning")
@pytest.mark.system("prefix-tuning", "hard-prompt", "soft-prompt", "deep")
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("kind", [PromptVectors, PrefixVectors])
def test_a_hard_prompt_to_begin_with_does_what_the_prompt_does(config: object, kind: Any) -> None:
    """Its embeddings in front of the text, or its keys and values in every layer: the output of the written prompt."""
    model, tokens = base(config), torch.randint(61, (2, 9))
    expected = model(torch.cat([HARD.expand(2, -1), tokens], dim=1))[:, 3:]
    close(adapt(model, kind.read(model, HARD))(tokens), expected)


@pytest.mark.system("prefix-tuning", "count", "only-the-prefix")
@pytest.mark.parametrize("config", CONFIGS)
def test_only_the_vectors_have_gradients_and_they_are_as_many_as_the_closed_form_says(config: Any) -> None:
    size = config.width // config.heads
    kv = size * (config.kv_heads if "kv_heads" in type(config).__dataclass_fields__ else config.heads)
    for choice, count in (
        (SoftPrompt(5), soft_prompt_parameters(config.width, 5)),
        (Prefix(5), prefix_parameters(kv, 5, config.depth)),
    ):
        model = choice.apply(base(config))
        before = {k: v.clone() for k, v in model.base.state_dict().items()}
        model(torch.randint(61, (2, 9))).square().mean().backward()
        moving = [p for p in model.parameters() if p.grad is not None]
        assert moving == [model.adapter.p]
        assert model.adapter.p.grad.abs().sum() > 0
        assert model.adapter.p.numel() == model.adapter.count() == count
        assert all(torch.equal(v, before[k]) for k, v in model.base.state_dict().items())


@pytest.mark.system("prefix-tuning", "context")
@pytest.mark.parametrize("choice", [SoftPrompt(5), Prefix(5)])
def test_the_context_shrinks_by_the_virtual_tokens(choice: Any) -> None:
    model = choice.apply(base(TINY))
    assert model.config.context == model.decoder().context == usable_context(24, 5) == 19
    assert model(torch.zeros(1, 19, dtype=torch.long)).shape == (1, 19, 61)
    with pytest.raises(ValueError, match="positions for 24"):
        model(torch.zeros(1, 20, dtype=torch.long))
    with pytest.raises(Mistake, match="passes the model's context of 19"):
        generate(model.decoder(), [[1] * 19], 2)
    with pytest.raises(Mistake, match="leaves no room in a context of 24"):
        type(choice)(24).apply(base(TINY))
    model.select()
    assert model.config.context == 24


@pytest.mark.system("prefix-tuning", "decoding")
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("choice", [SoftPrompt(3), Prefix(3)])
def test_writing_is_that_of_the_whole_computation_for_prompts_of_any_lengths(config: object, choice: Any) -> None:
    model = moved(choice.apply(base(config)))
    for prompts in ([[1, 2, 3, 4], [5, 6], [9]], [[4, 4], [8, 1]]):
        written = generate(model.decoder(), prompts, 8)
        assert written == generate(Recompute(model, 24), prompts, 8)
    model.select()
    assert written != generate(model.decoder(), prompts, 8)


@pytest.mark.system("prefix-tuning", "decoding")
@pytest.mark.parametrize("choice", [SoftPrompt(3), Prefix(3)])
def test_rows_that_come_and_go_have_a_memory_of_their_own(choice: Any) -> None:
    model = moved(choice.apply(base(TINY)))
    rows = RowDecoder(model.decoder(), 2, 12)
    first, second = rows.join(0, [1, 2, 3]), rows.join(1, [5])
    for logits, prompt in ((first, [1, 2, 3]), (second, [5])):
        close(logits, model(torch.tensor([prompt]))[0, -1])
    close(rows.step([0, 1], torch.tensor([7, 8]))[0], model(torch.tensor([[1, 2, 3, 7]]))[0, -1])


def test_virtual_tokens_stand_between_the_padding_and_the_text() -> None:
    found = put_in_front(torch.tensor([[1, 2, 3], [0, 0, 4]]), torch.tensor([0, 2]), torch.tensor([8, 9]))
    assert found.tolist() == [[8, 9, 1, 2, 3], [0, 0, 8, 9, 4]]


@pytest.mark.system("prefix-tuning", "below-the-hard-prompt")
@pytest.mark.parametrize("kind", [PromptVectors, PrefixVectors])
def test_tuning_from_a_hard_prompt_ends_below_its_loss(kind: Any) -> None:
    model = base(TINY)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3)  # a model with something to say
    x = torch.randint(61, (8, 12), generator=torch.Generator().manual_seed(1))
    y = (x + 1) % 61
    adapted = adapt(model, kind.read(model, HARD))
    optimizer, losses = torch.optim.Adam([adapted.adapter.p], 0.05), []
    for _ in range(25):
        loss = causal_lm_loss(adapted(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    hard = causal_lm_loss(model_of(adapted)(torch.cat([HARD.expand(8, -1), x], dim=1))[:, 3:], y).item()
    assert abs(losses[0] - hard) < 1e-4
    assert losses[-1] < hard - 0.1


def model_of(adapted: Adapted) -> nn.Module:
    """The base alone."""
    adapted.select()
    return adapted.base


def test_a_prefix_cannot_be_merged() -> None:
    with pytest.raises(Mistake, match="a deep prefix cannot be merged"):
        Prefix(3).apply(base(TINY)).merged()
    with pytest.raises(Mistake, match="a soft prompt cannot be merged"):
        SoftPrompt(3).apply(base(TINY)).merged()
    assert Lora(2).apply(base(TINY)).merged() is not None
