from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from descend.models.gpt2 import GPT2, GPT2Config
from descend.nn.init import (
    Rule,
    backward,
    bound,
    fans,
    forget_bias_,
    he,
    he_backward,
    initialize,
    lecun,
    normal_,
    orthogonal_,
    set_radius_,
    shrink_,
    spectral_radius,
    uniform_,
    xavier,
)
from descend.theory.residual import residual_layers, residual_scale
from tests.close import close

SAME = 12345


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(SAME)


@pytest.mark.system("xavier-init")
@pytest.mark.system("xavier-init", "gain")
@pytest.mark.system("he-init")
@pytest.mark.system("he-init", "modes")
@pytest.mark.system("lecun-and-fan-out-init")
@pytest.mark.system("lecun-and-fan-out-init", "distributions")
@pytest.mark.parametrize("shape", [(30, 20), (8, 5, 3, 3)])
@pytest.mark.parametrize(
    ("draw", "rule", "theirs"),
    [
        (normal_, xavier, nn.init.xavier_normal_),
        (uniform_, xavier, nn.init.xavier_uniform_),
        (normal_, partial(xavier, gain=5 / 3), partial(nn.init.xavier_normal_, gain=5 / 3)),
        (uniform_, partial(xavier, gain=5 / 3), partial(nn.init.xavier_uniform_, gain=5 / 3)),
        (normal_, he, partial(nn.init.kaiming_normal_, nonlinearity="relu")),
        (uniform_, he, partial(nn.init.kaiming_uniform_, nonlinearity="relu")),
        (normal_, he_backward, partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")),
        (uniform_, he_backward, partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="relu")),
        (normal_, lecun, partial(nn.init.kaiming_normal_, nonlinearity="linear")),
        (uniform_, lecun, partial(nn.init.kaiming_uniform_, nonlinearity="linear")),
        (normal_, backward, partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="linear")),
        (uniform_, backward, partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="linear")),
    ],
)
def test_draws_are_those_of_torch(
    shape: tuple[int, ...], draw: Callable[..., Tensor], rule: Rule, theirs: Callable[..., Tensor]
) -> None:
    """From the same generator, number by number."""
    close(draw(torch.empty(shape), rule, seeded()), theirs(torch.empty(shape), generator=seeded()))


@pytest.mark.system("lecun-and-fan-out-init")
@pytest.mark.system("lecun-and-fan-out-init", "distributions")
@pytest.mark.system("xavier-init")
@pytest.mark.system("xavier-init", "gain")
@pytest.mark.system("he-init")
@pytest.mark.system("he-init", "modes")
@pytest.mark.parametrize("rule", [lecun, backward, xavier, he, he_backward])
def test_variances_and_distributions(rule: Rule) -> None:
    variance = rule(200, 300)
    a, b = (draw(torch.empty(300, 200), rule, seeded()).double() for draw in (normal_, uniform_))
    for sample in (a, b):
        assert abs(sample.var().item() / variance - 1) < 0.03  # 60 000 numbers
    assert b.abs().max() <= bound(variance)
    close(bound(variance) ** 2 / 3, variance)
    assert stats.kstest(a.flatten().numpy(), stats.norm(0, math.sqrt(variance)).cdf).pvalue > 0.01
    assert stats.kstest(b.flatten().numpy(), stats.uniform(-bound(variance), 2 * bound(variance)).cdf).pvalue > 0.01


@pytest.mark.system("he-init")
@pytest.mark.system("he-init", "convolution")
def test_fans_of_a_convolution() -> None:
    assert fans(nn.Conv2d(5, 8, 3).weight) == (5 * 9, 8 * 9)
    assert fans(nn.Linear(5, 8).weight) == (5, 8)
    close(he(5 * 9, 72), 2 / (5 * 3**2))
    with pytest.raises(ValueError, match="no fans"):
        fans(torch.empty(3))


@pytest.mark.system("xavier-init")
@pytest.mark.system("xavier-init", "erratum")
def test_xavier_is_the_harmonic_mean() -> None:
    """DLN: "averaging these two values"; equal to the arithmetic mean only when the fans are."""
    forth, back = lecun(300, 100), backward(300, 100)
    close(xavier(300, 100), 2 / (1 / forth + 1 / back))
    assert abs(xavier(300, 100) - (forth + back) / 2) > 1e-3
    close(xavier(200, 200), (lecun(200, 200) + backward(200, 200)) / 2)


