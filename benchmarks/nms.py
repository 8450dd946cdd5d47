"""Non-maximum suppression of 5,000 boxes beside OpenCV's, with compiled code and without.

Three kinds of boxes: around 100 objects, as a detector gives them; all over the image, most of which stay; and a heap
at one place. One thread. The bars are times: 1.5 ms with the compiler, 15 ms without.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.turns import take_turns

COUNT, TAU, SIDE = 5000, 0.5, 640
BARS = {"": 1.5, "_rounds": 15.0}
KINDS = {"objects": "around 100 objects", "scattered": "all over the image", "heap": "at one place"}


def boxes(kind: str) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.rand(*shape, generator=random)
    if kind == "scattered":
        centre, size = draw(COUNT, 2) * SIDE, draw(COUNT, 2) * 60 + 10
    elif kind == "heap":
        centre, size = draw(COUNT, 2) * 10 + 300, draw(COUNT, 2) * 300 + 10
    else:
        which = torch.randint(0, 100, (COUNT,), generator=random)
        centre = (draw(100, 2) * SIDE)[which] + 4 * torch.randn(COUNT, 2, generator=random)
        size = (draw(100, 2) * 100 + 20)[which] * (1 + 0.1 * torch.randn(COUNT, 2, generator=random))
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1), draw(COUNT)


def ours(kind: str) -> Callable[[], object]:
    from descend.ops.nms import nms

    torch.set_num_threads(1)
    found, scores = boxes(kind)
    return lambda: nms(found, scores, TAU)


def rounds(kind: str) -> Callable[[], object]:
    from descend.ops.nms import nms, scan

    torch.set_num_threads(1)
    found, scores = boxes(kind)
    groups = torch.zeros(COUNT, dtype=torch.long)
    assert torch.equal(scan(found, scores, groups, TAU), nms(found, scores, TAU))
    return lambda: scan(found, scores, groups, TAU)


def opencv(kind: str) -> Callable[[], object]:
    import cv2

    from descend.ops.boxes import to_corner_size
    from descend.ops.nms import nms

    cv2.setNumThreads(1)
    found, scores = boxes(kind)
    theirs, values = to_corner_size(found).numpy(), scores.numpy()
    kept = cv2.dnn.NMSBoxes(theirs, values, 0.0, TAU)  # type: ignore[arg-type]
    assert abs(len(kept) - len(nms(found, scores, TAU))) <= 2  # it rounds boxes otherwise
    return lambda: cv2.dnn.NMSBoxes(theirs, values, 0.0, TAU)  # type: ignore[arg-type]


def objects() -> Callable[[], object]:
    return ours("objects")


def objects_rounds() -> Callable[[], object]:
    return rounds("objects")


def objects_opencv() -> Callable[[], object]:
    return opencv("objects")


def scattered() -> Callable[[], object]:
    return ours("scattered")


def scattered_rounds() -> Callable[[], object]:
    return rounds("scattered")


def scattered_opencv() -> Callable[[], object]:
    return opencv("scattered")


def heap() -> Callable[[], object]:
    return ours("heap")


def heap_rounds() -> Callable[[], object]:
    return rounds("heap")


def heap_opencv() -> Callable[[], object]:
    return opencv("heap")


def measure(turns: int = 9, calls: int = 15) -> list[dict[str, object]]:
    """Milliseconds of both, best call."""
    rows = []
    for kind, words in KINDS.items():
        targets = {who: f"benchmarks.nms:{kind}{who}" for who in ("", "_rounds", "_opencv")}
        best = {who: 1e3 * min(times) for who, times in take_turns(targets, turns, calls)[0].items()}
        for who, bar in BARS.items():
            form = "without a compiler" if who else "compiled"
            rows.append({
                "name": f"NMS of {COUNT:,} boxes {words}, {form}", "ours": best[who], "theirs": best["_opencv"],
                "unit": "ms", "ratio": bar / best[who], "bar": 1.0,
                "note": f"at most {bar} ms; OpenCV {best['_opencv']:.2f} ms; one thread",
            })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
