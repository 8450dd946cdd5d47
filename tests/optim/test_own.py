"""What all optimizers of ours promise: the equations in numpy, resume to the bit, blocks, two groups, and descent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from descend.engine.state import pack, unpack
from descend.errors import Mistake
from descend.optim import book_rules as book
from descend.optim import elementwise, rules
from descend.optim.conjugate import PolakRibiere
from descend.optim.lion import Lion
from descend.optim.trajectory import quadratic, rosenbrock
from tests.close import close
from tests.optim.problems import OWN, TORCH, descend, name, problem, train

SLUGS = {
    "HeavyBall": "momentum",
    "Nesterov": "nesterov-momentum",
    "IterateAveraging": "iterate-averaging",
    "Subgradient": "subgradient-descent",
    "GradientWindow": "gradient-window-averaging",
    "LocalGains": "local-adaptive-gains",
    "VelocityGains": "local-adaptive-gains",
    "PlainRprop": "rprop",
    "RMSPropInside": "rmsprop",
    "AdagradInside": "adagrad",
    "AdamInside": "adamw",
    "Lion": "lion",
    "FletcherReeves": "conjugate-gradient",
    "PolakRibiere": "conjugate-gradient",
    "HessianFree": "hessian-free-optimization",
    "SGD": "momentum",
    "ShiftedNesterov": "nesterov-momentum",
    "RMSprop": "rmsprop",
    "Adagrad": "adagrad",
    "Adadelta": "adadelta",
    "Rprop": "rprop",
    "Adam": "adam",
    "AdamL2": "adamw",
    "AdamW": "adamw",
    "UnscaledAdamW": "adamw",
    "LBFGS": "lbfgs",
}
Equation = Callable[[np.ndarray, list[np.ndarray], float], np.ndarray]


def cases(found: list[Any]) -> list[Any]:
    return [pytest.param(rule, id=name(rule), marks=pytest.mark.system(SLUGS[name(rule)])) for rule in found]


def heavy_ball(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    d = 0 * w
    for g in grads:
        d = 0.9 * d - 0.05 * (g + decay * w)
        w = w + d
    return w


def subgradient(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    for k, g in enumerate(grads, 1):
        w = w - 0.05 / np.sqrt(k) * (g + decay * w)
    return w


def window(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    seen: list[np.ndarray] = []
    for g in grads:
        seen = [*seen, g + decay * w][-3:]
        w = w - 0.05 * np.mean(seen, 0)
    return w


def local_gains(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    gain, last = np.ones_like(w), None
    for g in grads:
        g = g + decay * w
        if last is not None:
            gain = np.clip(np.where(g * last > 0, gain + 0.05, gain * 0.95), 0.1, 10)
        w, last = w - 0.05 * gain * g, g
    return w


def velocity_gains(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    gain, d = np.ones_like(w), 0 * w
    for t, g in enumerate(grads):
        g = g + decay * w
        if t:
            gain = np.clip(np.where(g * -d > 0, gain + 0.05, gain * 0.95), 0.1, 10)
        d = 0.9 * d - 0.02 * gain * g
        w = w + d
    return w


def plain_rprop(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    delta, last = np.full_like(w, 0.01), 0 * w
    for g in grads:
        delta = np.clip(delta * np.select([g * last > 0, g * last < 0], [1.2, 0.5], 1.0), 1e-6, 50)
        w, last = w - np.sign(g) * delta, g
    return w


def rmsprop(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    e = 0 * w
    for g in grads:
        g = g + decay * w
        e = 0.9 * e + 0.1 * g**2
        w = w - 0.01 * g / np.sqrt(e + 1e-8)
    return w


def adagrad(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    total = 0 * w
    for g in grads:
        g = g + decay * w
        total = total + g**2
        w = w - 0.05 * g / np.sqrt(total + 1e-8)
    return w


def adam(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    m, v = 0 * w, 0 * w
    for t, g in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mhat, vhat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        w = (1 - 0.01 * decay) * w - 0.01 * mhat / np.sqrt(vhat + 1e-8)
    return w


def lion(w: np.ndarray, grads: list[np.ndarray], decay: float) -> np.ndarray:
    m = 0 * w
    for g in grads:
        w = w - 0.005 * (np.sign(0.9 * m + 0.1 * g) + decay * w)
        m = 0.99 * m + 0.01 * g
    return w


EQUATIONS: dict[type, Equation] = {
    book.HeavyBall: heavy_ball,
    book.Subgradient: subgradient,
    book.GradientWindow: window,
    book.LocalGains: local_gains,
    book.VelocityGains: velocity_gains,
    book.PlainRprop: plain_rprop,
    book.RMSPropInside: rmsprop,
    book.AdagradInside: adagrad,
    book.AdamInside: adam,
    book.Lion: lion,
}


@pytest.mark.system("lion", "decay")
@pytest.mark.system("adamw", "inside")
@pytest.mark.system("rmsprop", "both-places")
@pytest.mark.system("adagrad", "inside")
@pytest.mark.system("rprop", "full-batch")
@pytest.mark.system("local-adaptive-gains", "rule")
@pytest.mark.system("gradient-window-averaging", "window")
@pytest.mark.parametrize("rule", cases([rule for rule in OWN if type(rule) in EQUATIONS]))
@pytest.mark.parametrize("block", [1 << 17, 5])
def test_ten_steps_follow_the_equation(rule: Any, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups: a matrix with decay, a vector without; whole, and cut into blocks of five numbers."""
    monkeypatch.setattr(elementwise, "BLOCK", block)
    random = np.random.default_rng(3)
    starts = random.normal(size=(3, 4)), random.normal(size=7)
    params = [nn.Parameter(torch.tensor(start)) for start in starts]
    grads = [[random.normal(size=start.shape) for start in starts] for _ in range(10)]
    optimizer = rule.build(nn.ParameterList(params))
    for pair in grads:
        for p, g in zip(params, pair, strict=True):
            p.grad = torch.tensor(g)
        optimizer.step()
    decays = getattr(rule, "weight_decay", 0.0), 0.0
    for k, (p, start, decay) in enumerate(zip(params, starts, decays, strict=True)):
        close(p, torch.tensor(EQUATIONS[type(rule)](start, [pair[k] for pair in grads], decay)))


