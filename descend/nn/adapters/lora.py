"""LoRA: a frozen matrix and an update of low rank beside it.

    h = W x + (α/r) B A x        W (out, in) frozen,   A (r, in),  B (out, r) trained
    A ~ N(0, 1/r),  B = 0        so that training begins at the frozen model: ΔW = 0, ∂L/∂A = 0, ∂L/∂B ≠ 0
    W' = W + (α/r) B A           merged: the same function, and no cost; W = W' − (α/r) B A takes it out again
    r (in + out)                 trained numbers instead of in · out

Erratum: VOM prints the merged matrix as W + B A. With the scaled forward pass that is another function unless α = r.
MF writes W + A Bᵀ with A (out, r) and B (in, r): its A is this B, its Bᵀ this A, and it has neither α nor a zero.
The scale is one number here, so that α/√r (rank-stabilised LoRA) is the same module. Dropout acts on what the
update reads.

Systems: lora
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.adapters.adapter import Adapter, Handle, find_places, share


class LowRankUpdate(nn.Module):
    """x (.., in) -> scale · B A x (.., out)"""

    def __init__(self, inputs: int, outputs: int, rank: int, scale: float, dropout: float = 0.0):
        super().__init__()
        if rank > min(inputs, outputs):
            raise Mistake(f"rank {rank}, but a matrix of {outputs} × {inputs} has at most {min(inputs, outputs)}")
        self.a = nn.Parameter(torch.randn(rank, inputs) / rank**0.5)
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale, self.dropout = scale, dropout

    @property
    def rank(self) -> int:
        return len(self.a)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.read(x), self.scale * self.b)

    def read(self, x: Tensor) -> Tensor:
        """A x"""
        return F.linear(F.dropout(x, self.dropout, self.training), self.a)

    def delta(self) -> Tensor:
        """ΔW (out, in)"""
        return self.scale * self.b @ self.a

    def merge(self, w: Tensor) -> Tensor:
        """W + ΔW"""
        return w + self.delta().to(w)

    def unmerge(self, w: Tensor) -> Tensor:
        """W of a merged matrix, to rounding."""
        return w - self.delta().to(w)

    def add(self, linear: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """After the frozen map: W x + scale · B (A x), in one kernel that also adds."""
        z = self.read(inputs[0])
        if z.dtype != output.dtype or output.device.type != "cpu":
            return output + F.linear(z, self.scale * self.b).to(output.dtype)
        y = torch.addmm(output.flatten(0, -2), z.flatten(0, -2), self.b.t(), alpha=self.scale)
        return y.view_as(output)


class LowRankUpdates(Adapter):
    """LoRA: an update of its own for each of the matrices named."""

    def __init__(self, updates: Mapping[str, LowRankUpdate]):
        super().__init__()
        self.places, self.updates = tuple(updates), nn.ModuleList(updates.values())
        self.written: list[tuple[Any, list[Tensor], Any]] = []  # a base, the numbers then, and both merged

    @classmethod
    def make(
        cls, base: nn.Module, targets: Iterable[str] = (), rank: int = 8, scale: float = 1.0, dropout: float = 0.0
    ) -> LowRankUpdates:
        """For the linear maps that the targets name; none: those of the attention layers."""
        places = find_places(base, targets, (nn.Linear,)) or find_projections(base)
        made = {}
        for place in places:
            w = cast("nn.Linear", base.get_submodule(place)).weight
            made[place] = LowRankUpdate(w.shape[1], w.shape[0], rank, scale, dropout).to(w)
        return cls(made)

    def items(self) -> Iterator[tuple[str, LowRankUpdate]]:
        """The name of each matrix and its update."""
        return zip(self.places, cast("Iterable[LowRankUpdate]", self.updates), strict=True)

    def enter(self, base: Any) -> list[Handle]:
        return [base.get_submodule(place).register_forward_hook(update.add) for place, update in self.items()]

    @torch.no_grad()
    def merged(self, base: Any) -> Any:
        """A copy that has its own matrices where they are updated, and shares all other tensors with the base."""
        copied = share(base)
        for place, update in self.items():
            old = base.get_submodule(place)
            new = nn.Linear(old.in_features, old.out_features, bias=False, device="meta")
            new.weight = nn.Parameter(update.merge(old.weight), requires_grad=False)
            new.bias = old.bias
            copied.set_submodule(place, new)
        return copied

    def decoder(self, base: Any) -> Any:
        """Of the merged model: it writes as fast as the base. The merge is done again when the numbers have changed."""
        now = [p.detach() for p in self.parameters()]
        if not any(kept is base and same(then, now) for kept, then, _ in self.written):
            self.written = [(base, [p.clone() for p in now], self.merged(base))]
        return self.written[0][2].decoder()


def same(then: list[Tensor], now: list[Tensor]) -> bool:
    """Whether no bit has changed."""
    return all(
        a.device == b.device and a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(then, now, strict=True)
    )


def find_projections(base: nn.Module) -> list[str]:
    """The linear maps inside the attention layers."""
    names = [name for name, module in base.named_modules() if isinstance(module, nn.Linear)]
    found = [name for name in names if {"attn", "attention", "self_attn", "attend"} & set(name.split(".")[:-1])]
    if not found:
        raise Mistake(
            f"{type(base).__name__} has no attention layers; name the maps to adapt, such as {', '.join(names[:3])}"
        )
    return found
