"""Any model with any cost; the heads' gradients; one trainer for images and texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sklearn import metrics as sklearn_metrics
from torch import Tensor, nn
from torch.nn import functional as F

from descend.engine.distributed import World
from descend.engine.evaluation import score_set
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as TINY_GPT2
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from descend.tasks.regress import Regress
from descend.tasks.supervise import CLASSES, NUMBERS, YES_OR_NO, Head, Supervise, squared_error
from descend.tasks.weighted import ClassifyWeighted
from tests.close import close

Z = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def slope(cost: Callable[[Tensor, Tensor], Tensor], z: Tensor, y: Tensor) -> Tensor:
    z = z.clone().requires_grad_()
    return torch.autograd.grad(cost(z, y).sum(), z)[0]


@pytest.mark.system("output-heads-by-task")
@pytest.mark.system("output-heads-by-task", "gradients")
def test_gradients_of_the_heads() -> None:
    y = torch.tensor([0, 2, 1, 1])
    close(slope(CLASSES.cost, Z, y), CLASSES.answer(Z) - F.one_hot(y, 3))
    bits = torch.tensor([0, 1, 1, 0])
    close(slope(YES_OR_NO.cost, Z[:, 0], bits), YES_OR_NO.answer(Z[:, 0]) - bits)
    numbers = Z.flip(0)
    close(slope(NUMBERS.cost, Z, numbers), 2 * (NUMBERS.answer(Z) - numbers))
    half = slope(lambda z, t: 0.5 * squared_error(z, t), Z, numbers)  # S940 1.5
    close(half, Z - numbers)


@pytest.mark.system("output-heads-by-task")
@pytest.mark.system("output-heads-by-task", "heads", "mean")
def test_costs_are_torchs_and_one_value_an_example() -> None:
    y, bits, numbers = torch.tensor([0, 2, 1, 1]), torch.tensor([0.0, 1, 1, 0]).double(), Z.flip(0)
    close(CLASSES.cost(Z, y), F.cross_entropy(Z, y, reduction="none"))
    close(YES_OR_NO.cost(Z[:, :1], bits), F.binary_cross_entropy_with_logits(Z[:, 0], bits, reduction="none"))
    close(NUMBERS.cost(Z, numbers).mean(), 3 * F.mse_loss(Z, numbers))  # torch's mean is over parts, too
    close(NUMBERS.cost(Z[:, 0], numbers[:, 0]).mean(), F.mse_loss(Z[:, 0], numbers[:, 0]))


@pytest.mark.system("supervised-model-composition")
@pytest.mark.system("supervised-model-composition", "any-pair")
@pytest.mark.parametrize("head", [CLASSES, YES_OR_NO, NUMBERS])
@pytest.mark.parametrize("layers", [(nn.Linear(2, 3),), (nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3))])
def test_loss_and_gradient_of_any_composition(head: Head, layers: tuple[nn.Module, ...]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*layers).double()
    x = torch.randn(4, 2, dtype=torch.float64)
    y = torch.tensor([0, 2, 1, 1]) if head is CLASSES else torch.rand(4, 3, dtype=torch.float64).round()
    task = Supervise(model, lambda z, t: head.cost(z, t).reshape(4, -1).sum(1))
    [(player, loss, _)] = list(task.moves({"x": x, "y": y}))
    assert player == "model"
    close(loss(), task.score({"x": x, "y": y})["loss"].mean())
    names = [name for name, _ in model.named_parameters()]

    def of(*values: Tensor) -> Tensor:
        z = torch.func.functional_call(model, dict(zip(names, values, strict=True)), (x,))
        return task.cost(z, y).mean()

    values = tuple(p.detach().clone().requires_grad_() for p in model.parameters())
    assert torch.autograd.gradcheck(of, values)


@pytest.mark.system("supervised-model-composition")
@pytest.mark.system("supervised-model-composition", "one-trainer")
def test_one_trainer_for_an_image_and_a_text_model() -> None:
    """The same task and the same engine lower the loss of both."""
    torch.manual_seed(0)
    images, tokens = torch.rand(8, 1, 5, 5), torch.randint(TINY_GPT2.vocab, (8, 6))
    image_model, text_model = MLP(MLPConfig(25, (16,), 3)), GPT2(TINY_GPT2)
    cases: list[tuple[nn.Module, dict[str, Tensor]]] = [
        (image_model, {"x": images, "y": torch.arange(8) % 3}),
        (text_model, {"x": tokens[:, :-1], "y": tokens[:, 1:]}),
    ]

    class Same:
        def __init__(self, batch: dict[str, Tensor]):
            self.batch = batch

        def __next__(self) -> dict[str, Tensor]:
            return self.batch

        def state_dict(self) -> dict[str, int]:
            return {}

        def load_state_dict(self, state: dict[str, int]) -> None: ...

    for model, batch in cases:
        batch = {**batch, "ids": torch.arange(8)}
        task = Supervise(model, lambda z, y: CLASSES.cost(z, y).reshape(len(y), -1).mean(1))
        parts = Parts(task=task, model=model, stream=Same(batch), valid=[batch], optims={"model": SGD(lr=0.1)})
        training = Training(parts, Loop(steps=20), Constant(), World())
        before = training.evaluate()["loss"]
        for _ in range(20):
            training.advance()
        assert training.evaluate()["loss"] < 0.8 * before


def test_regression_is_scored_in_the_unit_of_its_target() -> None:
    model = nn.Linear(2, 1)
    batch = {"x": torch.randn(5, 2), "y": torch.randn(5)}
    task = Regress(model, unit=10.0)
    z = model(batch["x"])[:, 0]
    close(task.score(batch)["loss"], (z - batch["y"]) ** 2)
    halves = [{name: part[rows] for name, part in batch.items()} for rows in (slice(2), slice(2, 5))]
    scores = score_set(task, halves)
    predicted, y = 10 * z.detach().numpy(), 10 * batch["y"].numpy()
    assert scores["mae"] == pytest.approx(sklearn_metrics.mean_absolute_error(y, predicted), rel=1e-6)
    assert scores["rmse"] == pytest.approx(sklearn_metrics.root_mean_squared_error(y, predicted), rel=1e-6)
    assert scores["r2"] == pytest.approx(sklearn_metrics.r2_score(y, predicted), rel=1e-6)
    assert scores["loss"] == pytest.approx(F.mse_loss(z, batch["y"]).item(), rel=1e-6)
    [(_, loss, _)] = list(task.moves(batch))
    close(loss(), F.mse_loss(z, batch["y"]))


@pytest.mark.system("class-imbalance")
def test_weights_count_in_the_loss_and_not_in_the_score() -> None:
    model = nn.Linear(2, 2)
    batch = {"x": torch.randn(6, 2), "y": torch.tensor([0, 0, 0, 0, 1, 1])}
    task = ClassifyWeighted(model, torch.tensor([0.75, 1.5]))
    losses = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    [(_, loss, _)] = list(task.moves(batch))
    close(loss(), (losses * torch.tensor([0.75, 0.75, 0.75, 0.75, 1.5, 1.5])).mean())
    close(task.score(batch)["loss"], losses)
    assert "weight" not in task.state_dict()
