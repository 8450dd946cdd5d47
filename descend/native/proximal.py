"""PPO's terms for two small tanh networks on a CPU: compiled code (proximal.cpp) for `descend.tasks.proximal`."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL, Structure, byref, c_float, c_int64, c_void_p
from typing import NamedTuple

import torch
from torch import Tensor

from descend.native.build import library

DEEP = 8
PADDED = 16
MOST = 2**23  # products of a hidden layer beyond which torch's, which share threads, are as fast

Layers = Sequence[tuple[Tensor, Tensor]]
"""W (out, in) and b (out) of each layer of a tanh network, the linear head last."""


class TowerLayers(NamedTuple):
    """An actor and a critic of their own; log σ where actions are vectors."""

    actor: Layers
    critic: Layers
    log_sigma: Tensor | None = None

    def parameters(self) -> list[Tensor]:
        """W and b in turn, of the actor and the critic, then log σ."""
        found = [p for layer in (*self.actor, *self.critic) for p in layer]
        return found if self.log_sigma is None else [*found, self.log_sigma]


class _Tower(Structure):
    _fields_ = [
        ("levels", c_int64),
        ("size", c_int64 * (DEEP + 1)),
        *((name, c_void_p * DEEP) for name in ("w", "b", "dw", "db")),
    ]


class _Steps(Structure):
    _fields_ = [
        ("n", c_int64),
        *((name, c_void_p) for name in ("x", "action", "log_sigma", "old", "advantage", "target")),
        *((name, c_float) for name in ("least", "most", "eps")),
        *((name, c_void_p) for name in ("memory", "own")),
    ]


def usable(towers: TowerLayers, rows: int) -> bool:
    """Whether there is compiled code for such networks, and it is worth while for so many rows at once."""
    parameters = towers.parameters()
    widest = max(max(p.shape) for p in parameters)
    small = rows * widest**2 <= MOST and all(1 <= len(layers) <= DEEP for layers in towers[:2])
    kinds = all(p.dtype == torch.float32 and p.device.type == "cpu" and p.is_contiguous() for p in parameters)
    return small and kinds and rows > 0 and library() is not None


class Networks:
    """Two towers as the compiled code sees them. Their parameters may change in place, and not be replaced."""

    def __init__(self, towers: TowerLayers):
        self.parameters, self.log_sigma = towers.parameters(), towers.log_sigma
        self.actor, self.critic = point(towers.actor), point(towers.critic)
        self.middle, self.end = 2 * len(towers.actor), 2 * (len(towers.actor) + len(towers.critic))
        self.actions = towers.actor[-1][1].shape[0]
        self.kept = sum(-(-b.shape[0] // PADDED) * PADDED for _, b in (*towers.actor, *towers.critic))

    def aim(self, grads: Sequence[Tensor]) -> None:
        """Where the gradients of the parameters go, in their order."""
        for tower, own in ((self.actor, grads[: self.middle]), (self.critic, grads[self.middle : self.end])):
            for k in range(len(own) // 2):
                tower.dw[k], tower.db[k] = own[2 * k].data_ptr(), own[2 * k + 1].data_ptr()


class Steps:
    """Some steps that the networks judge: tensors that the compiled code reads, and what it keeps."""

    def __init__(self, networks: Networks, x: Tensor, action: Tensor, old: Tensor, advantage: Tensor, target: Tensor):
        """`x` (n, o), `action` (n) or (n, actions); the others (n)."""
        self.networks, n = networks, x.shape[0]
        self.inputs = [t.contiguous() for t in (x, action, old, advantage, target)]
        kinds = (torch.float32, torch.long if networks.log_sigma is None else torch.float32, *[torch.float32] * 3)
        if any(t.dtype != kind for t, kind in zip(self.inputs, kinds, strict=True)):
            raise TypeError(f"the steps are of {[str(t.dtype) for t in self.inputs]}")
        self.memory, self.own = x.new_empty(n * networks.kept), x.new_empty(n * (3 + networks.actions))

    def forward(self, eps: float) -> Tensor:
        """Policy, value and entropy term; approximate KL, clipped share and explained variance (6)."""
        found, networks = torch.empty(6), self.networks
        x, action, *others = (t.data_ptr() for t in self.inputs)
        sigma = None if networks.log_sigma is None else networks.log_sigma.data_ptr()
        kept = self.memory.data_ptr(), self.own.data_ptr()
        self.given = _Steps(self.inputs[0].shape[0], x, action, sigma, *others, 1 - eps, 1 + eps, eps, *kept)
        towers = byref(networks.actor), byref(networks.critic)
        _library().proximal_forward(*towers, byref(self.given), c_void_p(found.data_ptr()))
        return found

    def backward(self, grads: Sequence[float]) -> list[Tensor]:
        """The gradients of the parameters in their order, from those of the three terms."""
        networks = self.networks
        found = [torch.empty_like(p) for p in networks.parameters]
        networks.aim(found)
        sigma = None if networks.log_sigma is None else found[-1].data_ptr()
        towers = byref(networks.actor), byref(networks.critic)
        _library().proximal_backward(*towers, byref(self.given), (c_float * 3)(*grads), c_void_p(sigma))
        return found


def point(layers: Layers) -> _Tower:
    """A network as the compiled code sees it."""
    found = _Tower(len(layers), (layers[0][0].shape[1], *(b.shape[0] for _, b in layers)))
    for k, (w, b) in enumerate(layers):
        found.w[k], found.b[k] = w.data_ptr(), b.data_ptr()
    return found


def _library() -> CDLL:
    found = library()
    assert found is not None
    return found
