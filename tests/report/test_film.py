"""Films are GIFs with every frame, shown side by side."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from descend.contracts import Exhibit
from descend.report.exhibits import make_section
from descend.report.film import LAST, MILLISECONDS, draw_film, encode_film


@pytest.mark.system("pick-and-place", "film")
def test_a_film_has_all_its_frames_in_their_colours() -> None:
    frames = np.zeros((5, 8, 10, 3))
    for i in range(5):
        frames[i, :, 2 * i : 2 * i + 2] = [1.0, 0.0, 0.2 * i]
    with Image.open(io.BytesIO(encode_film(frames))) as film:
        assert film.n_frames == 5
        assert film.size == (10, 8)
        for i in range(5):
            film.seek(i)
            assert film.info["duration"] == (LAST if i == 4 else MILLISECONDS)
            seen = np.asarray(film.convert("RGB"))
            assert (seen[:, 2 * i, 0] > 200).all()
            assert seen[:, (2 * i + 4) % 10, 0].max() < 50


@pytest.mark.system("pick-and-place", "film")
def test_films_stand_in_a_report() -> None:
    content = {"frames": np.random.default_rng(0).random((2, 3, 4, 4, 3)), "captions": ["a <b>", "c"]}
    page = str(make_section(Exhibit("film", "Episodes", content)))
    assert page.count("data:image/gif;base64,") == 2
    assert "a &lt;b&gt;" in page
    with pytest.raises(ValueError, match="1 captions for films"):
        draw_film({"frames": content["frames"], "captions": ["a"]})
    with pytest.raises(ValueError, match="a film is 1 to 300 frames"):
        encode_film(np.zeros((0, 4, 4, 3)))
