"""What window attention costs, and a Swin transformer with it: pairs, multiplications (MACs) and stages in closed form.

    all of an h × w map      4 h w C² + 2 (h w)² C          h w pairs for each position
    windows of M × M         4 h w C² + 2 M² h w C          M² pairs for each position: linear in the size of the map
    a Swin block             windows + 8 h w C²             an MLP of ratio 4
    patch merging            (h/2)(w/2) 4C · 2C             four neighbours, 4C -> 2C

The attention pads h and w to multiples of M, the merging to multiples of 2. MF (27.10) sets a cost for each position,
the window's, beside a total, N²: for each position it is M² against N, in total N M² against N². MF 27.5.1 prints 80
GFLOPs for Swin-T at 480 × 640; counted it is 59 (2 FLOPs a multiplication). (27.8) calls the step to 4d channels a
reduction; the product after it goes from 4d to 2d.

Systems: window-attention, swin
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


def pairs(height: int, width: int) -> int:
    """Query-key pairs when every position of a map looks at every other."""
    return (height * width) ** 2


def window_pairs(height: int, width: int, window: int) -> int:
    """The same inside windows, with the padding to whole windows."""
    return pad_size(height, window) * pad_size(width, window) * window**2


def attention_macs(height: int, width: int, channels: int) -> int:
    """4 h w C² + 2 (h w)² C: four projections, then scores and their use."""
    return 4 * height * width * channels**2 + 2 * pairs(height, width) * channels


def window_macs(height: int, width: int, channels: int, window: int) -> int:
    """4 h w C² + 2 M² h w C on the padded map."""
    places = pad_size(height, window) * pad_size(width, window)
    return 4 * places * channels**2 + 2 * window_pairs(height, width, window) * channels


def merging_weights(channels: int) -> int:
    """The matrix of a patch merging: 4C -> 2C, no bias."""
    return 4 * channels * 2 * channels


@dataclass(frozen=True)
class Stage:
    """The maps of one stage: height × width positions of this many channels, cut into windows."""

    height: int
    width: int
    channels: int
    depth: int
    window: int

    @property
    def windows(self) -> int:
        """How many, on the padded map."""
        return pad_size(self.height, self.window) * pad_size(self.width, self.window) // self.window**2

    @property
    def macs(self) -> int:
        """Of the blocks."""
        mlp = 8 * self.height * self.width * self.channels**2
        return self.depth * (window_macs(self.height, self.width, self.channels, self.window) + mlp)


def stages(height: int, width: int, channels: int, depths: Sequence[int], window: int, patch: int = 4) -> list[Stage]:
    """The map halves and its channels double from stage to stage."""
    found = []
    height, width = -(-height // patch), -(-width // patch)
    for depth in depths:
        found.append(Stage(height, width, channels, depth, window))
        height, width, channels = -(-height // 2), -(-width // 2), 2 * channels
    return found


def swin_macs(
    height: int, width: int, channels: int, depths: Sequence[int], window: int, patch: int = 4, colours: int = 3
) -> int:
    """Patch embedding, blocks and merging; without the classifier."""
    found = stages(height, width, channels, depths, window, patch)
    embedding = found[0].height * found[0].width * patch**2 * colours * channels
    merging = sum(b.height * b.width * merging_weights(a.channels) for a, b in pairwise(found))
    return embedding + merging + sum(stage.macs for stage in found)


def total(parts: Sequence[float]) -> float:
    """Of a detector: its backbone and its head."""
    return sum(parts)


def pad_size(size: int, window: int) -> int:
    """The next multiple of the window."""
    return -(-size // window) * window
