"""LoRA: the layer against dense algebra, merged and not; where it may stand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.models import make_model
from descend.models.gpt2 import GPT2, TINY
from descend.models.lenet import TINY as LENET
from descend.models.mlp import TINY as MLP
from descend.nn.adapters.adapter import find_places
from descend.nn.adapters.lora import LowRankUpdate, LowRankUpdates
from tests.close import close


def trained(inputs: int = 5, outputs: int = 6, rank: int = 2, alpha: float = 8.0) -> LowRankUpdate:
    """An update whose B is not 0 any more."""
    torch.manual_seed(0)
    update = LowRankUpdate(inputs, outputs, rank, alpha / rank).double()
    nn.init.normal_(update.b)
    return update


def shapes() -> tuple[Tensor, Tensor]:
    return torch.randn(6, 5, dtype=torch.float64), torch.randn(3, 4, 5, dtype=torch.float64)


@pytest.mark.system("lora", "merge-with-scale")
def test_merged_is_the_same_function_only_with_the_scale_and_comes_out_again() -> None:
    update, (w, x) = trained(), shapes()
    linear = nn.Linear(5, 6, bias=True).double()
    linear.weight.data = w
    y = update.add(linear, (x,), linear(x))
    close(y, linear(x) + 4.0 * x @ update.a.T @ update.b.T)
    close(torch.nn.functional.linear(x, update.merge(w), linear.bias), y)
    printed = torch.nn.functional.linear(x, w + update.b @ update.a, linear.bias)
    assert (printed - y).abs().max() > 0.1  # W + B A, as VOM prints it, is another function
    close(update.unmerge(update.merge(w)), w)
    equal = trained(alpha=2.0)  # α = r: the scale is 1, and the printed form is right
    close(w + equal.b @ equal.a, equal.merge(w))


@pytest.mark.system("lora", "mf-form")
def test_the_other_book_writes_a_b_transposed() -> None:
    update = trained(alpha=2.0)
    a, b = update.b, update.a.T  # MF: A (out, r), B (in, r)
    close(update.delta(), a @ b.T)


@pytest.mark.system("lora", "initialisation")
def test_training_begins_at_the_frozen_layer_and_b_moves_first() -> None:
    torch.manual_seed(2)
    update = LowRankUpdate(400, 300, 8, 2.0)
    assert abs(update.a.var().item() * 8 - 1) < 0.1
    assert not update.b.any()
    x = torch.randn(7, 400)
    y = update(x)
    assert not y.any()
    (y * (1 + torch.arange(300))).sum().backward()
    assert update.a.grad is not None
    assert not update.a.grad.any()
    assert update.b.grad is not None
    assert update.b.grad.abs().min() > 0


@pytest.mark.system("lora")
def test_gradients_are_those_of_the_dense_update() -> None:
    """∂L/∂B = s (∂L/∂ΔW) Aᵀ, ∂L/∂A = s Bᵀ (∂L/∂ΔW), with ∂L/∂ΔW from autograd through a dense matrix."""
    update, (w, x) = trained(), shapes()
    linear = nn.Linear(5, 6, bias=False).double().requires_grad_(False)
    linear.weight.data = w
    upstream = torch.randn(3, 4, 6, dtype=torch.float64)
    (update.add(linear, (x,), linear(x)) * upstream).sum().backward()
    dense = update.delta().detach().requires_grad_()
    (torch.nn.functional.linear(x, w + dense) * upstream).sum().backward()
    assert dense.grad is not None
    assert linear.weight.grad is None
    close(update.b.grad, update.scale * dense.grad @ update.a.T)
    close(update.a.grad, update.scale * update.b.T @ dense.grad)
    assert torch.linalg.matrix_rank(update.delta()) == update.rank == 2


def test_dropout_acts_on_what_the_update_reads_and_in_training_only() -> None:
    update = trained().float()
    update.dropout = 0.5
    x = torch.randn(2, 5)
    close(update.eval()(x), update.eval()(x))
    torch.manual_seed(3)
    kept = nn.functional.dropout(x, 0.5)
    torch.manual_seed(3)
    close(update.train()(x), update.eval()(kept))


def test_a_rank_beyond_that_of_the_matrix_is_refused() -> None:
    with pytest.raises(Mistake, match="rank 6, but a matrix of 6 × 5 has at most 5"):
        LowRankUpdate(5, 6, 6, 1.0)


@pytest.mark.system("lora", "any-model")
@pytest.mark.parametrize(("config", "image"), [(LENET, True), (MLP, False)])
def test_the_linear_layers_of_models_without_attention(config: object, image: bool) -> None:
    torch.manual_seed(0)
    model = make_model(config).eval()
    names = [name for name, m in model.named_modules() if isinstance(m, nn.Linear)]
    adapter = LowRankUpdates.make(model, names, rank=2)
    x = torch.randn(2, *((1, 28, 28) if image else (model.config.inputs,)))
    x = torch.randn(2, *model.config.image) if image else x
    before = model(x)
    for _, update in adapter.items():
        nn.init.normal_(update.b, std=0.1)
    adapter.attach(model)
    after = model(x)
    adapter.detach()
    assert torch.equal(model(x), before)
    assert not torch.allclose(after, before)
    close(adapter.merged(model)(x), after)
    with pytest.raises(Mistake, match="has no attention layers; name the maps"):
        LowRankUpdates.make(model)


@pytest.mark.system("lora", "targets")
def test_targets_are_found_by_the_end_of_their_name_and_a_wrong_one_names_the_nearest() -> None:
    model = GPT2(TINY)
    assert find_places(model, ["attn.qkv"], (nn.Linear,)) == ["h.0.attn.qkv", "h.1.attn.qkv"]
    assert find_places(model, ["h.1.mlp.up", "out"], (nn.Linear,)) == ["h.0.attn.out", "h.1.attn.out", "h.1.mlp.up"]
    assert LowRankUpdates.make(model).places == ("h.0.attn.qkv", "h.0.attn.out", "h.1.attn.qkv", "h.1.attn.out")
    with pytest.raises(Mistake, match=r"GPT2 has no module 'attn.qvk'. Did you mean 'attn.qkv'"):
        LowRankUpdates.make(model, ["attn.qvk"])
    with pytest.raises(Mistake, match="ln_1 of GPT2 is a LayerNorm, not a Linear: name one of"):
        LowRankUpdates.make(model, ["ln_1"])


@pytest.mark.system("lora", "merge-with-scale")
def test_a_merged_copy_shares_every_other_tensor_and_leaves_the_base_alone() -> None:
    torch.manual_seed(0)
    model = GPT2(TINY).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    adapter = LowRankUpdates.make(model, ["attn.qkv"], rank=2)
    for _, update in adapter.items():
        nn.init.normal_(update.b)
    adapter.attach(model)
    merged = adapter.merged(model)
    tokens = torch.randint(61, (2, 9))
    close(merged(tokens), model(tokens))
    for name, tensor in merged.state_dict().items():
        shared = tensor.data_ptr() == model.state_dict()[name].data_ptr()
        assert shared == (not name.endswith("qkv.weight")), name
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
