"""Joint embedding of two views that pulls them together and pushes others apart: Siamese networks, SimCLR, MoCo, PIRL.

    Siamese    (1/n) Σ 1 − cos(z_i, z'_i)  +  (1/k) Σ max(0, cos(z_i, z'_j) − m)         j: mined negatives of i
    SimCLR     NT-Xent over the 2n views of a step
    MoCo       InfoNCE against a queue of keys of earlier steps, made by a momentum encoder
    PIRL       λ NCE(m_i, g'(jigsaw of x_i)) + (1 − λ) NCE(m_i, g(x_i))         m: a memory of every training image

The examples of a step are compared with each other, or leave something behind that later steps are compared with: so
every loss here is a `JointMove`, and is the same however the step is split.

    queue     first in, first out: the keys of a step take the place of the oldest, in the order of their ids
    memory    m_i ← w m_i + (1 − w) z_i, of length 1, for every image of the step

Both are buffers of the task, so a resumed run goes on with them. A queue begins with random unit vectors, and so does
a memory. Left out of MoCo: batches shuffled between processes for the batch norm.

Systems: siamese-contrastive, hard-negative-mining, simclr, moco, pirl
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.contracts import Batch, JointMove, Loss
from descend.losses.metric_learning import cosine
from descend.losses.self_supervised import against_queue, noise_contrastive, nt_xent
from descend.nn.momentum import follow, slow_copy
from descend.ops.mining import Miner, differ
from descend.tasks.representation import Embedder, JointEmbedding


def random_units(n: int, d: int) -> Tensor:
    """n vectors of length 1, always the same (n, d)."""
    return normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(0)), dim=1)


class Siamese(JointEmbedding):
    """A batch has x1, x2 and, where other things than ids make examples alike, `group` (b)."""

    model: Embedder

    def __init__(self, model: Embedder, mine: Miner, margin: float = 0.0):
        super().__init__()
        self.model, self.mine, self.margin = model, mine, margin

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        yield JointMove("model", lambda: self.encode(batch), self.compare)

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """Both projections, by the same weights, and what says who is alike."""
        marks = {name: batch[name] for name in ("group", "t1", "t2") if name in batch}
        codes = {"z1": self.model.project(batch["x1"]), "z2": self.model.project(batch["x2"])}
        return codes | {"group": batch["ids"]} | marks

    def negatives(self, codes: dict[str, Tensor]) -> Tensor:
        """Which second views are no match for which first one (n, n)."""
        return differ(codes["group"], codes["group"])

    def compare(self, codes: dict[str, Tensor]) -> Loss:
        """Of all pairs of a step."""
        z1, z2 = (normalize(codes[name], dim=-1) for name in ("z1", "z2"))
        similarity = z1 @ z2.T
        positive = similarity.diagonal()
        index = self.mine(similarity.detach(), self.negatives(codes), positive.detach())
        found = index >= 0
        negative, count = similarity.gather(1, index.clamp(min=0)), found.sum().clamp(min=1)
        push = ((negative - self.margin).relu() * found).sum() / count
        told = {"positive": positive.mean(), "negative": (negative * found).sum() / count}
        return Loss({"pull": (1 - positive).mean(), "push": push}, told)


class TemporalSiamese(Siamese):
    """x1 and x2 are frames of a sequence (`group`) at times t1 and t2, near each other; frames that are farther apart
    than the window, or of other sequences, are negatives."""

    def __init__(self, model: Embedder, mine: Miner, margin: float = 0.0, window: int = 1):
        super().__init__(model, mine, margin)
        self.window = window

    def negatives(self, codes: dict[str, Tensor]) -> Tensor:
        apart = (codes["t1"][:, None] - codes["t2"]).abs() > self.window
        return apart | differ(codes["group"], codes["group"])


class SimCLR(JointEmbedding):
    """A batch has x1 and x2 (b, c, h, w)."""

    model: Embedder

    def __init__(self, model: Embedder, tau: float = 0.5):
        super().__init__()
        self.model, self.tau = model, tau

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        yield JointMove("model", lambda: self.encode(batch), self.compare)

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """Projections of both views, taken as one batch."""
        z1, z2 = self.model.project(torch.cat([batch["x1"], batch["x2"]])).chunk(2)
        return {"z1": z1, "z2": z2}

    def compare(self, codes: dict[str, Tensor]) -> Loss:
        loss = nt_xent(codes["z1"], codes["z2"], self.tau).mean()
        return Loss({"loss": loss}, {"positive": cosine(codes["z1"], codes["z2"]).mean()})


class MoCo(JointEmbedding):
    """`queue` keys of `width` numbers; the key encoder follows with a momentum."""

    model: Embedder
    queue: Tensor
    oldest: Tensor

    def __init__(self, model: torch.nn.Module, queue: int, width: int, momentum: float = 0.999, tau: float = 0.07):
        super().__init__()
        self.model = model  # type: ignore[assignment]
        self.keys = slow_copy(model)
        self.momentum, self.tau = momentum, tau
        self.register_buffer("queue", random_units(queue, width))
        self.register_buffer("oldest", torch.zeros((), dtype=torch.long))
        self.fresh: Tensor | None = None  # the keys of the step that is being taken, of all its parts

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        yield JointMove("model", lambda: self.encode(batch), self.compare)
        if self.fresh is not None:  # the parts of one step all come here: once is enough
            follow(self.keys, self.model, self.momentum)  # type: ignore[arg-type]
            self.enqueue(self.fresh)
            self.fresh = None

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """Queries by the encoder, keys by its slow copy, without a gradient."""
        with torch.no_grad():
            k: Tensor = self.keys.project(batch["x2"])  # type: ignore[operator]
        return {"q": self.model.project(batch["x1"]), "k": k, "ids": batch["ids"]}

    def compare(self, codes: dict[str, Tensor]) -> Loss:
        q, k = codes["q"], codes["k"].detach()
        self.fresh = normalize(k, dim=-1)[codes["ids"].argsort(stable=True)]
        return Loss({"loss": against_queue(q, k, self.queue, self.tau).mean()}, {"positive": cosine(q, k).mean()})

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """The oldest go, these take their places."""
        size = len(self.queue)
        keys = keys[-size:].to(self.queue.dtype)
        places = (self.oldest + torch.arange(len(keys), device=keys.device)) % size
        self.queue[places] = keys
        self.oldest.add_(len(keys)).remainder_(size)


class PIRL(JointEmbedding):
    """A batch has an image x1, the shuffled pieces of it (b, k, ..), its row in the memory, and numbers that choose
    the negatives: `noise` (b, N) in 0..1."""

    memory: Tensor

    def __init__(self, model: torch.nn.Module, images: int, width: int, momentum: float = 0.5, tau: float = 0.07,
                 share: float = 0.5):  # fmt: skip
        super().__init__()
        self.model, self.momentum, self.tau, self.share = model, momentum, tau, share
        self.register_buffer("memory", random_units(images, width))
        self.fresh: tuple[Tensor, Tensor] | None = None

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        yield JointMove("model", lambda: self.encode(batch), self.compare)
        if self.fresh is not None:
            self.remember(*self.fresh)
            self.fresh = None

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """The vectors of the image and of its pieces."""
        images, pieces = self.model.project(batch["x1"]), self.model.project_pieces(batch["pieces"])
        return {"images": images, "pieces": pieces, "row": batch["row"], "noise": batch["noise"]}

    def compare(self, codes: dict[str, Tensor]) -> Loss:
        row, images = codes["row"], codes["images"]
        self.fresh = row, images.detach()
        m, negatives = self.memory[row], self.memory[self.others(row, codes["noise"])]
        of_pieces = noise_contrastive(codes["pieces"], m, negatives, self.tau).mean()
        of_images = noise_contrastive(images, m, negatives, self.tau).mean()
        told = {"positive": cosine(codes["pieces"], images).mean()}
        return Loss({"pieces": self.share * of_pieces, "images": (1 - self.share) * of_images}, told)

    def others(self, row: Tensor, u: Tensor) -> Tensor:
        """Rows of negatives (b, N), never the image's own, all others equally likely."""
        n = len(self.memory) - 1
        drawn = (u.detach() * n).long().clamp(max=n - 1)
        return drawn + (drawn >= row[:, None])

    @torch.no_grad()
    def remember(self, row: Tensor, z: Tensor) -> None:
        """m_i ← w m_i + (1 − w) z_i, brought back to length 1."""
        unit = normalize(z, dim=-1).to(self.memory.dtype)
        self.memory[row] = normalize(self.momentum * self.memory[row] + (1 - self.momentum) * unit, dim=-1)
