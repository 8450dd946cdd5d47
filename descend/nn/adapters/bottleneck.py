"""Bottleneck adapters: a small network after the layers of a frozen model.

    adapter(x) = x + W_up f(W_down x)        W_down (r, d),  W_up (d, r),  f = ReLU or GELU; no biases
    y = adapter(attention(norm(x))),  y = adapter(mlp(norm(x)))        before each sum with the residual stream
    W_up = 0 at the start: the identity

2 d r numbers for each. VOM's shapes, W_down (d, r) and W_up (r, d), are for rows multiplied from the left. The
function f stands between, so there is no matrix into which this could be merged: it costs its time for ever, and
decoding goes through torch instead of the compiled step.

Systems: bottleneck-adapters
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.activations import activation
from descend.nn.adapters.adapter import Adapter, Handle, find_places
from descend.nn.decoding.cache import Layer
from descend.nn.decoding.cached import Angles, CachedDecoder, DecodingBlock

SUBLAYERS = ("attn", "mlp")


class BottleneckAdapter(nn.Module):
    """x (.., d) -> x + W_up f(W_down x)"""

    def __init__(self, width: int, size: int, f: nn.Module):
        super().__init__()
        self.down, self.up, self.f = nn.Linear(width, size, bias=False), nn.Linear(size, width, bias=False), f
        nn.init.normal_(self.down.weight, std=width**-0.5)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.up(self.f(self.down(x)))

    def follow(self, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        """After a layer of the frozen model."""
        return cast("Tensor", self(output))


class BottleneckAdapters(Adapter):
    """A bottleneck adapter: one after each of the layers named."""

    def __init__(self, adapters: Mapping[str, BottleneckAdapter], size: int, f: str):
        super().__init__()
        self.size, self.f = size, f
        self.places, self.adapters = tuple(adapters), nn.ModuleList(adapters.values())

    @classmethod
    def make(cls, base: Any, targets: Iterable[str] = SUBLAYERS, size: int = 16, f: str = "relu") -> BottleneckAdapters:
        """After the layers that the targets name, for vectors as wide as the model."""
        places = find_places(base, targets, (nn.Module,))
        like = next(base.parameters())
        made = {place: BottleneckAdapter(base.config.width, size, activation(f)).to(like) for place in places}
        return cls(made, size, f)

    def enter(self, base: Any) -> list[Handle]:
        made = cast("Iterable[BottleneckAdapter]", self.adapters)
        pairs = zip(self.places, made, strict=True)
        return [base.get_submodule(place).register_forward_hook(adapter.follow) for place, adapter in pairs]

    def decoder(self, base: Any) -> Any:
        """The base's decoder, whose blocks pass through the adapters. Those of the mlp are hooks of a module that the
        decoder calls; attention it computes itself."""
        decoder = base.decoder()
        if not isinstance(decoder, CachedDecoder):
            return decoder  # it calls the modules, and the hooks are there
        after = self.after_attention(base, len(decoder.blocks))
        decoder.blocks = [AdaptedBlock(block, f) for block, f in zip(decoder.blocks, after, strict=True)]
        decoder.native = None
        return decoder

    def after_attention(self, base: nn.Module, depth: int) -> list[Callable[[Tensor], Tensor]]:
        """For each block what follows its attention."""
        made = dict(zip(self.places, cast("Iterable[BottleneckAdapter]", self.adapters), strict=True))
        inside = [place for place in self.places if isinstance(base.get_submodule(place), nn.Linear)]
        if inside:
            raise Mistake(
                f"an adapter after {inside[0]} cannot be decoded with; place adapters after {' or '.join(SUBLAYERS)}"
            )
        found = {
            int(number): made[place] for place in self.places if place.endswith("attn") for number in numbers(place)
        }
        return [found.get(at, same) for at in range(depth)]


class AdaptedBlock(DecodingBlock):
    """A block of a decoder with a function after its attention."""

    def __init__(self, block: DecodingBlock, after: Callable[[Tensor], Tensor]):
        self.block, self.after = block, after
        self.cached, self.turned = block.cached, block.turned

    def __call__(self, x: Tensor, layer: Layer, angles: Angles) -> Tensor:
        return self.block.wire(x, lambda n: self.after(self.block.attend(n, layer, angles)))


def numbers(place: str) -> list[str]:
    """The number of its block."""
    return [part for part in place.split(".") if part.isdigit()][:1]


def same(x: Tensor) -> Tensor:
    return x
