"""The Transformer: torch.nn.Transformer with copied weights, counts by tying, decoding, alignment, a small language."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from descend.models.transformer import PARAMETERS, TINY, Transformer, TransformerConfig
from descend.ops.attention.positions import sinusoidal
from descend.ops.teacher_forcing import shift_right
from descend.sampling.beam import beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from tests.close import close

SLUG = "encoder-decoder-transformer"


def given() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    x, y = torch.randint(2, 61, (3, 9), generator=random), torch.randint(61, (3, 6), generator=random)
    return x, torch.arange(9) < torch.tensor([9, 4, 7])[:, None], y


def model(tied: str = "none", dropout: float = 0.0) -> Transformer:
    torch.manual_seed(0)
    found = Transformer(replace(TINY, tied=tied, dropout=dropout))
    for p in found.parameters():
        with torch.no_grad():
            p.add_(torch.randn_like(p) * 0.1)
    return found.eval()


def copied(ours: Transformer) -> nn.Transformer:
    """torch's model with our weights; it has a last norm on each side, which the original has not."""
    c = ours.config
    theirs = nn.Transformer(c.width, c.heads, c.depth, c.depth, c.hidden, 0.0, layer_norm_eps=c.eps, batch_first=True)
    theirs.encoder.norm, theirs.decoder.norm = None, None

    def attention(peer: nn.MultiheadAttention, attn: nn.Module) -> None:
        with torch.no_grad():
            peer.in_proj_weight.copy_(torch.cat([attn.q.weight, attn.k.weight, attn.v.weight]))
            peer.in_proj_bias.copy_(torch.cat([attn.q.bias, attn.k.bias, attn.v.bias]))
        peer.out_proj.load_state_dict(attn.out.state_dict())

    for peer, mine in zip(theirs.encoder.layers, ours.encoder.blocks, strict=True):
        attention(peer.self_attn, mine.attn)
        for a, b in ((peer.norm1, mine.norm_1), (peer.norm2, mine.norm_2)):
            a.load_state_dict(b.state_dict())
    for peer, mine in zip(theirs.decoder.layers, ours.blocks, strict=True):
        attention(peer.self_attn, mine.attn)
        attention(peer.multihead_attn, mine.cross)
        for i in (1, 2, 3):
            getattr(peer, f"norm{i}").load_state_dict(getattr(mine, f"add_{i}").norm.state_dict())
    pairs = [*zip(theirs.encoder.layers, ours.encoder.blocks, strict=True)]
    for peer, mine in [*pairs, *zip(theirs.decoder.layers, ours.blocks, strict=True)]:
        peer.linear1.load_state_dict(mine.mlp.up.state_dict())
        peer.linear2.load_state_dict(mine.mlp.down.state_dict())
    return theirs.eval()


@pytest.mark.system(SLUG, "torch")
@pytest.mark.system(SLUG)
@pytest.mark.system("transformer-decoder-block")
@pytest.mark.system("cross-attention")
def test_is_torchs_transformer() -> None:
    ours, (x, mask, y) = model(), given()
    assert ours.target_embed is not None
    assert ours.head is not None
    root = ours.config.width**0.5
    source = ours.embed(x) * root + sinusoidal(torch.arange(9), 32)
    target = ours.target_embed(y) * root + sinusoidal(torch.arange(6), 32)
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    out = copied(ours)(
        source, target, tgt_mask=causal, src_key_padding_mask=~mask, memory_key_padding_mask=~mask, tgt_is_causal=True
    )
    close(ours(x, y, mask), out @ ours.head.weight.T + ours.bias)


@pytest.mark.system(SLUG, "counts")
@pytest.mark.system(SLUG)
def test_counts_by_tying_and_vocabulary() -> None:
    """VOM 12.8 prints 36M for the blocks and 86M in all; the blocks have 44.1M."""
    with torch.device("meta"):
        dln = Transformer(TransformerConfig())
        vom = Transformer(TransformerConfig(vocab=50000, attention_bias=False, head_bias=True, tied="embeddings"))

    def blocks(m: Transformer) -> int:
        return sum(p.numel() for part in (m.encoder, m.blocks) for p in part.parameters())

    assert (blocks(dln), blocks(vom)) == (44_138_496, 44_101_632)
    assert PARAMETERS["transformer-base"] == 44_138_496 + 32000 * 512
    assert PARAMETERS["transformer-base-37000"] == 44_138_496 + 37000 * 512
    assert PARAMETERS["transformer-base-50000-head"] == 44_101_632 + 2 * 50000 * 512 + 50000
    with pytest.raises(ValueError, match="tied is 'some': choose all, embeddings, none"):
        Transformer(replace(TINY, tied="some"))


@pytest.mark.system(SLUG, "decoding")
@pytest.mark.system(SLUG)
@pytest.mark.system("teacher-forcing")
@pytest.mark.parametrize("tied", ["all", "embeddings", "none"])
def test_decoding_is_the_forward_pass(tied: str) -> None:
    ours, (x, mask, y) = model(tied, dropout=0.3), given()
    decoder = ours.train().decoder(x, mask)  # dropout is off while it writes
    found = [decoder.start(y[:, :2], torch.zeros(3, dtype=torch.long), 6)]
    found += [decoder.step(y[:, t]) for t in range(2, 6)]
    expected = ours.eval()(x, y, mask)
    close(torch.stack(found, 1), expected[:, 1:])
    with torch.no_grad():
        slow = generate(Recompute(lambda y: ours(x, y, mask), 99), [[0]] * 3, 10)
    assert generate(ours.decoder(x, mask), [[0]] * 3, 10) == slow


