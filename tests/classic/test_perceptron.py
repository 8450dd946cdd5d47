"""The perceptron's rule: order of mistakes, ties, labels, rate, cycles."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Perceptron as SklearnPerceptron
from torch import Tensor

from descend.classic.perceptron import Perceptron, learn
from descend.errors import Mistake
from tests.close import close

CORNERS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
AND, XOR = (torch.tensor(y, dtype=torch.float64) for y in ([-1, -1, -1, 1], [-1, 1, 1, -1]))


def separable(n: int = 60) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.where(x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) + 0.3 > 0, 1.0, -1.0)
    return x, y.double()


@pytest.mark.system("perceptron")
@pytest.mark.system("perceptron", "rule", "augmented")
def test_it_is_the_rule_written_out() -> None:
    """The rule as MF 2.3 prints it, an example after the other, with a bias of its own."""
    x, y = separable()
    w, b, path = torch.zeros(3, dtype=torch.float64), 0.0, []
    mistakes = True
    while mistakes:
        mistakes = False
        for x_i, y_i in zip(x, y, strict=True):
            if y_i * (w @ x_i + b) <= 0:
                w, b, mistakes = w + y_i * x_i, b + float(y_i), True
                path.append(torch.cat([w, torch.tensor([b], dtype=torch.float64)]))
    run = learn(x, y)
    assert run.converged
    assert run.updates == len(path) > 3
    close(run.path[1:], torch.stack(path))
    assert run.errors[-1] == 0


@pytest.mark.system("perceptron")
@pytest.mark.system("perceptron", "rule")
def test_agrees_with_scikit_learn() -> None:
    x, y = separable()
    ours = Perceptron().fit(x, y)
    theirs = SklearnPerceptron(shuffle=False, tol=None, max_iter=ours.learned.epochs).fit(x, y)
    close(ours.w, torch.tensor(theirs.coef_[0]))
    close(ours.b, torch.tensor(theirs.intercept_[0]))
    assert (ours.predict(x) == torch.tensor(theirs.predict(x))).all()


@pytest.mark.system("perceptron")
@pytest.mark.system("perceptron", "rate-scales")
def test_the_rate_only_scales() -> None:
    x, y = separable()
    one, small = learn(x, y), learn(x, y, eta=0.25)
    assert one.updates == small.updates
    close(0.25 * one.path, small.path)


@pytest.mark.system("perceptron")
@pytest.mark.system("perceptron", "encodings")
def test_labels_ties_and_halves() -> None:
    x, y = separable()
    signs, bits = Perceptron().fit(x, y), Perceptron().fit(x, (y > 0).long())
    close(signs.w, bits.w)
    assert set(signs.predict(x).tolist()) == {-1, 1}
    assert set(bits.predict(x).tolist()) == {0, 1}
    on_the_line = -signs.b * signs.w / signs.w.norm() ** 2
    tied = Perceptron(epochs=1).fit(CORNERS[:1], torch.tensor([1]))
    assert tied.learned.updates == 1  # z = 0 at the start is a mistake, although it is predicted as 1
    tied.w, tied.b = tied.w * 0, tied.b * 0
    assert tied.predict(CORNERS).tolist() == [1, 1, 1, 1]
    ahead = torch.stack([on_the_line + 0.1 * signs.w, on_the_line - 0.1 * signs.w])
    assert signs.predict(ahead).tolist() == [1, -1]
    with pytest.raises(Mistake, match="two classes"):
        Perceptron().fit(x, torch.arange(60))


@pytest.mark.system("xor-and-inseparability")
@pytest.mark.system("xor-and-inseparability", "cycles")
def test_xor_goes_round_for_ever() -> None:
    run = learn(CORNERS, XOR, epochs=50)
    assert not run.converged
    assert run.cycle is not None
    first, again = run.cycle
    assert first < again <= 50
    assert run.best_errors == 2
    assert learn(CORNERS, AND).cycle is None


@pytest.mark.system("xor-and-inseparability")
@pytest.mark.system("xor-and-inseparability", "cycles")
def test_a_cycle_repeats_its_updates() -> None:
    run = learn(CORNERS, XOR, epochs=20)
    assert run.cycle is not None
    per_pass = run.updates // 20
    first, again = (e * per_pass for e in run.cycle)
    close(run.path[first], run.path[again])
    close(run.path[first + 1 : first + per_pass], run.path[again + 1 : again + per_pass])
