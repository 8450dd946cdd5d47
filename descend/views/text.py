"""What a report shows of a model that reads text: the attention of every head, and how expected each token was."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.engine.protocol import Exhibit
from descend.nn.attention.maps import attention_maps
from descend.text.tokenizer import Tokenizer

LOOKED = 32  # tokens of the attention pictures
READ = 128  # tokens whose probabilities are shown
LAYERS = 4  # at most, spread evenly from the first to the last


def reading(model: Any, tokenizer: Tokenizer, tokens: Tensor) -> list[Exhibit]:
    """Both, of a language model that reads `tokens` (t); attention only where the model has any."""
    tokens = tokens.long().to(next(model.parameters()).device)
    seen = tokens[: min(LOOKED, model.config.context)]
    look = attention(model, [tokenizer.decode([t]) for t in seen.tolist()], seen[None])
    return [*look, probabilities(model, tokenizer, tokens[: min(READ, model.config.context) + 1])]


def attention(model: Any, names: list[str], *inputs: Tensor) -> list[Exhibit]:
    """The weights of every head for the first text, a few of the layers."""
    maps = list(attention_maps(model, *inputs).items())
    if not maps:
        return []
    chosen = sorted({round(i) for i in torch.linspace(0, len(maps) - 1, min(LAYERS, len(maps))).tolist()})
    layers = {maps[i][0]: maps[i][1][0].float().cpu().numpy() for i in chosen}
    note = "Each picture is one head: a row for each token that looks, a column for each that is looked at."
    return [Exhibit("heads", "Attention", {"tokens": names, "layers": layers}, note)]


@torch.no_grad()
def probabilities(model: Any, tokenizer: Tokenizer, tokens: Tensor) -> Exhibit:
    """p(w_t | w_<t) of a validation text, and the likeliest tokens at each place."""
    p = model(tokens[None, :-1])[0].float().softmax(-1).cpu()
    best, follows = p.topk(min(4, p.shape[1])), tokens[1:].tolist()
    content = [
        {
            "token": tokenizer.decode([token]),
            "p": float(p[i, token]),
            "best": [[tokenizer.decode([j]), share] for j, share in zip(*pair, strict=True)],
        }
        for i, (token, pair) in enumerate(
            zip(follows, zip(best.indices.tolist(), best.values.tolist(), strict=True), strict=True)
        )
    ]
    note = "Validation text: the darker a token, the less it was expected. Hold the mouse over it for the likeliest."
    return Exhibit("tokens", "Token probabilities", content, note)
