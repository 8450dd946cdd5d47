"""When the loss is not finite: which module was the first to produce it, on which examples, and where to go back to."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.contracts import Batch, JointMove, Move


class NotFinite(Exception):
    """A loss that is NaN or infinite, raised before the step that would have spoilt the weights."""

    def __init__(self, player: str, loss: float, where: str, ids: list[int]):
        shown = ", ".join(map(str, ids[:8])) + (f", … ({len(ids)} in all)" if len(ids) > 8 else "")
        super().__init__(
            f"the loss of {player!r} is {loss}; {where}" + (f"; examples of the batch: {shown}" if ids else "")
        )


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


def example_ids(batches: list[Batch]) -> list[int]:
    """The ids of the examples in these batches, when the stream gives them."""
    return [int(i) for batch in batches if "ids" in batch for i in batch["ids"].flatten().tolist()]
