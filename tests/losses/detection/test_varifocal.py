"""The varifocal loss and RT-DETR's criterion: worked values, the minimum, transformers' on the same outputs, noise."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from descend.contracts import Boxes, count_units
from descend.losses.detection.denoising import EACH, add_noise, pair_noisy
from descend.losses.detection.set_matching import Targets
from descend.losses.detection.varifocal import VarifocalSetPrediction, varifocal, varifocal_logits
from descend.ops.boxes import to_centre, to_corners
from tests.close import close
from tests.losses.detection.test_set_prediction import NONE, labels, make

DOUBLE = torch.float64


@pytest.mark.system("varifocal-loss")
@pytest.mark.system("varifocal-loss", "equation")
def test_worked_values() -> None:
    close(varifocal(torch.tensor(0.8, dtype=DOUBLE), torch.tensor(0.9, dtype=DOUBLE)), 0.3255956887)
    close(varifocal(torch.tensor(0.3, dtype=DOUBLE), torch.tensor(0.0, dtype=DOUBLE)), 0.02407555872)
    p, q = torch.rand(2, 50, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    close(varifocal(p, q), q * torch.nn.functional.binary_cross_entropy(p, q, reduction="none"))
    assert torch.isfinite(varifocal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]))).all()


@pytest.mark.system("varifocal-loss", "minimum")
@pytest.mark.parametrize("q", [0.3, 0.5, 0.9])
def test_the_minimum_is_at_p_equal_q(q: float) -> None:
    p = torch.linspace(0.001, 0.999, 999, dtype=DOUBLE)
    assert abs(float(p[varifocal(p, torch.full_like(p, q)).argmin()]) - q) < 1e-9
    at = torch.tensor(q, dtype=DOUBLE, requires_grad=True)
    varifocal(at, at.detach()).backward()
    assert at.grad is not None
    assert abs(float(at.grad)) < 1e-12


@pytest.mark.system("varifocal-loss", "gradient")
def test_gradients() -> None:
    """Through all of it by the equation; in training the weights are constants: w (σ(z) − q)."""
    p = torch.rand(20, dtype=DOUBLE).clamp(0.05, 0.95).requires_grad_()
    q = torch.rand(20, dtype=DOUBLE) * (torch.arange(20) % 2)
    assert torch.autograd.gradcheck(lambda p: varifocal(p, q), p)
    z = torch.randn(20, dtype=DOUBLE, requires_grad=True)
    hit = (q > 0).to(DOUBLE)
    loss = varifocal_logits(z, q, hit)
    close(loss, varifocal(z.sigmoid(), q))
    loss.sum().backward()
    weight = torch.where(q > 0, q, 0.75 * z.sigmoid() ** 2)
    assert z.grad is not None
    close(z.grad, (weight * (z.sigmoid() - q)).detach())


@pytest.mark.system("varifocal-loss", "peer")
@pytest.mark.system("rt-detr", "every-layer")
def test_the_criterion_is_theirs() -> None:
    """On the rows of the encoder and on every layer, before the division by the number of boxes."""
    peer = pytest.importorskip("transformers.loss.loss_rt_detr")
    transformers = pytest.importorskip("transformers")
    found, truth = make()
    criterion = peer.RTDetrLoss(transformers.RTDetrConfig(num_labels=4))
    theirs: dict[str, Any] = {"class": 0.0, "l1": 0.0, "giou": 0.0}
    for logits, boxes in zip(found.logits, found.boxes, strict=True):
        one = criterion({"logits": logits, "pred_boxes": boxes}, labels(truth))
        for name, key in {"class": "loss_vfl", "l1": "loss_bbox", "giou": "loss_giou"}.items():
            theirs[name] += one[key] * 5
    ours = VarifocalSetPrediction()(found, truth, NONE)
    for name, value in theirs.items():
        close(ours.terms[name] * count_units(truth), value)


def noisy_targets() -> Targets:
    _, truth = make()
    return Targets(to_centre(truth.boxes / torch.tensor([80.0, 60, 80, 60])), truth.classes)


@pytest.mark.system("rt-detr", "denoising")
def test_noise() -> None:
    """Positive boxes keep half of their sides, negative ones lose more; a quarter of the classes change."""
    y = noisy_targets()
    u = torch.rand(3, 4000, generator=torch.Generator().manual_seed(0))
    noisy = add_noise(y, u, groups=60, classes=4)
    kinds = noisy.classes.view(3, 60, 2, 3)
    real = y.classes[:, None, None] >= 0
    assert (kinds.masked_select(~real) == 4).all()
    changed = (kinds != y.classes[:, None, None]).masked_select(real).float().mean()
    assert abs(float(changed) - 0.25 * 0.75) < 0.06
    moved = (to_corners(noisy.boxes.view(3, 60, 2, 3, 4)) - to_corners(y.boxes)[:, None, None]).abs()
    share = (moved / (y.boxes[..., 2:] / 2).repeat(1, 1, 2)[:, None, None])[2, :, :, 1]  # an object within the image
    inside = to_corners(noisy.boxes).view(3, 60, 2, 3, 4)[2, :, :, 1]
    free = (inside > 0) & (inside < 1)
    assert (share[:, 0][free[:, 0]] <= 1 + 1e-4).all()
    assert (share[:, 1][free[:, 1]] >= 1 - 1e-4).all()
    assert noisy.positive.view(3, 60, 2, 3)[:, :, 1].sum() == 0
    close(add_noise(y, u, 2, 4, move=0.0).boxes.view(3, 2, 2, 3, 4)[0, 1, 0], y.boxes[0])


@pytest.mark.system("rt-detr", "denoising")
def test_who_sees_whom_and_who_belongs_to_whom() -> None:
    y = noisy_targets()
    noisy = add_noise(y, torch.rand(3, 400), groups=2, classes=4)
    seen = noisy.seen.view(3, 2, 6, 2, 6)
    assert not seen[:, 0, :, 1].any()
    assert not seen[:, 1, :, 0].any()
    assert seen[0, 0, :, 0].all()
    assert seen[2, 1, :, 1].tolist() == [[False, True, True] * 2] * 6
    pairs = pair_noisy(noisy, 3, layers=2)
    assert len(pairs.query) == 2 * 2 * 5
    assert set(zip(pairs.image.tolist(), pairs.query.tolist(), pairs.object.tolist(), strict=True)) == {
        (image, 6 * group + i, i) for group in (0, 1) for image, i in ((0, 0), (0, 1), (0, 2), (2, 1), (2, 2))
    }


@pytest.mark.system("rt-detr", "denoising")
def test_noise_of_an_object_does_not_depend_on_padding() -> None:
    y, u = noisy_targets(), torch.rand(3, 2 * 2 * 3 * EACH)
    wide = Targets(torch.cat([y.boxes, torch.zeros(3, 4, 4)], 1), torch.cat([y.classes, torch.full((3, 4), -1)], 1))
    a, b = add_noise(y, u, 2, 4).boxes.view(3, 4, 3, 4), add_noise(wide, u, 2, 4).boxes.view(3, 4, 7, 4)
    assert torch.equal(a, b[:, :, :3])


@pytest.mark.system("rt-detr", "denoising")
def test_the_loss_of_denoising_queries() -> None:
    """Perfect answers cost nothing for the boxes; without a model that can decode them there are no such terms."""
    found, truth = make()
    criterion = VarifocalSetPrediction(groups=2)
    u = torch.rand(3, criterion.chance)
    y = noisy_targets()

    def denoise(classes: Tensor, boxes: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        clean = y.boxes[:, None].expand(-1, 4, -1, -1).flatten(1, 2)
        right = torch.nn.functional.one_hot(y.classes.clamp_min(0), 4)[:, None].expand(-1, 4, -1, -1).flatten(1, 2)
        positive = torch.tensor([1.0, 0.0]).repeat_interleave(3).repeat(2)[:, None]
        logits = 40 * (2 * right * positive - 1)
        return logits.expand(2, -1, -1, -1), clean.expand(2, -1, -1, -1)

    terms = criterion(found._replace(denoise=denoise), truth, u).terms
    assert set(terms) == {"class", "l1", "giou", "noisy class", "noisy l1", "noisy giou"}
    for name in ("noisy class", "noisy l1", "noisy giou"):
        assert float(terms[name]) < 1e-4
    assert set(criterion(found, truth, u).terms) == {"class", "l1", "giou"}
    none = Boxes(torch.zeros(3, 0, 4), torch.zeros(3, 0, dtype=torch.long), torch.zeros(3, 0))
    assert torch.isfinite(criterion(found._replace(denoise=denoise), none, u).total())
