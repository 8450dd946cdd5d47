from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.ops.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    layer_norm_outside,
    moments,
    moving,
    restyle,
    rms,
    rms_norm,
    rms_norm_outside,
    scale_and_shift,
    standard_deviation,
)
from tests.close import close

COMPARISON = "normalization-comparison"


def drawn(*shape: int, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(shape, generator=random).double() + torch.arange(shape[1], dtype=torch.float64).view(
        1, -1, *[1] * (len(shape) - 2)
    )


few = settings(max_examples=15, derandomize=True, deadline=None, database=None)


@pytest.mark.system("batch-norm")
@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "layouts")
@pytest.mark.system("instance-norm")
@pytest.mark.system("instance-norm", "images")
@pytest.mark.system("group-norm")
@pytest.mark.system("group-norm", "any-groups")
@few
@given(n=st.integers(2, 4), groups=st.integers(1, 3), per=st.integers(1, 3), side=st.integers(2, 3))
def test_images_agree_with_torch(n: int, groups: int, per: int, side: int) -> None:
    """DLN-Norm-formulas-CNN, and batch normalization of images."""
    z = drawn(n, groups * per, side, side, seed=n + 10 * per)
    close(batch_norm(z), F.batch_norm(z, None, None, training=True))
    close(layer_norm(z, dims=(1, 2, 3)), F.layer_norm(z, z.shape[1:]))
    close(instance_norm(z), F.instance_norm(z))
    close(group_norm(z, groups), F.group_norm(z, groups))


@pytest.mark.system("batch-norm")
@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "layouts")
def test_vectors_and_tokens_agree_with_torch() -> None:
    z, tokens = drawn(6, 4), drawn(2, 5, 8)
    close(batch_norm(z), F.batch_norm(z, None, None, training=True))
    close(layer_norm(z), F.layer_norm(z, (4,)))
    close(layer_norm(tokens), F.layer_norm(tokens, (8,)))
    close(layer_norm(tokens)[1, 3], layer_norm(tokens[1, 3]))  # each token alone


@pytest.mark.system("batch-norm")
@pytest.mark.system("layer-norm")
@pytest.mark.system("instance-norm")
@pytest.mark.system("group-norm")
@pytest.mark.system("rms-norm")
def test_gradcheck() -> None:
    z, style = drawn(2, 4, 2, 3).requires_grad_(), drawn(2, 4, 3, 3, seed=1)
    for f in (batch_norm, instance_norm, layer_norm, layer_norm_outside, rms_norm, rms_norm_outside):
        assert torch.autograd.gradcheck(f, z)
    assert torch.autograd.gradcheck(lambda z: group_norm(z, 2), z)
    assert torch.autograd.gradcheck(lambda z: restyle(z, style), z)


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm", "output")
def test_output_has_mean_0_and_a_known_variance() -> None:
    """Variance σ²/(σ² + ε), and not quite 1."""
    z, eps = drawn(50, 3), 0.5
    out_mu, out_var = moments(batch_norm(z, eps), (0,))
    var = moments(z, (0,))[1]
    assert out_mu.abs().max() < 1e-12
    close(out_var, var / (var + eps))
    close(moments(z, (0,))[1], z.var(0, correction=0, keepdim=True))


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm-effects")
@pytest.mark.system("batch-norm-effects", "undo")
def test_gamma_and_beta_can_undo_it() -> None:
    z = drawn(6, 4, 3, 3)
    mu, var = moments(z, (0, 2, 3))
    close(scale_and_shift(batch_norm(z), standard_deviation(var, 1e-5).flatten(), mu.flatten()), z)


@pytest.mark.system("batch-norm")
@pytest.mark.system("batch-norm", "running-deviation")
def test_the_root_has_a_plus() -> None:
    """DLN prints √(σ² − ε), which is not a number for a feature that hardly varies."""
    close(standard_deviation(torch.tensor([1e-6]).double(), 1e-5), torch.tensor([0.00331662479]).double())
    assert standard_deviation(torch.tensor([1e-6]), -1e-5).isnan()


@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "eps-places", "invariance")
def test_layer_norm_ignores_shift_and_scale() -> None:
    z = drawn(3, 7)
    close(layer_norm(2.5 * z + 4, eps=0.0), layer_norm(z, eps=0.0))  # exact without ε (S940)
    close(layer_norm(1e3 * z, eps=1e-6), layer_norm(z, eps=0.0))  # ε is nothing to a large z
    with pytest.raises(AssertionError):
        close(layer_norm(2.5 * z, eps=1.0), layer_norm(z, eps=1.0))
    assert layer_norm(torch.ones(1, 4), eps=0.0).isnan().all()  # 0/0, as S940 prints it
    assert layer_norm(torch.ones(1, 4)).tolist() == [[0, 0, 0, 0]]


@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "eps-places")
def test_eps_outside_the_root_is_another_function() -> None:
    z, eps = drawn(3, 7), 0.3
    mu, sigma = z.mean(-1, keepdim=True), z.std(-1, correction=0, keepdim=True)
    close(layer_norm_outside(z, eps), (z - mu) / (sigma + eps))
    close(layer_norm_outside(z, 0.0), layer_norm(z, 0.0))
    with pytest.raises(AssertionError):
        close(layer_norm_outside(z, eps), layer_norm(z, eps))


