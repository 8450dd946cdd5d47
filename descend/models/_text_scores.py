"""Reward models: a language model without its head, and one number read from the state of the last token of a text.

    r(x, y) = wᵀ h_T,   h = trunk(x, y),   T the last real token

The trunk begins with the weights of the language model and w with zeros, so that all first rewards are 0 and the first
loss of a pair is log 2. There is no bias: only differences of rewards of one prompt count. A folder is what
transformers calls ..ForSequenceClassification with one label, the form of trl's reward models.

Systems: reward-model
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.files import read_json, write_json
from descend.weights.folder import SHARD_BYTES
from descend.weights.pretrained import Pretrained

LABEL = {"id2label": {"0": "reward"}, "label2id": {"reward": 0}}


class ScoresTexts(Pretrained):
    """In front of a language model that has `states`."""

    score: nn.Linear
    decoder = None
    """It writes nothing, whatever its trunk could."""

    def forward(self, tokens: Tensor, written: Tensor) -> Tensor:
        """(b, t), and which tokens are real, or the response's (b, t) -> r (b)"""
        states = self.states(tokens)  # type: ignore[operator]
        place = (written * torch.arange(tokens.shape[1], device=tokens.device)).amax(dim=1)
        last = states[torch.arange(len(tokens), device=tokens.device), place]
        found: Tensor = self.score(last).squeeze(-1)
        return found

    def save_pretrained(
        self, folder: str | Path, shard_bytes: int = SHARD_BYTES, state: Mapping[str, Tensor] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """As every model, and config.json says that there is one label."""
        written = super().save_pretrained(folder, shard_bytes, state)
        path = Path(folder) / "config.json"
        write_json(path, read_json(path) | LABEL)
        return written


def zero_score(width: int) -> nn.Linear:
    """w, all zeros."""
    score = nn.Linear(width, 1, bias=False)
    nn.init.zeros_(score.weight)
    return score


def copy_trunk(scorer: nn.Module, language: nn.Module) -> None:
    """The weights of a language model into a reward model of its sizes; the rest stays."""
    mine, theirs = scorer.state_dict(), language.state_dict()
    shared = {name: tensor for name, tensor in theirs.items() if name in mine}
    if wrong := [name for name, tensor in shared.items() if tensor.shape != mine[name].shape]:
        raise Mistake(
            f"the language model's {wrong[0]!r} is of another size than the reward model's; use the same sizes"
        )
    scorer.load_state_dict(mine | shared)
