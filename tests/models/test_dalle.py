"""DALL-E: the token layout, what each place may be, sampling with a cache, and captions that are followed."""

from __future__ import annotations

import pytest
import torch

from descend.contracts import Generates, Wish
from descend.errors import Mistake
from descend.models.dalle import TINY, TINY_INPUT, DallE
from descend.sampling.by_chance import draw_token
from descend.sampling.chance import PerExample
from tests.close import close

pytestmark = pytest.mark.system("dall-e-1")


def tiny() -> tuple[DallE, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = DallE(TINY).eval()
    model.read_prompts = lambda prompts: torch.tensor([[len(text) % TINY.words] * TINY.caption for text in prompts])
    return model, *TINY_INPUT()


@pytest.mark.system("dall-e-1", "layout")
def test_the_layout_of_tokens_round_trips() -> None:
    model, captions, x = tiny()
    tokens = model.codes.tokens(x)
    sequence = model.join(captions, tokens)
    assert sequence.shape == (2, TINY.caption + TINY.places)
    text, image = model.split(sequence)
    assert torch.equal(text, captions)
    assert torch.equal(image, tokens)
    assert sequence[:, : TINY.caption].max() < TINY.words <= sequence[:, TINY.caption :].min()
    assert sequence.max() < TINY.words + TINY.codes.vocab
    with pytest.raises(ValueError, match="this model reads 4"):
        model.join(captions[:, :3], tokens)


@pytest.mark.system("dall-e-1", "one-transformer")
def test_one_causal_transformer() -> None:
    """Logits are GPT-2's of the joined row; a later image token changes no earlier logits, a caption changes them."""
    model, captions, x = tiny()
    sequence = model.join(captions, model.codes.tokens(x))
    logits = model.next_logits(sequence)
    close(logits, model.transformer(sequence)[:, :-1])
    close(model(captions, x)[0], logits)
    changed = sequence.clone()
    changed[:, -2] = TINY.words + (changed[:, -2] - TINY.words + 1) % TINY.codes.vocab
    close(model.next_logits(changed)[:, :-1], logits[:, :-1])
    changed = sequence.clone()
    changed[:, 0] = (changed[:, 0] + 1) % TINY.words
    assert (model.next_logits(changed)[:, TINY.caption :] - logits[:, TINY.caption :]).abs().max() > 1e-4
    text, image = model.split_logits(logits)
    assert text.shape == (2, TINY.caption - 1, TINY.words)
    assert image.shape == (2, TINY.places, TINY.codes.vocab)


@pytest.mark.system("dall-e-1", "sampling")
def test_drawing_with_a_cache_is_drawing_without() -> None:
    model, captions, _ = tiny()
    u = torch.rand(2, TINY.places, generator=torch.Generator().manual_seed(0))
    found = model.draw_images(captions, u)
    row = captions
    for n in range(TINY.places):
        logits = model.transformer(row)[:, -1, TINY.words :]
        row = torch.cat([row, TINY.words + draw_token(logits, u[:, n])[:, None]], dim=1)
    assert torch.equal(model.split(row)[1], found)


@pytest.mark.system("dall-e-1", "sampling")
def test_samples_can_be_remade_and_follow_prompts() -> None:
    model, *_ = tiny()
    assert isinstance(model, Generates)
    assert model.offers == {"prompts"}
    made = model.generate(PerExample(0, 3), Wish(prompts=("a", "bb", "ccc")))
    assert made.shape == (3, *TINY.codes.image)
    close(model.generate(PerExample(0, 1, first=1), Wish(prompts=("bb",)))[0], made[1])
    assert model.generate(PerExample(0, 2), Wish()).shape == made[:2].shape
    model.read_prompts = None
    with pytest.raises(Mistake, match="tokenizer"):
        model.generate(PerExample(0, 1), Wish(prompts=("a",)))


def test_drawing_by_uniform_numbers() -> None:
    """The inverse of the cumulative distribution: shares are the probabilities, and only the likeliest k are drawn."""
    p = torch.tensor([0.5, 0.2, 0.3])
    u = (torch.arange(1000) + 0.5) / 1000
    tokens = draw_token(p.log().expand(1000, 3), u)
    assert tokens.bincount().tolist() == [500, 200, 300]
    assert draw_token(p.log().expand(1000, 3), u, top_k=2).bincount(minlength=3).tolist() == [625, 0, 375]
    assert draw_token(p.log()[None], torch.tensor([1.0])).tolist() == [2]