@pytest.mark.system("lecun-and-fan-out-init")
@pytest.mark.system("lecun-and-fan-out-init", "kept")
@pytest.mark.parametrize(("rule", "forward"), [(lecun, True), (backward, False)])
def test_linear_layers_keep_the_variance(rule: Rule, forward: bool) -> None:
    """Widths 400 and 100 in turn: LeCun keeps the signal, fan-out the gradient."""
    random = seeded()
    weights = [normal_(torch.empty(out, n), rule, random).double() for n, out in ((400, 100), (100, 400)) * 3]
    x = torch.randn(200, 400, generator=random).double()
    for w in weights if forward else reversed(weights):
        x = x @ w.T if forward else x @ w
        assert 0.6 < x.var() < 1.6
    other = torch.randn(200, 400, generator=random).double()
    w = weights[0] if forward else weights[-1]
    wrong = other[:, : w.shape[0]] @ w if forward else other[:, : w.shape[1]] @ w.T
    assert not 0.6 < wrong.var() < 1.6  # the other way it does not hold


@pytest.mark.system("xavier-init")
@pytest.mark.system("xavier-init", "transformer")
def test_a_transformer_as_vom_initializes_it() -> None:
    """Every matrix Xavier uniform, biases 0, γ = 1, β = 0."""
    net = nn.TransformerEncoderLayer(32, 4, 64)
    with torch.no_grad():
        net.norm1.bias.fill_(3.0)
    initialize(net, xavier, uniform_, seeded())
    for name, parameter in net.named_parameters():
        if parameter.dim() == 2:
            fan_in, fan_out = fans(parameter)
            a = math.sqrt(6 / (fan_in + fan_out))
            assert 0.95 * a < parameter.abs().max() <= a, name
        elif "bias" in name:
            assert (parameter == 0).all(), name
        else:
            assert (parameter == 1).all(), name


@pytest.mark.system("residual-depth-init")
@pytest.mark.system("residual-depth-init", "scale")
def test_residual_projections_start_smaller() -> None:
    """1/√24 = 0.2041 for the smallest GPT-2, 1/√96 = 0.1021 for the largest; the model and `shrink_` share the rule."""
    close([residual_scale(residual_layers(d)) for d in (12, 48)], torch.tensor([0.2041241452, 0.1020620726]))
    w = torch.randn(50, 50, generator=seeded())
    scaled = w.clone()
    shrink_([scaled], residual_layers(12))
    close(scaled, w / math.sqrt(24))
    torch.manual_seed(0)
    model = GPT2(GPT2Config(vocab=50, context=8, width=128, depth=2, heads=2))
    ratio = model.h[0].mlp.down.weight.std() / model.h[0].mlp.up.weight.std()
    assert abs(ratio.item() - residual_scale(residual_layers(2))) < 0.01


@pytest.mark.system("residual-depth-init")
@pytest.mark.system("residual-depth-init", "variance")
@pytest.mark.parametrize("layers", [8, 64])
def test_residual_stream_keeps_its_variance_at_any_depth(layers: int) -> None:
    """x + Σ f_i: the sum of N shrunken terms has the variance of one; without it, of N."""
    random, width = seeded(), 128
    x = torch.randn(64, width, generator=random)
    plain, shrunken = x, x
    for _ in range(layers):
        w = normal_(torch.empty(width, width), lecun, random)
        small = w.clone()
        shrink_([small], layers)
        normed = [s / s.std(-1, keepdim=True) for s in (plain, shrunken)]
        plain, shrunken = plain + normed[0] @ w.T, shrunken + normed[1] @ small.T
    assert 1.5 < shrunken.var() < 2.5  # 1 of x and 1 of the sum
    assert 0.7 * layers < plain.var() < 1.5 * layers


