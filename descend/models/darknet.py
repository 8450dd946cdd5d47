"""Any detector of Darknet's .cfg files, layer by layer: YOLOv2, v3, v4 and their tiny forms, weights both ways.

    convolutional   W ⋆ x, batch norm (ε = 10⁻⁶), linear, leaky, mish, relu, swish or logistic
    maxpool         padded at the end: ⌈n / stride⌉ pixels, also for stride 1
    route           earlier layers beside each other; with groups, a part of their channels
    shortcut        a sum with an earlier layer            upsample   each pixel stride² times
    reorg           stride² pixels of a channel become channels, in Darknet's own order of numbers
    yolo, region    B (5 + K) maps: logistic classes and anchors in pixels, or a softmax and anchors in cells

`read_darknet(cfg, weights)` makes the model of a pair of files, `write_darknet(model, folder)` writes one. The numbers
are those of OpenCV's dnn module, which reads the same files. It is a detector as any other: it learns by the losses of
`losses/detection/`. Images are RGB in 0..1.

Systems: yolo-v3, yolo-v4-v5
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.nn.convolution.residual import channels_last
from descend.nn.convolution.unit import ConvUnit
from descend.ops.detection.yolo_grid import GridFound, read_maps, score_classes
from descend.ops.nms import keep_best
from descend.ranges import Share
from descend.weights.darknet import Section, format_cfg, parse_cfg, read_arrays, write_arrays
from descend.weights.pretrained import Pretrained

EPS = 1e-6
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "linear": nn.Identity,
    "leaky": lambda: nn.LeakyReLU(0.1, inplace=True),
    "mish": nn.Mish,
    "relu": nn.ReLU,
    "swish": nn.SiLU,
    "logistic": nn.Sigmoid,
}
IGNORED = {"net", "network", "dropout", "cost"}


class EndPool(nn.Module):
    """A maximum over k × k pixels that begins half of k − 1 pixels before each one, and goes over the end."""

    def __init__(self, size: int, stride: int, padding: int):
        super().__init__()
        self.size, self.stride = size, stride
        self.pads = padding // 2, padding - padding // 2

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(F.pad(x, self.pads * 2, value=-torch.inf), self.size, self.stride)


class Reorg(nn.Module):
    """Darknet's order: its numbers are read as (c / s², h s, w s), cut into s × s, and read as (c s², h / s, w / s)."""

    def __init__(self, stride: int):
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        s, (b, c, h, w) = self.stride, x.shape
        x = x.contiguous().view(b, c // s**2, h, s, w, s).permute(0, 3, 5, 1, 2, 4)
        return x.reshape(b, c * s**2, h // s, w // s)


@dataclass(frozen=True)
class DarknetConfig:
    """The text of a .cfg file."""

    cfg: str = "[net]\nchannels=3\n[convolutional]\nfilters=21\nsize=1\n[yolo]\nanchors=8,8,16,16,32,32\nclasses=2\n"
    tau: Share = 0.45
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""


class Darknet(Pretrained):
    """images (b, 3, h, w) -> `GridFound` of all yolo or region layers, in the order of the file"""

    Config = DarknetConfig

    def __init__(self, config: DarknetConfig):
        super().__init__()
        self.config = config
        self.sections = parse_cfg(config.cfg)
        self.layers, self.steps = nn.ModuleList(), [1]
        widths = [self.sections[0].number("channels", 3)]
        for place, section in enumerate(self.sections[1:]):
            layer, width, step = build_layer(section, widths, self.steps, place)
            self.layers.append(layer)
            widths.append(width)
            self.steps.append(step)
        self.heads = [i for i, s in enumerate(self.sections[1:]) if s.kind in ("yolo", "region")]
        if not self.heads:
            raise Mistake("this .cfg has no [yolo] or [region] layer: it is no detector")
        self.stride = max(self.steps)
        levels = [read_anchors(self.sections[i + 1], self.steps[i + 1]) for i in self.heads]
        self.register_buffer("anchors", torch.tensor(levels, dtype=torch.float32), persistent=False)

    anchors: Tensor

    def outputs(self, x: Tensor) -> list[Tensor]:
        """What every layer gives, in the order of the file; [net] is not one."""
        found: list[Tensor] = []
        x = channels_last(x)
        for place, (section, layer) in enumerate(zip(self.sections[1:], self.layers, strict=True)):
            if section.kind == "route":
                x = route(section, found, place)
            elif section.kind == "shortcut":
                x = layer(x + found[resolve(section.number("from"), place)])
            else:
                x = layer(x)
            found.append(x)
        return found

    def forward(self, x: Tensor) -> GridFound:
        found = self.outputs(x)
        stretch = [self.sections[i + 1].real("scale_x_y", 1.0) for i in self.heads]
        return read_maps([found[i] for i in self.heads], self.anchors, [self.steps[i + 1] for i in self.heads], stretch)

    def probabilities(self, logits: Tensor) -> Tensor:
        """P(class | object): a softmax where the file says so."""
        head = self.sections[self.heads[0] + 1]
        return logits.softmax(dim=-1) if head.kind == "region" and head.number("softmax") else logits.sigmoid()

    def decode(self, found: GridFound, least: float = 0.001, most: int = 100) -> Boxes:
        """The best class of each box, without duplicates."""
        scores, classes = score_classes(found.objectness.sigmoid(), self.probabilities(found.logits))
        return keep_best(found.boxes, scores, classes, self.config.tau, least, most)

    def tensors(self) -> list[Tensor]:
        """Every number of the .weights file, in its order."""
        found: list[Tensor] = []
        for layer in self.layers:
            if isinstance(layer, ConvUnit):
                norm = layer.norm
                assert norm.running_mean is not None
                assert norm.running_var is not None
                found += [norm.bias, norm.weight, norm.running_mean, norm.running_var, layer.conv.weight]
            elif isinstance(layer, nn.Sequential) and isinstance(layer[0], nn.Conv2d):
                assert layer[0].bias is not None
                found += [layer[0].bias, layer[0].weight]
        return found


def build_layer(section: Section, widths: list[int], steps: list[int], place: int) -> tuple[nn.Module, int, int]:
    """A layer, the channels that it gives, and how many pixels of the image one of its pixels stands for."""
    kind, width, step, stride = section.kind, widths[-1], steps[-1], section.number("stride", 1)
    if kind == "convolutional":
        return convolutional(section, width), section.number("filters", 1), step * stride
    if kind == "maxpool":
        size = section.number("size", stride)
        return EndPool(size, stride, section.number("padding", size - 1)), width, step * stride
    if kind == "upsample":
        return nn.Upsample(scale_factor=section.number("stride", 2)), width, step // section.number("stride", 2)
    if kind == "reorg":
        return Reorg(section.number("stride", 1)), width * stride**2, step * stride
    if kind == "route":
        sources = [resolve(n, place) for n in section.numbers("layers")]
        total = sum(widths[i + 1] for i in sources) // section.number("groups", 1)
        return nn.Identity(), total, steps[sources[0] + 1]
    if kind == "shortcut":
        return activation(section, place), width, step
    if kind in ("yolo", "region"):
        if section.number("new_coords"):
            raise Mistake(f"layer {place} of the .cfg: new_coords=1 is another coding of boxes, which is not supported")
        return nn.Identity(), width, step
    if kind in IGNORED:
        return nn.Identity(), width, step
    raise Mistake(f"layer {place} of the .cfg: [{kind}] is not supported")


def convolutional(section: Section, inputs: int) -> nn.Module:
    """A convolution with batch norm or a bias, and its activation."""
    size, outputs = section.number("size", 1), section.number("filters", 1)
    padding = size // 2 if section.number("pad") else section.number("padding")
    normed = section.number("batch_normalize")
    numbers = size, section.number("stride", 1), padding, 1, section.number("groups", 1), not normed
    conv, act = nn.Conv2d(inputs, outputs, *numbers), activation(section, outputs)
    return ConvUnit(conv, act, EPS) if normed else nn.Sequential(conv, act)


def activation(section: Section, place: int) -> nn.Module:
    name = section.options.get("activation", "logistic" if section.kind == "convolutional" else "linear")
    if name not in ACTIVATIONS:
        raise Mistake(f"layer {place} of the .cfg: activation={name} is not supported; known: {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


def resolve(number: int, place: int) -> int:
    """A layer's number: negative ones count back from here."""
    at = place + number if number < 0 else number
    if not 0 <= at < place:
        raise Mistake(f"layer {place} of the .cfg points to layer {at}, which is not before it")
    return at


def route(section: Section, found: list[Tensor], place: int) -> Tensor:
    """Earlier layers beside each other, or one of their groups of channels."""
    parts = [found[resolve(n, place)] for n in section.numbers("layers")]
    groups, chosen = section.number("groups", 1), section.number("group_id", 0)
    return torch.cat([part.chunk(groups, dim=1)[chosen] for part in parts], dim=1)


def read_anchors(section: Section, step: int) -> list[list[float]]:
    """w, h of the layer's anchors in pixels."""
    pairs = section.reals("anchors")
    shapes = [[w, h] for w, h in zip(pairs[::2], pairs[1::2], strict=True)]
    if section.kind == "region":
        return [[w * step, h * step] for w, h in shapes]
    mask = section.numbers("mask") or list(range(section.number("num", len(shapes))))
    return [shapes[i] for i in mask]


def read_darknet(cfg: str | Path, weights: str | Path | None = None) -> Darknet:
    """The detector of a .cfg file, with the numbers of a .weights file, ready to predict."""
    cfg = Path(cfg)
    try:
        text = cfg.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Mistake(f"{cfg}: {error.strerror or error}") from None
    try:
        model = Darknet(DarknetConfig(format_cfg(parse_cfg(text, str(cfg)))))
    except (ValueError, IndexError, ZeroDivisionError, RuntimeError) as error:
        raise Mistake(f"{cfg}: {error}") from None
    if weights is not None:
        load_numbers(model, Path(weights))
    return model.eval()


@torch.no_grad()
def load_numbers(model: Darknet, path: Path) -> int:
    """Fill the model from a .weights file; how many images it had seen."""
    mine = model.tensors()
    arrays, seen = read_arrays(path, [tuple(tensor.shape) for tensor in mine])
    for tensor, array in zip(mine, arrays, strict=True):
        tensor.copy_(array)
    return seen


def write_darknet(model: Darknet, folder: str | Path, name: str = "model", seen: int = 0) -> tuple[Path, Path]:
    """NAME.cfg and NAME.weights in a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cfg, weights = folder / f"{name}.cfg", folder / f"{name}.weights"
    cfg.write_text(model.config.cfg, encoding="utf-8")
    write_arrays(weights, model.tensors(), seen)
    return cfg, weights


TINY = DarknetConfig(
    """[net]
channels=3

[convolutional]
batch_normalize=1
filters=6
size=3
stride=2
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
batch_normalize=1
filters=8
size=3
stride=1
pad=1
activation=mish

[shortcut]
from=-1

[convolutional]
filters=16
size=1
activation=linear

[yolo]
mask=0,1
anchors=8,8,16,24
classes=3
num=2
"""
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 16, 24, generator=torch.Generator().manual_seed(0))
