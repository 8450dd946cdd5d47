"""The decoder layer: torch's own with copied weights, causality, the source, counts; and attention to a source."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.models.transformer import decoder_block
from descend.nn.attention.multi_head import Attention
from descend.nn.decoding.with_source import SourceDecoder, Target
from descend.nn.encoder_decoder import DecoderLayer, attention_weights, visible
from tests.close import close

BLOCK, CROSS = "transformer-decoder-block", "cross-attention"
WIDTH = 16


def block() -> DecoderLayer:
    torch.manual_seed(0)
    ours = decoder_block(WIDTH, 2, 32, 0.0, 1e-6)
    for p in ours.parameters():
        nn.init.normal_(p, 0.1, 0.4)
    return ours.double()


def theirs_of(ours: DecoderLayer) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(WIDTH, 2, 32, 0.0, layer_norm_eps=1e-6, batch_first=True).double()
    with torch.no_grad():
        for peer, attn in ((theirs.self_attn, ours.attn), (theirs.multihead_attn, ours.cross)):
            peer.in_proj_weight.copy_(torch.cat([attn.q.weight, attn.k.weight, attn.v.weight]))
            peer.in_proj_bias.copy_(torch.cat([attn.q.bias, attn.k.bias, attn.v.bias]))
            peer.out_proj.load_state_dict(attn.out.state_dict())
    for peer, mine in ((theirs.linear1, ours.mlp.up), (theirs.linear2, ours.mlp.down), (theirs.norm1, ours.add_1.norm),
                       (theirs.norm2, ours.add_2.norm), (theirs.norm3, ours.add_3.norm)):  # fmt: skip
        peer.load_state_dict(mine.state_dict())
    return theirs


def given() -> tuple[Tensor, Tensor, Tensor]:
    """Targets (2, 5), sources (2, 7) and which of their tokens are real."""
    random = torch.Generator().manual_seed(1)
    y, memory = (torch.randn(2, n, WIDTH, generator=random, dtype=torch.float64) for n in (5, 7))
    return y, memory, torch.arange(7) < torch.tensor([7, 4])[:, None]


@pytest.mark.system(BLOCK, "torch")
@pytest.mark.system(BLOCK)
def test_is_torchs_layer() -> None:
    ours, (y, memory, real) = block(), given()
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    expected = theirs_of(ours)(y, memory, tgt_mask=causal, memory_key_padding_mask=~real)
    close(ours(y, memory, None, visible(real)), expected)
    close(ours.forward_with_weights(y, memory, None, visible(real))[0], expected)


@pytest.mark.system(BLOCK, "stack")
@pytest.mark.system(BLOCK)
def test_a_decoder_is_torchs() -> None:
    """Several blocks, every one with the same source."""
    layers, (y, memory, _) = [block(), block()], given()
    for p in layers[1].parameters():
        nn.init.normal_(p, 0.0, 0.3)
    theirs = nn.TransformerDecoder(theirs_of(layers[0]), 2)
    theirs.layers[1].load_state_dict(theirs_of(layers[1]).state_dict())
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    close(layers[1](layers[0](y, memory), memory), theirs(y, memory, tgt_mask=causal))


@pytest.mark.system(BLOCK, "parameters")
@pytest.mark.system(BLOCK)
@pytest.mark.parametrize(("bias", "count"), [(True, 4_204_032), (False, 4_199_936)])
def test_parameters_of_the_base_size(bias: bool, count: int) -> None:
    d, f = 512, 2048
    with torch.device("meta"):
        found = sum(p.numel() for p in decoder_block(d, 8, f, 0.1, 1e-6, bias).parameters())
    assert found == count == 8 * d * d + 2 * d * f + f + d + 6 * d + 8 * d * bias


@pytest.mark.system(BLOCK, "causal")
@pytest.mark.system(CROSS, "no-causal-mask")
@pytest.mark.system(BLOCK)
def test_causal_in_the_target_and_open_to_the_whole_source() -> None:
    ours, (y, memory, _) = block(), given()
    y.requires_grad_()
    memory.requires_grad_()
    ours(y, memory)[:, 2].sum().backward()
    assert y.grad is not None
    assert memory.grad is not None
    assert not y.grad[:, 3:].any()
    assert (y.grad[:, :3].abs().sum(-1) > 0).all()
    assert (memory.grad.abs().sum(-1) > 0).all()


@pytest.mark.system(BLOCK, "incremental")
@pytest.mark.system(BLOCK)
def test_step_by_step_is_in_parallel() -> None:
    layers, (y, memory, real) = [block(), block()], given()
    model = nn.ModuleList(layers)
    target = Target(lambda tokens, _: y.gather(1, tokens[..., None].expand(-1, -1, WIDTH)), layers, lambda y: y)
    decoder = SourceDecoder(model, target, memory, real, 99)
    steps = torch.arange(5).expand(2, 5)
    found = [decoder.start(steps[:, :1], torch.zeros(2, dtype=torch.long), 5)]
    found += [decoder.step(steps[:, i]) for i in range(1, 5)]
    seen = visible(real)
    close(torch.stack(found, 1), layers[1](layers[0](y, memory, None, seen), memory, None, seen))


@pytest.mark.system("multi-head-attention", "uses")
@pytest.mark.system(CROSS, "lengths", "padding", "order")
@pytest.mark.system(CROSS)
def test_attention_to_a_source() -> None:
    """Shape of the queries, rows that sum to 1, the padding unseen, and no order among the source's positions."""
    y, memory, real = given()
    torch.manual_seed(0)
    attn = Attention(WIDTH, 4).double()
    out, weights = attn(y, memory, visible(real)), attention_weights(attn, y, memory, visible(real))
    assert out.shape == y.shape
    assert weights.shape == (2, 4, 5, 7)
    close(weights.sum(-1), torch.ones(2, 4, 5, dtype=torch.float64))
    assert not weights[1, :, :, 4:].any()
    close(out[1:], attn(y[1:], memory[1:, :4]))
    order = torch.randperm(7, generator=torch.Generator().manual_seed(2))
    close(attn(y, memory[:, order], visible(real[:, order])), out)
    rows = torch.tensor([3, 0, 4, 2, 1])
    close(attn(y[:, rows], memory, visible(real)), out[:, rows])  # nor among the queries


