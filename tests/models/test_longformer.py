"""Longformer against transformers' own, both ways: windows, global tokens, padding, four heads; and its cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.errors import Mistake
from descend.models.longformer import TINY, LongformerForMaskedLM, LongformerForSequenceClassification, Windows
from descend.models.roberta import RobertaConfig, RobertaForMaskedLM
from descend.nn.attention.sliding_window import GlobalWindow
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")
SLUG = "longformer"


def peer(kind: str = "LongformerForMaskedLM", window: object = None) -> Any:
    config = transformers.LongformerConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=60, type_vocab_size=1, attention_window=window or [4, 8], pad_token_id=1,
        sep_token_id=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return random_peer(getattr(transformers, kind), config, std=0.1)


def inputs(t: int = 37) -> tuple[Tensor, Tensor]:
    """Tokens and roles: padding at the end of the second text, different numbers of global tokens."""
    tokens = torch.randint(3, 61, (3, t), generator=torch.Generator().manual_seed(1))
    roles = torch.ones_like(tokens)
    roles[0, [0, 20]], roles[1, 3] = 2, 2
    roles[1, t - 9 :], tokens[1, t - 9 :] = 0, 1
    return tokens, roles


def theirs(model: Any, tokens: Tensor, roles: Tensor) -> Any:
    return model(tokens, attention_mask=(roles > 0).long(), global_attention_mask=(roles == 2).long())


@pytest.mark.system(SLUG, "separate")
@pytest.mark.system(SLUG)
def test_both_ways(tmp_path: Path) -> None:
    """The rows of padding mean nothing and are left out."""
    model, (tokens, roles) = peer(), inputs()
    ours = check_both_ways(
        model, tmp_path, lambda m: m(tokens, roles)[roles > 0], lambda m: theirs(m, tokens, roles).logits[roles > 0]
    )
    ours(tokens, roles)[roles > 0].square().mean().backward()
    theirs(model, tokens, roles).logits[roles > 0].square().mean().backward()
    mine, other = ours.encoder.blocks[0].attn, model.longformer.encoder.layer[0].attention.self
    for a, b in ((mine.v, other.value), (mine.q_global, other.query_global), (mine.k, other.key)):
        close(a.weight.grad, b.weight.grad, loosen=5)  # sums over 100 positions, in another order


@pytest.mark.system(SLUG)
def test_both_ways_without_global_tokens(tmp_path: Path) -> None:
    tokens = inputs()[0][:, :16]
    ours = check_both_ways(peer(window=8), tmp_path, lambda m: m(tokens), lambda m: m(tokens).logits)
    assert ours.config.windows == Windows((8, 8))  # transformers writes one for each layer


@pytest.mark.system(SLUG, "separate")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kind", ["LongformerModel", "LongformerForSequenceClassification"])
def test_heads_both_ways(kind: str, tmp_path: Path) -> None:
    """The text's vector, and the classifier, which makes the first token global by itself, there and here."""
    tokens, roles = inputs()
    roles = roles.clamp_max(1)
    check_both_ways(
        peer(kind), tmp_path, lambda m: m(tokens, roles).pooled if kind == "LongformerModel" else m(tokens, roles),
        lambda m: m(tokens, attention_mask=roles, return_dict=False)[1 if kind == "LongformerModel" else 0],
    )  # fmt: skip


@pytest.mark.system(SLUG, "separate")
@pytest.mark.system(SLUG)
def test_question_answering_both_ways(tmp_path: Path) -> None:
    """Every question token is global: those before the first separator; three separators in all, as there."""
    tokens = inputs()[0].clone()
    tokens[:, 0], tokens[:, 6], tokens[:, 7], tokens[:, 30] = 0, 2, 2, 2
    roles = torch.ones_like(tokens)

    def both(found: Any) -> Tensor:
        return torch.stack([found[0], found[1]])

    check_both_ways(
        peer("LongformerForQuestionAnswering"), tmp_path, lambda m: both(m(tokens, roles)),
        lambda m: both(m(tokens, attention_mask=roles, return_dict=False)),
    )  # fmt: skip


@pytest.mark.system(SLUG, "full")
@pytest.mark.system(SLUG)
def test_a_window_over_all_is_the_full_encoder() -> None:
    """w ≥ T − 1: the logits of a RoBERTa with the same weights (its output without the global projections)."""
    torch.manual_seed(0)
    c = TINY
    config = RobertaConfig(
        c.vocab, c.context, c.width, c.depth, c.heads, c.hidden, c.segments, 0.0, eps=c.eps, pad=c.pad
    )
    full = RobertaForMaskedLM(config).eval()
    wide = LongformerForMaskedLM(replace(c, windows=Windows((40,)))).eval()
    missing = wide.load_state_dict(full.state_dict(), strict=False)
    assert all("_global" in key for key in missing.missing_keys)
    assert not missing.unexpected_keys
    tokens = torch.randint(3, 61, (2, 20))
    close(wide(tokens), full(tokens))
    narrow = LongformerForMaskedLM(TINY).eval()
    narrow.load_state_dict(wide.state_dict())
    assert (narrow(tokens) - full(tokens)).abs().max() > 1e-3


@pytest.mark.system(SLUG)
def test_information_reaches_l_w_and_no_further_without_a_global_token() -> None:
    """MF 20.8.7: windows of radius 2 and 3 carry a token 5 positions; a global token carries it anywhere."""
    torch.manual_seed(0)
    model = LongformerForMaskedLM(TINY).eval()
    tokens = torch.randint(3, 61, (1, 30))
    other = tokens.clone()
    other[0, 4] = (tokens[0, 4] - 2) % 58 + 3
    changed = (model(tokens) != model(other)).any(-1)[0].nonzero().flatten()
    assert (changed.min().item(), changed.max().item()) == (0, 9)
    roles = torch.ones_like(tokens)
    roles[0, 0] = 2
    changed = (model(tokens, roles) != model(other, roles)).any(-1)[0]
    assert changed.all()


@pytest.mark.system(SLUG, "long")
@pytest.mark.system(SLUG)
def test_a_long_document_in_little_memory() -> None:
    """4096 tokens, a classifier, forward and backward: nothing of the graph has T² numbers."""
    torch.manual_seed(0)
    config = replace(TINY, context=4100, width=16, heads=1, depth=1, hidden=16, windows=Windows((64,)))
    model = LongformerForSequenceClassification(config)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (kept.append(x.numel()), x)[1], lambda x: x):
        loss = model(torch.randint(3, 61, (1, 4096))).square().mean()
    loss.backward()
    assert max(kept) < 4096**2 / 16
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.system(SLUG)
def test_the_books_projections_are_a_module_of_its_own() -> None:
    """The global rows of `GlobalWindow` are made by the local matrices: it has no others."""
    names = {name.partition(".")[0] for name, _ in GlobalWindow(8, 2, 3).named_parameters()}
    assert names == {"q", "k", "v", "out"}


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="positions for 38"):
        LongformerForMaskedLM(TINY)(torch.zeros(1, 39, dtype=torch.long))
    with pytest.raises(ValueError, match="one even number"):
        Windows((4, 5)).radii(2)
    with pytest.raises(ValueError, match="each of 3 layers"):
        Windows((4, 6)).radii(3)
    LongformerForMaskedLM(TINY).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"gelu"', '"relu"'))
    with pytest.raises(Mistake, match="hidden_act"):
        descend.load(tmp_path)
