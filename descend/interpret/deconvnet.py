"""The deconvnet of Zeiler and Fergus: what in the image made this unit answer?

    forward      a = conv(x, W) + b       a = max(0, a)       p, switches = maxpool(a)
    back         r = conv_T(r, W)         r = max(0, r)       r = unpool(r, switches)

It starts at one layer with everything zero but the chosen map (and, there, the strongest place), and walks back to the
pixels: transposed filters instead of convolutions, the switches put each value where the maximum was, the ReLU acts on
what comes back. Without ReLUs it is the input gradient; with them it differs from the gradient in the ReLUs alone. So
`deconvnet` is a backward pass with another ReLU, for any network; `deconvnet_of_layers` walks the layers one by one.
The book gives the idea; switches and transposed filters are the paper's. Where pooling windows overlap, values that
share a switch are added (the paper does not say).

Systems: filter-visualization
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.gradients import DeconvnetReLU, Rectifier
from descend.interpret.layers import as_maps, evaluation_mode, watch_layer


def deconvnet(model: nn.Module, name: str, x: Tensor, unit: int) -> Tensor:
    """The pattern, of the shape of x (b, c, h, w), that excites map `unit` of the layer where it answers most."""
    with evaluation_mode(model), torch.enable_grad(), Rectifier(DeconvnetReLU), watch_layer(model, name) as seen:
        x = x.detach().clone().requires_grad_()
        model(x)
        maps = as_maps(seen[0], *x.shape[-2:])
        if not 0 <= unit < maps.shape[1]:
            raise Mistake(f"layer {name!r} has the units 0..{maps.shape[1] - 1}, not {unit}")
        return torch.autograd.grad(maps, x, keep_strongest(maps.detach(), unit))[0]


def keep_strongest(maps: Tensor, unit: int) -> Tensor:
    """Zeros like maps (b, k, h, w), but for the largest value of one map, at its place."""
    flat = maps[:, unit].flatten(1)
    top = flat.max(dim=1, keepdim=True)
    r = torch.zeros_like(maps)
    r[:, unit] = torch.zeros_like(flat).scatter(1, top.indices, top.values).view_as(maps[:, unit])
    return r


def deconvnet_of_layers(layers: Sequence[nn.Module], x: Tensor, unit: int) -> Tensor:
    """The same for a list of Conv2d, ReLU and MaxPool2d, step by step as above; the unit is one of the last layer."""
    inputs: list[Tensor] = []
    switches: dict[int, Tensor] = {}
    with torch.no_grad():
        a = x
        for i, layer in enumerate(layers):
            inputs.append(a)
            if isinstance(layer, nn.MaxPool2d):
                a, switches[i] = pool(layer, a)
            elif isinstance(layer, nn.Conv2d | nn.ReLU):
                a = layer(a)
            else:
                raise Mistake(f"layer {i} is a {type(layer).__name__}; deconvnet supports Conv2d, ReLU and MaxPool2d")
        r = keep_strongest(a, unit)
        for i in reversed(range(len(layers))):
            layer = layers[i]
            if isinstance(layer, nn.Conv2d):
                r = transpose(layer, r, inputs[i])
            elif isinstance(layer, nn.MaxPool2d):
                r = unpool(r, switches[i], inputs[i])
            else:
                r = r.clamp_min(0)
        return r


def pool(layer: nn.MaxPool2d, a: Tensor) -> tuple[Tensor, Tensor]:
    """The maxima and their switches: where in its map each one stood."""
    size = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
    p, switches = F.max_pool2d(a, *size, ceil_mode=layer.ceil_mode, return_indices=True)
    return p, switches


def unpool(r: Tensor, switches: Tensor, like: Tensor) -> Tensor:
    """Every value at its switch, zeros elsewhere."""
    flat = torch.zeros_like(like).flatten(2)
    return flat.scatter_add(2, switches.flatten(2), r.flatten(2)).view_as(like)


def transpose(layer: nn.Conv2d, r: Tensor, like: Tensor) -> Tensor:
    """Σ over the maps of r placed through their filters: the transpose of the convolution, without its bias."""
    if not isinstance(layer.padding, tuple) or layer.padding_mode != "zeros":
        raise Mistake("the deconvnet needs convolutions padded with a fixed number of zeros")
    reach = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(
            r.shape[-2:], layer.stride, layer.padding, layer.dilation, layer.kernel_size, strict=True
        )
    ]
    left = [size - got for size, got in zip(like.shape[-2:], reach, strict=True)]
    return F.conv_transpose2d(
        r, layer.weight, None, layer.stride, layer.padding, left, layer.groups, layer.dilation
    )  # fmt: skip
