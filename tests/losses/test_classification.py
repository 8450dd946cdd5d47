"""Classification losses: the books' numbers, torch and scikit-learn, gradients, extreme logits."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import log_loss
from torch import Tensor
from torch.nn import functional as F

from descend.losses.classification import (
    binary_cross_entropy,
    binary_cross_entropy_of_probabilities,
    class_weighted_mean,
    cross_entropy,
    nll,
    soft_cross_entropy,
)
from descend.losses.risk import weighted_risk
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gradient(loss: Tensor, at: Tensor) -> Tensor:
    return torch.autograd.grad(loss, at)[0]


@pytest.mark.system("cross-entropy")
@pytest.mark.system("cross-entropy", "weights")
@pytest.mark.system("nll-loss")
@pytest.mark.system("nll-loss", "weighted-mean", "after-log-softmax")
def test_weighted_losses_of_dln() -> None:
    """DLN-NLL-CE-weighted; values are printed to ten digits, hence the wider tolerance here and below."""
    logits = t([[2.0, 0.5, -1.0], [0.1, 0.2, 3.0], [1.0, 1.0, 1.0]])
    y, w = torch.tensor([0, 2, 1]), t([1.0, 2.0, 5.0])
    for losses in (cross_entropy(logits, y), nll(logits.log_softmax(-1), y)):
        close(w[y] * losses, t([0.2413112967, 0.5480073226, 2.197224577]), loosen=10)
        close(class_weighted_mean(losses, y, w), t(0.3733178996), loosen=10)
    close(class_weighted_mean(cross_entropy(logits, y), y, w), F.cross_entropy(logits, y, w))


@pytest.mark.system("cross-entropy")
@pytest.mark.system("cross-entropy", "targets", "gradient")
@pytest.mark.parametrize(
    ("logits", "y", "loss", "grad"),
    [  # VOM-13.9.1.7 and MF-4.4.3; VOM-12.4.2 (mean over two examples); DLD-1.5 with a hard target
        ([[2.0, 1.0, 0.1]], [0], 0.4170300163, [[-0.3409988611, 0.2424329707, 0.09856589041]]),
        (
            [[2.0, 1.0, 0.1], [0.5, -0.5, 1.5]],
            [0, 2],
            0.4123179904,
            [[-0.1704994306, 0.1212164854, 0.0492829452], [0.1223642355, 0.04501528659, -0.1673795221]],
        ),
        ([[1.0, 0.5, -1.0]], [0], 0.5549569196, None),
        ([[1.0, 0.0, -1.0], [0.5, 0.5, 0.0], [2.0, -1.0, 0.3]], [0, 2, 2], 1.258215606, None),  # DLD-1.6
    ],
)
def test_cross_entropy_of_the_books(logits: object, y: list[int], loss: float, grad: object) -> None:
    z = t(logits).requires_grad_()
    mean = cross_entropy(z, torch.tensor(y)).mean()
    close(mean, t(loss), loosen=10)
    found = gradient(mean, z)
    close(found, (z.softmax(-1) - F.one_hot(torch.tensor(y), 3)) / len(y))  # (p − y) / m, not 2(p − y)
    if grad:
        close(found, t(grad), loosen=10)
    towards = F.one_hot(torch.tensor(y), 3) - z.softmax(-1)
    assert ((found * towards).sum(dim=1) < 0).all()  # erratum VOM-12.4.2-direction: it points away from the target


@pytest.mark.system("cross-entropy")
def test_loss_against_confidence() -> None:
    """VOM-3.10: q = 1, 10, 25, 50, 70, 90, 99%; a distribution enters as logits log q."""
    q = t([0.01, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99])
    logits = torch.stack([q, 1 - q], dim=1).log()
    known = [4.605170186, 2.302585093, 1.386294361, 0.6931471806, 0.3566749439, 0.1053605157, 0.01005033585]
    close(cross_entropy(logits, torch.zeros(7, dtype=torch.long)), t(known), loosen=10)
    dog = t([0.7, 0.1, 0.15, 0.05]).log().requires_grad_()
    loss = cross_entropy(dog[None], torch.tensor([1])).sum()
    close(gradient(loss, dog), t([0.7, -0.9, 0.15, 0.05]))


@pytest.mark.system("cross-entropy")
@pytest.mark.system("cross-entropy", "targets")
def test_soft_targets_are_entropy_plus_divergence() -> None:
    """DLD-1.5."""
    q, z = t([0.5, 0.3, 0.2]), t([1.0, 0.5, -1.0]).requires_grad_()
    loss = soft_cross_entropy(z, q)
    close(loss, t(1.10495692), loosen=10)
    close(loss, -(q * q.log()).sum() + F.kl_div(z.log_softmax(-1), q, reduction="sum"))
    close(gradient(loss, z), t([0.07409699297, 0.04820742788, -0.1223044209]), loosen=10)
    close(soft_cross_entropy(z, t([1.0, 0.0, 0.0])), cross_entropy(z[None], torch.tensor([0]))[0])


@pytest.mark.system("nll-loss", "after-log-softmax")
@pytest.mark.system("cross-entropy")
def test_against_scikit_learn_and_over_positions() -> None:
    z = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(10).view(2, 5) % 4
    losses = cross_entropy(z, y)
    assert losses.shape == (2, 5)
    close(losses.mean(), t(log_loss(y.flatten().numpy(), z.softmax(-1).view(10, 4).numpy(), labels=range(4))))
    close(losses, nll(z.log_softmax(-1), y))


@pytest.mark.system("cross-entropy")
@pytest.mark.system("cross-entropy", "padding")
def test_a_class_of_weight_zero_is_padding() -> None:
    z = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    y = torch.tensor([1, 0, 2, 0])  # 0 is PAD
    loss = class_weighted_mean(cross_entropy(z, y), y, t([0.0, 1.0, 1.0]))
    close(loss, F.cross_entropy(z, y, ignore_index=0))
    assert torch.equal(gradient(loss, z)[[1, 3]], torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.system("binary-cross-entropy")
@pytest.mark.system("binary-cross-entropy", "two-inputs")
def test_binary_cross_entropy_of_the_books() -> None:
    p, y = t([0.9, 0.2, 0.8]), t([1.0, 0.0, 1.0])  # VOM-5.3.2
    close(binary_cross_entropy_of_probabilities(p, y).mean(), t(0.1838825394), loosen=10)
    m, y = t([0.9, 0.2, 0.4, 0.5]), t([1.0, 0.0, 1.0, 0.0])  # DLD-1.4
    known = t([0.1053605157, 0.2231435513, 0.9162907319, 0.6931471806])
    close(binary_cross_entropy_of_probabilities(m, y), known, loosen=10)
    close(binary_cross_entropy(m.logit(), y), known, loosen=10)
    z, y = t([0.7, -1.2, 3.0]), t([1.0, 0.0, 0.0])  # DLN-BCE-logits
    close(binary_cross_entropy(z, y), t([0.4031860489, 0.2632824673, 3.048587352]), loosen=10)
    close(binary_cross_entropy(z, y), F.softplus(z) - y * z)


@pytest.mark.system("binary-cross-entropy")
@pytest.mark.system("binary-cross-entropy", "gradient")
def test_binary_gradients() -> None:
    """MF-4.3: ŷ − y in the logit, (ŷ − y)/(ŷ(1 − ŷ)) in the probability."""
    y = t([0.0, 1.0])
    z = t([0.73, 0.73]).requires_grad_()
    close(gradient(binary_cross_entropy(z, y).sum(), z), t([0.6748052726, -0.3251947274]), loosen=10)
    p = z.detach().sigmoid().requires_grad_()
    loss = binary_cross_entropy_of_probabilities(p, y).sum()
    close(gradient(loss, p), t([3.075080608, -1.48190899]), loosen=10)


@pytest.mark.system("binary-cross-entropy")
@pytest.mark.system("binary-cross-entropy", "two-class")
def test_two_classes_are_one_logit() -> None:
    z = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    y = torch.tensor([0, 1, 1, 0, 1, 0])
    close(binary_cross_entropy(z[:, 1] - z[:, 0], y.double()), cross_entropy(z, y))


@pytest.mark.system("cross-entropy")
@pytest.mark.system("cross-entropy", "extreme")
@pytest.mark.system("binary-cross-entropy")
@pytest.mark.system("binary-cross-entropy", "extreme")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_logits_are_exact(dtype: torch.dtype) -> None:
    z = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype)
    y = torch.arange(3)
    close(cross_entropy(z.expand(3, 3), y), torch.tensor([0.0, 2e4, 1e4], dtype=dtype))
    close(soft_cross_entropy(z, torch.tensor([[0.0, 0.5, 0.5]], dtype=dtype)), torch.tensor([1.5e4], dtype=dtype))
    target = torch.tensor([0.0, 1.0, 0.0], dtype=dtype)
    close(binary_cross_entropy(z[0], target)[:2], torch.tensor([1e4, 1e4], dtype=dtype))
    close(cross_entropy(z + 77, y[:1]) + 1, torch.ones(1, dtype=dtype))  # a shift of all logits changes nothing


@pytest.mark.system("cross-entropy")
@pytest.mark.system("nll-loss")
@pytest.mark.system("binary-cross-entropy")
def test_gradcheck() -> None:
    z = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    y, q = torch.tensor([0, 3, 1]), torch.arange(12.0, dtype=torch.float64).view(3, 4).sin().softmax(-1)
    assert torch.autograd.gradcheck(lambda z: cross_entropy(z, y), z)
    assert torch.autograd.gradcheck(lambda z: soft_cross_entropy(z, q), z)
    assert torch.autograd.gradcheck(lambda z: nll(z.log_softmax(-1), y), z)
    assert torch.autograd.gradcheck(lambda z: binary_cross_entropy(z, q), z)
    assert torch.autograd.gradcheck(lambda z: binary_cross_entropy_of_probabilities(z.sigmoid(), q), z)


def test_certain_probabilities_cost_nothing() -> None:
    assert binary_cross_entropy_of_probabilities(t([1.0, 0.0]), t([1.0, 0.0])).tolist() == [0.0, 0.0]


@pytest.mark.system("cross-entropy", "loss-shapes")
def test_minus_log_recovers_from_a_confidently_wrong_start_and_the_other_shapes_stall() -> None:
    """VOM 13.9.1.4: in the logit −log q has the slope q − 1; those of 1 − q and (1 − q)² are gone at q = 0."""
    shapes = {"log": lambda q: -q.log(), "linear": lambda q: 1 - q, "square": lambda q: (1 - q).square()}
    for seed in range(3):
        x = torch.randn(30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        y = (x[:, 0] > 0).long()
        right, slopes = {}, {}
        for name, shape in shapes.items():
            w = t([[8.0, -8.0], [0.0, 0.0]]).requires_grad_()  # every example far on the wrong side
            for _ in range(40):
                q = (x @ w).softmax(-1).gather(1, y[:, None])[:, 0]
                g = gradient(shape(q).mean(), w)
                slopes.setdefault(name, g.norm().item())
                w = (w - 2.0 * g).detach().requires_grad_()
            right[name] = ((x @ w).argmax(-1) == y).double().mean().item()
        assert slopes["log"] > 2 * max(slopes["linear"], slopes["square"])
        assert right["log"] > 0.9
        assert max(right["linear"], right["square"]) < 0.5


@pytest.mark.system("binary-cross-entropy", "weights")
def test_each_element_may_have_its_own_weight() -> None:
    """DLN-A.65: torch's weight, which multiplies each loss before the mean."""
    z, y, w = t([0.7, -1.2, 3.0]), t([1.0, 0.0, 0.0]), t([0.5, 2.0, 1.0])
    close((w * binary_cross_entropy(z, y)).mean(), F.binary_cross_entropy_with_logits(z, y, w))
    close((w * binary_cross_entropy_of_probabilities(z.sigmoid(), y)).mean(), F.binary_cross_entropy(z.sigmoid(), y, w))
    close(weighted_risk(binary_cross_entropy(z, y), w), (w * binary_cross_entropy(z, y)).sum() / w.sum())
