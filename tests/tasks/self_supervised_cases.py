"""Cases of the tasks that learn representations without labels, and of verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.contracts import Batch, Task
from descend.models import ijepa, vit_mae
from descend.nn.patch_predictor import PatchPredictor
from descend.ops.mining import mine_semi_hard, mine_top
from descend.tasks import jepa, joint_embedding, masked_autoencoder, self_prediction, verify

B = 8


class Linear(nn.Module):
    """Everything that a joint embedding needs of a model, without batch norms: their statistics are a micro-batch's."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.projector, self.predictor = nn.Linear(5, 6), nn.Linear(6, 4), nn.Linear(4, 4)

    def features(self, x: Tensor) -> Tensor:
        return self.encoder(x).tanh()

    def project(self, x: Tensor) -> Tensor:
        return self.projector(self.features(x))


class Predicting(Linear):
    def predict(self, z: Tensor) -> Tensor:
        return self.predictor(z)


class Projecting(Linear):
    def __init__(self) -> None:
        super().__init__()
        del self.predictor


class Jigsaw(Linear):
    def project_pieces(self, pieces: Tensor) -> Tensor:
        return self.predictor(self.project(pieces).mean(1))


class Identifying(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(5, 4), nn.Linear(4, 3)

    def embed(self, x: Tensor) -> Tensor:
        return normalize(self.layer(x), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x))


def views() -> Batch:
    x = torch.randn(B, 5, dtype=torch.float64)
    first, second = (x + 0.1 * torch.randn(B, 5, dtype=torch.float64) for _ in (1, 2))
    labels = {"y": torch.arange(B) % 3, "known": torch.arange(B) < 4}
    return {"x": x, "x1": first, "x2": second, "row": torch.arange(B) * 2, **labels}


def temporal() -> tuple[Task, Batch]:
    time = {"group": torch.arange(B) // 4, "t1": torch.arange(B), "t2": torch.arange(B) + 1}
    return joint_embedding.TemporalSiamese(Projecting(), mine_semi_hard(1.0), 0.1, window=2), views() | time


def pirl() -> tuple[Task, Batch]:
    more = {"pieces": torch.randn(B, 4, 5, dtype=torch.float64), "noise": torch.rand(B, 6, dtype=torch.float64)}
    return joint_embedding.PIRL(Jigsaw(), 20, 4), views() | more


def jepa_case() -> tuple[Task, Batch]:
    config = replace(ijepa.TINY, depth=1)
    task = jepa.JEPA(ijepa.IJepa(config), PatchPredictor(9, config.width, 8, 1, 2), 0.9, 10)
    rows = torch.arange(B)[:, None]
    places = {"context": (rows + torch.arange(4)) % 9, "targets": ((rows + torch.arange(4, 8)) % 9).view(B, 2, 2)}
    labels = {"y": torch.arange(B) % 3, "known": torch.arange(B) < 4}
    return task, {"x": torch.randn(B, 3, 12, 12, dtype=torch.float64), **places, **labels}


def painting() -> tuple[Task, Batch]:
    model = vit_mae.ViTMAEForPreTraining(replace(vit_mae.TINY, depth=1))
    images = {"x": torch.randn(B, 3, 12, 12, dtype=torch.float64), "noise": torch.rand(B, 9, dtype=torch.float64)}
    return masked_autoencoder.PaintHidden(model), images | {"y": torch.arange(B) % 3, "known": torch.arange(B) < 4}


def pairs() -> tuple[Task, Batch]:
    found = views()
    marks = {"y1": torch.arange(B) % 3, "y2": torch.arange(B) % 2, "known": torch.arange(B) < 4}
    return verify.Verify(Identifying()), {"x1": found["x1"], "x2": found["x2"], **marks}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "BYOL": lambda: (self_prediction.BYOL(Predicting(), 0.9, 10), views()),
    "JEPA": jepa_case,
    "MoCo": lambda: (joint_embedding.MoCo(Projecting(), 12, 4, 0.9, 0.2), views()),
    "PIRL": pirl,
    "PaintHidden": painting,
    "Siamese": lambda: (joint_embedding.Siamese(Projecting(), mine_top(3), 0.1), views()),
    "SimCLR": lambda: (joint_embedding.SimCLR(Projecting(), 0.3), views()),
    "SimSiam": lambda: (self_prediction.SimSiam(Predicting()), views()),
    "TemporalSiamese": temporal,
    "Verify": pairs,
}
