"""Models from image to image: opened, asked both ways, and by the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import descend
from descend.cli import main
from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.translator import Translator
from descend.models.cyclegan import CycleGAN, CycleGANConfig
from descend.models.gan import TINY as GAN_TINY
from descend.models.gan import Generator
from descend.models.pix2pix import Pix2Pix, Pix2PixConfig
from tests.close import close


def save(folder: Path, model: Pix2Pix | CycleGAN) -> Path:
    model.eval().save_pretrained(folder)
    Preprocessing((3, 8, 8), (0.5,) * 3, (0.5,) * 3).save(folder)
    return folder


@pytest.fixture
def cycle(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    return save(tmp_path / "cycle", CycleGAN(CycleGANConfig(width=4, halvings=1, blocks=1)))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    Image.fromarray(np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3) % 250).save(path)
    return path


@pytest.mark.system("cyclegan", "both-ways")
def test_there_and_back(cycle: Path) -> None:
    translator = open_run(cycle)
    assert isinstance(translator, Translator)
    x = torch.rand(3, 3, 8, 8)
    model = CycleGAN.from_pretrained(cycle)
    with torch.no_grad():
        close(translator.translate(x), (model.y(2 * x - 1) + 1) / 2)
        close(translator.translate(x, back=True), (model.x(2 * x - 1) + 1) / 2)


@pytest.mark.system("pix2pix")
def test_files_by_the_command_line(tmp_path: Path, photo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    run = save(tmp_path / "pix", Pix2Pix(Pix2PixConfig(width=4, depth=3)))
    assert descend.edit(run, photo).shape == (1, 3, 8, 8)
    out = tmp_path / "out.png"
    assert main(["edit", str(run), str(photo), "--out", str(out)]) == 0
    assert "1 image: " in capsys.readouterr().out
    assert Image.open(out).size == (8, 8)
    with pytest.raises(Mistake, match="--back: a Pix2Pix goes one way only"):
        descend.edit(run, photo, back=True)
    assert main(["edit", str(run), str(photo), "--out", str(out)]) == 2  # it exists
    assert main(["predict", str(run), str(photo)]) == 2
    assert "descend edit" in capsys.readouterr().err


def test_what_does_not_translate(tmp_path: Path) -> None:
    Generator(GAN_TINY).save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="holds a Generator, which does not translate images"):
        Translator.open(tmp_path)