@pytest.mark.parametrize("rule", cases([*TORCH, *OWN]))
def test_resumes_to_the_bit(rule: Any) -> None:
    """Four steps, state through safetensors' tensors and JSON, four more: the bits of eight steps."""
    whole = train(rule, 8)
    model, x, y = problem()
    optimizer = rule.build(model)
    descend(optimizer, lambda: (model(x) - y).square().mean(), 4)
    tensors: dict[str, torch.Tensor] = {}
    tree = json.loads(json.dumps(pack({"o": optimizer.state_dict(), "w": model.state_dict()}, tensors)))
    saved = unpack(tree, {k: v.clone() for k, v in tensors.items()})
    fresh, _, _ = problem()
    again = rule.build(fresh)
    fresh.load_state_dict(saved["w"])
    again.load_state_dict(saved["o"])
    descend(again, lambda: (fresh(x) - y).square().mean(), 4)
    for a, b in zip(whole.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(a, b)


MOMENTUM, SLOW, ADAPTIVE, CURVED = (0.1, 0.01), (2.4, 0.2), (1.2, 0.1), (0.3, 1e-9)
SPEEDS = {
    "HeavyBall": (book.HeavyBall(2e-3), 150, MOMENTUM),
    "Nesterov": (book.Nesterov(2e-3), 150, MOMENTUM),
    "IterateAveraging": (book.IterateAveraging(2e-3, start=150), 400, SLOW),
    "Subgradient": (book.Subgradient(3e-3), 300, (3.6, 1.2)),
    "GradientWindow": (book.GradientWindow(2e-3, 2), 400, SLOW),
    "LocalGains": (book.LocalGains(5e-4), 300, SLOW),
    "VelocityGains": (book.VelocityGains(2e-4), 200, SLOW),
    "PlainRprop": (book.PlainRprop(0.01), 300, SLOW),
    "RMSPropInside": (book.RMSPropInside(0.01), 300, ADAPTIVE),
    "AdagradInside": (book.AdagradInside(1.0), 300, ADAPTIVE),
    "AdamInside": (book.AdamInside(0.1), 200, ADAPTIVE),
    "Lion": (book.Lion(0.01, weight_decay=0.0), 300, MOMENTUM),
    "FletcherReeves": (book.FletcherReeves(inner=1), 25, CURVED),
    "PolakRibiere": (book.PolakRibiere(inner=1), 25, CURVED),
    "HessianFree": (book.HessianFree(), 15, CURVED),
    "SGD": (rules.SGD(2e-3), 150, MOMENTUM),
    "ShiftedNesterov": (rules.ShiftedNesterov(2e-3), 150, MOMENTUM),
    "RMSprop": (rules.RMSprop(0.01), 300, ADAPTIVE),
    "Adagrad": (rules.Adagrad(1.0), 300, ADAPTIVE),
    "Adadelta": (rules.Adadelta(10.0), 300, ADAPTIVE),
    "Rprop": (rules.Rprop(0.01), 300, ADAPTIVE),
    "Adam": (rules.Adam(0.1), 200, ADAPTIVE),
    "LBFGS": (rules.LBFGS(), 5, CURVED),
}


@pytest.mark.system("lbfgs", "descends")
@pytest.mark.parametrize("which", [pytest.param(n, id=n, marks=pytest.mark.system(SLUGS[n])) for n in SPEEDS])
def test_descends_rosenbrocks_valley_and_a_stiff_bowl(which: str) -> None:
    """The valley from (−1.2, 1), where the loss is 24.2; the bowl (κ = 100) from 55.5; each to the target beside it.

    Side by side for a rule that treats every number alone, one after the other for the rest.
    """
    rule, steps, targets = SPEEDS[which]
    bowl = quadratic(torch.diag(torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)))
    p, q = (nn.Parameter(torch.tensor(start, dtype=torch.float64)) for start in ([-1.2, 1.0], [1.0, 1.0, 1.0]))
    places = [(rosenbrock, p, targets[0]), (bowl, q, targets[1])]
    for group in [[place] for place in places] if targets is CURVED else [places]:
        optimizer = rule.build(nn.ParameterList([theta for _, theta, _ in group]))
        losses = descend(optimizer, lambda group=group: sum(loss(theta) for loss, theta, _ in group), steps)
        assert losses[0] > 20
        for loss, theta, target in group:
            assert loss(theta).item() < target


