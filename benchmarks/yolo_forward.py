"""YOLOv8-n on one image of 320 × 320, batch norms folded, beside onnxruntime on the graph that is exported from it.

Without suppression: what a frame costs before `decode`. Ours eager, as `descend predict` runs it, and compiled.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.turns import take_turns

SIDE = 320


def make() -> tuple[Any, Tensor]:
    from descend.models.yolo_v8 import SIZES, YoloV8
    from descend.nn.convolution.folding import fold

    torch.manual_seed(0)
    model = fold(YoloV8(SIZES["yolo-v8-n"])).to(memory_format=torch.channels_last)
    return model, torch.rand(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))


def ours() -> Callable[[], object]:
    model, x = make()

    @torch.inference_mode()
    def call() -> object:
        return model(x)

    return call


def ours_compiled() -> Callable[[], object]:
    import torch._inductor.config as inductor

    inductor.freezing = True
    model, x = make()
    compiled = torch.compile(model)

    @torch.no_grad()
    def call() -> object:
        return compiled(x)

    return call


def theirs() -> Callable[[], object]:
    import onnxruntime

    model, x = make()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "yolo.onnx"

        class Tensors(torch.nn.Module):
            """Boxes and class logits, without the constants."""

            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
                found = self.model(x)
                return found.boxes, found.logits

        torch.onnx.export(Tensors(), (x,), path, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(str(path), options)
    given = {session.get_inputs()[0].name: x.numpy()}
    boxes = torch.from_numpy(session.run(None, given)[0])
    with torch.inference_mode():
        assert torch.allclose(boxes, model(x).boxes, atol=1e-2), "not the same network"
    return lambda: session.run(None, given)


def measure(rounds: int = 8, calls: int = 10) -> list[dict[str, object]]:
    """Images a second."""
    names = ("ours", "ours_compiled", "theirs")
    times, _ = take_turns({name: f"benchmarks.yolo_forward:{name}" for name in names}, rounds, calls)
    best = {name: min(values) for name, values in times.items()}
    return [
        {
            "name": f"YOLOv8-n forward, {SIDE} × {SIDE}, batch 1, {how}",
            "ours": 1 / best[name],
            "theirs": 1 / best["theirs"],
            "unit": "images/s",
            "ratio": best["theirs"] / best[name],
            "bar": 1.0,
            "note": "onnxruntime on the same graph",
        }
        for name, how in (("ours", "eager"), ("ours_compiled", "compiled"))
    ]
