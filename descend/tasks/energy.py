"""Training an energy by samples of its own: contrastive divergence, in short chains or in chains that go on.

    loss        mean E(x₊) − mean E(x₋) + α mean(E(x₊)² + E(x₋)²)         x₊ data, x₋ samples, both constants
    CD-K        x₋: K Langevin steps that begin at the data                not the likelihood's gradient: x₋ stay near
                                                                           the data, other modes are never visited
    PCD         x₋: K more steps of a chain kept in a buffer;              the chains come to follow the model; with a
                with probability r it begins anew from noise               small probability each is started again
    NCE         data told from noise of a known density (`losses/energy.py`); the model learns its own log-normaliser

The last term, small, keeps the level of the energy from drifting, which the contrast does not see. Randomness is data:
the noise of every step (b, K, d), the places of the chains and what begins anew come with the batch. The chains are
state of the task, so that a resumed run goes on with them; every process knows all of them. `log_z` gives log Z of an
energy where it can be integrated (a grid in the plane); then negative log-likelihoods are scored.

Systems: contrastive-divergence, persistent-contrastive-divergence, noise-contrastive-estimation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from descend.contracts import Batch, JointMove, Loss, Move, Task
from descend.losses.energy import contrast, noise_contrast, noise_contrastive_loss
from descend.ops.energy.gibbs import Energy
from descend.ops.energy.score import score_of_energy
from descend.sampling.langevin import langevin

LogZ = Callable[[Energy], Tensor]


def tell_apart(e_plus: Tensor, e_minus: Tensor, size: float) -> Loss:
    """The contrast of the two energies and the price of their size, with their means."""
    terms = {"contrast": contrast(e_plus, e_minus)}
    if size:
        terms["size"] = size * (e_plus.square().mean() + e_minus.square().mean())
    return Loss(terms, {"data_energy": e_plus.mean(), "sample_energy": e_minus.mean()})


class EnergyTask(Task):
    """Scores an energy of points x (b, d): −log p(x) = E(x) + log Z."""

    def __init__(self, model: nn.Module, log_z: LogZ):
        super().__init__()
        self.model, self.log_z = model, log_z

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"nll": self.model(batch["x"]) + self.log_z(self.model)}


class ContrastiveDivergence(EnergyTask):
    """CD-K: x (b, d) and noise (b, K, d)."""

    def __init__(self, model: nn.Module, log_z: LogZ, eta: float, size: float = 0.0):
        """`eta` is the length of a step; `size` is α."""
        super().__init__(model, log_z)
        self.eta, self.size = eta, size

    def walk(self, start: Tensor, noise: Tensor) -> Tensor:
        """Where K Langevin steps lead to."""
        return langevin(score_of_energy(self.model), start.detach(), noise.unbind(1), self.eta).detach()

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        def loss() -> Loss:
            e_minus = self.model(self.walk(batch["x"], batch["noise"]))
            return tell_apart(self.model(batch["x"]), e_minus, self.size)

        yield Move("model", loss)


class PersistentDivergence(ContrastiveDivergence):
    """PCD: also the chain of each example (b), whether it begins anew (b), and where then, fresh (b, d).

    No chain may come twice in a step. A joint move, since it brings the new places of all chains to every process.
    """

    chains: Tensor

    def __init__(self, model: nn.Module, log_z: LogZ, eta: float, size: float, chains: Tensor):
        """`chains` (n, d) are where they begin."""
        super().__init__(model, log_z, eta, size)
        self.register_buffer("chains", chains.clone())
        self.moved: dict[str, Tensor] = {}  # of the step that is being taken: which chains, and where they are now

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        rows = batch["chain"]
        start = torch.where(batch["anew"][:, None], batch["fresh"], self.chains[rows])
        found: list[Tensor] = []

        def encode() -> dict[str, Tensor]:
            found[:] = found or [self.walk(start, batch["noise"])]
            energies = {"plus": self.model(batch["x"]), "minus": self.model(found[0])}
            return {**energies, "chain": rows, "place": found[0]}

        def compare(codes: dict[str, Tensor]) -> Loss:
            self.moved = {name: codes[name].detach() for name in ("chain", "place")}
            return tell_apart(codes["plus"], codes["minus"], self.size)

        yield JointMove("model", encode, compare)
        self.chains[self.moved["chain"]] = self.moved["place"].to(self.chains.dtype)


class NoiseContrastive(EnergyTask):
    """NCE: data x (b, d), and standard normal numbers (b, d) that become as much noise: mean + std z.

    The model gives −log p with its own log-normaliser. Scored with that, and with the integral, which it should equal.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, log_z: LogZ, mean: Tensor, std: Tensor):
        super().__init__(model, log_z)
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std, persistent=False)

    def logits(self, x: Tensor) -> Tensor:
        """log p_θ(x) − log p_n(x)"""
        return noise_contrast(-self.model(x), Normal(self.mean, self.std).log_prob(x).sum(-1))

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        def loss() -> Loss:
            data, noise = self.logits(batch["x"]), self.logits(self.mean + self.std * batch["noise"])
            right = ((data > 0).float().mean() + (noise <= 0).float().mean()) / 2
            return Loss({"loss": noise_contrastive_loss(data, noise)}, {"told_apart": right})

        yield Move("model", loss)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        energy = self.model(batch["x"])
        log_z = self.log_z(self.model)
        return {"nll": energy + log_z, "claimed_nll": energy, "log_z": log_z.expand(len(energy))}
