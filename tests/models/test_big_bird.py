"""BigBird against transformers' own, both ways: full and block-sparse, in evaluation and in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import descend
from descend.models.big_bird import (
    TINY,
    BigBirdConfig,
    BigBirdForMaskedLM,
    ReleasedBigBird,
    paper_blocks,
    released_blocks,
)
from descend.nn.attention.self_attention import SelfAttention
from descend.ops.attention.dot_product import weigh
from descend.ops.attention.patterns import block_counts, of_tokens
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")
SLUG = "bigbird"


def peer(kind: str = "BigBirdForMaskedLM", attention: str = "block_sparse", count: int = 2, size: int = 4) -> Any:
    config = transformers.BigBirdConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=96, attention_type=attention, block_size=size, num_random_blocks=count,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return random_peer(getattr(transformers, kind), config, std=0.1)


def tokens(t: int) -> Tensor:
    return torch.randint(3, 61, (2, t), generator=torch.Generator().manual_seed(1))


@pytest.mark.system(SLUG, "released")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("attention", "t"), [("original_full", 30), ("block_sparse", 64), ("block_sparse", 51)])
def test_both_ways(attention: str, t: int, tmp_path: Path) -> None:
    """51 tokens are 13 blocks, the last one not full; padding at the end of the second text."""
    x, mask = tokens(t), torch.ones(2, t, dtype=torch.long)
    mask[1, t - 6 :] = 0
    check_both_ways(
        peer(attention=attention), tmp_path, lambda m: m(x, mask)[mask > 0],
        lambda m: m(x, attention_mask=mask).logits[mask > 0],
    )  # fmt: skip


@pytest.mark.system(SLUG)
def test_a_short_text_gets_full_attention(tmp_path: Path) -> None:
    """(5 + 2r) blocks of 4 = 36 tokens; transformers changes its own attention type for good."""
    x = tokens(36)
    ours = check_both_ways(peer(), tmp_path, lambda m: m(x), lambda m: m(x).logits)
    attn = ours.encoder.blocks[0].attn
    full = SelfAttention(32, 4)
    full.load_state_dict(attn.state_dict())
    y = torch.randn(1, 36, 32)
    close(attn(y), full(y))


@pytest.mark.system(SLUG, "released")
@pytest.mark.system(SLUG)
def test_training_draws_the_same_random_blocks(tmp_path: Path) -> None:
    """Gradients in training, where the blocks are random: layer l draws from the seed l."""
    theirs, x = peer(), tokens(64)
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    quiet = ours(x)
    for model in (ours.train(), theirs.train()):
        logits = model(x) if model is ours else model(x).logits
        logits.square().mean().backward()
    close(ours(x), theirs(x).logits)
    assert (ours(x) - quiet).abs().max() > 1e-3  # evaluation looks at other blocks
    for layer in (0, 1):
        close(
            ours.encoder.blocks[layer].attn.k.weight.grad,
            theirs.bert.encoder.layer[layer].attention.self.key.weight.grad,
            loosen=5,  # sums over 128 positions, in another order
        )


@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("n", "count"), [(12, 3), (20, 3), (9, 1), (33, 2)])
def test_released_blocks_are_those_of_transformers(n: int, count: int) -> None:
    attn = peer(count=count).bert.encoder.layer[0].attention.self.train()
    np.random.seed(5)  # noqa: NPY002
    plan = attn._get_rand_attn_plan(4 * n, 4, count)
    theirs = attn._bigbird_block_rand_mask_with_head(4 * n, 4 * n, 4, 4, 4, *plan)
    close(released_blocks(n, count, 4, 5)[:, 1:-1], torch.tensor(np.stack(theirs)).long())


@pytest.mark.system(SLUG)
@pytest.mark.parametrize(
    ("t", "most", "size"), [(1024, 4096, 64), (3072, 4096, 64), (1024, 1024, 64), (1024, 4096, 16)]
)
def test_blocks_of_the_paper_are_those_of_transformers(t: int, most: int, size: int) -> None:
    attn = peer(count=3).bert.encoder.layer[0].attention.self.train()
    np.random.seed(2)  # noqa: NPY002
    theirs = [attn._bigbird_block_rand_mask(most, most, size, size, 3, last_idx=1024) for _ in range(3)]
    n = t // size
    ours = paper_blocks(n, most // size, 1024 // size, 3, 3, 2)
    close(ours[:, 1 : n - 1], torch.tensor(np.stack(theirs)).long()[:, : n - 2])
    attn = ReleasedBigBird(12, 3, size, 3, seed=2, context=most, dropout=0.0)
    assert torch.equal(attn.random_part(n), ours)


@pytest.mark.system(SLUG)
def test_in_evaluation_the_first_block_counts_more() -> None:
    """As released: block 0 is listed 1 + r times, which is full attention with log(1 + r) on its scores."""
    torch.manual_seed(0)
    attn = ReleasedBigBird(16, 2, 4, 2, seed=0, context=96, dropout=0.0).double().eval()
    x = torch.randn(1, 48, 16, dtype=torch.float64)
    counts = torch.ones(2, 12, 12)
    counts[:, 1:-1] = block_counts(attn.plan(48), 12)
    assert counts[0, 5].tolist() == [3, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1]
    bias = of_tokens(counts, 4, 48).double().log()
    q, k, v = (part(x).unflatten(-1, (2, 8)).transpose(1, 2) for part in (attn.q, attn.k, attn.v))
    y = weigh(q @ k.mT / 8**0.5 + bias, v)[0]
    close(attn(x), attn.out(y.transpose(1, 2).flatten(-2)))


@pytest.mark.system(SLUG)
def test_the_class_of_the_published_files_both_ways(tmp_path: Path) -> None:
    x, segments = tokens(64), (torch.arange(64) > 30).long().expand(2, -1)

    def follows(model: Any) -> Tensor:
        found = model(x, token_type_ids=segments)
        return torch.cat([found.prediction_logits.flatten(), found.seq_relationship_logits.flatten()])

    ours = check_both_ways(
        peer("BigBirdForPreTraining"),
        tmp_path,
        lambda m: torch.cat([part.flatten() for part in m(x, segments=segments)]),
        follows,
    )
    assert BigBirdForMaskedLM.from_pretrained(tmp_path / "ours")(x, segments=segments).equal(ours(x, None, segments)[0])


def test_bare_model_and_mistakes(tmp_path: Path) -> None:
    x = tokens(64)
    check_both_ways(peer("BigBirdModel"), tmp_path, lambda m: m(x).pooled, lambda m: m(x).pooler_output)
    with pytest.raises(ValueError, match="attention_type 'dense' is unknown"):
        BigBirdForMaskedLM(BigBirdConfig(**{**vars(TINY), "attention": "dense"}))
    with pytest.raises(ValueError, match="positions for 64"):
        BigBirdForMaskedLM(TINY)(torch.zeros(1, 65, dtype=torch.long))
