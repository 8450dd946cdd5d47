"""What the probe measures, against the same by hand."""

from __future__ import annotations

import torch
from torch import nn

from descend.diagnosis.probe import Probe, UnitWatch, measure_moves, probe
from descend.engine.distributed import World
from descend.engine.training import Training
from descend.models.mlp import MLPConfig
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from tests.close import close
from tests.diagnosis.patients import LENET, digits


def ready(model: MLPConfig | object = LENET, lr: float = 0.1) -> Training:
    recipe = digits(model, optim=SGD(lr=lr, momentum=0.0), schedule=Constant())  # type: ignore[arg-type]
    return Training(recipe.build(), recipe.loop, recipe.schedule, World())


def test_signals_and_gradients_are_those_of_autograd() -> None:
    config = MLPConfig(hidden=(16, 8), activations=("tanh",))
    layers, _ = probe(ready(config))
    training = ready(config)
    model, task, signals = training.parts.model, training.parts.task, []
    for _ in range(4):
        batch = next(training.parts.stream)
        steps = model.trace(batch["x"])
        loss = nn.functional.cross_entropy(steps[-1][1], batch["y"])
        signals.append([g.norm() for g in torch.autograd.grad(loss, [z for z, _ in steps], retain_graph=True)])
        loss.backward()
    assert [layer.name for layer in layers] == ["model.layers.0", "model.layers.1", "model.layers.2"]
    close(torch.tensor([layer.signal for layer in layers]), torch.tensor(signals).mean(dim=0))
    close([layer.gradient for layer in layers], torch.stack([m.weight.grad.norm() / 4 for m in model.layers]))
    close([layer.weight for layer in layers], torch.stack([m.weight.norm() for m in model.layers]))
    assert task.training


def test_the_move_is_that_of_one_step() -> None:
    """θ ← θ − η g at the rate that is asked for, not the recipe's."""
    training, other = ready(lr=0.1), ready(lr=0.1)
    layers, _ = probe(training)
    for _ in range(4):
        next(other.parts.stream)
    batch = next(other.parts.stream)
    nn.functional.cross_entropy(other.parts.model(batch["x"]), batch["y"]).backward()
    expected = [0.5 * p.grad.norm() / p.norm() for p in other.parts.model.parameters() if p.dim() > 1]
    close([layer.move for layer in measure_moves(training, layers, rate=0.5)], torch.stack(expected))


def test_functions_and_modules_are_both_seen() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 2)
            self.relu = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.c(torch.tanh(self.b(self.relu(self.a(x))))).sigmoid()

    net, x = Net(), torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        net.a.bias[:3] = -100.0
        net.b.weight.mul_(0.0)
        net.b.bias.copy_(torch.tensor([10.0, -10.0, 10.0, 0.0, 0.0]))
    watch = Probe(net)
    with watch.watching():
        net(x)
    dead, ends = watch.look.units(last="c")  # the head's sigmoid is not among them
    assert (dead.name, dead.kind, dead.count, dead.dead) == ("a", "relu", 4, 0.75)
    assert (ends.name, ends.kind) == ("b", "tanh")
    close(ends.saturated, 0.6)
    assert not any(module._forward_hooks for module in net.modules())


def test_a_unit_is_dead_only_if_every_batch_says_so() -> None:
    look = UnitWatch()
    look.keep("relu", torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    look.keep("relu", torch.tensor([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
    assert [units.dead for units in look.units(last="")] == []  # before any layer: no name of a layer
    look = UnitWatch()
    look.after = "layer"
    look.keep("relu", torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    look.keep("relu", torch.tensor([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
    close(look.units(last="")[0].dead, 1 / 3)


def test_a_channel_is_one_unit() -> None:
    look = UnitWatch()
    look.after = "conv"
    images = torch.zeros(2, 3, 4, 4)
    images[0, 1, 2, 2] = 1.0
    look.keep("relu", images)
    assert look.units(last="")[0].count == 3
    close(look.units(last="")[0].dead, 2 / 3)
