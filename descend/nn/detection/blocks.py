"""The blocks of backbones and necks by the name a config gives them: (inputs, outputs, depth) -> a block.

    csp       CSP with two entries around residual Darknet units (YOLOX)
    elan      every pair of 3×3 units is kept (YOLOv7)
    e-elan    two ELAN groups whose channels are shuffled and summed (YOLOv7-E6E's extension)
    gelan     a CSP chain whose steps are CSP blocks with a 3×3 unit behind (YOLOv9)

`BLOCKS` are for a backbone, `MIXERS` for a neck, whose CSP units have no shortcut.

Systems: yolox-v7-v9
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from descend.nn.detection.csp import (
    CspChain,
    CspEntryBlock,
    DarknetPair,
    DarknetResidual,
    ElanBlock,
    GroupedElanBlock,
    silu_unit,
)

Block = Callable[[int, int, int], nn.Module]


def csp_block(inputs: int, outputs: int, depth: int) -> nn.Module:
    """Residual units of half the width."""
    half = outputs // 2
    inner = nn.Sequential(*(DarknetResidual(half, half, silu_unit) for _ in range(depth)))
    return CspEntryBlock(inputs, outputs, half, inner)


def csp_mixer(inputs: int, outputs: int, depth: int) -> nn.Module:
    """The same units without shortcuts."""
    half = outputs // 2
    inner = nn.Sequential(*(DarknetPair(half, half, silu_unit) for _ in range(depth)))
    return CspEntryBlock(inputs, outputs, half, inner)


def elan(inputs: int, outputs: int, depth: int) -> nn.Module:
    """Half the width inside; two pairs at least, as the paths of an ELAN differ in length."""
    return ElanBlock(inputs, outputs, outputs // 2, depth + 1)


def e_elan(inputs: int, outputs: int, depth: int) -> nn.Module:
    """Two groups of a quarter of the width inside."""
    return GroupedElanBlock(inputs, outputs, max(outputs // 4, 1), depth + 1)


def gelan(inputs: int, outputs: int, depth: int) -> nn.Module:
    """Two steps, each a CSP block of `depth` units and a 3×3 unit."""
    half = outputs // 2
    steps = (nn.Sequential(csp_block(half, half, depth), silu_unit(half, half, 3)) for _ in range(2))
    return CspChain(inputs, outputs, nn.ModuleList(steps))


BLOCKS: dict[str, Block] = {"csp": csp_block, "elan": elan, "e-elan": e_elan, "gelan": gelan}
MIXERS: dict[str, Block] = BLOCKS | {"csp": csp_mixer}
