"""Expert collapse: without the balancing loss a router prefers some experts, with it all are used alike.

    L = error + α N Σ_e f_e P_e          the same mixture, trained with α = 0 and with α > 0

The experts that are chosen learn, become better, and are chosen again. Data of four domains: tokens around a centre of
their own, to be mapped by a function of their own. Measured on new tokens, over several trainings: the entropy of the
experts' use P as a share of that of even use, the share of the most used expert's tokens, the error, and which experts
each domain uses (do they specialise, as MF 40.1.1 claims?). At this size the use is uneven, not down to one expert.

Systems: load-balancing-loss
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.labs._evidence import Above
from descend.losses.balance import balance_loss, load_entropy, shares
from descend.nn.experts import Experts, MixtureOfExperts, Router, Routing
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.132",)
PRINTED = "Without the auxiliary loss the router may pick the same experts; with it use is uniform. Experts specialise."
CLAIM = "Without the load-balancing loss a router uses its experts unevenly; with it, their use is uniform."
PREDICTIONS = (
    Above(
        "more even by",
        4,
        "Entropy of the use with the loss less that without, in standard errors.",
        refuted=-4,
    ),
    Above("entropy with", 0.95, "Entropy of the use with the loss, as a share of that of even use."),
)
SCOPE = "8 experts of width 16 on four domains of tokens; at this size the use is uneven, not down to one expert."
WIDTH, HIDDEN, EXPERTS, ACTIVE, DOMAINS = 16, 16, 8, 2, 4
STEPS, BATCH, RATE, ALPHA = 60, 128, 2e-2, 0.05
BUDGET = 6.0
PRICE = 3  # trainings with and without the loss that a second of one core buys


class World:
    """Four domains, drawn once: a centre and a map for each."""

    def __init__(self, seed: int):
        self.random = torch.Generator().manual_seed(seed)
        self.centres = torch.randn(DOMAINS, WIDTH, generator=self.random)
        self.maps = torch.randn(DOMAINS, WIDTH, WIDTH, generator=self.random) / math.sqrt(WIDTH)

    def draw(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (n, d), what they should become, and their domains."""
        domain = torch.randint(DOMAINS, (n,), generator=self.random)
        x = self.centres[domain] + torch.randn(n, WIDTH, generator=self.random)
        return x, torch.einsum("nd,nde->ne", x, self.maps[domain]).tanh(), domain


def train_layer(alpha: float, seed: int) -> tuple[MixtureOfExperts, World]:
    """The same start and the same tokens, whatever α is."""
    torch.manual_seed(seed)
    world, router = World(seed), Router(WIDTH, EXPERTS, ACTIVE)
    layer = MixtureOfExperts(router, Experts(WIDTH, HIDDEN, EXPERTS, nn.SiLU()))
    seen: list[Routing] = []
    layer.router.register_forward_hook(lambda _, __, routing: seen.append(routing))

    def loss() -> Tensor:
        x, y, _ = world.draw(BATCH)
        seen.clear()
        error = (layer(x) - y).square().mean()
        return error + alpha * balance_loss(seen[0].p, seen[0].chosen)

    minimise(layer, loss, STEPS, Adam(RATE))
    return layer, world


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Entropy, largest share and error without and with the loss."""
    repeats = max(3, round(PRICE * budget))
    names = {"without": 0.0, "with": ALPHA}
    found: dict[str, list[float]] = {f"{what}_{n}": [] for what in ("entropy", "largest", "error") for n in names}
    tables: dict[str, list[list[float]]] = {}
    for repeat in range(repeats):
        for name, alpha in names.items():
            with torch.enable_grad():
                layer, world = train_layer(alpha, seed * 1000 + repeat)
            x, y, domain = world.draw(4000)
            chosen = layer.router(x).chosen
            share = shares(chosen, EXPERTS)
            found[f"entropy_{name}"].append(float(load_entropy(share)))
            found[f"largest_{name}"].append(float(share.max()))
            found[f"error_{name}"].append(float((layer(x) - y).square().mean()))
            tables[name] = [shares(chosen[domain == d], EXPERTS).tolist() for d in range(DOMAINS)]
    gain = torch.tensor(found["entropy_with"]) - torch.tensor(found["entropy_without"])
    return {
        "training": list(range(repeats)),
        **found,
        "gain": float(gain.mean()),
        "domains": tables,
        "errors": {"gain": float(gain.std()) / math.sqrt(repeats)},
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    shares = numbers["entropy_with"]
    return {"more even by": numbers["gain"] / numbers["errors"]["gain"], "entropy with": sum(shares) / len(shares)}


def figure(numbers: dict[str, Any]) -> Figure:
    """Which experts each domain uses, without the loss and with it, in the last training."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.2), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("without", "with"), strict=True):
        axes.imshow(numbers["domains"][name], cmap="Blues", vmin=0, vmax=1)
        mean = sum(numbers[f"entropy_{name}"]) / len(numbers[f"entropy_{name}"])
        axes.set_title(f"{name} the loss: entropy {mean:.2f}", fontsize=11, loc="left", fontweight="bold")
        axes.set_xlabel("expert")
        axes.set_ylabel("domain")
        axes.set_xticks(range(EXPERTS))
        axes.set_yticks(range(DOMAINS))
    return fig
