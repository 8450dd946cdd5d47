"""Tensor parallelism over attention heads: each of N devices computes n / N of the heads, and the outputs are summed.

    O = Σ_i head_i W_i^O + b            W_i^O: the rows of W^O that head i is multiplied with
      = Σ_devices Σ_{i on it} ..        so a device needs W^Q, W^K, W^V of its heads, its rows of W^O, and x whole

Every device gets x, and one sum over devices brings the outputs together; on the way back the gradient of x is the sum.
The bias of the output is added once. With grouped queries the key heads are dealt out, too; with fewer key heads than
devices each is replicated, in multi-query attention (one key head) on all of them. 96 heads on 8 devices are 12 each.

`shard` cuts a layer; who sums is `engine/tensor_parallel.py`, among processes, or `sum` in one.

Systems: tensor-parallel-attention
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention


def heads_of(device: int, devices: int, heads: int) -> slice:
    """Which heads a device computes: an equal number each."""
    if heads % devices:
        raise ValueError(f"{heads} heads cannot be dealt out evenly to {devices} devices: the number must divide")
    each = heads // devices
    return slice(device * each, (device + 1) * each)


def key_heads_of(device: int, devices: int, key_heads: int) -> slice:
    """Which key heads it needs: an equal number each; or, where there are fewer than devices, the one of its group."""
    if key_heads % devices and devices % key_heads:
        raise ValueError(f"{key_heads} key heads and {devices} devices: one number must divide the other")
    if key_heads >= devices:
        return heads_of(device, devices, key_heads)
    group = device * key_heads // devices
    return slice(group, group + 1)


def shard(layer: Attention, device: int, devices: int) -> Attention:
    """The part of an attention layer that one device holds, a layer of its own; the outputs of all sum to the whole."""
    size = layer.head_size
    heads = heads_of(device, devices, layer.heads)
    keys = key_heads_of(device, devices, layer.k.out_features // size)
    width, count = layer.q.in_features, heads.stop - heads.start
    bias = layer.q.bias is not None
    part = Attention(width, count, keys.stop - keys.start, size, bias, layer.dropout, layer.scale)
    rows = {"q": heads, "k": keys, "v": keys}
    for name, chosen in rows.items():
        take_rows(part.get_submodule(name), layer.get_submodule(name), scale(chosen, size))  # type: ignore[arg-type]
    part.out = nn.Linear(count * size, layer.out.out_features, layer.out.bias is not None and device == 0)
    part.out.weight = copy(layer.out.weight[:, scale(heads, size)])
    if part.out.bias is not None:
        part.out.bias = copy(layer.out.bias)
    return part.to(layer.q.weight).train(layer.training)


def scale(chosen: slice, size: int) -> slice:
    """Heads as numbers of a vector."""
    return slice(chosen.start * size, chosen.stop * size)


def take_rows(to: nn.Linear, whole: nn.Linear, rows: slice) -> None:
    """Some outputs of a linear layer."""
    to.weight = copy(whole.weight[rows])
    if whole.bias is not None:
        to.bias = copy(whole.bias[rows])


def copy(x: Tensor) -> nn.Parameter:
    """Numbers of its own."""
    return nn.Parameter(x.detach().clone())
