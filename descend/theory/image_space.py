"""How large a raw space is: L levels for each of c · h · w numbers make L^(c·h·w) images.

A representation f: X -> R^d, z = f(x) (DLD misprints the vector as x), is needed because this space cannot be searched.

Systems: hierarchical-representations
"""

from __future__ import annotations

import math
from typing import NamedTuple


class ImageSpace(NamedTuple):
    """L^exponent images."""

    exponent: int
    log10: float
    digits: int
    bits: int
    """Of one raw image."""


def count_images(levels: int, channels: int, height: int, width: int) -> ImageSpace:
    """The number of different images, by its logarithm: the number itself has millions of digits."""
    exponent = channels * height * width
    log10 = exponent * math.log10(levels)
    return ImageSpace(exponent, log10, math.floor(log10) + 1, math.ceil(exponent * math.log2(levels)))
