"""When a loss or a gradient is not finite: which module was the first to produce it, and on which examples."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor, nn

from descend.contracts import Batch, JointMove, Move
from descend.optim.shards import local


class NotFinite(Exception):
    """A loss, gradient or weight that is NaN or infinite, raised before it could spoil anything that is kept."""

    def __init__(self, what: str, where: str, batches: list[Batch]):
        ids = example_ids(batches)
        shown = ", ".join(map(str, ids[:8])) + (f", … ({len(ids)} in all)" if len(ids) > 8 else "")
        super().__init__(f"{what}; {where}" + (f"; examples of the batch: {shown}" if ids else ""))


def locate(task: nn.Module, move: Move | JointMove) -> str:
    """Evaluate the loss again and name the first module whose output is not finite."""
    culprit: list[str] = []

    def hook(name: str) -> Callable[[nn.Module, object, object], None]:
        def look(module: nn.Module, inputs: object, output: object) -> None:
            if not culprit and isinstance(output, Tensor) and not torch.isfinite(output).all():
                spoilt = [n for n, p in module.named_parameters() if not torch.isfinite(p).all()]
                culprit.append(
                    f"the weights of module {name!r} are not finite ({spoilt[0]})"
                    if spoilt
                    else f"the first output that is not finite is that of module {name!r} ({type(module).__name__})"
                )

        return look

    handles = [m.register_forward_hook(hook(name)) for name, m in task.named_modules() if name]
    try:
        with torch.no_grad():
            move.value()
    finally:
        for handle in handles:
            handle.remove()
    return culprit[0] if culprit else "every module's output is finite, so the loss itself overflows"


def locate_gradient(task: nn.Module, player: str) -> str:
    """Name the module nearest to the loss whose parameters have a gradient that is not finite."""
    named = getattr(task, player).named_parameters(prefix=player)
    found = {name: p.grad for name, p in named if p.grad is not None}
    spoilt = [name for name, g in found.items() if not torch.isfinite(g).all()]
    if not spoilt:
        return "every entry of it is finite, but their squares overflow"
    name, _, parameter = spoilt[-1].rpartition(".")
    kind, share = type(task.get_submodule(name)).__name__, f"{len(spoilt)} of {len(found)} tensors"
    return f"nearest to the loss it is that of module {name!r} ({kind}, {parameter}; {share})"


def find_spoilt(tensors: dict[str, Tensor]) -> str:
    """The name of a tensor with an infinite or NaN entry (in this process's shard); empty where there is none."""
    here = {name: local(x) for name, x in tensors.items()}
    kept = {name: x.detach() for name, x in here.items() if x.is_floating_point() and x.numel()}
    norms = torch._foreach_norm(list(kept.values())) if kept else ()  # one pass; squares may overflow, so look again
    doubtful = [name for name, norm in zip(kept, norms, strict=True) if not isfinite(float(norm))]
    return next((name for name in doubtful if not torch.isfinite(kept[name]).all()), "")


def example_ids(batches: list[Batch]) -> list[int]:
    """The ids of the examples in these batches, when the stream gives them."""
    return [int(i) for batch in batches if "ids" in batch for i in batch["ids"].flatten().tolist()]
