"""The typical convolutional network: convolutions with ReLU, a pool now and then, dense layers at the end.

    x ← max-pool(ReLU(W_n * .. ReLU(W_1 * x)))        once for each block, `convs` convolutions in a block
    x ← flatten(x)                                    (c, h, w) -> c·h·w numbers, e.g. 128·7·7 = 6272
    x ← ReLU(W x + b)                                 once for each of `hidden`
    logits = W x + b

Convolutions keep the size (padding (k−1)/2, odd k) and pools halve it. In networks of this form most parameters sit in
the dense part: 89.4% of VGG-16 (`dense_share`).

The network of the ConvNetJS demo for CIFAR-10 has 5×5 kernels with 16, 20, 20 filters, each with ReLU and a pool, and
one dense layer. The book shows its first layer: 16 filters of 5×5×3 and 16 biases are 1216 parameters (printed as
"16x5x5x3*16", an erratum: the last sign is a plus); the others are those of the public demo. It is trained with
Adadelta on images that are mirrored and shifted by up to two pixels. `ranges` reports the extremes that the demo's page
shows.

Systems: typical-cnn
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.ranges import Depth, Fraction, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class TypicalCNNConfig:
    """The defaults are the ConvNetJS network; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 32, 32)
    """Channels, height, width."""
    classes: Width = 10
    widths: tuple[Width, ...] = (16, 20, 20)
    """Filters of the convolutions of each block."""
    convs: Depth = 1
    """Convolutions in a block, before its pool."""
    kernel: Side = 5
    """Side of the kernels, an odd number."""
    hidden: tuple[Width, ...] = ()
    """Units of the dense layers before the last."""
    dropout: Fraction = 0.0
    """Before each dense layer."""

    def __post_init__(self) -> None:
        for name in ("image", "widths", "hidden"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel {self.kernel}: give an odd number, so that the padding keeps the size")
        if min(self.grid) < 1:
            height, width = self.image[1:]
            raise ValueError(f"images of {height}×{width} are too small for {len(self.widths)} pools")

    @property
    def grid(self) -> tuple[int, int]:
        """Height and width after all the pools."""
        return self.image[1] >> len(self.widths), self.image[2] >> len(self.widths)


class TypicalCNN(Pretrained):
    """images (b, channels, height, width) -> logits (b, classes)"""

    Config = TypicalCNNConfig

    def __init__(self, config: TypicalCNNConfig):
        super().__init__()
        c = self.config = config
        layers: list[nn.Module] = []
        channels = c.image[0]
        for width in c.widths:
            for _ in range(c.convs):
                layers += [nn.Conv2d(channels, width, c.kernel, padding=c.kernel // 2), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        dense: list[nn.Module] = []
        inputs = channels * c.grid[0] * c.grid[1]
        for width in c.hidden:
            dense += [nn.Dropout(c.dropout), nn.Linear(inputs, width), nn.ReLU()]
            inputs = width
        self.dense = nn.Sequential(*dense, nn.Dropout(c.dropout))
        self.head = nn.Linear(inputs, c.classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear) and module is not self.head:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def maps(self, x: Tensor) -> Tensor:
        """The maps after the last pool."""
        return self.layers(x)

    def features(self, x: Tensor) -> Tensor:
        """What the last dense layer sees."""
        return self.dense(self.maps(x).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def parameters_of(model: nn.Module, kind: type[nn.Module]) -> int:
    """Numbers in the weights and biases of the layers of this kind."""
    layers = (m for m in model.modules() if isinstance(m, kind))
    return sum(p.numel() for layer in layers for p in layer.parameters(recurse=False))


def dense_share(model: nn.Module) -> float:
    """The part of all parameters that sits in dense layers."""
    return parameters_of(model, nn.Linear) / sum(p.numel() for p in model.parameters())


@dataclass
class Range:
    """Smallest and largest activation of a layer, and of the gradient that comes back to it."""

    activation: tuple[float, float] = (0.0, 0.0)
    gradient: tuple[float, float] = (0.0, 0.0)


def ranges(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Range]:
    """One forward and backward pass of the cross-entropy: the extremes at the input and after every layer."""
    found: dict[str, Range] = {}

    def watch(name: str, out: Tensor) -> None:
        found[name] = Range(extremes(out))
        out.register_hook(lambda g: setattr(found[name], "gradient", extremes(g)))

    x = x.detach().requires_grad_()
    leaves = {name: m for name, m in model.named_modules() if not list(m.children())}
    hooks = [m.register_forward_hook(lambda _m, _i, out, n=name: watch(n, out)) for name, m in leaves.items()]
    try:
        (gradient,) = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), x)
    finally:
        for hook in hooks:
            hook.remove()
    return {"input": Range(extremes(x), extremes(gradient)), **found}


def extremes(x: Tensor) -> tuple[float, float]:
    return x.detach().min().item(), x.detach().max().item()


SIZES = {"convnetjs-cifar-10": TypicalCNNConfig()}
PARAMETERS = {"convnetjs-cifar-10": 22_466}
TINY = TypicalCNNConfig(image=(2, 9, 8), classes=3, widths=(4, 6), convs=2, kernel=3, hidden=(7,))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("TypicalCNN")
