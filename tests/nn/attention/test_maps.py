from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from descend.models import detr
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as SMALL_GPT2
from descend.models.llama import TINY as SMALL_LLAMA
from descend.models.llama import Llama
from descend.nn.attention.maps import attention_maps
from descend.nn.attention.multi_head import Attention
from tests.close import close

SLUG = "attention-maps-analysis"


@pytest.mark.system(SLUG, "extract", "masked")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_weights_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    ours = (GPT2(SMALL_GPT2) if kind == "gpt2" else Llama(SMALL_LLAMA)).eval()
    ours.save_pretrained(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    tokens = torch.randint(61, (2, 9))
    found = list(attention_maps(ours, tokens).values())
    with torch.no_grad():
        expected = theirs(tokens, output_attentions=True).attentions
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        close(a, b)
        assert (a.triu(1) == 0).all(), "masked cells are 0"
        close(a.sum(-1), torch.ones(a.shape[:-1]))


@pytest.mark.system(SLUG, "masked")
@pytest.mark.system(SLUG)
def test_a_mask_and_another_source() -> None:
    torch.manual_seed(2)
    layer = Attention(8, 2)
    x, source = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    real = torch.tensor([True, True, False, True, False])[None, None, None]

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x, source, mask=real)

    model = Cross()
    a = attention_maps(model, x)["layer"]
    assert a.shape == (1, 2, 3, 5)
    assert (a[..., [2, 4]] == 0).all()
    values = layer.v(source).unflatten(-1, (2, 4)).transpose(1, 2)
    close(layer.out((a @ values).transpose(1, 2).flatten(-2)), model(x))
    assert not model.layer._forward_pre_hooks, "the hooks are gone"


@pytest.mark.system("attention-maps-analysis", "query-maps")
def test_what_the_queries_of_a_detr_look_at() -> None:
    """Every layer is there, rows sum to 1, and the weights times the values are what the layer gives."""
    torch.manual_seed(0)
    model = detr.Detr(detr.TINY).eval()
    cross: Any = model.decoder[1].cross
    seen: list[Any] = []
    cross.register_forward_hook(lambda _, given, y: seen.extend([*given, y]))
    maps = attention_maps(model, detr.TINY_INPUT())
    assert set(maps) == {"encoder.0.attn", *(f"decoder.{i}.{part}" for i in (0, 1) for part in ("attn", "cross"))}
    a = maps["decoder.1.cross"]
    close(a.sum(-1), torch.ones(a.shape[:-1]))
    v = cross.v(seen[2]).unflatten(-1, (cross.heads, -1))
    close(cross.out(torch.einsum("bhts,bshk->bthk", a, v).flatten(-2)), seen[4])
