"""Mixed precision: torch's GradScaler as oracle, what survives float16, overflow, master weights."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from descend.optim.scaling import LossScaler, MixedPrecision, finite, lost_below, smallest_subnormal, through_half
from tests.close import close

SLUG = "mixed-precision"


def problem(seed: int = 0) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(seed)
    x = torch.randn(64, 8)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)), x, (x[:, :1] - x[:, 1:2]).tanh()


@pytest.mark.system("mixed-precision", "scale")
@pytest.mark.system(SLUG)
def test_the_rule_is_that_of_gradscaler() -> None:
    """Twenty steps with overflows at some: the same weights, skipped steps and scales."""
    bad = {3, 4, 11}
    runs = []
    for ours in (True, False):
        model, x, y = problem()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler = LossScaler(2.0**10, interval=3)
        theirs = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
        scales = []
        for step in range(20):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean() * (float("inf") if step in bad else 1.0)
            if ours:
                scaler.backward(loss)
                assert scaler.step(optimizer) is (step not in bad)
                scales.append(scaler.scale)
            else:
                theirs.scale(loss).backward()
                theirs.step(optimizer)
                theirs.update()
                scales.append(theirs.get_scale())
        runs.append((scales, [p.detach() for p in model.parameters()]))
    assert runs[0][0] == runs[1][0]
    assert min(runs[0][0]) < 2.0**10 < max(runs[0][0])
    for a, b in zip(runs[0][1], runs[1][1], strict=True):
        close(a, b)
        assert a.isfinite().all()


@pytest.mark.system("mixed-precision", "scale")
@pytest.mark.system(SLUG)
def test_the_scale_stops_growing_before_it_overflows_and_can_be_fixed() -> None:
    scaler = LossScaler(2.0**127, interval=1)
    scaler.update(True)
    assert scaler.scale == 2.0**127
    fixed = LossScaler(2.0**15, growth=1.0, backoff=1.0, interval=1)
    for whole in (True, False, True):
        fixed.update(whole)
    assert fixed.scale == 2.0**15


@pytest.mark.system("mixed-precision", "underflow")
@pytest.mark.system(SLUG)
def test_what_survives_float16() -> None:
    """MF 11.3.2, erratum: 1e-3 to 1e-5 survive; 0 begins at 2⁻²⁵, and the scale moves that by 2¹⁵."""
    g = torch.tensor([1e-3, 1e-4, 1e-5], dtype=torch.float64)
    assert ((through_half(g) - g).abs() / g < 2e-3).all()
    assert lost_below() == 2.0**-25
    assert lost_below(2.0**15) == pytest.approx(9.1e-13, rel=1e-2)
    assert smallest_subnormal() == 2.0**-24
    for scale in (1.0, 2.0**15):
        edge = torch.tensor([0.999, 1.0, 1.001], dtype=torch.float64) * lost_below(scale)
        assert (through_half(edge, scale) == 0).tolist() == [True, True, False]


@pytest.mark.system("mixed-precision", "underflow")
@pytest.mark.system(SLUG)
def test_gradients_that_underflow_without_a_scale_are_learned_from_with_it() -> None:
    """A loss so small that its gradients are lost in float16."""
    moved = {}
    for scale in (1.0, 2.0**15):
        model = nn.Linear(4, 1, bias=False)
        before = model.weight.detach().clone()
        mixed = MixedPrecision(model, LossScaler(scale))
        optimizer = torch.optim.SGD(mixed.master, lr=1e4)
        loss = (model(torch.full((1, 4), 1e-3).half()).float() * 1e-5).sum()  # gradients of 1e-8
        assert mixed.step(loss, optimizer)
        moved[scale] = mixed.master[0].detach() - before
    assert not moved[1.0].any()
    close(moved[2.0**15], torch.full((1, 4), -1e-4), loosen=100)  # float16 has three digits


@pytest.mark.system("mixed-precision", "scaled-in-float32")
@pytest.mark.system(SLUG)
def test_a_scaled_loss_is_float32() -> None:
    """MF 11.3.1: 2.0 · 2¹⁵ overflows in float16; here the product is made in float32."""
    assert not (torch.tensor(2.0).half() * 2.0**15).isfinite()
    w = torch.tensor(1.0, dtype=torch.float16, requires_grad=True)
    scaler = LossScaler(2.0**15)
    scaler.backward(2 * w * 0.5)  # the loss is 1, the scaled gradient 2¹⁵ fits
    assert scaler.unscale([w])
    assert w.grad is not None
    assert w.grad.item() == 1.0


@pytest.mark.system("mixed-precision", "master-weights")
@pytest.mark.system(SLUG)
def test_small_updates_add_up_in_the_master_weights() -> None:
    """VOM-B.68: 1 + 1e-4 is 1 in float16; a hundred such steps are 1.01 in the master copy, and in the module."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    alone = copy.deepcopy(model).half()
    mixed = MixedPrecision(model, LossScaler(2.0**8))
    optimizer = torch.optim.SGD(mixed.master, lr=1e-4)
    for _ in range(100):
        mixed.step(-model(torch.ones(1, 1).half()).sum(), optimizer)
        with torch.no_grad():
            alone.weight += 1e-4
    close(mixed.master[0], torch.tensor([[1.01]]))
    close(model.weight, torch.tensor([[1.01]]).half())
    assert alone.weight.item() == 1.0


@pytest.mark.system("mixed-precision", "training")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_training_ends_where_float32_does(dtype: torch.dtype) -> None:
    model, x, y = problem(1)
    full = copy.deepcopy(model)
    optimizer = torch.optim.SGD(full.parameters(), lr=0.2)
    mixed = MixedPrecision(model, LossScaler(2.0**30, interval=50), dtype)  # too large for float16: it is found
    other = torch.optim.SGD(mixed.master, lr=0.2)
    taken, first = 0, (full(x) - y).square().mean().item()
    for _ in range(150):
        optimizer.zero_grad()
        (full(x) - y).square().mean().backward()
        optimizer.step()
        taken += mixed.step((model(x.to(dtype)).float() - y).square().mean(), other)
    assert (taken == 150) == (dtype == torch.bfloat16)  # float16 skips until the scale fits
    assert taken > 120
    ends = [(f(x.to(d)).float() - y).square().mean().item() for f, d in ((full, torch.float32), (model, dtype))]
    assert ends[1] == pytest.approx(ends[0], rel=0.3)
    assert max(ends) < 0.2 * first
    assert finite(mixed.master)


@pytest.mark.system(SLUG)
def test_autocast_with_float32_weights_needs_the_scaler_alone() -> None:
    model, x, y = problem(2)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.2), LossScaler(2.0**12)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = (model(x) - y).square().mean()
        scaler.backward(loss)
        scaler.step(optimizer)
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.system(SLUG)
def test_state_and_mistakes() -> None:
    scaler, other = LossScaler(interval=7), LossScaler()
    for whole in (True, False, True, True):
        scaler.update(whole)
    other.load_state_dict(scaler.state_dict())
    assert (other.scale, other.good) == (2.0**14, 2)
    with pytest.raises(ValueError, match="call backward"):
        scaler.unscale([torch.zeros(1)])
