"""Segmentation as a task: exact scores for any batching, micro-batches that add up, few images learnt."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import jaccard_score
from torch import Tensor, nn

from descend.contracts import as_loss
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, one_object
from descend.engine.evaluation import score_set
from descend.losses.segmentation import VOID, dice_loss, mask_cross_entropy
from descend.models.unet import UNet, UNetConfig
from descend.tasks.segment import Segment
from tests.close import close

pytestmark = pytest.mark.system("semantic-segmentation-task")


def task(dice: float = 0.0, padding: int = 1) -> Segment:
    torch.manual_seed(0)
    return Segment(UNet(UNetConfig(3, 4, 4, 1, padding)), torch.tensor([1.0, 2.0, 0.5, 1.0]), dice)


def batch(n: int = 6) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(1)
    y = torch.randint(4, (n, 16, 12), generator=random)
    y[:, :3], y[0] = VOID, VOID
    return {"x": torch.randn(n, 3, 16, 12, generator=random), "y": y.to(torch.uint8)}


def cut(whole: dict[str, Tensor], *sizes: int) -> list[dict[str, Tensor]]:
    parts = {name: tensor.split(list(sizes)) for name, tensor in whole.items()}
    return [{name: pieces[i] for name, pieces in parts.items()} for i in range(len(sizes))]


@pytest.mark.system("semantic-segmentation-task", "scores")
@torch.no_grad()
def test_mean_iou_is_that_of_all_pixels_for_any_batching() -> None:
    one, whole = task(), batch()
    found = score_set(one, [whole])
    for parts in (cut(whole, 1, 5), cut(whole, 2, 3, 1)):
        again = score_set(one, parts)
        assert again.keys() == found.keys() == {"loss", "accuracy", "mean_iou"}
        close(torch.tensor(list(again.values())), torch.tensor(list(found.values())))
    answer, keep = one.model(whole["x"]).argmax(1), whole["y"] != VOID
    a, b = whole["y"][keep].numpy(), answer[keep].numpy()
    close(torch.tensor(found["mean_iou"]), torch.tensor(jaccard_score(a, b, average="macro")))
    close(torch.tensor(found["accuracy"]), torch.tensor((a == b).mean()))


@pytest.mark.parametrize("dice", [0.0, 0.7])
def test_the_move_is_the_mean_of_the_images_losses(dice: float) -> None:
    one, whole = task(dice), batch()
    logits = one.model(whole["x"])
    expected = mask_cross_entropy(logits, whole["y"], one.weight) + dice * dice_loss(logits, whole["y"])
    [(player, closure, _)] = list(one.moves(whole))
    assert player == "model"
    close(as_loss(closure()).total(), expected.mean())
    halves = [next(one.moves(part)).value().total() for part in cut(whole, 3, 3)]
    close(sum(halves) / 2, as_loss(closure()).total())


def test_a_model_without_padding_answers_for_the_middle() -> None:
    one = task(padding=0)
    whole = {"x": torch.randn(2, 3, 32, 36), "y": torch.randint(4, (2, 32, 36))}
    logits = one.model(whole["x"])
    assert logits.shape == (2, 4, 16, 20)
    expected = mask_cross_entropy(logits, whole["y"][:, 8:24, 8:28], one.weight).mean()
    close(next(one.moves(whole)).value().total(), expected)
    assert score_set(one, [whole])["mean_iou"] > 0


@pytest.mark.system("unet")
@pytest.mark.system("unet", "few-images")
def test_a_few_images_are_learnt() -> None:
    """Six images of cells: round, bright or dark, on a mottled ground."""
    made = one_object(6, 32, generator(3), [("circle", colour) for colour in COLOURS])
    torch.manual_seed(0)
    model = UNet(UNetConfig(3, 2, 8, 2, 1, "batch"))
    one, data = Segment(model, torch.ones(2)), {"x": 4 * (made.x - 0.5), "y": made.mask}
    rule = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(40):
        rule.zero_grad()
        next(one.moves(data)).value().total().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rule.step()
    with torch.no_grad():
        assert score_set(one, [data])["mean_iou"] > 0.9
