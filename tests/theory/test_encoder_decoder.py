"""FLOPs of the blocks, against torch's counter."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.attention.multi_head import Attention
from descend.nn.encoder import EncoderBlock
from descend.theory.encoder_decoder import cross_attention_flops, encoder_block_flops, quadratic_from


@pytest.mark.system("encoder-decoder-transformer", "flops")
@pytest.mark.system("encoder-decoder-transformer")
def test_counts_are_what_torch_counts() -> None:
    with torch.device("meta"):
        block, attn = EncoderBlock(32, 4, 96, nn.ReLU()), Attention(32, 4)
        x, memory = torch.empty(1, 20, 32), torch.empty(1, 7, 32)
    for flops, call in (
        (encoder_block_flops(20, 32, 96), lambda: block(x)),
        (cross_attention_flops(20, 7, 32), lambda: attn(x, memory)),
    ):
        with FlopCounterMode(display=False) as counter:
            call()
        assert counter.get_total_flops() == flops.total


@pytest.mark.system("encoder-decoder-transformer", "flops")
@pytest.mark.system("encoder-decoder-transformer")
def test_where_the_quadratic_part_outgrows_the_rest() -> None:
    """VOM 12.8 calls O(n² d N) the whole; at the base size that holds beyond 3072 tokens only."""
    n = quadratic_from(512, 2048)
    assert n == 3072
    at, before = encoder_block_flops(n, 512, 2048), encoder_block_flops(512, 512, 2048)
    assert at.mixing == at.projections + at.feed_forward
    assert before.mixing < 0.2 * before.total
