"""Add & Norm, before and after: what is left without sublayers, against torch, and gradients through depth."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.nn.add_norm import AddNorm, PostNorm, PreNorm, Stack
from descend.nn.attention.multi_head import Attention
from descend.nn.encoder_decoder import EncoderLayer
from descend.nn.mlp import MLP
from tests.close import close

SLUG = "add-and-norm-and-stack"


def layer(add: type[AddNorm], width: int = 16, heads: int = 2) -> EncoderLayer:
    parts = Attention(width, heads), add(nn.LayerNorm(width)), MLP(width, 32, nn.ReLU()), add(nn.LayerNorm(width))
    return EncoderLayer(*parts)


def into(theirs: nn.TransformerEncoderLayer, ours: EncoderLayer) -> None:
    """Copy our weights."""
    attn = ours.attn
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(torch.cat([attn.q.weight, attn.k.weight, attn.v.weight]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([attn.q.bias, attn.k.bias, attn.v.bias]))
    pairs = [
        (theirs.self_attn.out_proj, attn.out), (theirs.linear1, ours.mlp.up), (theirs.linear2, ours.mlp.down),
        (theirs.norm1, ours.add_1.norm), (theirs.norm2, ours.add_2.norm),
    ]  # fmt: skip
    for a, b in pairs:
        a.load_state_dict(b.state_dict())


def shaken(module: nn.Module) -> nn.Module:
    """No parameter at 0 or 1."""
    torch.manual_seed(0)
    for p in module.parameters():
        nn.init.normal_(p, 0.3, 0.5)
    return module.double()


@pytest.mark.system(SLUG, "both")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("add", "first"), [(PostNorm, False), (PreNorm, True)], ids=["post", "pre"])
@pytest.mark.parametrize("heads", [1, 4])
def test_is_torchs_layer(add: type[AddNorm], first: bool, heads: int) -> None:
    ours = layer(add, heads=heads)
    shaken(ours)
    theirs = nn.TransformerEncoderLayer(16, heads, 32, 0.0, batch_first=True, norm_first=first).double()
    into(theirs, ours)
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    close(ours(x), theirs(x))


@pytest.mark.system(SLUG, "zeroed")
@pytest.mark.system(SLUG)
def test_without_sublayers() -> None:
    """Pre-norm is the identity, post-norm gives LN, and LN(LN(X)) for the two sublayers of a layer."""
    x, norm = torch.randn(2, 5, 16, dtype=torch.float64), nn.LayerNorm(16).double()

    def nothing(x: Tensor) -> Tensor:
        return x * 0

    assert torch.equal(PreNorm(norm)(x, nothing), x)
    close(PostNorm(norm)(x, nothing), norm(x))
    for add, expected in ((PreNorm, x), (PostNorm, norm(norm(x)))):
        zeroed = layer(add).double()
        for p in (*zeroed.attn.out.parameters(), *zeroed.mlp.down.parameters()):
            nn.init.zeros_(p)
        close(zeroed(x), expected)


@pytest.mark.system(SLUG, "stack")
@pytest.mark.system(SLUG)
def test_a_stack_has_its_own_parameters_and_a_last_norm() -> None:
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    layers = [layer(PreNorm).double() for _ in range(3)]
    by_hand = layers[2](layers[1](layers[0](x)))
    close(Stack(layers)(x), by_hand)
    assert by_hand.std() > 1.05  # a pre-norm sum is not normalised, hence the last norm
    norm = nn.LayerNorm(16).double()
    close(Stack(layers, norm)(x), norm(by_hand))
    assert len(set(map(id, Stack(layers).parameters()))) == 3 * len(list(layers[0].parameters()))


@pytest.mark.system(SLUG, "gradients")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gradients_by_depth(seed: int) -> None:
    """Post-norm: the gradient at the first layer shrinks with depth. Pre-norm: it stays."""

    def gradient(add: type[AddNorm], depth: int) -> float:
        torch.manual_seed(seed)
        stack, x = Stack(layer(add) for _ in range(depth)), torch.randn(4, 6, 16, requires_grad=True)
        (stack(x) * torch.randn(4, 6, 16)).sum().backward()
        return float(x.grad.norm()) if x.grad is not None else 0.0

    post, pre = ([gradient(add, depth) for depth in (2, 50)] for add in (PostNorm, PreNorm))
    assert post[1] < 0.2 * post[0]
    assert pre[1] > 0.5 * pre[0]
    assert pre[1] > 5 * post[1]
