"""ACT: its chunk, its style, one step at a time, and the attention of its queries by torch's own layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from descend.data.control.episodes import AverageChunks, EpisodeChance, RunChunks
from descend.models.act import ACT, TINY, ACTConfig, QueryBlock
from descend.models.cloning_policy import CloningPolicy, CloningPolicyConfig
from descend.ops.robotics.execution import to_commands
from tests.close import close


def policy(config: ACTConfig = TINY) -> ACT:
    torch.manual_seed(0)
    return ACT(config).eval()


def observe(n: int = 3) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {"state": torch.randn(n, 4, generator=random), "image": torch.rand(n, 3, 8, 16, generator=random)}


@pytest.mark.system("act-policy")
@pytest.mark.system("act-policy", "shape")
def test_a_chunk_has_16_actions_of_7_numbers() -> None:
    model = policy(ACTConfig())
    planned = model.plan({"state": torch.randn(5, 10)}, EpisodeChance(range(5)))
    assert planned.shape == (5, 16, 7)
    assert model.chunk == 16


@pytest.mark.system("act-policy", "objective")
def test_acting_takes_the_mean_style_and_needs_no_chance() -> None:
    model, seen = policy(), observe()
    zero = torch.zeros(3, TINY.latent)
    close(model.plan(seen, EpisodeChance(range(3))), model.restore(model.decode(seen["state"], zero, seen["image"])))
    close(model.plan(seen, EpisodeChance(range(3))), model.plan(seen, EpisodeChance([7, 8, 9])))
    assert not torch.equal(
        model.decode(seen["state"], zero, seen["image"]), model.decode(seen["state"], zero + 1, seen["image"])
    )


def test_the_style_sees_the_actions_and_acting_does_not() -> None:
    model, seen = policy(), observe()
    chunk, eps = torch.randn(3, 2, 3), torch.zeros(3, 2)
    first = model(seen["state"], chunk, eps, seen["image"])
    other = model(seen["state"], chunk + 1, eps, seen["image"])
    assert not torch.equal(first.actions, other.actions)
    assert (first.kl >= 0).all()


@pytest.mark.system("act-policy", "stepwise")
def test_a_chunk_of_one_is_step_wise_cloning() -> None:
    """One action a plan: executing chunks, averaging them and asking a step-wise policy are the same."""
    model = policy(replace(TINY, chunk=1))
    theta = torch.zeros(3, 2, dtype=torch.float64)
    seen = observe()
    step = model.plan(seen, EpisodeChance(range(3)))
    assert step.shape == (3, 1, 3)
    for execute in (RunChunks(8), RunChunks(1), AverageChunks(0.5)):
        command = execute.begin()
        for _ in range(3):
            close(
                command(theta, lambda: model.plan(seen, EpisodeChance(range(3)))),
                to_commands(theta, step.double())[:, 0],
            )
    plain = CloningPolicy(CloningPolicyConfig(4, 3, 1, 8, 1))
    assert plain.plan(seen, EpisodeChance(range(3))).shape == step.shape


def test_queries_attend_as_torchs_decoder_layer() -> None:
    """nn.TransformerDecoderLayer with the norms first and the same weights."""
    torch.manual_seed(0)
    ours = QueryBlock(8, 2, 16)
    theirs = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    for name, attn in (("self_attn", ours.attn), ("multihead_attn", ours.cross)):
        target = getattr(theirs, name)
        target.in_proj_weight.data = torch.cat([attn.q.weight, attn.k.weight, attn.v.weight]).detach().clone()
        target.in_proj_bias.data = torch.cat([attn.q.bias, attn.k.bias, attn.v.bias]).detach().clone()
        target.out_proj.load_state_dict(attn.out.state_dict())
    theirs.linear1.load_state_dict(ours.mlp.up.state_dict())
    theirs.linear2.load_state_dict(ours.mlp.down.state_dict())
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    close(ours(x, memory), theirs(x, memory))


def test_scales_travel_with_the_weights() -> None:
    model = policy()
    model.fit_scales(torch.randn(20, 4) * 3 + 1, torch.randn(20, 2, 3))
    again = ACT(TINY)
    again.load_state_dict(model.state_dict())
    seen = observe()
    close(again.eval().plan(seen, EpisodeChance(range(3))), model.plan(seen, EpisodeChance(range(3))))
    chunk = torch.randn(6, 2, 3)
    close(model.restore(model.standardize(chunk)), chunk)


def test_a_policy_with_a_camera_wants_an_image() -> None:
    with pytest.raises(ValueError, match="give an image"):
        policy().plan({"state": torch.zeros(1, 4)}, EpisodeChance([0]))
    with pytest.raises(ValueError, match="multiples of 8"):
        ACT(replace(TINY, image=(12, 16)))
