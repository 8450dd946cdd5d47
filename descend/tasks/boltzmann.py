"""Training a Boltzmann machine of bits: contrastive divergence by Gibbs sampling.

    loss        mean F(v₊) − mean F(v₋)                 its gradient is  E_data[−∂F] − E_samples[−∂F]:
                                                        ∂/∂W_ij = −p(h_j | v₊) v₊_i + p(h_j | v₋) v₋_i
    CD-K        v₋: K rounds of Gibbs sampling that begin at the data
    PCD         v₋: K more rounds of a chain that is kept; scikit-learn's BernoulliRBM is this with K = 1

    bits        1 where a number in 0..1 is above ½

    scored      pseudo-likelihood   Σ_i log p(v_i | v_−i) = Σ_i log σ(F(v with bit i turned) − F(v))
                                                        no Z; scikit-learn takes one random i times the number of bits

The uniform numbers of every round come with the batch; the chains are state of the task.

Systems: gibbs-contrastive-divergence, persistent-contrastive-divergence
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from descend.contracts import Batch, JointMove, Loss, Move, Task
from descend.sampling.gibbs import gibbs_blocks
from descend.tasks.energy import tell_apart


class TwoLayers(Protocol):
    """A machine with two layers of bits that are independent given each other."""

    def hidden_probability(self, v: Tensor) -> Tensor: ...

    def visible_probability(self, h: Tensor) -> Tensor: ...

    def turned_free_energies(self, v: Tensor) -> Tensor: ...

    def __call__(self, v: Tensor) -> Tensor: ...


def pseudo_likelihood(model: TwoLayers, v: Tensor) -> Tensor:
    """Σ_i log p(v_i | v_−i) of bits (b, n): (b)"""
    return logsigmoid(model.turned_free_energies(v) - model(v)[:, None]).sum(1)


def to_bits(x: Tensor) -> Tensor:
    """Numbers in 0..1 (b, ..) as bits (b, n): 1 above ½."""
    return (x.flatten(1) > 0.5).to(x.dtype)


class BoltzmannDivergence(Task):
    """CD-K: x (b, ..) in 0..1, taken as bits, and uniform numbers for_hidden (b, K, h), for_visible (b, K, v)."""

    model: TwoLayers

    def __init__(self, model: TwoLayers):
        super().__init__()
        assert isinstance(model, nn.Module)
        self.model = model

    def walk(self, start: Tensor, batch: Batch) -> Tensor:
        """The visible bits after K rounds."""
        rounds = zip(batch["for_hidden"].unbind(1), batch["for_visible"].unbind(1), strict=True)
        with torch.no_grad():
            return gibbs_blocks(self.model.hidden_probability, self.model.visible_probability, start, rounds)

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        def loss() -> Loss:
            v = to_bits(batch["x"])
            return tell_apart(self.model(v), self.model(self.walk(v, batch)), 0.0)

        yield Move("model", loss)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"pseudo_likelihood": pseudo_likelihood(self.model, to_bits(batch["x"]))}


class PersistentBoltzmann(BoltzmannDivergence):
    """PCD: also the chain of each example (b); no chain may come twice in a step."""

    chains: Tensor

    def __init__(self, model: TwoLayers, chains: Tensor):
        """`chains` (n, v) are the bits that they begin with."""
        super().__init__(model)
        self.register_buffer("chains", chains.clone())
        self.moved: dict[str, Tensor] = {}

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        start = self.chains[batch["chain"]]
        found: list[Tensor] = []

        def encode() -> dict[str, Tensor]:
            found[:] = found or [self.walk(start, batch)]
            energies = {"plus": self.model(to_bits(batch["x"])), "minus": self.model(found[0])}
            return {**energies, "chain": batch["chain"], "place": found[0]}

        def compare(codes: dict[str, Tensor]) -> Loss:
            self.moved = {name: codes[name].detach() for name in ("chain", "place")}
            return tell_apart(codes["plus"], codes["minus"], 0.0)

        yield JointMove("model", encode, compare)
        self.chains[self.moved["chain"]] = self.moved["place"].to(self.chains.dtype)
