"""What a detector costs: multiplications of its parts in closed form, and counted on any model.

    encoder layer     n (4 d² + 2 d f) + 2 n² d                               n tokens of width d, an MLP of f units
    decoder layer     q (4 d² + 2 d f) + 2 q² d + 2 q d² + 2 n d² + 2 q n d   q queries see themselves and the tokens
    projection        n c d                                                   a 1×1 convolution from c channels

Two FLOPs a multiplication. At 480 × 640 (n = 300, d = 256, f = 2048, q = 100) a DETR needs 50.0 + 5.3 + 2.4 GFLOPs for
ResNet-50, encoder and decoder; MF 27.5.1 prints 100, 50 and 20 (erratum). For Swin-T see `window_cost`: 59, not 80.

    efficiency        mAP / latency in ms · 100                               MF (29.1)

The efficiencies that MF 29.4.1 prints follow from no formula (erratum).

Systems: detector-benchmarks
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from torch import Tensor, nn

from descend.theory.network import layers


def encoder_macs(tokens: int, width: int, hidden: int, depth: int = 1) -> int:
    """n (4 d² + 2 d f) + 2 n² d of each layer."""
    return depth * (tokens * (4 * width**2 + 2 * width * hidden) + 2 * tokens**2 * width)


def decoder_macs(queries: int, tokens: int, width: int, hidden: int, depth: int = 1) -> int:
    """Attention among the queries, attention to the tokens, and the MLP."""
    among = queries * 4 * width**2 + 2 * queries**2 * width
    across = 2 * queries * width**2 + 2 * tokens * width**2 + 2 * queries * tokens * width
    return depth * (among + across + queries * 2 * width * hidden)


def projection_macs(tokens: int, channels: int, width: int) -> int:
    """n c d"""
    return tokens * channels * width


def count_flops_by_part(model: nn.Module, *inputs: Tensor) -> dict[str, int]:
    """FLOPs of each child of a model at these inputs, as torch executes it; on the meta device nothing is computed."""
    found: Counter[str] = Counter()
    for layer in layers(model, *inputs).layers:
        found[layer.name.partition(".")[0]] += layer.flops
    return {part: flops for part, flops in found.items() if flops}


def latency_ms(fps: float) -> float:
    """Milliseconds for an image at so many images a second, one after the other."""
    return 1000 / fps


def efficiency(accuracy: float, latency: float) -> float:
    """mAP / latency (ms) · 100"""
    return accuracy / latency * 100


def pareto_frontier(models: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other beats: at least as good in both numbers, and better in one. In the given order."""

    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a != b and a[0] >= b[0] and a[1] >= b[1]

    return [name for name, mine in models.items() if not any(beats(other, mine) for other in models.values())]


def training_hours(epochs: float, minutes_per_epoch: float, devices: int = 1) -> float:
    """Hours of all devices together."""
    return epochs * minutes_per_epoch / 60 * devices
