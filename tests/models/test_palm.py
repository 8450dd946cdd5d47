"""PaLM: the block written with the readable attention, multi-query heads, causality, decoding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.models.palm import TINY, Block, Palm
from descend.nn.attention.rotary import Rope, rotate
from descend.ops.attention.dot_product import attention, causal_mask
from tests.close import close


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


def block() -> Block:
    torch.manual_seed(0)
    return Block(12, 3, 8, 20, 1e-6).double()


@pytest.mark.system("parallel-attention-ffn", "equation")
@pytest.mark.system("rope", "values")
@pytest.mark.system("swiglu-ffn", "models")
@pytest.mark.system("palm")
@pytest.mark.system("palm", "block")
@pytest.mark.system("parallel-attention-ffn")
@pytest.mark.system("multi-query-attention")
@pytest.mark.system("swiglu-ffn")
def test_the_block_is_its_equation() -> None:
    b, x = block(), torch.randn(2, 5, 12, dtype=torch.float64)
    cos, sin = (a.double() for a in Rope().angles(torch.arange(5), 8))
    n = torch.nn.functional.layer_norm(x, (12,), b.norm.weight, None, 1e-6)
    k = rotate((n @ b.attn.k.weight.T)[:, :, None], cos, sin)[:, :, 0]
    v = n @ b.attn.v.weight.T
    heads = []
    for w in b.attn.q.weight.view(3, 8, 12):  # a query for each head, one key and value for all
        q = rotate((n @ w.T)[:, :, None], cos, sin)[:, :, 0]
        heads.append(attention(q, k, v, causal_mask(5))[0])
    w_1, w_2, w_3 = b.mlp.up.weight, b.mlp.gate.weight, b.mlp.down.weight
    z = n @ w_2.T
    feed = ((n @ w_1.T) * (z * z.sigmoid())) @ w_3.T
    close(b(x, (cos, sin)), x + torch.cat(heads, -1) @ b.attn.out.weight.T + feed)


@pytest.mark.system("parallel-attention-ffn", "serial")
@pytest.mark.system("parallel-attention-ffn")
@pytest.mark.parametrize("zeroed", ["attn.out", "mlp.down"])
def test_with_one_part_gone_it_is_the_serial_block(zeroed: str) -> None:
    b, x = block(), torch.randn(2, 5, 12, dtype=torch.float64)
    angles = Rope().angles(torch.arange(5), 8)

    def serial() -> Tensor:
        y = x + b.attn(b.norm(x), causal=True, angles=angles)
        out: Tensor = y + b.mlp(b.norm(y))
        return out

    assert not torch.allclose(b(x, angles), serial())
    torch.nn.init.zeros_(b.get_submodule(zeroed).weight)  # type: ignore[arg-type]
    close(b(x, angles), serial())


@pytest.mark.system("autoregressive-generation", "models")
@pytest.mark.system("multi-query-attention", "decoding")
@pytest.mark.system("parallel-attention-ffn", "model")
@pytest.mark.system("palm")
@pytest.mark.system("palm", "trained")
def test_decoding_is_the_forward_pass() -> None:
    torch.manual_seed(0)
    model, x = Palm(TINY), tokens()
    decoder = model.decoder()
    found = [decoder.start(x[:, :4], torch.zeros(3, dtype=torch.long), 17)]
    found += [decoder.step(x[:, t]) for t in range(4, 17)]
    with torch.no_grad():
        close(torch.stack(found, 1), model(x)[:, 3:])
    assert decoder.cache.kv.shape == (2, 2, 3, 1, 32, 8)  # one key head; 17 tokens in whole lines of the memory


@pytest.mark.system("palm")
@pytest.mark.system("palm", "causal", "trained")
def test_causal_without_biases_and_learning() -> None:
    torch.manual_seed(0)
    model, x = Palm(TINY), tokens()
    assert not [name for name, _ in model.named_parameters() if "bias" in name]
    changed = x.clone()
    changed[:, 9:] = (x[:, 9:] + 1) % 61
    with torch.no_grad():
        assert torch.equal(model(x)[:, :9], model(changed)[:, :9])
        assert 0.3 < model(x).std() < 3  # logits of spread 1 at the start
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.5