@pytest.mark.system("instance-norm")
@pytest.mark.system("instance-norm", "contrast")
def test_instance_norm_removes_contrast_of_each_channel() -> None:
    z = drawn(2, 3, 4, 4)
    contrast, light = torch.tensor([2.0, 0.5, 7.0]).double(), torch.tensor([1.0, -3.0, 0.0]).double()
    close(instance_norm(scale_and_shift(z, contrast, light), eps=0.0), instance_norm(z, eps=0.0))


@pytest.mark.system("instance-norm")
@pytest.mark.system("instance-norm", "restyle")
def test_restyled_image_has_the_statistics_of_the_style() -> None:
    content, style = drawn(2, 3, 5, 5), drawn(2, 3, 4, 6, seed=9) * 4 - 7
    made = restyle(content, style, eps=0.0)
    for theirs, ours in zip(moments(style, (2, 3)), moments(made, (2, 3)), strict=True):
        close(ours, theirs)
    close(restyle(content, content, eps=0.0), content)  # its own style changes nothing
    first, second = restyle(content, style[0], eps=0.0).std((2, 3))
    close(first, second)  # one style for all


@pytest.mark.system("group-norm")
@pytest.mark.system("group-norm", "limits")
@pytest.mark.system(COMPARISON)
def test_one_group_is_layer_norm_and_single_channels_are_instance_norm() -> None:
    """DLN prints the two the other way round; MF has them right."""
    z = drawn(2, 6, 3, 3, seed=5)
    close(group_norm(z, 1), layer_norm(z, dims=(1, 2, 3)))
    close(group_norm(z, 6), instance_norm(z))
    assert (group_norm(z, 1) - instance_norm(z)).abs().max() > 0.5
    assert (group_norm(z, 6) - layer_norm(z, dims=(1, 2, 3))).abs().max() > 0.5


@pytest.mark.system("group-norm")
@pytest.mark.system("group-norm", "any-groups")
def test_groups_must_divide_the_channels() -> None:
    with pytest.raises(ValueError, match="6 channels do not divide into 4 equal groups"):
        group_norm(drawn(1, 6, 2, 2), 4)


@pytest.mark.system("rms-norm")
@pytest.mark.system("rms-norm", "eps-places", "layer-norm")
def test_rms_norm_forms() -> None:
    x, eps = drawn(3, 8), 0.2
    close(rms_norm(x, eps), F.rms_norm(x, (8,), eps=eps))
    close(rms_norm_outside(x, eps), x / (x.square().mean(-1, keepdim=True).sqrt() + eps))
    close(rms_norm(1e4 * x, 1e-6), rms_norm(x, 0.0))  # scale goes away with ε
    centred = x - x.mean(-1, keepdim=True)
    close(rms_norm(centred, 1e-5), layer_norm(centred, 1e-5))  # without a mean the two are one
    close(rms(rms_norm(x, 0.0)), torch.ones(3, 1).double())
    with pytest.raises(AssertionError):
        close(rms_norm(x, eps), rms_norm_outside(x, eps))


FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "layer": lambda z: layer_norm(z, dims=(1, 2, 3)),
    "group": lambda z: group_norm(z, 2),
    "instance": instance_norm,
    "rms": rms_norm,
}


@pytest.mark.system("normalization-comparison", "batch-dependence")
@pytest.mark.system(COMPARISON)
@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "invariance")
@pytest.mark.system("group-norm")
@pytest.mark.system("instance-norm")
@pytest.mark.parametrize("name", [*FORMS, "batch"])
def test_only_batch_norm_sees_the_other_examples(name: str) -> None:
    """Changing the last example changes the first one's output in batch normalization alone; so does a batch of 1."""
    z = drawn(3, 4, 2, 2)
    other = z.clone()
    other[-1] = 5 - other[-1]
    f = FORMS.get(name, batch_norm)
    alone = torch.equal(f(z)[0], f(other)[0])
    assert alone == (name != "batch")
    if name != "batch":
        close(f(z[:1]), f(z)[:1])


@pytest.mark.system("normalization-comparison", "axes")
@pytest.mark.system(COMPARISON)
@pytest.mark.parametrize(("f", "dims"), [(batch_norm, (0, 2, 3)), (FORMS["layer"], (1, 2, 3)), (instance_norm, (2, 3))])
def test_each_method_is_centred_over_its_own_axes(f: Callable[[Tensor], Tensor], dims: tuple[int, ...]) -> None:
    """The table of MF 14.5, which is missing in print: means over the method's axes are 0, over others they are not."""
    out = f(drawn(3, 4, 2, 2))
    for axes in ((0, 2, 3), (1, 2, 3), (2, 3)):
        centred = bool(out.mean(axes).abs().max() < 1e-12)
        assert centred == (set(dims) <= set(axes)), axes


@pytest.mark.system("batch-norm")
def test_moving_average() -> None:
    close(moving(torch.tensor(1.0), torch.tensor(3.0), 0.9), torch.tensor(1.2))
