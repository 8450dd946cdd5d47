"""Fine-tuning starts here: a new model takes over the tensors that it shares with a pre-trained one."""

from __future__ import annotations

import torch
from torch import nn


def take_over(model: nn.Module, source: nn.Module, whole: tuple[str, ...]) -> list[str]:
    """Copy every tensor of the same name and shape; returns the names that keep their new values (a new head).

    `whole` names parts that must be taken over entirely, such as ("embed", "encoder").
    """
    state, given = model.state_dict(), source.state_dict()
    new = [name for name, tensor in state.items() if name not in given or given[name].shape != tensor.shape]
    for name in new:
        if name.partition(".")[0] in whole:
            raise ValueError(f"{name} of {type(source).__name__} does not fit; use the same family and sizes")
    with torch.no_grad():
        for name in state.keys() - set(new):
            state[name].copy_(given[name])
    return new