@pytest.mark.system(SLUG, "decoding")
@pytest.mark.system(SLUG)
def test_beams_of_several_sources_are_those_of_each_alone() -> None:
    ours, (x, mask, _) = model("all"), given()
    together = beam_search(ours.decoder(x, mask), [[0]] * 3, beams=3, tokens=7, stop=[5, 9, 30])
    for row, (source, length) in enumerate(zip(x, mask.sum(1).tolist(), strict=True)):
        alone = beam_search(ours.decoder(source[None, :length]), [[0]], beams=3, tokens=7, stop=[5, 9, 30])
        assert [h.tokens for h in alone[0]] == [h.tokens for h in together[row]]


@pytest.mark.system(SLUG, "no-leak")
@pytest.mark.system(SLUG)
def test_no_leak_and_no_padding() -> None:
    ours, (x, mask, y) = model(), given()
    later, junk = y.clone(), x.clone()
    later[:, 4:] = 7
    junk[~mask] = 50
    close(ours(x, later, mask)[:, :4], ours(x, y, mask)[:, :4])
    close(ours(junk, y, mask), ours(x, y, mask))
    assert not torch.allclose(ours(x.flip(1), y), ours(x, y), atol=1e-2)  # the order of the source is known


@pytest.mark.system(SLUG, "gradients")
@pytest.mark.system(SLUG)
def test_gradients() -> None:
    """Finite differences of a tiny instance, at a few numbers of every matrix."""
    torch.manual_seed(0)
    tiny = Transformer(TransformerConfig(vocab=7, width=4, depth=1, heads=2, hidden=6, dropout=0.0)).double().eval()
    x, y = torch.tensor([[1, 2, 3]]), torch.tensor([[0, 4]])

    def loss() -> Tensor:
        return nn.functional.cross_entropy(tiny(x, y)[0], torch.tensor([4, 5]))

    loss().backward()
    for name, p in tiny.named_parameters():
        assert p.grad is not None
        flat, i, h = p.data.view(-1), p.numel() // 2, 1e-6
        old = flat[i].item()
        with torch.no_grad():
            values = []
            for step in (h, -h):
                flat[i] = old + step
                values.append(loss().item())
            flat[i] = old
        assert p.grad.view(-1)[i].item() == pytest.approx((values[0] - values[1]) / (2 * h), abs=1e-7), name


@pytest.mark.system("cross-attention", "alignment")
@pytest.mark.system(SLUG, "translation")
@pytest.mark.system(SLUG)
@pytest.mark.system("cross-attention")
def test_learns_to_reverse_and_looks_where_the_word_is() -> None:
    """Reversed sources of distinct tokens: exact, by greedy and by beam search, and the attention finds the source."""
    torch.manual_seed(0)
    config = TransformerConfig(vocab=10, width=32, depth=1, heads=2, hidden=64, dropout=0.0)
    ours, random = Transformer(config), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(ours.parameters(), 5e-3)

    def draw(n: int) -> Tensor:
        return torch.rand(n, 8, generator=random).argsort(1)[:, :4] + 2

    for _ in range(220):
        x = draw(48)
        y = x.flip(1)
        loss = nn.functional.cross_entropy(ours(x, shift_right(y, 0)).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = draw(50)
    y = x.flip(1)
    found = generate(ours.decoder(x), [[0]] * 50, 4)
    assert sum(a == b for a, b in zip(found, y.tolist(), strict=True)) >= 47
    beams = beam_search(ours.decoder(x[:5]), [[0]] * 5, beams=2, tokens=4)
    assert sum(h[0].tokens == b for h, b in zip(beams, y[:5].tolist(), strict=True)) >= 4
    looked = ours.alignment(x, shift_right(y, 0))[0].mean(1).argmax(-1)  # (b, t): where each position looks most
    assert (looked == 3 - torch.arange(4)).float().mean() > 0.8


@pytest.mark.system(SLUG, "overfits")
def test_a_few_pairs_are_learned_exactly() -> None:
    """Random answers of different lengths: the loss goes to 0, and every answer is written to its end."""
    torch.manual_seed(0)
    ours = Transformer(TransformerConfig(vocab=20, width=32, depth=1, heads=2, hidden=64, dropout=0.0))
    random = torch.Generator().manual_seed(3)
    x, y = (torch.randint(3, 20, (6, n), generator=random) for n in (7, 5))
    for row, length in enumerate((5, 3, 4, 2, 5, 3)):
        y[row, length - 1], y[row, length:] = 1, 2  # 1 ends an answer, 2 is padding, 0 begins
    optimizer = torch.optim.Adam(ours.parameters(), 1e-2)
    for _ in range(60):
        loss = nn.functional.cross_entropy(ours(x, shift_right(y, 0)).flatten(0, 1), y.flatten(), ignore_index=2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.02
    answers = [[t for t in row if t != 2] for row in y.tolist()]
    assert generate(ours.decoder(x), [[0]] * 6, 8, stop=[1]) == answers
    assert [h[0].tokens for h in beam_search(ours.decoder(x), [[0]] * 6, beams=2, tokens=8, stop=[1])] == answers
