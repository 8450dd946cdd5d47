"""A language of three tokens with seven answers to its one prompt, all of which can be written down."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.contracts import Batch
from descend.models.gpt2 import GPT2, GPT2Config

STOP, BETA = 2, 0.5
PROMPT = [1]
ANSWERS = ([STOP], [0, 0], [0, 1], [0, STOP], [1, 0], [1, 1], [1, STOP])
STRENGTH = torch.tensor([1.0, 3.0, 1.0, 1.0, 3.0, 3.0, 1.0])
SMALL = GPT2Config(vocab=3, context=4, width=16, depth=1, heads=2, dropout=0.0)


def lay_out() -> Batch:
    """Every answer to the prompt."""
    tokens, written = torch.zeros(len(ANSWERS), 3, dtype=torch.long), torch.zeros(len(ANSWERS), 3, dtype=torch.bool)
    for i, answer in enumerate(ANSWERS):
        tokens[i, 0], tokens[i, 1 : 1 + len(answer)] = PROMPT[0], torch.tensor(answer)
        written[i, 1 : 1 + len(answer)] = True
    return {"tokens": tokens, "written": written}


def log_chances(model: nn.Module) -> Tensor:
    """log π(y|x) of every answer, token by token."""
    texts = lay_out()
    log_p = model(texts["tokens"][:, :-1]).log_softmax(-1).gather(-1, texts["tokens"][:, 1:, None]).squeeze(-1)
    return (log_p * texts["written"][:, 1:]).sum(-1)


def make_language(seed: int) -> GPT2:
    """With preferences of its own."""
    torch.manual_seed(seed)
    model = GPT2(SMALL)
    nn.init.normal_(model.wte.weight, std=0.1)
    return model


class Known(nn.Module):
    """r = log strength of the answer."""

    def forward(self, tokens: Tensor, written: Tensor) -> Tensor:
        rows = zip(tokens.tolist(), written.tolist(), strict=True)
        said = [[token for token, mine in zip(*row, strict=True) if mine] for row in rows]
        return torch.stack([STRENGTH[ANSWERS.index(answer)].log() for answer in said])
