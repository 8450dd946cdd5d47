"""The manual backward pass of the transformer against autograd and torch's own transformer; it trains."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.autodiff.transformer import (
    EPS,
    Parameters,
    Sizes,
    decoder_block,
    encoder_block,
    initial,
    loss_and_gradients,
)
from descend.ops.attention.dot_product import padding_mask
from tests.close import close

pytestmark = pytest.mark.system("transformer-manual-backward")
SIZES = Sizes()


def tokens() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(5)
    source = torch.randint(SIZES.vocab, (3, 6), generator=random)
    target = torch.randint(SIZES.vocab, (3, 5), generator=random)
    return source, target[:, :-1], target[:, 1:]


@pytest.mark.system("transformer-manual-backward", "every-gradient")
@pytest.mark.parametrize("masked", [False, True])
def test_every_gradient_equals_autograd(masked: bool) -> None:
    p = initial(SIZES, seed=0)
    mask = padding_mask(torch.tensor([6, 4, 2]), 6) if masked else None
    leaves = {name: w.clone().requires_grad_() for name, w in p.items()}
    loss, _ = loss_and_gradients(leaves, SIZES, *tokens(), mask)
    theirs = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
    with torch.no_grad():
        again, ours = loss_and_gradients(p, SIZES, *tokens(), mask)
    close(again, loss)
    assert ours.keys() == theirs.keys() == p.keys()
    assert max((ours[name] - theirs[name]).abs().max().item() for name in p) < 1e-10
    assert min(theirs[name].abs().max().item() for name in p) > 1e-6, "a gradient of 0 would prove nothing"


@pytest.mark.system("transformer-manual-backward", "encoder-sum")
def test_the_encoder_collects_from_every_decoder_block() -> None:
    """Without the share of one block the gradient of X_enc is another one."""
    p = initial(SIZES, seed=1)
    memory = torch.randn(1, 4, SIZES.width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    memory.requires_grad_()
    y = torch.randn(1, 3, SIZES.width, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    first, back_first = decoder_block(p, "decoder.0", y, memory, SIZES.heads, None)
    second, back_second = decoder_block(p, "decoder.1", first, memory, SIZES.heads, None)
    whole = torch.autograd.grad(second.square().sum(), memory)[0]
    into: Parameters = {}
    g, from_second = back_second(2 * second, into)
    _, from_first = back_first(g, into)
    close(from_first + from_second, whole)
    assert not torch.allclose(from_second, whole, rtol=0.05)


def load_norm(layer: torch.nn.LayerNorm, p: Parameters, name: str) -> None:
    layer.weight.copy_(p[f"{name}.gain"])
    layer.bias.copy_(p[f"{name}.shift"])


def load_attention(layer: torch.nn.MultiheadAttention, p: Parameters, name: str) -> None:
    layer.in_proj_weight.copy_(torch.cat([p[f"{name}.{x}"].T for x in "qkv"]))
    layer.out_proj.weight.copy_(p[f"{name}.o"].T)
    layer.in_proj_bias.zero_()
    layer.out_proj.bias.zero_()


@pytest.mark.system("transformer-manual-backward", "torch-blocks")
def test_the_blocks_are_torchs() -> None:
    """The forward pass is the post-norm encoder and decoder layer of torch with copied weights."""
    p, d = initial(SIZES, seed=2), SIZES.width
    named = {"dim_feedforward": SIZES.hidden, "dropout": 0.0, "layer_norm_eps": EPS, "batch_first": True}
    encoder = torch.nn.TransformerEncoderLayer(d, SIZES.heads, dtype=torch.float64, **named)  # type: ignore[arg-type]
    decoder = torch.nn.TransformerDecoderLayer(d, SIZES.heads, dtype=torch.float64, **named)  # type: ignore[arg-type]
    with torch.no_grad():
        for layer, side, norms in ((encoder, "encoder.0", 2), (decoder, "decoder.0", 3)):
            load_attention(layer.self_attn, p, f"{side}.self")
            for n in range(1, norms + 1):
                load_norm(getattr(layer, f"norm{n}"), p, f"{side}.norm{n}")
            for linear, name in ((layer.linear1, "up"), (layer.linear2, "down")):
                linear.weight.copy_(p[f"{side}.{name}.w"].T)
                linear.bias.copy_(p[f"{side}.{name}.b"])
        load_attention(decoder.multihead_attn, p, "decoder.0.cross")
        x = torch.randn(2, 5, d, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        y = torch.randn(2, 4, d, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
        causal = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
        close(encoder_block(p, "encoder.0", x, SIZES.heads, None)[0], encoder(x))
        close(decoder_block(p, "decoder.0", y, x, SIZES.heads, None)[0], decoder(y, x, tgt_mask=causal))


@pytest.mark.system("transformer-manual-backward", "trains")
def test_it_trains_by_hand() -> None:
    """Copy the source, without autograd: the loss falls to a twentieth."""
    p = initial(Sizes(depth=1), seed=3)
    random = torch.Generator().manual_seed(0)
    source = torch.randint(1, SIZES.vocab, (8, 4), generator=random)
    start = torch.zeros(8, 1, dtype=torch.long)
    losses = []
    with torch.no_grad():
        for _ in range(120):
            loss, found = loss_and_gradients(p, Sizes(depth=1), source, torch.cat([start, source[:, :-1]], 1), source)
            losses.append(loss.item())
            p = {name: w - 0.3 * found[name] for name, w in p.items()}
    assert losses[-1] < 0.05 * losses[0]
