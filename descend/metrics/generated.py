"""How near generated examples are to real ones, beyond the Fréchet distance; from features x (n, d) and y (m, d).

    MMD²         mean k(x, x') + mean k(y, y') − 2 mean k(x, y), without the pairs of a row with itself: unbiased
    KID          MMD² with k = (x·y / d + 1)³ of a network's features; its mean does not depend on n
    precision    share of generated examples within reach of a real one: are they good?
    recall       share of real examples within reach of a generated one: is everything there?
                 the reach of an example is the distance to its k-th nearest neighbour among its own
    memorised    share of generated examples nearer to a training example than held-out ones usually are

Systems: fid
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Kernel = Callable[[Tensor, Tensor], Tensor]


def mmd(x: Tensor, y: Tensor, kernel: Kernel) -> float:
    """The unbiased MMD², which may be a little below 0."""
    n, m = len(x), len(y)
    if min(n, m) < 2:
        raise ValueError(f"MMD needs at least two rows of each, not {n} and {m}")
    xx, yy, xy = kernel(x, x), kernel(y, y), kernel(x, y)
    within = (xx.sum() - xx.diagonal().sum()) / (n * (n - 1)) + (yy.sum() - yy.diagonal().sum()) / (m * (m - 1))
    return float(within - 2 * xy.mean())


def gaussian_kernel(width: float) -> Kernel:
    """exp(−‖x − y‖² / 2w²)"""
    return lambda x, y: (-torch.cdist(x, y).square() / (2 * width**2)).exp()


def cubic_kernel(x: Tensor, y: Tensor) -> Tensor:
    """(x·y / d + 1)³"""
    return (x @ y.T / x.shape[1] + 1) ** 3


def kid(x: Tensor, y: Tensor) -> float:
    """The kernel inception distance of features."""
    return mmd(x.double(), y.double(), cubic_kernel)


def reach(x: Tensor, k: int = 3) -> Tensor:
    """The distance (n) of each row to its k-th nearest among the others."""
    if len(x) <= k:
        raise ValueError(f"the {k}-th nearest neighbour needs more than {k} rows, not {len(x)}")
    return torch.cdist(x, x).kthvalue(k + 1, dim=1).values  # the nearest is the row itself


def covered(x: Tensor, by: Tensor, k: int = 3) -> float:
    """The share of rows x within reach of a row of `by`."""
    return float((torch.cdist(x, by) <= reach(by, k)).any(1).double().mean())


def precision_and_recall(real: Tensor, made: Tensor, k: int = 3) -> tuple[float, float]:
    """Precision and recall of generated against real features."""
    real, made = real.double(), made.double()
    return covered(made, real, k), covered(real, made, k)


def nearest_distances(x: Tensor, among: Tensor, batch: int = 512) -> Tensor:
    """‖x − its nearest‖ (n), a batch at a time."""
    flat = among.flatten(1)
    return torch.cat([torch.cdist(part.flatten(1), flat).amin(1) for part in x.split(batch)])


def share_memorised(made: Tensor, train: Tensor, held_out: Tensor, quantile: float = 0.01) -> float:
    """The share of generated examples that are nearer to a training example than all but 1% of the held-out ones are;
    about 0.01 where they are as new as those, near 1 where they are copies."""
    usual = nearest_distances(held_out, train).double().quantile(quantile)
    return float((nearest_distances(made, train) < usual).double().mean())
