"""Mamba against transformers' own, both ways; one scan against one step after another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.models.mamba import TINY, Mamba, MambaConfig
from tests.close import close
from tests.models.peers import check_both_ways, check_generation, random_peer

transformers = pytest.importorskip("transformers")


def peer() -> Any:
    config = transformers.MambaConfig(
        vocab_size=61, hidden_size=24, state_size=5, num_hidden_layers=2, expand=2, conv_kernel=4, time_step_rank=3,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return random_peer(transformers.MambaForCausalLM, config)


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "model")
def test_both_ways(tmp_path: Path) -> None:
    theirs, x = peer(), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    for name in ("a_log", "d"):
        mine = getattr(ours.blocks[0].mixer, name)
        other = getattr(theirs.backbone.layers[0].mixer, {"a_log": "A_log", "d": "D"}[name])
        close(mine.grad, other.grad, loosen=5)  # sums of 51 float32 terms in another order


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "model")
@pytest.mark.parametrize("prompts", [[[5, 3, 9, 1]], [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]]], ids=["one", "padded"])
def test_generation(prompts: list[list[int]], tmp_path: Path) -> None:
    theirs = peer()
    theirs.save_pretrained(tmp_path)
    check_generation(theirs, descend.load(tmp_path), prompts, 20)


@pytest.mark.system("mamba")
def test_decoding_is_the_forward_pass() -> None:
    torch.manual_seed(0)
    model, x = Mamba(TINY).eval(), tokens()
    decoder = model.decoder()
    found = [decoder.start(x[:, :4], torch.zeros(3, dtype=torch.long), 17)]
    found += [decoder.step(x[:, t]) for t in range(4, 17)]
    with torch.no_grad():
        close(torch.stack(found, 1), model(x)[:, 3:])
    decoder.reorder(torch.tensor([2, 0]))
    other = model.decoder()
    other.start(x[[2, 0]], torch.zeros(2, dtype=torch.long), 18)
    close(decoder.step(torch.tensor([1, 2])), other.step(torch.tensor([1, 2])))


@pytest.mark.system("mamba")
def test_an_automatic_rank(tmp_path: Path) -> None:
    Mamba(TINY).save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    values["time_step_rank"] = "auto"
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(descend.errors.Mistake, match="has shape"):  # ⌈24/16⌉ = 2, the file has 3
        descend.load(tmp_path)


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "selective-copy")
def test_it_learns_to_copy_selected_tokens() -> None:
    """Selective copying: of eight places two hold a symbol, the others noise; say both at the end."""
    torch.manual_seed(0)
    model = Mamba(MambaConfig(vocab=8, width=32, depth=2, state=8, rank=2))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    random = torch.Generator().manual_seed(0)

    def batch(n: int) -> tuple[Tensor, Tensor]:
        said = torch.randint(4, (n, 2), generator=random)
        x = torch.full((n, 8), 6)
        at = torch.rand(n, 8, generator=random).topk(2).indices.sort().values
        return torch.cat([x.scatter(1, at, said), torch.full((n, 2), 7)], dim=1), said

    for _ in range(90):
        x, y = batch(32)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x)[:, -2:].flatten(0, 1), y.flatten()).backward()
        optimizer.step()
    x, y = batch(200)
    assert (model(x)[:, -2:].argmax(-1) == y).float().mean() > 0.85
