"""What preferences and those that learn from them show: responses in their order with the rewards that a model gives
them, the most wrong ones first, and what a policy writes now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.text.preferences import PreferencesInOrder, Ranked, tokenize
from descend.text.tokenizer import Tokenizer

SHOWN = 10
LETTERS = 120  # of each text


def show_pairs(
    rate: Callable[[Batch], Tensor], records: Sequence[Ranked], tokenizer: Tokenizer, context: int
) -> list[Exhibit]:
    """The best and the worst response of each record, those whose order is most wrong first."""
    batches = PreferencesInOrder(tokenize(records, tokenizer, context), 64)
    with torch.no_grad():
        rewards = [rate(batch) for batch in batches]
        there = [batch["written"].any(-1) for batch in batches]
    last = torch.cat(there).sum(1) - 1
    r = torch.cat(rewards).cpu()
    best, worst = r[:, 0], r.gather(1, last[:, None]).squeeze(1)
    rows = []
    for i in (best - worst).argsort()[:SHOWN].tolist():
        record = records[i]
        texts = (name_prompt(record), record.responses[0], f"{float(best[i]):.2f}")
        rows.append([*map(shorten, texts), shorten(record.responses[-1]), f"{float(worst[i]):.2f}"])
    columns = ["prompt", "liked best", "reward", "liked least", "reward"]
    right = float((best > worst).double().mean())
    note = f"{right:.1%} of {len(records)} held-out records are in the right order, best before worst."
    return [Exhibit("table", "Preferences, the most wrong first", {"columns": columns, "rows": rows}, note)]


def show_responses(
    written: Sequence[tuple[str, str]], quality: Callable[[str, str], float] | None = None
) -> list[Exhibit]:
    """Some prompts and what the model answers, with its true quality where that is known."""
    kept = list(dict.fromkeys(written))[:SHOWN]
    rows = [[shorten(p), shorten(y), *([f"{quality(p, y):.1f}"] if quality else [])] for p, y in kept]
    columns = ["prompt", "response", *(["true quality"] if quality else [])]
    return [Exhibit("table", "What the model writes", {"columns": columns, "rows": rows})]


def name_prompt(record: Ranked) -> str:
    """The prompt; of a conversation what was said last."""
    return record.prompt if isinstance(record.prompt, str) else str(record.prompt[-1]["content"])


def shorten(text: str) -> str:
    """As much as a table has room for."""
    text = " ".join(text.split())
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 3]}..."
