"""Magnitude pruning of a network: its linear layers and convolutions, each for itself or all together.

    layer    the share s of every matrix goes
    all      the share s of all weights goes, wherever they are: a wide layer loses more than a narrow one

Biases, norms and embeddings stay. What is pruned is a zero in an ordinary matrix: files and products are as large as
before. A file of zeros packs well; time is saved only by what knows sparse matrices. In fine-tuning the zeros stay with
`optim/kept_zeros.py`.

Systems: magnitude-pruning
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.quantized import find_matrices
from descend.ops.pruning import above, largest, largest_of_all

Scope = Literal["all", "layer"]


def choose_masks(model: nn.Module, sparsity: float, scope: Scope = "all") -> dict[str, Tensor]:
    """Which weights stay, by the name of the layer, for a target sparsity."""
    weights = find_weights(model)
    if scope == "all":
        masks = largest_of_all(list(weights.values()), sparsity)
    else:
        masks = [largest(w, sparsity) for w in weights.values()]
    return check_masks(dict(zip(weights, masks, strict=True)), f"a sparsity of {sparsity}")


def choose_above(model: nn.Module, tau: float) -> dict[str, Tensor]:
    """The same for a threshold."""
    masks = {name: above(w, tau) for name, w in find_weights(model).items()}
    return check_masks(masks, f"a threshold of {tau}")


def find_weights(model: nn.Module) -> dict[str, Tensor]:
    """The matrices that can be pruned."""
    found = find_matrices(model)
    if not found:
        raise Mistake(f"a {type(model).__name__} has no linear layer and no convolution to prune")
    return {name: layer.weight.detach() for name, layer in found.items()}


def check_masks(masks: dict[str, Tensor], what: str) -> dict[str, Tensor]:
    """Refuse to cut the network in two: a layer without any weight gives the same answer to everything."""
    for name, mask in masks.items():
        if not mask.any():
            others = "" if any(m.any() for m in masks.values()) else ", nor of any other layer"
            raise Mistake(f"{what} leaves no weight of {name}{others}; give less, or prune each layer for itself")
    return masks


@torch.no_grad()
def prune(model: nn.Module, masks: Mapping[str, Tensor]) -> float:
    """Set the weights that go to 0, in place; the share of zeros in these layers."""
    for name, mask in masks.items():
        model.get_submodule(name).get_parameter("weight").mul_(mask)
    weights = [model.get_submodule(name).get_parameter("weight") for name in masks]
    return sum(int((w == 0).sum()) for w in weights) / sum(w.numel() for w in weights)
