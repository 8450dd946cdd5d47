"""StyleGAN: mixing from a layer on, noise that moves pixels only, truncation, and a style that decides all else."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.contracts import Wish
from descend.models.stylegan import TINY, StyleGAN
from descend.sampling.chance import PerExample
from tests.close import close

pytestmark = pytest.mark.system("stylegan")
CONFIG = replace(TINY, side=16)


def make() -> StyleGAN:
    torch.manual_seed(0)
    model = StyleGAN(CONFIG).double()
    with torch.no_grad():
        for layer in model.layers:
            layer.noise.weight.fill_(0.1)
    return model


def draw(n: int = 2, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(n, k, generator=random, dtype=torch.float64) for k in (3, 3, CONFIG.noise))  # type: ignore[return-value]


@pytest.mark.system("stylegan", "mixing")
@pytest.mark.parametrize("cut", [0, 1, 3, 5, 6])
def test_mixing_changes_only_the_layers_from_the_cut_on(cut: int) -> None:
    model, (z, other, noise) = make(), draw()
    w, v = model.mapping(z), model.mapping(other)
    plain = w[:, None].expand(-1, 6, -1)
    mixed = torch.cat([w[:, None].expand(-1, cut, -1), v[:, None].expand(-1, 6 - cut, -1)], dim=1)
    close(model(z, noise, other, torch.full((2,), cut)), model.synthesise(mixed, noise))
    before, after = model.run_layers(plain, noise), model.run_layers(mixed, noise)
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        assert torch.equal(a, b) == (i < cut)
    ends = {0: model(other, noise), 6: model(z, noise)}
    if cut in ends:
        close(model(z, noise, other, torch.full((2,), cut)), ends[cut])


@pytest.mark.system("stylegan", "mixing")
def test_each_example_has_its_own_cut() -> None:
    model, (z, other, noise) = make(), draw()
    found = model(z, noise, other, torch.tensor([6, 2]))
    close(found[:1], model(z, noise)[:1])
    close(found[1:], model(z, noise, other, torch.tensor([2, 2]))[1:])


@pytest.mark.system("stylegan", "noise")
def test_noise_of_a_layer_moves_what_comes_after_it() -> None:
    model, (z, _, noise) = make(), draw()
    other = noise.clone()
    start = sum(side**2 for side in CONFIG.sides[:4])
    other[:, start:] += 1.5 * torch.randn_like(other[:, start:])
    w = model.mapping(z)[:, None].expand(-1, 6, -1)
    before, after = model.run_layers(w, noise), model.run_layers(w, other)
    assert [torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [True] * 4 + [False] * 2
    with torch.no_grad():
        for layer in model.layers:
            layer.noise.weight.zero_()
    close(model(z, noise), model(z, other))  # without a weight the style decides alone


@pytest.mark.system("stylegan", "mapping")
def test_truncation_draws_styles_to_their_mean() -> None:
    full, none, half = (replace(CONFIG, truncation=psi) for psi in (1.0, 0.0, 0.5))
    states = make().float().state_dict()
    made = []
    for config in (full, none, half):
        model = StyleGAN(config).eval()
        model.load_state_dict(states)
        with torch.no_grad():
            for layer in model.layers:
                layer.noise.weight.zero_()
            made.append(model.generate(PerExample(0, 4), Wish()))
    assert made[0].std(dim=0).mean() > made[2].std(dim=0).mean() > 0
    close(1 + made[1].std(dim=0), torch.ones_like(made[1][0]), loosen=10)  # ψ = 0: all the same
    w = StyleGAN(full).mean_style()
    assert w.shape == (4,)


def test_each_example_can_be_made_again() -> None:
    model = make().float().eval()
    with torch.no_grad():
        close(
            model.generate(PerExample(7, 4), Wish())[2:3], model.generate(PerExample(7, 1, first=2), Wish()), loosen=10
        )
