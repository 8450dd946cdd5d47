"""A map of what the network makes of its inputs: the vectors before the head, brought to two dimensions.

PCA     the two directions of largest variance; distances are kept as far as two dimensions can
t-SNE   neighbours stay neighbours; distances between far groups mean nothing
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.layers import evaluation_mode

STEPS = 1000  # of the descent by which t-SNE places the points


def find_head(model: nn.Module) -> str:
    """The name of the layer that makes the logits: `head` where it is linear, else the last linear layer."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise Mistake(f"{type(model).__name__} has no linear layer, so it has no head")
    return "head" if "head" in linear else linear[-1]


def representations(model: nn.Module, x: Tensor, batch: int = 256) -> Tensor:
    """What goes into the head, for inputs x: (n, d); the same as `features(x)` in our own models."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0].detach().flatten(1))

    hook = model.get_submodule(find_head(model)).register_forward_pre_hook(keep)
    try:
        with evaluation_mode(model), torch.no_grad():
            for part in x.split(batch):
                model(part)
    finally:
        hook.remove()
    return torch.cat(seen)


def project(vectors: Tensor, by: Literal["pca", "tsne"] = "pca", seed: int = 0) -> Tensor:
    """Vectors (n, d) as points (n, 2)."""
    if len(vectors) < 3:
        raise Mistake(f"{len(vectors)} vectors are too few for a map; give at least 3")
    values = vectors.detach().double().nan_to_num().cpu().numpy()
    if not (values != values[0]).any():  # one point: scikit-learn divides by 0, and its t-SNE crashes
        return torch.zeros(len(values), 2)
    if by == "pca":
        from sklearn.decomposition import PCA  # here, since scikit-learn takes a second to import

        return torch.from_numpy(PCA(n_components=2, random_state=seed).fit_transform(values))
    from sklearn.manifold import TSNE

    near = min(30, (len(values) - 1) / 3)
    return torch.from_numpy(TSNE(perplexity=near, max_iter=STEPS, random_state=seed).fit_transform(values))
