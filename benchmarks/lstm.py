"""An LSTM language model's step beside a bare torch.nn.LSTM: width 384, context 64, batch 16, vocabulary 512."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from benchmarks.steps import engine
from benchmarks.turns import take_turns

WIDTH, CONTEXT, BATCH, VOCAB = 384, 64, 16, 512
TOKENS = BATCH * CONTEXT


def tokens() -> torch.Tensor:
    return torch.randint(VOCAB, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(0))


def ours() -> Callable[[], object]:
    """descend's engine with truncated BPTT, as `descend train lstm-pydoc` takes a step."""
    from descend.models.lstm_lm import RecurrentLM, RecurrentLMConfig
    from descend.tasks.truncated import TruncatedLanguage

    torch.manual_seed(0)
    model = RecurrentLM(RecurrentLMConfig(VOCAB, CONTEXT, WIDTH))
    w = tokens()
    batch = {"x": w[:, :-1], "y": w[:, 1:], "rows": torch.arange(BATCH), "fresh": torch.zeros(BATCH, dtype=torch.bool)}
    return engine(TruncatedLanguage(model, BATCH), batch)


def theirs() -> Callable[[], object]:
    """nn.Embedding, nn.LSTM and nn.Linear with the same fused AdamW in a plain loop, the state carried too."""
    torch.manual_seed(0)
    embed, lstm, head = nn.Embedding(VOCAB, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, VOCAB)
    parameters = [*embed.parameters(), *lstm.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=True)
    w = tokens()
    x, y = w[:, :-1].contiguous(), w[:, 1:].contiguous()
    state = (torch.zeros(1, BATCH, WIDTH), torch.zeros(1, BATCH, WIDTH))

    def step() -> float:
        nonlocal state
        optimizer.zero_grad(set_to_none=True)
        h, after = lstm(embed(x), state)
        state = (after[0].detach(), after[1].detach())
        loss = nn.functional.cross_entropy(head(h).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def measure(rounds: int = 5, calls: int = 4) -> list[dict[str, object]]:
    """Tokens a second of both."""
    times, memory = take_turns({name: f"benchmarks.lstm:{name}" for name in ("ours", "theirs")}, rounds, calls)
    a, b = min(times["ours"]), min(times["theirs"])
    return [{
        "name": "LSTM language model, training step",
        "ours": TOKENS / a, "theirs": TOKENS / b, "unit": "tokens/s", "ratio": b / a, "bar": 0.98,
        "note": f"peak memory {memory['ours'] / 1e6:.0f} MB against {memory['theirs'] / 1e6:.0f} MB",
    }]  # fmt: skip


if __name__ == "__main__":
    for row in measure():
        print(row)
