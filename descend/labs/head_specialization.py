"""Several relations at once need several heads: one head blends what it finds, three keep it apart.

    text       32 entities in 3 roles (agent, object, place) among fillers:  x_j = e[entity_j] + r[role_j]
    question   at the verb: who, what and where? three answers from one attention output

A head returns Σ_j a_j W x_j: with weight on three positions that is a sum of three entities and three roles, and only
the sizes of the weights can still tell which entity had which role. (That is enough for a few entities: with 8 of them
one head is right at 94%, so "one head cannot" would be too strong a claim.) Three heads of a third of the width each
look at one role. Measured for 1 and 3 heads of equal total width: accuracy, and each head's weight on each role.

Systems: attention-head-and-layer-probes
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.nn.attention.maps import attention_maps
from descend.nn.attention.multi_head import Attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.28",)
PRINTED = "Heads may specialise (who, what, where); one head yields one distribution per query and blends roles."
CLAIM = (
    "On a task with three relations at once, three heads beat one head of the same total width, and each of the three"
    " comes to look at one relation."
)
PREDICTIONS = (
    Above("three heads", 0.9, "Accuracy of three heads."),
    Above("lead over one", 0.1, "Their accuracy less that of one head of the same width."),
    Above("weight on own role", 0.5, "The least weight of a head on the role that is given to it."),
)
SCOPE = "32 entities in three roles, heads of width 48 in all, one layer."
RETUNED = (
    'With 8 entities one head is right at 94%, so that "one head cannot" would be too strong; the lab has 32 since.'
)
ROLES = ("agent", "object", "place")
ENTITIES, LENGTH, WIDTH, BATCH, RATE = 32, 10, 48, 64, 1e-2
BUDGET = 4.0
PRICE = 140  # steps of both models that a second of one core buys


class Reader(nn.Module):
    """entities and roles (b, t) -> logits (b, 3, entities) of who, what and where, asked at the last position."""

    def __init__(self, heads: int):
        super().__init__()
        self.entity = nn.Embedding(ENTITIES, WIDTH)
        self.role = nn.Embedding(len(ROLES) + 2, WIDTH)  # and: filler, verb
        self.attn = Attention(WIDTH, heads)
        self.out = nn.Linear(WIDTH, len(ROLES) * ENTITIES)

    def forward(self, entities: Tensor, roles: Tensor) -> Tensor:
        found: Tensor = self.out(self.attn(self.entity(entities) + self.role(roles))[:, -1])
        return found.unflatten(-1, (len(ROLES), ENTITIES))


def texts(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Entities (n, t), roles (n, t) and where each role stands (n, 3). Role 3 is a filler, 4 the verb, at the end."""
    entities = torch.randint(ENTITIES, (n, LENGTH), generator=random)
    places = torch.rand(n, LENGTH - 1, generator=random).argsort(dim=1)[:, : len(ROLES)]
    roles = torch.full((n, LENGTH), len(ROLES)).scatter(1, places, torch.arange(len(ROLES)).expand(n, -1))
    roles[:, -1] = len(ROLES) + 1
    return entities, roles, places


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy with 1 and 3 heads, and the weight of each head on each role."""
    steps = max(10, round(PRICE * budget))
    entities, roles, places = texts(2000, torch.Generator().manual_seed(seed + 10_000))
    y = entities.gather(1, places)
    accuracy, masses = [], {}
    for heads in (1, 3):
        torch.manual_seed(seed)
        random = torch.Generator().manual_seed(seed)
        model = Reader(heads)

        def loss(model: Reader = model, random: torch.Generator = random) -> Tensor:
            entities, roles, places = texts(BATCH, random)
            return cross_entropy(model(entities, roles), entities.gather(1, places)).mean()

        train(model, loss, steps, RATE)
        with torch.no_grad():
            accuracy.append(float((model(entities, roles).argmax(-1) == y).double().mean()))
        a = attention_maps(model, entities, roles)["attn"][:, :, -1]  # (n, heads, t)
        masses[str(heads)] = a.gather(2, places[:, None].expand(-1, heads, -1)).mean(dim=0).tolist()
    return {"heads": [1, 3], "accuracy": accuracy, "weights": masses, "steps": steps, "chance": 1 / ENTITIES}


def match_roles(weights: list[list[float]]) -> float:
    """The least weight on the diagonal when the heads are put into the order of the roles: 1 for a permutation."""
    orders = permutations(range(len(weights)))
    return max(min(weights[head][role] for role, head in enumerate(order)) for order in orders)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    one, three = numbers["accuracy"]
    return {
        "three heads": three,
        "lead over one": three - one,
        "weight on own role": match_roles(numbers["weights"]["3"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 150 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The weights of each head on each role, for both models."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, (heads, weights), right in zip(
        fig.subplots(1, 2, width_ratios=(1, 1)), numbers["weights"].items(), numbers["accuracy"], strict=True
    ):
        axes.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                axes.text(j, i, f"{weight:.2f}", ha="center", va="center", color="w" if weight > 0.5 else "k")
        axes.set_xticks(range(len(ROLES)), ROLES)
        axes.set_yticks(range(len(weights)), [f"head {i + 1}" for i in range(len(weights))])
        title = f"{heads} head{'s' * (len(weights) > 1)}: {100 * right:.0f}% right"
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    return fig
