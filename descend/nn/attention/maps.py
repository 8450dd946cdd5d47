"""The attention weights of a model while it runs: every layer and head, of any model built of our attention.

    A = softmax(scale Q Kᵀ + M)          recomputed from what the layer was given; the fast core never makes A

Systems: attention-maps-analysis
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention, CausalSelfAttention
from descend.nn.attention.rotary import rotate
from descend.nn.detection.set_queries import PlacedAttention
from descend.ops.attention.dot_product import additive, causal_mask


def attention_maps(model: nn.Module, *inputs: Any) -> dict[str, Tensor]:
    """Run model(*inputs); the weights (b, h, t, s) of each attention layer, by its name in the model."""
    found: dict[str, Tensor] = {}
    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, CausalSelfAttention | Attention | PlacedAttention):
            hook = watcher(found, name)
            hooks.append(module.register_forward_pre_hook(hook, with_kwargs=True))
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        for registered in hooks:
            registered.remove()
    return found


def watcher(found: dict[str, Tensor], name: str) -> Any:
    """A hook that computes the layer's weights from its input."""

    def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        if isinstance(module, CausalSelfAttention):
            q, k, _ = module.qkv(given["x"]).unflatten(-1, (3, module.heads, -1)).unbind(-3)
            found[name] = weights(q, k, True, None, None)
        elif isinstance(module, PlacedAttention):
            q, k = (part.unflatten(-1, (module.heads, -1)) for part in (module.q(given["x"]), module.k(given["keys"])))
            found[name] = weights(q, k, False, given.get("mask"), None)
        else:
            found[name] = separate(module, given)

    return hook


def separate(module: Attention, given: dict[str, Any]) -> Tensor:
    """Of a layer with a matrix each for queries and keys."""
    x = given["x"]
    source = x if given.get("source") is None else given["source"]
    q, k = (part.unflatten(-1, (-1, module.head_size)) for part in (module.q(x), module.k(source)))
    if given.get("angles") is not None:
        q, k = rotate(q, *given["angles"]), rotate(k, *given["angles"])
    return weights(q, k, given.get("causal", False), given.get("mask"), module.scale)


def weights(q: Tensor, k: Tensor, causal: bool, mask: Tensor | None, scale: float | None) -> Tensor:
    """A (b, h, t, s) of q (b, t, h, k) and k (b, s, kv_heads, k); a key head may serve several query heads."""
    k = k.repeat_interleave(q.shape[2] // k.shape[2], dim=2)
    scores = torch.einsum("bthk,bshk->bhts", q, k) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores + (additive(mask, scores.dtype) if mask.dtype == torch.bool else mask)
    if causal:
        scores = scores + additive(causal_mask(q.shape[1], k.shape[1]), scores.dtype).to(scores.device)
    return scores.softmax(dim=-1)
