"""The Switch Transformer against transformers' own, both ways: routing, capacity, generation, size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.losses.balance import balance_loss
from descend.models.switch_transformers import PARAMETERS, TINY, SparseMLP, SwitchTransformers
from descend.nn.experts import Routing
from descend.nn.switch import SwitchRouter
from descend.ops.teacher_forcing import shift_right
from descend.sampling.generate import generate
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")
SLUG = "switch-transformer"


def peer(capacity: int = 64, sparse: int = 1) -> Any:
    config = transformers.SwitchTransformersConfig(
        vocab_size=61, d_model=32, d_kv=6, d_ff=24, num_layers=2, num_decoder_layers=2, num_heads=4, dropout_rate=0.0,
        num_sparse_encoder_layers=sparse, num_sparse_decoder_layers=sparse, num_experts=3, expert_capacity=capacity,
        relative_attention_num_buckets=8, relative_attention_max_distance=20, decoder_start_token_id=0,
    )  # fmt: skip
    return random_peer(transformers.SwitchTransformersForConditionalGeneration, config, 0.1)


def given() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    x, y = torch.randint(2, 61, (3, 12), generator=random), torch.randint(61, (3, 9), generator=random)
    mask = torch.arange(12) < torch.tensor([12, 5, 8])[:, None]
    return x * mask, mask, y


@pytest.mark.system(SLUG, "model")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("capacity", "sparse"), [(64, 1), (2, 1), (3, 2)])
def test_both_ways(capacity: int, sparse: int, tmp_path: Path) -> None:
    """With room for all tokens and without; a mixture in every second layer and in each."""
    theirs, (x, mask, y) = peer(capacity, sparse), given()
    ours = check_both_ways(
        theirs,
        tmp_path,
        lambda m: m(x, y, mask),
        lambda m: m(input_ids=x, attention_mask=mask.long(), decoder_input_ids=y).logits,
    )
    kinds = [isinstance(layer.mlp, SparseMLP) for layer in ours.layers]
    assert kinds == ([False, True] if sparse == 1 else [True, True])


@pytest.mark.system(SLUG, "model")
@pytest.mark.system(SLUG)
def test_generation(tmp_path: Path) -> None:
    theirs, (x, mask, _) = peer(), given()
    theirs.save_pretrained(tmp_path)
    ours = descend.load(tmp_path)
    expected = theirs.generate(x, attention_mask=mask.long(), max_new_tokens=12, do_sample=False, eos_token_id=None)
    assert generate(ours.decoder(x, mask), [[0]] * 3, 12) == expected[:, 1:].tolist()


@pytest.mark.system(SLUG, "capacity")
@pytest.mark.system(SLUG)
def test_a_full_expert_gives_nothing() -> None:
    torch.manual_seed(0)
    model, x = SwitchTransformers(replace(TINY, experts=1, capacity=4, jitter=0.0)).eval(), torch.randn(2, 7, 32)
    mixture = model.layers[1].mlp
    assert isinstance(mixture, SparseMLP)
    y = mixture(x)
    plain = x @ mixture.experts.up[0].T
    close(y[:, :4], (plain.relu() @ mixture.experts.down[0].T)[:, :4])  # one expert has gate 1: the plain network
    assert not y[:, 4:].any()


def test_size_is_the_released_one() -> None:
    config = transformers.SwitchTransformersConfig(d_ff=3072, num_sparse_encoder_layers=6, num_sparse_decoder_layers=6)
    with torch.device("meta"):
        theirs = transformers.SwitchTransformersForConditionalGeneration(config)
    assert sum(p.numel() for p in theirs.parameters()) == PARAMETERS["switch-base-8"]


@pytest.mark.system(SLUG, "learns")
def test_a_small_one_learns_with_its_auxiliary_loss() -> None:
    """Answers are sources turned around; the weight of the balancing loss is the paper's 0.01."""
    torch.manual_seed(0)
    model = SwitchTransformers(replace(TINY, dropout=0.0)).train()
    routed: list[Routing] = []
    for module in model.modules():
        if isinstance(module, SwitchRouter):
            module.register_forward_hook(lambda _, __, routing: routed.append(routing))
    x = torch.randint(2, 61, (8, 5), generator=torch.Generator().manual_seed(1))
    y = x.flip(1)
    optimizer, losses = torch.optim.Adam(model.parameters(), 3e-3), []
    for _ in range(60):
        routed.clear()
        loss = torch.nn.functional.cross_entropy(model(x, shift_right(y, 0)).flatten(0, 1), y.flatten())
        aux = torch.stack([balance_loss(r.p, r.chosen) for r in routed]).mean()
        optimizer.zero_grad()
        (loss + 0.01 * aux).backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[0] > 3.5
    assert losses[-1] < 0.3
    assert {r.chosen.shape[1] for r in routed} == {1}, "one expert a token"
    assert aux < 2, "of 1 when all are used alike and 3 when one is"