@pytest.mark.system("multi-head-attention", "with-biases", "weights")
@pytest.mark.system(CROSS, "ends")
@pytest.mark.system(CROSS)
def test_against_torch_and_its_two_ends() -> None:
    """torch's attention; with Y = X it is self-attention; one source position gives its value to every query."""
    y, memory, real = given()
    torch.manual_seed(0)
    attn = Attention(WIDTH, 4).double()
    theirs = nn.MultiheadAttention(WIDTH, 4, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([attn.q.weight, attn.k.weight, attn.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([attn.q.bias, attn.k.bias, attn.v.bias]))
    theirs.out_proj.load_state_dict(attn.out.state_dict())
    out, weights = theirs(y, memory, memory, key_padding_mask=~real, average_attn_weights=False)
    close(attn(y, memory, visible(real)), out)
    close(attention_weights(attn, y, memory, visible(real)), weights)
    close(attn(y, y), attn(y))
    close(attn(y, memory[:, :1]), attn.out(attn.v(memory[:, :1])).expand_as(y))


@pytest.mark.system(CROSS)
def test_gradients() -> None:
    attn = Attention(4, 2).double()
    y, memory = (torch.randn(1, n, 4, dtype=torch.float64, requires_grad=True) for n in (2, 3))
    real = torch.tensor([[True, True, False]])
    assert torch.autograd.gradcheck(lambda y, m: attn(y, m, visible(real)), (y, memory))