@pytest.mark.parametrize("rule", cases([rule for rule in OWN if type(rule) in EQUATIONS]))
def test_a_parameter_without_gradient_stays_and_starts_later(rule: Any) -> None:
    """Its own first step comes with its first gradient, also for the bias correction."""
    a, b, alone = (nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(3))
    both, single = rule.build(nn.ParameterList([a, b])), rule.build(nn.ParameterList([alone]))
    for t in range(4):
        a.grad = torch.full((2,), 0.3, dtype=torch.float64)
        if t == 2:
            assert torch.equal(b, torch.ones(2, dtype=torch.float64))
        if t >= 2:
            b.grad, alone.grad = a.grad * 2, a.grad * 2
            single.step()
        both.step()
    assert torch.equal(b, alone)


@pytest.mark.system("nesterov-momentum")
def test_mistakes_are_told() -> None:
    p = nn.Parameter(torch.ones(2))
    with pytest.raises(Mistake, match="lr = -1"):
        Lion([p], lr=-1)
    with pytest.raises(Mistake, match="diverges"):
        book.HeavyBall(momentum=1.0).build(nn.ParameterList([p]))
    with pytest.raises(Mistake, match=r"step\(closure\)"):
        book.Nesterov().build(nn.ParameterList([p])).step()
    with pytest.raises(Mistake, match="one group"):
        PolakRibiere([{"params": [p]}, {"params": [nn.Parameter(torch.ones(1))]}])
    table = nn.Embedding(3, 2, sparse=True)
    optimizer = Lion(table.parameters())
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(Mistake, match="dense"):
        optimizer.step()


@pytest.mark.system("nesterov-momentum")
@pytest.mark.parametrize("rule", [book.Nesterov(), book.IterateAveraging()], ids=name)
def test_a_closure_that_fails_leaves_the_parameters_alone(rule: Any) -> None:
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = rule.build(nn.ParameterList([p]))
    descend(optimizer, lambda: p.square().sum(), 3)
    before = p.detach().clone()
    with pytest.raises(ZeroDivisionError):
        optimizer.step(lambda: 1 / 0)
    close(p, before)


def test_channels_last_and_half_precision() -> None:
    w = nn.Parameter(torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last))
    h = nn.Parameter(torch.ones(5, dtype=torch.bfloat16))
    optimizer = Lion([w, h], lr=0.1)
    w.grad, h.grad = torch.ones(4, 3, 2, 2), torch.ones(5, dtype=torch.bfloat16)
    before = w.detach().clone()
    optimizer.step()
    close(w, before - 0.1)
    assert optimizer.state[h]["m"].dtype is torch.bfloat16
