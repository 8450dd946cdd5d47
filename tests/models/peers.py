"""The independent oracle of every model that transformers has too: random weights, saved to disk, opened by the other.

A test file makes a small random peer with `random_peer` and calls the checks that apply.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import descend
from descend.sampling.generate import generate
from tests.close import close

Call = Callable[[nn.Module], Tensor]


def random_peer(peer: Any, config: Any, std: float = 0.2, seed: int = 0) -> Any:
    """A transformers model in which no parameter is left at 0 or 1."""
    torch.manual_seed(seed)
    model = peer(config).eval()
    for p in model.parameters():
        with torch.no_grad():
            p.add_(torch.randn_like(p) * std)
    return model


def check_both_ways(theirs: Any, folder: Path, call_ours: Call, call_theirs: Call) -> Any:
    """Their folder opens here with equal outputs; what we save opens there with the very same. Returns our model."""
    theirs.save_pretrained(folder / "theirs")
    ours = descend.load(folder / "theirs").eval()
    with torch.no_grad():
        expected = call_theirs(theirs)
        close(call_ours(ours), expected)
        ours.save_pretrained(folder / "ours")
        again = type(theirs).from_pretrained(folder / "ours").eval()
        assert torch.equal(call_theirs(again), expected)
    return ours


def check_generation(theirs: Any, ours: Any, prompts: list[list[int]], tokens: int) -> None:
    """Greedy generation is equal token by token, for prompts of different lengths in one batch."""
    longest = max(map(len, prompts))
    padded = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    expected = theirs.generate(
        padded, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    assert generate(ours.decoder(), prompts, tokens) == expected[:, longest:].tolist()
