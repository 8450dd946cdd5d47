"""The vision-language-action policy: tokens of three kinds, instructions that matter, padding that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.data.control.episodes import EpisodeChance
from descend.data.control.instructions import LONGEST, WORDS
from descend.errors import Mistake
from descend.models.vla_policy import TINY, TINY_INPUT, VLAConfig, VLAPolicy
from tests.close import close


def policy(config: VLAConfig = TINY) -> VLAPolicy:
    torch.manual_seed(0)
    return VLAPolicy(config).eval()


@pytest.mark.system("vla-policy")
@pytest.mark.system("vla-policy", "tokens")
def test_image_words_and_state_become_a_chunk() -> None:
    model = policy(VLAConfig(words=WORDS, longest=LONGEST))
    rows: list[int] = []
    model.encoder.register_forward_hook(lambda module, given, found: rows.append(found.shape[1]))
    tokens = model.encode_text(["pick the red cube and place it in the blue bin", "pick red, place blue"])
    seen = {"state": torch.randn(2, 7), "image": torch.rand(2, 3, 48, 64), "tokens": tokens}
    assert model.plan(seen, EpisodeChance([0, 1])).shape == (2, 16, 7)
    assert rows == [1 + LONGEST + 1 + 16]


@pytest.mark.system("vla-policy")
@pytest.mark.system("vla-policy", "instruction")
def test_other_words_give_other_actions_and_their_order_counts() -> None:
    model, (state, image, _) = policy(), TINY_INPUT()
    red, blue = model.encode_text(["pick red", "pick blue"])
    same = lambda tokens: model(state[:1], image[:1], tokens[None])
    assert not torch.equal(same(red), same(blue))
    first, second = model.encode_text(["red blue", "blue red"])
    assert not torch.equal(same(first), same(second))


@pytest.mark.system("vla-policy", "instruction")
def test_padding_changes_nothing() -> None:
    model, (state, image, _) = policy(), TINY_INPUT()
    short = torch.tensor([[2, 3]])
    close(model(state[:1], image[:1], torch.nn.functional.pad(short, (0, 1))), model(state[:1], image[:1], short))


def test_every_pixel_can_matter() -> None:
    model, (state, image, tokens) = policy(), TINY_INPUT()
    image.requires_grad_()
    model(state, image, tokens).square().sum().backward()
    assert (image.grad.abs().sum(1) > 0).all()


@pytest.mark.system("vla-policy", "refused")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pick redd", "has not learned the word 'redd'. Did you mean 'red'"),
        ("pick xylophone", "has not learned the word 'xylophone'. The words are: blue, pick, red"),
        ("", "has no words"),
        ("pick red pick blue", "has 4 words; at most 3"),
    ],
)
def test_instructions_that_cannot_be_read_are_named(text: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        policy().encode_text([text])


def test_words_are_kept_with_the_model(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = policy(replace(TINY, words=("go", "red", "stop")))
    model.save_pretrained(tmp_path)
    again = VLAPolicy.from_pretrained(tmp_path)
    assert again.config.words == ("go", "red", "stop")
    assert again.encode_text(["go red"]).tolist() == [[1, 2, 0]]
