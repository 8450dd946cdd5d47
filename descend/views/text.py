"""What a model that reads text shows: samples, blanks filled in, the attention of every head, token probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.interpret.logit_lens import logit_lens
from descend.losses.balance import load_entropy, shares
from descend.nn.attention.maps import attention_maps
from descend.nn.experts import Router
from descend.sampling.fill import fill, place_blanks
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import generate
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.attempts import show_each

ATTENDED = 32  # tokens of the attention maps
READ = 128  # tokens whose probabilities are shown
LAYERS = 4  # at most, spread evenly from the first to the last
LENS = 10  # last tokens that are read after each layer
WRITTEN = 160  # tokens of a sample
PROMPTS = ("The ", "\n", "for ")
BLANKS = (
    "The [MASK] statement is used for",
    "is a [MASK] of the class",
    "raises a [MASK] exception if the",
    "returns the value of the [MASK] argument",
)


def show_language_model(model: Any, tokenizer: Tokenizer, valid: Tensor) -> list[Exhibit]:
    """Samples; attention where the model has any; and the probabilities of the tokens of a validation text (t)."""
    tokens = valid[: READ + 1].long().to(next(model.parameters()).device)
    seen = tokens[: min(ATTENDED, model.config.context)]
    names = [tokenizer.decode([t]) for t in seen.tolist()]
    read = tokens[: min(READ, model.config.context) + 1]
    return show_each(
        {
            "Samples": lambda: show_samples(model, tokenizer),
            "Attention maps": lambda: show_attention(model, names, seen[None]),
            "Token probabilities": lambda: show_probabilities(model, tokenizer, read),
            "Use of the experts": lambda: show_experts(model, read[None, :-1]),
        }
    )


def show_masked_model(model: Any, inputs: Inputs, valid: Tensor) -> list[Exhibit]:
    """Blanks filled in, and where each head looks in a validation text: texts (n, t)."""
    tokens = valid[:1, :ATTENDED].long().to(next(model.parameters()).device)
    names = [inputs.tokenizer.decode([t]) for t in tokens[0].tolist()]
    return show_each(
        {
            "Fill in the blank": lambda: show_blanks(model, inputs),
            "Attention maps": lambda: show_attention(model, names, tokens),
        }
    )


def show_samples(model: Any, tokenizer: Tokenizer) -> list[Exhibit]:
    """What the model writes after a few prompts."""
    room, sampler = min(WRITTEN, model.config.context - 8), TokenSampler(temperature=0.8)
    found = []
    for i, prompt in enumerate(PROMPTS):
        written = generate(model.decoder(), [tokenizer.encode(prompt)], room, sampler, seed=i)
        found.append(Exhibit("text", f"Sample {i + 1}", {"prompt": prompt, "text": tokenizer.decode(written[0])}))
    return found


@torch.no_grad()
def show_experts(model: Any, tokens: Tensor) -> list[Exhibit]:
    """Which share of the tokens (b, t) each expert of each layer is chosen for; nothing without experts."""
    routers = [module for module in model.modules() if isinstance(module, Router)]
    if not routers:
        return []
    found: list[Tensor] = []
    hooks = [
        r.register_forward_hook(lambda _, __, routing: found.append(shares(routing.chosen, routing.p.shape[1])))
        for r in routers
    ]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    use = torch.stack(found).cpu()
    names = {"rows": [str(i + 1) for i in range(len(use))], "columns": [str(e) for e in range(use.shape[1])]}
    content = {"values": use.tolist(), **names, "row_label": "layer", "column_label": "expert"}
    even = float(load_entropy(use.mean(0)))
    note = f"Share of a validation text's tokens that an expert is chosen for; evenness of the use {even:.2f} of 1."
    return [Exhibit("heatmap", "Use of the experts", content, note)]


def show_blanks(model: Any, inputs: Inputs) -> Exhibit:
    """What the model puts into a few blanks."""
    where, rows = next(model.parameters()).device, []
    for sentence in BLANKS:
        before, _, after = sentence.partition("[MASK]")
        pieces = [inputs.tokenizer.encode(part) for part in (before.rstrip(), after)]
        tokens = torch.tensor(inputs.join(place_blanks(pieces, inputs.mask, inputs.longest - 2)).tokens, device=where)
        found = fill(model, tokens, inputs.mask)
        words = [inputs.tokenizer.decode([token]) for token in found.tokens[0].tolist()]
        shares = found.probabilities[0].tolist()
        rows.append([sentence, "  ".join(f"{w.strip()} {p:.0%}" for w, p in zip(words, shares, strict=True))])
    content = {"columns": ["text", "most likely tokens"], "rows": rows}
    return Exhibit(
        "table", "Fill in the blank", content, "The five most likely tokens for each blank, best checkpoint."
    )


def show_lens(model: Any, tokenizer: Tokenizer, tokens: Tensor) -> Exhibit:
    """What the model would say after each of its layers, for the last tokens (1, t) of a text."""
    p = logit_lens(model, model.decoder().ends, tokens)[:, -LENS:].cpu()
    best = p.max(-1)
    names = [tokenizer.decode([token]) for token in tokens[0, -LENS:].tolist()]
    rows: list[list[str]] = []
    for layer, (words, sure) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True), 1):
        said = [f"{tokenizer.decode([w])!r} {share:.0%}" for w, share in zip(words, sure, strict=True)]
        rows.append([f"after layer {layer}", *said])
    note = "The most likely next token if the model stopped there: its last norm and logits, applied early."
    content = {"columns": ["", *(repr(name) for name in names)], "rows": rows[::-1]}
    return Exhibit("table", "Logit lens", content, note)


def show_attention(model: Any, names: list[str], *inputs: Tensor) -> list[Exhibit]:
    """The weights of every head for the first text, a few of the layers."""
    maps = list(attention_maps(model, *inputs).items())
    if not maps:
        return []
    chosen = sorted({round(i) for i in torch.linspace(0, len(maps) - 1, min(LAYERS, len(maps))).tolist()})
    layers = {maps[i][0]: maps[i][1][0].float().cpu().numpy() for i in chosen}
    note = "One image for each head: a row for each query token, a column for each key token."
    return [Exhibit("heads", "Attention maps", {"tokens": names, "layers": layers}, note)]


@torch.no_grad()
def show_probabilities(model: Any, tokenizer: Tokenizer, tokens: Tensor, which: str = "Validation text") -> Exhibit:
    """p(w_t | w_<t) of a text (t), and the most likely tokens at each place."""
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
    note = f"{which}: the darker a token, the less likely it was. Hover over it for the most likely ones."
    return Exhibit("tokens", "Token probabilities", content, note)
