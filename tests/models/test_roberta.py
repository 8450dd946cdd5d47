"""RoBERTa and its heads against transformers' own, both ways; BERT without segments is the same encoder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.models.bert import TINY as TINY_BERT
from descend.models.bert import Bert
from descend.models.roberta import ARCHITECTURES, BY_HEAD, SIZES, TINY, Roberta, RobertaConfig, positions
from tests.close import close
from tests.models.peers import check_both_ways, random_peer
from tests.models.test_bert import flat

transformers = pytest.importorskip("transformers")


def peer(architecture: str) -> Any:
    classes = 2 if architecture.endswith("QuestionAnswering") else 3  # a span has a start and an end
    config = transformers.RobertaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=24, num_labels=classes, type_vocab_size=1,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


def batch() -> tuple[Tensor, Tensor]:
    """tokens padded with 1, mask: texts of 17, 9 and 2 tokens."""
    tokens = torch.randint(2, 61, (3, 17), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(17) < torch.tensor([17, 9, 2])[:, None]
    return torch.where(mask, tokens, 1), mask


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "post-norm")
@pytest.mark.system("padding-mask")
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_both_ways(architecture: str, tmp_path: Path) -> None:
    theirs, (x, mask) = peer(architecture), batch()
    ours = check_both_ways(theirs, tmp_path, lambda m: flat(m(x)), lambda m: flat(m(x)))
    assert type(ours) is ARCHITECTURES[architecture]
    with torch.no_grad():
        close(flat(ours(x, mask)), flat(theirs(x, attention_mask=mask.long())))


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "post-norm")
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_parameters_by_head(architecture: str) -> None:
    size = SIZES["roberta-base"]
    with torch.device("meta"):
        ours = ARCHITECTURES[architecture](size)  # type: ignore[call-arg]
        config = transformers.RobertaConfig(type_vocab_size=1, max_position_embeddings=514)
        theirs = getattr(transformers, architecture)(config)
    count = sum(p.numel() for p in ours.parameters())
    assert count == BY_HEAD[architecture] == sum(p.numel() for p in theirs.parameters())


@pytest.mark.system("roberta")
def test_positions_begin_behind_the_padding() -> None:
    x = torch.tensor([[5, 6, 7, 8], [5, 6, 1, 1]])
    assert positions(x, 1).tolist() == [[2, 3, 4, 5], [2, 3, 1, 1]]
    with pytest.raises(ValueError, match="23 tokens, but this model has positions for 22"):
        Roberta(TINY)(torch.full((1, 23), 5))


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "no-segments")
@pytest.mark.system("shared-attention-core")
def test_bert_without_segments_is_the_same_encoder() -> None:
    """MF-B.86: with copied weights, positions moved by pad + 1 and one segment, the outputs are equal."""
    torch.manual_seed(0)
    ours, bert = Roberta(TINY).eval(), Bert(TINY_BERT).eval()
    state = ours.state_dict()
    state["embed.position.weight"] = torch.cat([state["embed.position.weight"][2:], torch.zeros(2, 32)])
    state["embed.segment.weight"] = state["embed.segment.weight"].expand(2, -1)
    bert.load_state_dict(state)
    x = batch()[0].clamp(min=2)
    with torch.no_grad():
        close(ours(x).hidden, bert(x).hidden)
        close(ours(x).pooled, bert(x).pooled)


def test_defaults_are_those_of_the_format() -> None:
    theirs, ours = transformers.RobertaConfig(), asdict(RobertaConfig())
    assert (ours["vocab"], ours["context"], ours["eps"]) == (theirs.vocab_size, 512, theirs.layer_norm_eps)
    assert (ours["pad"], ours["segments"]) == (theirs.pad_token_id, theirs.type_vocab_size)
