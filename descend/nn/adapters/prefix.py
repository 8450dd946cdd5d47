"""Prefix tuning: trained keys and values in front of the text, in every layer of a frozen model.

    K_l = [P_l^K; W^K x],  V_l = [P_l^V; W^V x]        P_l (m, 2, d_kv) trained: 2 m d_kv numbers for each layer l

The deep form is a fill-in: VOM only names it, MF prints neither form. The released one draws P from a small network of
m vectors while it is trained and keeps P alone; here P itself is trained. Where keys are turned by their positions
(RoPE), P is what stands before the turn, as if virtual tokens 0 .. m − 1 had been read; the text begins at m.

The model runs over m placeholders and the text; after each key and value map the rows of the placeholders are replaced
by P. What becomes of the placeholders themselves nobody reads. When writing, P lies in the cache, and a step costs what
m more tokens of text would.

Systems: prefix-tuning
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.adapters.adapter import Handle, VirtualAdapter
from descend.nn.adapters.virtual import VirtualDecoder, put_in_front
from descend.nn.attention.multi_head import Attention, CausalSelfAttention
from descend.nn.attention.rotary import rotate
from descend.nn.decoding.cache import Cache
from descend.nn.decoding.cached import PIECE, CachedDecoder


class PrefixVectors(VirtualAdapter):
    """A deep prefix: p (m, depth, 2, d_kv), a key and a value of every virtual token for each layer."""

    def __init__(self, p: Tensor):
        super().__init__()
        self.p, self.virtual = nn.Parameter(p), len(p)
        if not 0 < len(p) < PIECE:
            raise Mistake(f"a prefix of {len(p)} virtual tokens: give 1 to {PIECE - 1}")

    @classmethod
    def read(cls, base: Any, tokens: Tensor) -> PrefixVectors:
        """The keys and values that the frozen model has for these tokens (m), to begin with."""
        layers, seen = find_attention(base), {}

        def keep(layer: int, part: int, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen[layer, part] = output[0].detach()

        handles = [
            linear.register_forward_hook(partial(keep, layer, part))
            for layer, attn in enumerate(layers)
            for part, linear in enumerate(key_value_maps(attn))
        ]
        try:
            with torch.no_grad():
                base(tokens[None])
        finally:
            for handle in handles:
                handle.remove()
        parts = [torch.stack(split_values(attn, seen, at)) for at, attn in enumerate(layers)]
        return cls(torch.stack(parts).permute(2, 0, 1, 3).clone())

    def ids(self, vocab: int) -> Tensor:
        return torch.zeros(self.virtual, dtype=torch.long)

    def enter(self, base: Any) -> list[Handle]:
        layers = find_attention(base)
        if len(layers) != self.p.shape[1]:
            raise Mistake(
                f"a prefix for {self.p.shape[1]} layers, but {type(base).__name__} has {len(layers)} of attention"
            )
        found: list[Handle] = []
        for at, attn in enumerate(layers):
            if isinstance(attn, CausalSelfAttention):
                found.append(attn.qkv.register_forward_hook(partial(self.put_both, at)))
            else:
                found.append(attn.k.register_forward_hook(partial(self.put, at, 0)))
                found.append(attn.v.register_forward_hook(partial(self.put, at, 1)))
        return found

    def put(self, layer: int, part: int, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """P in place of the first m rows."""
        own = self.p[:, layer, part].to(output).expand(len(output), -1, -1)
        return torch.cat([own, output[:, self.virtual :]], dim=1)

    def put_both(self, layer: int, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """The same where queries, keys and values come from one matrix."""
        width, m = output.shape[-1] // 3, self.virtual
        own = self.p[:, layer].flatten(1).to(output).expand(len(output), -1, -1)
        first = torch.cat([output[:, :m, :width], own], dim=-1)
        return torch.cat([first, output[:, m:]], dim=1)

    def decoder(self, base: Any) -> Any:
        inner = base.decoder()
        if not isinstance(inner, CachedDecoder) or inner.blocks[0].cached[0] != 2:
            raise Mistake(
                f"a {type(base).__name__} keeps no keys and values of its own, so it cannot write behind a prefix"
            )
        return PrefixDecoder(inner, self.ids(base.config.vocab).to(self.p.device), self.p.detach())


class PrefixDecoder(VirtualDecoder):
    """A decoder whose cache begins with P."""

    def __init__(self, inner: CachedDecoder, ids: Tensor, p: Tensor):
        super().__init__(inner, ids)
        self.p = p

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts; of different lengths each by itself."""
        if not pad.any():
            return self.start_even(tokens, length)
        inner, m = self.inner, len(self.ids)
        kv, logits = inner.reserve(len(tokens), length + m), []
        for row, skip in enumerate(pad.tolist()):
            logits.append(self.start_even(tokens[row : row + 1, skip:], length - skip))
            alone: Cache = inner.cache
            if alone.gone or skip + alone.used > kv.shape[4]:
                raise Mistake(
                    "prompts of different lengths do not fit into a window behind a prefix: give them one by one"
                )
            kv[:, :, row : row + 1, :, skip : skip + alone.used] = alone.kv[:, :, :, :, : alone.used]
        inner.cache = Cache(kv, pad, inner.window)
        inner.cache.used = tokens.shape[1] + m
        return torch.cat(logits)

    def start_even(self, tokens: Tensor, length: int) -> Tensor:
        """Prompts of one length."""
        inner, m = self.inner, len(self.ids)
        kv = inner.reserve(len(tokens), length + m)
        pieces = inner.begin(put_in_front(tokens, tokens.new_zeros(len(tokens)), self.ids), kv)
        first, angles = pieces[0]
        if first.shape[1] < m:
            raise Mistake(f"a prefix of {m} virtual tokens is longer than the model's window of {first.shape[1]}")
        keys, values = self.p.to(kv).unflatten(-1, (kv.shape[3], -1)).unbind(2)  # (m, depth, h, k)
        if angles is not None:
            keys = rotate(keys.transpose(0, 1), *(part[:m] for part in angles)).transpose(0, 1)
            angles = (angles[0][m:], angles[1][m:])
        kv[:, 0, :, :, :m] = keys.permute(1, 2, 0, 3)[:, None]
        kv[:, 1, :, :, :m] = values.permute(1, 2, 0, 3)[:, None]
        inner.cache.used = m
        rest = [*([(first[:, m:], angles)] if first.shape[1] > m else []), *pieces[1:]]
        for piece in rest[:-1]:
            inner.read(*piece)
        logits: Tensor = inner.read(*rest[-1])
        return logits


def find_attention(base: nn.Module) -> list[CausalSelfAttention | Attention]:
    """The attention layers, in order."""
    found = [module for module in base.modules() if isinstance(module, CausalSelfAttention | Attention)]
    if not found:
        raise Mistake(f"{type(base).__name__} has no attention layers with keys and values of their own for a prefix")
    return found


def key_value_maps(attn: CausalSelfAttention | Attention) -> list[nn.Linear]:
    """Which maps make keys and values."""
    return [attn.qkv] if isinstance(attn, CausalSelfAttention) else [attn.k, attn.v]


def split_values(attn: CausalSelfAttention | Attention, seen: dict[tuple[int, int], Tensor], at: int) -> list[Tensor]:
    """Keys and values (m, d_kv) of a layer."""
    if isinstance(attn, CausalSelfAttention):
        return list(seen[at, 0].chunk(3, dim=-1)[1:])
    return [seen[at, 0], seen[at, 1]]
