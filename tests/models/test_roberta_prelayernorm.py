"""RoBERTa with the norm first, against transformers' own and against the post-norm one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.models.roberta import Roberta, RobertaConfig
from descend.models.roberta_prelayernorm import ARCHITECTURES, TINY, RobertaPreLayerNorm, RobertaPreLayerNormForMaskedLM
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

hf = pytest.importorskip("transformers")
NUMBERS = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 24, "type_vocab_size": 1, "pad_token_id": 1,
}  # fmt: skip


def tokens() -> Tensor:
    x = torch.randint(3, 61, (2, 9), generator=torch.Generator().manual_seed(0))
    x[1, 6:] = 1
    return x


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "pre-norm")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_both_ways(name: str, tmp_path: Path) -> None:
    peer = random_peer(getattr(hf, name), hf.RobertaPreLayerNormConfig(**NUMBERS))
    x = tokens()
    mask = x != 1

    def first(found: object) -> Tensor:
        return found if isinstance(found, Tensor) else found[0]  # type: ignore[index]

    check_both_ways(
        peer, tmp_path, lambda m: first(m(x, mask))[mask] if "Sequence" not in name else m(x, mask),
        lambda m: m(x, mask.long())[0][mask] if "Sequence" not in name else m(x, mask.long()).logits,
    )  # fmt: skip


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "pre-norm")
def test_the_block_of_the_text() -> None:
    """Y = H + attention(norm(H)), H' = Y + mlp(norm(Y)), by hand; the embeddings bare, as MF has them."""
    torch.manual_seed(0)
    model, x = RobertaPreLayerNorm(TINY).double().eval(), tokens()[:1]
    model.embed.norm = nn.Identity()
    h = model.embed.token(x) + model.embed.position(torch.arange(2, 11)) + model.embed.segment.weight[0]
    close(model.embed_tokens(x), h)
    for block in model.encoder.blocks:
        h = h + block.attn(block.norm_1(h))  # type: ignore[operator]
        h = h + block.mlp(block.norm_2(h))  # type: ignore[operator]
    close(model.hidden(x), model.norm(h))


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "pre-norm")
def test_the_weights_of_one_form_fit_the_other_and_give_other_numbers() -> None:
    torch.manual_seed(0)
    after, before, x = Roberta(RobertaConfig(**vars(TINY))).eval(), RobertaPreLayerNorm(TINY).eval(), tokens()
    for p in after.parameters():
        nn.init.normal_(p, std=0.3)
    before.load_state_dict(after.state_dict(), strict=False)
    assert {*before.state_dict()} - {*after.state_dict()} == {"norm.weight", "norm.bias"}
    assert (before.hidden(x) - after.hidden(x)).abs().max() > 0.1


@pytest.mark.system("roberta")
@pytest.mark.system("roberta", "pre-norm")
def test_it_learns_a_batch_without_a_warm_up() -> None:
    torch.manual_seed(0)
    model, x = RobertaPreLayerNormForMaskedLM(TINY), tokens()
    at = torch.zeros_like(x, dtype=torch.bool)
    at[:, 2::3] = x[:, 2::3] != 1
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.masked_fill(at, 2), x != 1, at=at), x[at])
        loss.backward()
        optimizer.step()
    assert loss < 0.2
