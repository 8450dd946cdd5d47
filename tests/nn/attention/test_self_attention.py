"""Every core in the place of full attention: one interface, the same weights, dropout, batches."""

from __future__ import annotations

import pytest
import torch

from descend.nn.attention.big_bird import BigBirdAttention
from descend.nn.attention.linear import LinearAttention
from descend.nn.attention.linformer import LinformerAttention
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.performer import PerformerAttention
from descend.nn.attention.self_attention import SelfAttention
from descend.nn.attention.sliding_window import GlobalWindow, SeparateGlobalWindow, WindowAttention
from descend.nn.attention.strided import FixedAttention, StridedAttention
from descend.nn.encoder import Encoder, EncoderBlock
from tests.close import close

MODULES = {
    "full": lambda drop: SelfAttention(16, 4, dropout=drop),
    "window": lambda drop: WindowAttention(16, 4, radius=3, dropout=drop),
    "dilated": lambda drop: WindowAttention(16, 4, radius=3, stride=2, dropout=drop),
    "global": lambda drop: GlobalWindow(16, 4, radius=3, dropout=drop),
    "separate": lambda drop: SeparateGlobalWindow(16, 4, radius=3, dropout=drop),
    "big_bird": lambda drop: BigBirdAttention(16, 4, size=4, count=1, dropout=drop),
    "strided": lambda drop: StridedAttention(16, 4, stride=5, dropout=drop),
    "fixed": lambda drop: FixedAttention(16, 4, stride=5, dropout=drop),
    "linformer": lambda drop: LinformerAttention(16, 4, context=30, projected=6, dropout=drop),
}
WITHOUT_DROPOUT = {
    "linear": lambda _: LinearAttention(16, 4),
    "performer": lambda _: PerformerAttention(16, 4, features=8),
}


@pytest.mark.system("shared-attention-core")
def test_full_attention_is_attention() -> None:
    torch.manual_seed(0)
    ours, known = SelfAttention(16, 4), Attention(16, 4)
    ours.load_state_dict(known.state_dict())
    x, mask = torch.randn(2, 9, 16), (torch.arange(9) < 7).expand(2, 1, 1, 9)
    close(ours(x), known(x))
    close(ours(x, mask, causal=True), known(x, mask=mask, causal=True))


@pytest.mark.system("shared-attention-core")
@pytest.mark.parametrize("name", [*MODULES, *WITHOUT_DROPOUT])
def test_each_stands_in_an_encoder(name: str) -> None:
    """Batched equals single, padding changes nothing, every parameter has a gradient."""
    torch.manual_seed(0)
    blocks = [EncoderBlock(16, 4, 32, torch.nn.GELU()) for _ in range(2)]
    for block in blocks:
        block.attn = (MODULES | WITHOUT_DROPOUT)[name](0.0)
    encoder = Encoder(blocks).double()
    x = torch.randn(3, 29, 16, dtype=torch.float64)
    y = encoder(x)
    close(y[1:2], encoder(x[1:2]))
    lengths = torch.tensor([29, 21, 25])
    found = encoder(x, lengths)
    close(found[0], y[0])
    if name != "big_bird":  # there the padded text is longer, so its last block and its random ones are others
        close(found[1, :21], encoder(x[1:2, :21])[0])
    y.square().sum().backward()
    missing = {key.split(".")[3] for key, p in encoder.named_parameters() if p.grad is None}
    assert missing == ({"q_global", "k_global", "v_global"} if name == "separate" else set())


@pytest.mark.parametrize("name", MODULES)
def test_dropout_is_for_training_alone(name: str) -> None:
    torch.manual_seed(0)
    attn = MODULES[name](0.5)
    x = torch.randn(1, 28, 16)
    assert not torch.equal(attn(x), attn(x))
    attn.eval()
    assert torch.equal(attn(x), attn(x))
