"""The encoder against torch's own, its counts, its symmetries, and one core for encoders and decoders."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.nn.encoder import Encoder, EncoderBlock, PreNormBlock, WithoutResidual, key_mask
from descend.nn.text_embeddings import TextEmbeddings
from tests.close import close


def x(b: int = 3, t: int = 9, d: int = 16) -> Tensor:
    return torch.randn(b, t, d, generator=torch.Generator().manual_seed(3))


def blocks(kind: type[EncoderBlock], depth: int = 2, **changes: Any) -> Encoder:
    torch.manual_seed(0)
    encoder = Encoder(kind(16, 4, 24, nn.ReLU(), **changes) for _ in range(depth))
    for p in encoder.parameters():
        nn.init.normal_(p, std=0.3)
    return encoder.eval()


def torch_layer(block: EncoderBlock, norm_first: bool, bias: bool = True) -> nn.TransformerEncoderLayer:
    """torch's layer with our weights: one matrix for Q, K and V."""
    layer = nn.TransformerEncoderLayer(16, 4, 24, 0.0, "relu", batch_first=True, norm_first=norm_first).eval()
    a, m = block.attn, block.mlp
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([a.q.weight, a.k.weight, a.v.weight]))
        layer.self_attn.out_proj.weight.copy_(a.out.weight)
        for theirs, ours in ((layer.linear1, m.up), (layer.linear2, m.down)):
            theirs.load_state_dict(ours.state_dict())
        layer.norm1.load_state_dict(block.norm_1.state_dict())
        layer.norm2.load_state_dict(block.norm_2.state_dict())
        biases = torch.cat([a.q.bias, a.k.bias, a.v.bias]) if bias else torch.zeros(48)
        layer.self_attn.in_proj_bias.copy_(biases)
        layer.self_attn.out_proj.bias.copy_(a.out.bias if bias else torch.zeros(16))
    return layer


@pytest.mark.system("transformer-encoder-block", "torch")
@pytest.mark.system("transformer-encoder-block")
@pytest.mark.system("padding-mask")
@pytest.mark.parametrize(("kind", "norm_first"), [(EncoderBlock, False), (PreNormBlock, True)])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch(kind: type[EncoderBlock], norm_first: bool, bias: bool) -> None:
    ours = blocks(kind, attention_bias=bias)
    theirs: list[Any] = [torch_layer(block, norm_first, bias) for block in ours.blocks]  # type: ignore[arg-type]
    lengths = torch.tensor([9, 4, 1])
    given = [x(), x()]
    mask = torch.arange(9) < lengths[:, None]
    with torch.no_grad():
        for layer in theirs:
            given = [layer(given[0]), layer(given[1], src_key_padding_mask=~mask)]
        close(ours(x()), given[0])
        close(ours(x(), lengths)[mask], given[1][mask])
        close(ours(x(), mask), ours(x(), lengths))


@pytest.mark.system("transformer-encoder-block", "parameters")
@pytest.mark.system("transformer-encoder-block")
def test_parameters() -> None:
    """VOM and MF without attention biases, DLN with them."""
    for bias, expected in ((False, 3_150_336), (True, 3_152_384)):
        block = EncoderBlock(512, 8, 2048, nn.ReLU(), attention_bias=bias)
        assert sum(p.numel() for p in block.parameters()) == expected


@pytest.mark.system("transformer-encoder-block", "equivariant")
@pytest.mark.system("transformer-encoder-block")
def test_permutation_equivariance_and_shapes() -> None:
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    for kind in (EncoderBlock, PreNormBlock, WithoutResidual):
        encoder = blocks(kind)
        with torch.no_grad():
            close(encoder(x())[:, order], encoder(x()[:, order]))
            assert [layer.shape for layer in encoder.layers(x())] == [x().shape] * 3
            close(encoder.layers(x())[-1], encoder(x()))


@pytest.mark.system("transformer-encoder-block", "switches")
@pytest.mark.system("transformer-encoder-block")
def test_norms_and_residual_sums_are_optional() -> None:
    """DLD 6.10: without norms the post-norm block is x + attention(x), then + mlp; without sums nothing goes around."""
    [plain] = blocks(EncoderBlock, 1).blocks
    plain.norm_1 = plain.norm_2 = nn.Identity()
    [bare] = blocks(WithoutResidual, 1).blocks
    bare.norm_1 = bare.norm_2 = nn.Identity()
    with torch.no_grad():
        y = x() + plain.attn(x())  # type: ignore[operator]
        close(plain(x()), y + plain.mlp(y))  # type: ignore[operator]
        close(bare(x()), bare.mlp(bare.attn(x())))  # type: ignore[operator]


@pytest.mark.system("shared-attention-core", "mask")
@pytest.mark.system("shared-attention-core")
def test_the_mask_makes_a_decoder_of_an_encoder() -> None:
    """One module: with a causal mask output t does not depend on inputs after t, without it it does."""
    encoder, changed = blocks(EncoderBlock), x()
    changed[:, 6] += 1
    with torch.no_grad():
        close(encoder(changed, causal=True)[:, :6], encoder(x(), causal=True)[:, :6])
        assert (encoder(changed) - encoder(x())).abs().amin(dim=(0, 2)).max() > 0
        assert ((encoder(changed) - encoder(x())).abs().amax(-1) > 1e-4).all()


@pytest.mark.system("shared-attention-core", "one-encoder")
@pytest.mark.system("shared-attention-core")
def test_one_encoder_under_words_and_under_patches() -> None:
    """MF 31.5: BERT's table and ViT's linear map of patches differ, the encoder and its state dict do not."""
    torch.manual_seed(0)
    words, patches = TextEmbeddings(11, 9, 1, 16, 1e-5, 0.0), nn.Linear(12, 16)
    text, image = blocks(EncoderBlock), blocks(EncoderBlock, eps=1e-5)
    image.load_state_dict(text.state_dict())
    with torch.no_grad():
        from_words = words(torch.arange(9)[None] % 11, torch.arange(9))
        close(image(from_words), text(from_words))
        assert image(patches(torch.randn(2, 9, 12))).shape == (2, 9, 16)


@pytest.mark.system("transformer-encoder-block")
def test_gradients() -> None:
    block = EncoderBlock(8, 2, 12, nn.GELU()).double()
    given = torch.randn(2, 4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mask = key_mask(torch.tensor([4, 2]), 4)
    assert torch.autograd.gradcheck(lambda v: block(v, mask), (given,))


@pytest.mark.system("padding-mask")
def test_masks_are_checked() -> None:
    assert key_mask(None, 4) is None
    whole = key_mask(torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]]), 4)
    assert whole is not None
    assert torch.equal(whole, key_mask(torch.tensor([2, 4]), 4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a mask of shape \(2, 3\) for 4 tokens"):
        key_mask(torch.ones(2, 3), 4)