@pytest.mark.system("recurrent-init")
@pytest.mark.system("recurrent-init", "orthogonal")
def test_orthogonal_and_rescaled_recurrences() -> None:
    w = orthogonal_(torch.empty(40, 40, dtype=torch.float64), seeded())
    close(w.T @ w, torch.eye(40).double())
    close(spectral_radius(w), torch.tensor(1.0).double())
    v = normal_(torch.empty(40, 40, dtype=torch.float64), xavier, seeded())
    assert 0.8 < spectral_radius(v) < 1.2  # Xavier is near 1 too
    for rho in (0.5, 0.95, 1.3):
        close(spectral_radius(set_radius_(v, rho)), torch.tensor(rho).double())
    close(spectral_radius(torch.tensor([[0.0, 2.0], [-2.0, 0.0]])), torch.tensor(2.0))  # complex eigenvalues
    with pytest.raises(ValueError, match="spectral radius is 0"):
        set_radius_(torch.zeros(3, 3), 1.0)


@pytest.mark.system("recurrent-init")
@pytest.mark.system("recurrent-init", "flat-gradient")
def test_gradients_of_a_linear_recurrence_over_time() -> None:
    """h_t = W h_{t−1}: flat for an orthogonal W, ρ^t along the top eigenvector of a matrix rescaled to ρ."""
    w = orthogonal_(torch.empty(16, 16, dtype=torch.float64), seeded())
    shrinking = set_radius_(w @ torch.linspace(0.1, 2.0, 16).double().diag() @ w.T, 0.9)
    flat, top = torch.randn(16, generator=seeded()).double(), w[:, -1]
    start = flat.norm()
    for _ in range(30):
        flat, top = w.T @ flat, shrinking.T @ top
    close(flat.norm(), start)
    close(top.norm(), torch.tensor(0.9**30, dtype=torch.float64))


@pytest.mark.system("recurrent-init")
@pytest.mark.system("recurrent-init", "forget-bias")
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_forget_gate_starts_open(value: float) -> None:
    """σ(1) = 0.73 of the cell remains after a step that sees nothing; σ(0) = 0.5."""
    lstm = nn.LSTM(3, 5, num_layers=2, bidirectional=True).double()
    forget_bias_(lstm, value)
    biases = {name: p for name, p in lstm.named_parameters() if "bias" in name}
    assert len(biases) == 8
    for name, p in biases.items():
        i, f, g, o = p.chunk(4)
        assert (torch.cat([i, g, o]) == 0).all()
        assert (f == (value if "ih" in name else 0)).all()
    cell = nn.LSTMCell(3, 5).double()
    forget_bias_(cell, value)
    c = torch.ones(1, 5).double()
    nothing = torch.zeros(1, 3).double(), (torch.zeros(1, 5).double(), c)
    close(cell(*nothing)[1], torch.sigmoid(torch.full((1, 5), value).double()))


@pytest.mark.system("recurrent-init")
@pytest.mark.system("recurrent-init", "forget-bias")
def test_an_open_forget_gate_remembers_longer() -> None:
    """The gradient from the last cell state to the first over 20 steps: about 0.73^20 against 0.5^20."""
    torch.manual_seed(0)
    x, kept = torch.randn(20, 1, 4), {}
    for value in (0.0, 1.0):
        torch.manual_seed(1)
        lstm = nn.LSTM(4, 32)
        forget_bias_(lstm, value)
        c = torch.zeros(1, 1, 32, requires_grad=True)
        _, (_, last) = lstm(x, (torch.zeros(1, 1, 32), c))
        (gradient,) = torch.autograd.grad(last.sum(), c)
        kept[value] = gradient.abs().mean().item()
    assert 50 * kept[0.0] < kept[1.0]


@pytest.mark.system("lstm", "long-memory")
@pytest.mark.system("recurrent-init")
@pytest.mark.system("recurrent-init", "long-lag")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_long_lag_is_learned_only_with_an_open_forget_gate(seed: int) -> None:
    """MF 16.4.3: recall a bit that was shown 20 steps ago, after 40 steps of training; log 2 = 0.693 is guessing."""
    found = {}
    for value in (0.0, 1.0):
        torch.manual_seed(seed)
        lstm, head = nn.LSTM(2, 16, batch_first=True), nn.Linear(16, 1)
        forget_bias_(lstm, value)
        optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.02)
        for _ in range(40):
            x, bit = 0.3 * torch.randn(64, 20, 2), torch.randint(2, (64,)).float()
            x[:, :, 0] = 0
            x[:, 0, 0] = 2 * bit - 1
            loss = nn.functional.binary_cross_entropy_with_logits(head(lstm(x)[0][:, -1])[:, 0], bit)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found[value] = loss.item()
    assert found[0.0] > 0.6
    assert found[1.0] < 0.1
