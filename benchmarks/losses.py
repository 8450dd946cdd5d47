"""Every loss against torch's plain expression for the same values: forward, mean and backward, taking turns.

Ours also looks at shapes and values and names a bad record; the bar allows 1.2 times the time. Where torch has the loss
as a function it stands for theirs, with the same values (one for each example) and the same mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.losses import adaptive, classification, divergence, margin, metric_learning, regression

BAR = 1 / 1.2
ROUNDS = 25
TURN = 0.002  # seconds that one turn of one side takes, about
Loss = Callable[..., Tensor]


def plain_focal(z: Tensor, y: Tensor) -> Tensor:
    p = z.log_softmax(-1).gather(-1, y[:, None]).squeeze(-1)
    return -((1 - p.exp()) ** 2) * p


def plain_binary_focal(z: Tensor, y: Tensor) -> Tensor:
    loss = F.binary_cross_entropy_with_logits(z, y, reduction="none")
    return (1 - (-loss).exp()) ** 2 * loss


def class_losses(z: Tensor) -> dict[str, tuple[Loss, Loss, tuple[Tensor, ...]]]:
    """Rows of logits against classes or distributions."""
    b, k = z.shape
    y, q = torch.randint(k, (b,)), torch.randn(b, k).softmax(-1)
    few = z[:, :32].detach().requires_grad_()
    rows = margin.target_rows([[i % few.shape[1], (i + 1) % few.shape[1]] for i in range(b)], few.shape[1])
    smooth = lambda z, y: classification.smoothed_cross_entropy(z, y, 0.1)
    softly = lambda z, y: F.cross_entropy(z, y, reduction="none", label_smoothing=0.1)
    kl = lambda z, q: F.kl_div(z.log_softmax(-1), q, reduction="none").sum(-1)
    kl_p = lambda z, q: (q * (q.log() - z.softmax(-1).log())).sum(-1)
    return {
        "cross_entropy": (classification.cross_entropy, lambda z, y: F.cross_entropy(z, y, reduction="none"), (z, y)),
        "smoothed_cross_entropy": (smooth, softly, (z, y)),
        "soft_cross_entropy": (
            classification.soft_cross_entropy,
            lambda z, q: F.cross_entropy(z, q, reduction="none"),
            (z, q),
        ),
        "nll": (
            lambda z, y: classification.nll(z.log_softmax(-1), y),
            lambda z, y: F.nll_loss(z.log_softmax(-1), y, reduction="none"),
            (z, y),
        ),
        "focal_cross_entropy": (classification.focal_cross_entropy, plain_focal, (z, y)),
        "kl": (lambda z, q: divergence.kl(z.log_softmax(-1), q), kl, (z, q)),
        "kl_of_probabilities": (lambda z, q: divergence.kl_of_probabilities(z.softmax(-1), q), kl_p, (z, q)),
        "multilabel_margin": (
            margin.multilabel_margin,
            lambda z, y: F.multilabel_margin_loss(z, y, reduction="none"),
            (few, rows),
        ),
    }


def element_losses(x: Tensor) -> dict[str, tuple[Loss, Loss, tuple[Tensor, ...]]]:
    """One value for each number."""
    y, hot = torch.randn_like(x), torch.randint(2, x.shape).float()
    sign, other = 2 * hot - 1, torch.randn_like(x)
    p, d = x.detach().sigmoid().requires_grad_(), x.detach().abs().requires_grad_()
    return {
        "squared_error": (regression.squared_error, lambda x, y: F.mse_loss(x, y, reduction="none"), (x, y)),
        "absolute_error": (regression.absolute_error, lambda x, y: F.l1_loss(x, y, reduction="none"), (x, y)),
        "huber": (regression.huber, lambda x, y: F.huber_loss(x, y, reduction="none"), (x, y)),
        "smooth_l1": (regression.smooth_l1, lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), (x, y)),
        "gaussian_nll": (
            lambda x, y: regression.gaussian_nll(x, y, 0.5),
            lambda x, y: (x - y).square() / 1.0 + 0.5724,
            (x, y),
        ),
        "binary_cross_entropy": (
            classification.binary_cross_entropy,
            lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
            (x, hot),
        ),
        "binary_cross_entropy_of_probabilities": (
            classification.binary_cross_entropy_of_probabilities,
            lambda p, y: -(y * p.log() + (1 - y) * (1 - p).log()),
            (p, hot),
        ),
        "focal_binary_cross_entropy": (classification.focal_binary_cross_entropy, plain_binary_focal, (x, hot)),
        "hinge": (margin.hinge, lambda x, y: (1 - y * x).clamp_min(0), (x, sign)),
        "soft_margin": (margin.soft_margin, lambda x, y: F.soft_margin_loss(x, y, reduction="none"), (x, sign)),
        "margin_ranking": (
            margin.margin_ranking,
            lambda x, o, y: F.margin_ranking_loss(x, o, y, reduction="none"),
            (x, other, sign),
        ),
        "hinge_embedding": (
            metric_learning.hinge_embedding,
            lambda x, y: F.hinge_embedding_loss(x, y, reduction="none"),
            (d, sign),
        ),
    }


def embedding_losses(x: Tensor) -> dict[str, tuple[Loss, Loss, tuple[Tensor, ...]]]:
    """Pairs and triples of vectors, and the adaptive softmax."""
    b, d = x.shape
    near, far, sign = torch.randn_like(x), torch.randn_like(x), (2 * torch.randint(2, (b,)) - 1).float()
    ours = adaptive.AdaptiveSoftmax(d, 2000, [100, 500])
    theirs = nn.AdaptiveLogSoftmaxWithLoss(d, 2000, [100, 500])
    theirs.load_state_dict(ours.state_dict())
    y = (torch.rand(b) ** 3 * 2000).long()
    return {
        "cosine_embedding": (
            metric_learning.cosine_embedding,
            lambda x, o, y: F.cosine_embedding_loss(x, o, y, reduction="none"),
            (x, near, sign),
        ),
        "triplet_margin": (
            metric_learning.triplet_margin,
            lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction="none"),
            (x, near, far),
        ),
        "AdaptiveSoftmax": (ours, lambda x, y: -theirs(x, y).output, (x, y)),
    }


def turn(loss: Loss, inputs: tuple[Tensor, ...], calls: int) -> float:
    """Seconds of one forward, mean and backward, on average over so many; of this thread, whoever else is running."""
    began = time.thread_time()
    for _ in range(calls):
        torch.autograd.grad(loss(*inputs).mean(), inputs[0])
    return (time.thread_time() - began) / calls


def compare(name: str, ours: Loss, theirs: Loss, inputs: tuple[Tensor, ...]) -> dict[str, Any]:
    """Both sides in turns: the median of each, and of the ratios of neighbouring turns."""
    assert torch.allclose(ours(*inputs), theirs(*inputs), atol=1e-4), name
    calls = max(1, round(TURN / min(turn(ours, inputs, 3) for _ in range(3))))
    times = [(turn(ours, inputs, calls), turn(theirs, inputs, calls)) for _ in range(ROUNDS)]
    mine, other = (1e6 * median(column) for column in zip(*times, strict=True))
    ratio = median(b / a for a, b in times)
    return {"name": name, "ours": mine, "theirs": other, "unit": "µs", "ratio": ratio, "bar": BAR}


def measure() -> list[dict[str, Any]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = []
    for note, b, k in (("small", 32, 10), ("large", 512, 512)):
        table = {
            **class_losses(torch.randn(b, k, requires_grad=True)),
            **element_losses(torch.randn(b, k, requires_grad=True)),
            **embedding_losses(torch.randn(b, 64 if note == "small" else 256, requires_grad=True)),
        }
        found += [{**compare(name, *sides), "note": f"{note}: {b} × {k}, one thread"} for name, sides in table.items()]
    torch.set_num_threads(threads)
    return found


if __name__ == "__main__":
    for row in measure():
        late = "" if row["ratio"] >= BAR else "   slower than the bar"
        print(f"{row['name']:40} {row['ours']:9.1f} {row['theirs']:9.1f} {1 / row['ratio']:6.2f}x  {row['note']}{late}")
