"""Every model file keeps the contract, by being there: build TINY, forward, gradients, round trip, published counts."""

from __future__ import annotations

from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from descend.models import load, model_class, names

SILENT = {
    "detr": "decoder.0.attn.v.weight",  # the contents of the queries start at 0
    "conditional_detr": "decoder.0.attn.[qkv].weight",
    "deformable_detr": "level",  # queries choose their points by matrices that start at 0
    "rt_detr": "decoder.locate.*.layers.[01].*",  # corrections of boxes start at 0, by a last layer of zeros
    "rt_detr_v2": "decoder.locate.*.layers.[01].*",
}  # parameters that no gradient reaches at the very start, by design


def file(name: str) -> ModuleType:
    return import_module(f"descend.models.{name}")


def tiny_input(name: str) -> tuple[Tensor, ...]:
    """The file's own TINY_INPUT, or tokens (b, t)."""
    module = file(name)
    if hasattr(module, "TINY_INPUT"):
        found = module.TINY_INPUT()
        return found if isinstance(found, tuple) else (found,)
    generator = torch.Generator().manual_seed(0)
    return (torch.randint(module.TINY.vocab, (2, 7), generator=generator),)


def outputs(result: object) -> list[Tensor]:
    """All tensors of a result; a second stage (`refine`) is asked about the regions that the first has proposed."""
    if isinstance(result, Tensor):
        return [result]
    tensors = [part for part in result if isinstance(part, Tensor)]  # type: ignore[attr-defined]
    if "refine" in getattr(result, "_fields", ()):
        owner, place = result.real.nonzero(as_tuple=True)  # type: ignore[attr-defined]
        tensors += result.refine(result.proposals[owner, place], owner)  # type: ignore[attr-defined]
    return tensors


@pytest.mark.parametrize("name", names())
def test_forward_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    model = model_class(name)(file(name).TINY)
    out = outputs(model(*tiny_input(name)))
    assert all(torch.isfinite(x).all() for x in out)
    torch.stack([(x * torch.linspace(0.5, 1.5, x.numel()).view_as(x)).sum() for x in out]).sum().backward()
    for key, p in model.named_parameters():
        if not p.requires_grad:  # a constant that published counts include
            continue
        assert p.grad is not None, f"{key} takes no part in the output"
        assert torch.isfinite(p.grad).all(), f"{key} has a gradient that is not finite"
        assert p.grad.abs().sum() > 0 or fnmatch(key, SILENT.get(name, "")), f"{key} has no gradient at all"


@pytest.mark.parametrize("name", names())
def test_saved_and_loaded_bit_for_bit(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = model_class(name)(file(name).TINY).eval()
    model.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert type(again) is type(model)
    assert again.config == model.config
    for (key, a), (other, b) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
        assert key == other
        assert torch.equal(a, b), key
    for a, b in zip(outputs(model(*tiny_input(name))), outputs(again(*tiny_input(name))), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("name", "size"), [(n, s) for n in names() for s in getattr(file(n), "SIZES", {})])
def test_published_parameter_counts(name: str, size: str) -> None:
    module = file(name)
    with torch.device("meta"):
        model = model_class(name)(module.SIZES[size])
    assert sum(p.numel() for p in model.parameters()) == module.PARAMETERS[size]
