"""Images as tensors: layout, range, files, mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from descend.data.images.pixels import mean_of_channels, read_image, to_pixels, to_tensor
from descend.errors import Mistake
from tests.close import close

pytestmark = pytest.mark.system("image-tensors")

COLOUR = np.random.default_rng(0).integers(0, 256, (32, 24, 3), dtype=np.uint8)


@pytest.mark.system("image-tensors", "layout")
def test_channels_come_first_and_values_are_0_to_1() -> None:
    x = to_tensor(COLOUR)
    assert x.shape == (3, 32, 24)
    assert (float(x.min()), float(x.max())) == (COLOUR.min() / 255, COLOUR.max() / 255)
    close(x[1, 5, 7], torch.tensor(COLOUR[5, 7, 1] / 255).float())
    assert np.array_equal(to_pixels(x), COLOUR)
    assert to_tensor(COLOUR[..., 0]).shape == (1, 32, 24)
    assert np.array_equal(to_pixels(to_tensor(COLOUR[..., 0])), COLOUR[..., 0])


@pytest.mark.system("image-tensors", "files")
def test_files(tmp_path: Path) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "a.png")
    close(read_image(tmp_path / "a.png"), to_tensor(COLOUR))
    assert read_image(tmp_path / "a.png", 1).shape == (1, 32, 24)
    (tmp_path / "b.png").write_text("no image")
    with pytest.raises(Mistake, match="cannot be read as an image"):
        read_image(tmp_path / "b.png")
    with pytest.raises(Mistake, match="no such file"):
        read_image(tmp_path / "c.png")
    with pytest.raises(Mistake, match="1 \\(grey\\) or 3"):
        read_image(tmp_path / "a.png", 2)
    with pytest.raises(Mistake, match="8-bit values"):
        to_tensor(COLOUR.astype(float))


@pytest.mark.system("image-tensors", "mean")
def test_the_mean_is_of_training_images() -> None:
    x = torch.stack([to_tensor(COLOUR), to_tensor(COLOUR[::-1])])
    centred = x - mean_of_channels(x, "train")
    assert centred.mean(dim=(0, 2, 3)).abs().max() < 1e-6
    with pytest.raises(Mistake, match="leaks"):
        mean_of_channels(x, "test")
