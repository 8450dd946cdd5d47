"""Magnitude pruning: the smallest weights go, exactly as many as are asked for, and stay away."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune as torchs

from descend.contracts import Rule
from descend.engine.ema import Ema
from descend.errors import Mistake
from descend.nn.pruning import choose_above, choose_masks, prune
from descend.ops.pruning import above, largest, sparsity
from descend.optim.kept_zeros import KeepZeros
from descend.optim.rules import LBFGS, SGD, Adam, AdamW

SLUG = "magnitude-pruning"


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 20), nn.ReLU(), nn.Linear(20, 3)
    )


@pytest.mark.system(SLUG, "threshold")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_threshold(tau: float) -> None:
    """Zeros are the share of |w| ≤ τ; what is exactly τ goes; torch's own pruning by a mask gives the same weights."""
    w = draw(20, 30)
    w[0, :5] = tau
    mask = above(w, tau)
    assert sparsity(w * mask) == float((w.abs() <= tau).double().mean())
    assert torch.equal((w * mask)[mask], w[mask])
    assert (w[~mask].abs() <= tau).all()
    with pytest.raises(ValueError, match="a threshold of -1"):
        above(w, -1)


@pytest.mark.system(SLUG, "target")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("share", [0.0, 0.25, 0.9, 1.0])
def test_target_as_torch_prunes(share: float) -> None:
    w = draw(7, 11)
    mask = largest(w, share)
    assert int((~mask).sum()) == round(share * 77)
    layer = nn.Linear(11, 7)
    layer.weight.data = w.clone()
    torchs.l1_unstructured(layer, "weight", amount=round(share * 77))
    assert torch.equal(layer.weight_mask.bool(), mask)
    same = torch.ones(10)
    assert (~largest(same, 0.3)).nonzero().flatten().tolist() == [0, 1, 2]  # equal ones: the first


@pytest.mark.system(SLUG, "target")
def test_by_layer_and_over_all() -> None:
    """Together, layers with small weights lose more; torch's global pruning agrees."""
    model, other = make(), make()
    with torch.no_grad():
        for one in (model, other):
            one[3].weight.mul_(0.2)
    layers = {"0": other[0], "3": other[3], "5": other[5]}
    total = sum(layer.weight.numel() for layer in layers.values())
    masks = choose_masks(model, 0.8, "all")
    torchs.global_unstructured(
        [(layer, "weight") for layer in layers.values()], torchs.L1Unstructured, amount=round(0.8 * total)
    )
    assert all(torch.equal(masks[name], layer.weight_mask.bool()) for name, layer in layers.items())
    assert prune(model, masks) == pytest.approx(0.8, abs=1 / total)
    assert sparsity(model[3].weight) > 0.8 > sparsity(model[0].weight)
    model = make()
    prune(model, choose_masks(model, 0.8, "layer"))
    for name, layer in layers.items():
        w = model.get_parameter(f"{name}.weight")
        assert int((w == 0).sum()) == round(0.8 * layer.weight.numel())
    assert all((bias != 0).all() for name, bias in model.named_parameters() if name.endswith("bias"))


@pytest.mark.system(SLUG, "refused")
def test_everything_pruned() -> None:
    with pytest.raises(Mistake, match=r"a sparsity of 1.0 leaves no weight of 0, nor of any other layer"):
        choose_masks(make(), 1.0)
    with pytest.raises(Mistake, match=r"a threshold of 100.0 leaves no weight of 0, nor of any"):
        choose_above(make(), 100.0)
    model = make()
    with torch.no_grad():
        model[5].weight.mul_(1e-6)
    with pytest.raises(Mistake, match=r"a sparsity of 0.9 leaves no weight of 5; give less, or prune each layer"):
        choose_masks(model, 0.9)
    assert choose_masks(model, 0.9, "layer").keys() == {"0", "3", "5"}
    with pytest.raises(Mistake, match="a ReLU has no linear layer and no convolution to prune"):
        choose_masks(nn.ReLU(), 0.5)


@pytest.mark.system(SLUG, "mask-kept")
@pytest.mark.parametrize("rule", [SGD(0.1, 0.9, 0.01), AdamW(1e-2, weight_decay=0.1), Adam(1e-2)])
def test_zeros_stay_in_fine_tuning(rule: Rule) -> None:
    """With momentum and decay, in the average of the weights, and in an optimizer that was saved in between: to the
    bits of one that was not, though a weight has become 0 since."""
    x, y = draw(16, 1, 8, 8), torch.arange(16) % 3

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    model = make()
    masks = choose_masks(model, 0.7)
    prune(model, masks)
    before, optimizer, ema = model[0].weight.detach().clone(), KeepZeros(rule).build(model), Ema(model, 0.9)
    for t in range(3):
        step(model, optimizer)
        ema.update(t + 1)
    kept = masks["0"]
    assert (model[0].weight[~kept] == 0).all()
    assert (model[0].weight[kept] != before[kept]).all()
    with ema.swap_in():
        assert all((model.get_parameter(f"{name}.weight")[~mask] == 0).all() for name, mask in masks.items())
    again = make()
    again.load_state_dict(model.state_dict())
    with torch.no_grad():
        again[0].weight[kept.nonzero()[0].unbind()] = 0  # a chance zero is no pruned weight
    resumed = KeepZeros(rule).build(again)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    again.load_state_dict(model.state_dict())
    for _ in range(2):
        step(model, optimizer)
        step(again, resumed)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))


def test_a_rule_that_walks_along_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="LBFGS walks along lines"):
        KeepZeros(LBFGS()).build(make())
