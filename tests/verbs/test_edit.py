"""edit, interpolate, encode and decode: files in, files out, mistakes in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import descend
from descend.cli import main
from descend.errors import Mistake
from descend.models.ddpm_pipeline import TINY, DDPMPipeline
from descend.models.mlp import MLP
from descend.models.mlp import TINY as TINY_MLP
from descend.sampling.chance import PerExample
from descend.sampling.interpolation import Between, slerp
from tests.close import close
from tests.weights.test_pipeline import make_stable

pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def stable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Stable Diffusion of random weights, of diffusers."""
    folder = tmp_path_factory.mktemp("stable") / "theirs"
    make_stable(folder)
    return folder


def write(path: Path, x: np.ndarray) -> str:
    Image.fromarray(x.astype(np.uint8)).save(path)
    return str(path)


def read(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


@pytest.fixture
def photo(tmp_path: Path) -> str:
    return write(tmp_path / "photo.png", np.random.default_rng(0).integers(0, 256, (16, 16, 3)))


@pytest.mark.system("image-to-image", "edit-verb")
def test_an_image_is_changed_by_the_command(stable: Path, photo: str, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "new.png"
    flags = ["--prompt", "red cat", "--strength", "0.6", "--steps", "5", "--guidance", "2", "--out", str(out)]
    assert main(["edit", str(stable), photo, *flags]) == 0
    assert str(out) in capsys.readouterr().out
    first = read(out)
    assert first.shape == (16, 16, 3)
    assert main(["edit", str(stable), photo, *flags, "--replace"]) == 0
    assert (read(out) == first).all()
    assert main(["edit", str(stable), photo, *flags, "--replace", "--seed", "1"]) == 0
    assert (read(out) != first).any()
    model: Any = descend.load(stable)
    found = descend.edit(stable, photo, strength=0)
    x = torch.from_numpy(read(Path(photo)).copy()).permute(2, 0, 1)[None] / 127.5 - 1
    with torch.no_grad():
        close(found, ((model.from_latent(model.to_latent(x)) + 1) / 2).clamp(0, 1))
    assert descend.edit(stable, photo, size=32, strength=0.2, steps=5, count=2).shape == (2, 3, 32, 32)


@pytest.mark.system("inpainting", "edit-verb")
def test_only_masked_pixels_are_changed_by_the_command(stable: Path, photo: str, tmp_path: Path) -> None:
    hole = np.zeros((16, 16))
    hole[3:9, 5:12] = 255
    mask, out = write(tmp_path / "mask.png", hole), tmp_path / "new.png"
    flags = ["--mask", mask, "--strength", "1", "--steps", "4", "--out", str(out)]
    assert main(["edit", str(stable), photo, *flags]) == 0
    before, after = read(Path(photo)), read(out)
    assert (after[hole == 0] == before[hole == 0]).all()
    assert (after[hole > 0] != before[hole > 0]).any()
    empty = write(tmp_path / "empty.png", 0 * hole)
    assert main(["edit", str(stable), photo, "--mask", empty, "--out", str(out), "--replace"]) == 0
    assert (read(out) == before).all()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--strength", "1.5"], "--strength 1.5: from 0 (the image as it is) to 1 (a new one)"),
        (["--mask", "small.png"], "--mask: it has 8×8, the image 16×16; both must have the same size"),
        (["--guidance", "3"], "guidance needs something to be guided by"),
        (["--class", "cat"], "--class: a StableDiffusionPipeline does not take it"),
        (["--steps", "5000", "--prompt", "red"], "1000"),
        (["--method", "magic"], "--method"),
        (["--depth", "photo.png"], "--depth: this model has no channel for a depth map"),
        (["--size", "18"], "the image is 18×18, but both sides must be multiples of 4"),
        (["--out", "photo.png"], "exists; give --replace"),
    ],
)
def test_mistakes_are_one_line(
    stable: Path, photo: str, tmp_path: Path, flags: list[str], said: str, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "small.png", np.full((8, 8), 255))
    assert main(["edit", str(stable), photo, *flags]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_model_of_something_else_is_refused(tmp_path: Path, photo: str, capsys: Any) -> None:
    MLP(TINY_MLP).save_pretrained(tmp_path / "mlp")
    for verb in (["edit", str(tmp_path / "mlp"), photo], ["encode", str(tmp_path / "mlp"), photo]):
        assert main(verb) == 2
        assert "holds a" in capsys.readouterr().err


def test_codes_go_to_a_file_and_come_back(stable: Path, photo: str, tmp_path: Path, capsys: Any) -> None:
    codes, out = str(tmp_path / "codes.safetensors"), tmp_path / "back.png"
    assert main(["encode", str(stable), photo, photo, "--out", codes]) == 0
    assert "2 codes of 4×8×8" in capsys.readouterr().out
    assert main(["decode", str(stable), codes, "--out", str(out)]) == 0
    close(descend.decode(stable, codes)[0], descend.edit(stable, photo, strength=0)[0])
    assert read(out).shape == (16, 32, 3)
    assert main(["encode", str(stable), photo, "--out", codes]) == 2
    assert main(["decode", str(stable), photo, "--out", str(tmp_path / "x.png")]) == 2


def test_samples_on_the_way_from_one_to_another(tmp_path: Path, capsys: Any) -> None:
    torch.manual_seed(0)
    DDPMPipeline(TINY).save_pretrained(tmp_path / "ddpm")
    found: Tensor = descend.interpolate(tmp_path / "ddpm", 3, 5, 4)
    assert found.shape == (4, 1, 8, 8)
    ends = torch.cat([descend.sample(tmp_path / "ddpm", 1, seed) for seed in (3, 5)])
    close(found[[0, 3]], ends)
    out = tmp_path / "walk.png"
    assert main(["interpolate", str(tmp_path / "ddpm"), "--seed", "3", "--to", "5", "-n", "4", "--out", str(out)]) == 0
    assert read(out).shape[:2] == (160, 640)
    with pytest.raises(Mistake, match="at least 2"):
        descend.interpolate(tmp_path / "ddpm", 3, 5, 1)


def test_the_arc_keeps_the_length_of_normal_numbers() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(2, 10_000)
    found = slerp(a, b, torch.linspace(0, 1, 5))
    close(found[0], a)
    close(found[-1], b)
    assert torch.allclose(found.norm(dim=1), torch.tensor(100.0), rtol=0.02)  # √10,000, to the spread of a norm
    line = torch.lerp(a, b, 0.5)
    assert line.norm() < 0.75 * a.norm()
    assert torch.equal(slerp(a, a, torch.tensor([0.0, 0.5])), torch.stack([a, a]))
    chance = Between(PerExample(0, 1), PerExample(1, 1), 3)
    u = chance.uniform(2000)
    assert chance.count == 3
    close(u[0], PerExample(0, 1).uniform(2000)[0], loosen=100)
    assert 0.45 < float(u[1].mean()) < 0.55
    assert 0.2 < float((u[1] < 0.25).float().mean()) < 0.3
