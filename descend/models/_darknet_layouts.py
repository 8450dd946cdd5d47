"""The published networks as Darknet's sections: YOLOv2, v3, v4, and the tiny forms of v3 and v4, at any width.

`to_darknet` writes a `YoloV3` or `YoloV4` as the network of a .cfg file; `fill_from_darknet` takes the numbers of such
a network back: the convolutions of a .weights file stand in the order in which `list_units` names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import nn

from descend.errors import Mistake
from descend.models.darknet import Darknet, DarknetConfig
from descend.models.yolo_v3 import YoloV3
from descend.models.yolo_v4 import POOLS, YoloV4
from descend.nn.convolution.unit import ConvUnit
from descend.weights.darknet import Section, format_cfg


class Writer:
    """Sections one by one; `at` is the number of the last layer."""

    def __init__(self, side: int, channels: int):
        self.sections = [section("net", {"height": side, "width": side, "channels": channels})]

    @property
    def at(self) -> int:
        return len(self.sections) - 2

    def add(self, kind: str, options: Mapping[str, Any]) -> int:
        self.sections.append(section(kind, options))
        return self.at

    def unit(self, filters: int, size: int = 1, stride: int = 1, activation: str = "leaky") -> int:
        numbers = {"batch_normalize": 1, "filters": filters, "size": size, "stride": stride, "pad": 1}
        return self.add("convolutional", {**numbers, "activation": activation})

    def head(self, filters: int) -> int:
        return self.add("convolutional", {"filters": filters, "size": 1, "stride": 1, "pad": 1, "activation": "linear"})

    def route(self, *layers: int) -> int:
        return self.add("route", {"layers": ",".join(map(str, layers))})

    def alternate(self, width: int, count: int = 5) -> int:
        """1×1 units of w/2 and 3×3 units of w in turn."""
        for i in range(count):
            self.unit(*((width // 2, 1) if i % 2 == 0 else (width, 3)))
        return self.at

    def yolo(self, level: int, anchors: Sequence[float], classes: int, levels: int = 3, stretch: float = 1.0) -> int:
        each = len(anchors) // 2 // levels
        return self.add(
            "yolo",
            {
                "mask": ",".join(str(level * each + k) for k in range(each)),
                "anchors": ",".join(f"{a:.10g}" for a in anchors),
                "classes": classes,
                "num": each * levels,
                "scale_x_y": stretch,
            },
        )


def section(kind: str, options: Mapping[str, Any]) -> Section:
    return Section(kind, {name: str(value) for name, value in options.items()})


def describe_yolo_v3(model: YoloV3, side: int) -> list[Section]:
    """The sections of YOLOv3; its coarsest level comes first."""
    c, out = model.config, Writer(side, model.config.channels)
    classes, maps = len(c.labels), []
    outputs = len(c.anchors) // 6 * (5 + classes)
    out.unit(c.stem, 3)
    for width, depth in zip(c.widths, c.depths, strict=True):
        out.unit(width, 3, 2)
        for _ in range(depth):
            out.unit(width // 2)
            out.unit(width, 3)
            out.add("shortcut", {"from": -3, "activation": "linear"})
        maps.append(out.at)
    for level in (2, 1, 0):
        width = c.widths[2 + level]
        last = out.alternate(width)
        out.unit(width, 3)
        out.head(outputs)
        out.yolo(level, c.anchors, classes)
        if level:
            out.route(last)
            out.unit(width // 4)
            out.add("upsample", {"stride": 2})
            out.route(out.at, maps[1 + level])
    return out.sections


def describe_yolo_v4(model: YoloV4, side: int) -> list[Section]:
    """The sections of YOLOv4; its finest level comes first."""
    c, out = model.config, Writer(side, model.config.channels)
    classes = len(c.labels)
    outputs = len(c.anchors) // 6 * (5 + classes)
    maps, widths = write_csp_stages(out, c.stem, c.widths, c.depths), c.widths[2:]
    x = out.alternate(widths[-1], 3)
    pools = []
    for k in reversed(POOLS):
        pools.append(out.add("maxpool", {"stride": 1, "size": k}))
        out.route(x)
    out.route(*reversed(pools), x)
    falling = [out.alternate(widths[-1], 3)]
    for level in (1, 0):
        width = widths[level]
        out.unit(width // 2)
        above = out.add("upsample", {"stride": 2})
        out.route(maps[2 + level])
        side_map = out.unit(width // 2)
        out.route(side_map, above)
        falling.append(out.alternate(width))
    x = falling.pop()
    for level, width in enumerate(widths):
        out.unit(width, 3)
        out.head(outputs)
        out.yolo(level, c.anchors, classes, 3, model.stretch[level])
        if falling:
            out.route(x)
            down = out.unit(widths[level + 1] // 2, 3, 2)
            out.route(down, falling.pop())
            x = out.alternate(widths[level + 1])
    return out.sections


def write_csp_stages(out: Writer, stem: int, widths: Sequence[int], depths: Sequence[int]) -> list[int]:
    """CSPDarknet with Mish; the numbers of the layers that end its stages."""
    ends = []
    out.unit(stem, 3, 1, "mish")
    for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        start, hidden = out.unit(width, 3, 2, "mish"), width if i == 0 else width // 2
        kept = out.unit(hidden, 1, 1, "mish")
        out.route(start)
        out.unit(hidden, 1, 1, "mish")
        for _ in range(depth):
            out.unit(width // 2, 1, 1, "mish")
            out.unit(hidden, 3, 1, "mish")
            out.add("shortcut", {"from": -3, "activation": "linear"})
        last = out.unit(hidden, 1, 1, "mish")
        out.route(last, kept)
        ends.append(out.unit(width, 1, 1, "mish"))
    return ends


def describe_yolo_v2(side: int, classes: int, anchors: Sequence[float], scale: float = 1.0) -> list[Section]:
    """YOLOv2 with its passthrough; anchors in cells."""
    out, wide = Writer(side, 3), lambda width: max(int(width * scale), 4)
    stages = ((32,), (64,), (128, 64, 128), (256, 128, 256), (512, 256, 512, 256, 512), (1024, 512, 1024, 512, 1024))
    for i, stage in enumerate(stages):
        if i:
            fine = out.at
            out.add("maxpool", {"size": 2, "stride": 2})
        for k, width in enumerate(stage):
            out.unit(wide(width), 3 if k % 2 == 0 else 1)
    out.unit(wide(1024), 3)
    deep = out.unit(wide(1024), 3)
    out.route(fine)
    out.unit(wide(64))
    passed = out.add("reorg", {"stride": 2})
    out.route(passed, deep)
    out.unit(wide(1024), 3)
    out.head(len(anchors) // 2 * (5 + classes))
    shapes = ",".join(f"{a:.10g}" for a in anchors)
    numbers = {"classes": classes, "coords": 4, "num": len(anchors) // 2, "softmax": 1, "bias_match": 1}
    out.add("region", {"anchors": shapes, **numbers})
    return out.sections


def describe_tiny_v3(side: int, classes: int, anchors: Sequence[float], scale: float = 1.0) -> list[Section]:
    """YOLOv3-tiny: seven convolutions with maxima between them, two levels."""
    out, wide = Writer(side, 3), lambda width: max(int(width * scale), 4)
    outputs, maps = len(anchors) // 4 * (5 + classes), []
    for i, width in enumerate((16, 32, 64, 128, 256, 512, 1024)):
        if i:
            maps.append(out.at)
            out.add("maxpool", {"size": 2, "stride": 2 if i < 6 else 1})
        out.unit(wide(width), 3)
    last = out.unit(wide(256))
    out.unit(wide(512), 3)
    out.head(outputs)
    out.yolo(1, anchors, classes, 2)
    out.route(last)
    out.unit(wide(128))
    out.add("upsample", {"stride": 2})
    out.route(out.at, maps[4])
    out.unit(wide(256), 3)
    out.head(outputs)
    out.yolo(0, anchors, classes, 2)
    return out.sections


def describe_tiny_v4(side: int, classes: int, anchors: Sequence[float], scale: float = 1.0) -> list[Section]:
    """YOLOv4-tiny: three CSP stages that take half of their channels by groups, two levels."""
    out, wide = Writer(side, 3), lambda width: 4 * max(int(width * scale) // 4, 1)
    outputs, fine = len(anchors) // 4 * (5 + classes), 0
    out.unit(wide(32), 3, 2)
    out.unit(wide(64), 3, 2)
    for width in (64, 128, 256):
        start = out.unit(wide(width), 3)
        out.add("route", {"layers": start, "groups": 2, "group_id": 1})
        first = out.unit(wide(width) // 2, 3)
        second = out.unit(wide(width) // 2, 3)
        out.route(second, first)
        fine = out.unit(wide(width))
        out.route(start, fine)
        out.add("maxpool", {"size": 2, "stride": 2})
    out.unit(wide(512), 3)
    last = out.unit(wide(256))
    out.unit(wide(512), 3)
    out.head(outputs)
    out.yolo(1, anchors, classes, 2, 1.05)
    out.route(last)
    out.unit(wide(128))
    out.add("upsample", {"stride": 2})
    out.route(out.at, fine)
    out.unit(wide(256), 3)
    out.head(outputs)
    out.yolo(0, anchors, classes, 2, 1.05)
    return out.sections


def list_units(model: YoloV3 | YoloV4) -> list[nn.Module]:
    """Convolutions with what belongs to them, in the order of a .weights file."""
    if isinstance(model, YoloV3):
        parts: list[Any] = [model.backbone]
        for level in (2, 1, 0):
            parts += [model.levels[level], model.expand[level], model.heads[level]]
            parts += [model.narrow[level - 1]] if level else []
    else:
        neck = model.neck
        parts = [model.backbone, model.pool]
        for level in (1, 0):
            parts += [neck.above[level], neck.side[level], neck.mix[level]]
        for level in range(3):
            parts += [neck.down[level - 1], neck.mix_again[level - 1]] if level else []
            parts += [model.expand[level], model.heads[level]]
    found = chain.from_iterable(part.modules() for part in parts)
    inside = {unit.conv for part in parts for unit in part.modules() if isinstance(unit, ConvUnit)}
    return [m for m in found if isinstance(m, ConvUnit) or (isinstance(m, nn.Conv2d) and m not in inside)]


def to_darknet(model: YoloV3 | YoloV4, side: int = 416) -> Darknet:
    """The same network as that of a .cfg file, for images of this size."""
    describe = describe_yolo_v3(model, side) if isinstance(model, YoloV3) else describe_yolo_v4(model, side)
    network = Darknet(DarknetConfig(format_cfg(describe), model.config.tau))
    copy_numbers(list_units(model), convolutions(network))
    return network.train(model.training)


def fill_from_darknet(model: YoloV3 | YoloV4, network: Darknet) -> None:
    """Take the numbers of a network that was read from Darknet's files."""
    copy_numbers(convolutions(network), list_units(model))


def convolutions(network: Darknet) -> list[nn.Module]:
    layers = ((layer[0] if isinstance(layer, nn.Sequential) else layer) for layer in network.layers)
    return [layer for layer in layers if isinstance(layer, ConvUnit | nn.Conv2d)]


@torch.no_grad()
def copy_numbers(source: Sequence[nn.Module], into: Sequence[nn.Module]) -> None:
    """Unit by unit; networks of other shapes are refused."""
    shapes = [[tuple(v.shape) for v in unit.state_dict().values()] for unit in (*source, *into)]
    if len(source) != len(into) or shapes[: len(source)] != shapes[len(source) :]:
        raise Mistake("the convolutions of the .cfg are not those of this model: read it with read_darknet instead")
    for one, other in zip(source, into, strict=True):
        other.load_state_dict(one.state_dict())
