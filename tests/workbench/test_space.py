"""Search and map: what is nearest by the cosine of the model's own vectors, and every input where its vector lies."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import httpx
import pytest
import torch
from PIL import Image
from torch.nn.functional import cosine_similarity

from descend.errors import Mistake
from descend.inference.encoder import Encoder
from descend.kinds.changes import change
from descend.recipes import get
from descend.verbs.train import train
from descend.workbench.space import Given, encode_query, open_space
from descend.workbench.space_part import EDGE, HIGH, WIDE, draw_map, place
from tests.close import close
from tests.workbench.conftest import Address

SMALL = {"steps": 1, "batch": 8, "eval_every": 1, "save_every": 1, "threads": 1, "data.count": 24}
ASKED = {"run": "clip", "step": 1}


@pytest.fixture(scope="module")
def clip(studio: Address) -> Path:
    train(change(get("clip-scenes"), SMALL), out=studio.runs / "clip", quiet=True)
    return studio.runs / "clip"


def as_url(pixels: torch.Tensor) -> str:
    """(c, h, w) in 0..1 as a page sends it."""
    file = io.BytesIO()
    Image.fromarray((255 * pixels).round().byte().movedim(0, -1).numpy()).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def test_a_caption_finds_the_images_of_highest_cosine(clip: Path) -> None:
    space = open_space(clip, 1, Given("data"))
    assert space.images is not None
    encoder = Encoder.open(clip, 1)
    truth = cosine_similarity(encoder.encode_texts(["a red circle"]), encoder.encode_images(space.images))
    found = space.find_near(encode_query(space, "a red circle", ""), 5)
    close(torch.tensor([cosine for _, cosine in found]), truth.sort(descending=True).values[:5])
    assert [i for i, _ in found] == truth.argsort(descending=True)[:5].tolist()


def test_an_image_finds_itself(clip: Path) -> None:
    space = open_space(clip, 1, Given("data"))
    assert space.images is not None
    (nearest, cosine), *_ = space.find_near(encode_query(space, "", as_url(space.images[7])), 3)
    assert nearest == 7
    assert cosine > 0.9999


def test_a_folder_and_own_texts_are_spaces_too(clip: Path, client: httpx.Client, studio: Address) -> None:
    pets = studio.studio.place.own / "files" / "pets"
    for name, colour in (("cat", "red"), ("big owl", "blue")):
        (pets / name).mkdir(parents=True)
        Image.new("RGB", (40, 30), colour).save(pets / name / "1.png")
    page = client.post("/part/near", json={**ASKED, "source": "folder", "path": str(pets), "text": "a red circle"}).text
    assert page.count("<figure>") == 2
    assert "big owl, 1.png" in page
    asked = {**ASKED, "source": "texts", "texts": "a red ring\n\na <b>blue</b> ring", "text": "a red ring"}
    page = client.post("/part/near", json=asked).text
    assert page.index("a red ring") < page.index("a &lt;b&gt;blue")
    assert "<td>1.000</td>" in page


def test_the_map_shows_every_input_once_and_inside(clip: Path, client: httpx.Client) -> None:
    page = client.post("/part/map", json={**ASKED, "by": "pca"}).text
    space = open_space(clip, 1, Given("data"))
    assert page.count("<image ") == len(space.names)
    at = [(float(x), float(y)) for x, y in re.findall(r'<image [^>]*x="([\d.]+)" y="([\d.]+)"', page)]
    assert all(0 <= x <= WIDE and 0 <= y <= HIGH for x, y in at)
    assert "<title>" in str(draw_map(space, "tsne"))


def test_a_map_keeps_what_is_right_and_what_is_above() -> None:
    at = place(torch.tensor([[0.0, 0.0], [2.0, 1.0], [1.0, 4.0]]))
    close(at, torch.tensor([[EDGE, HIGH - EDGE], [WIDE - EDGE, HIGH - EDGE - (HIGH - 2 * EDGE) / 4], [WIDE / 2, EDGE]]))


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"source": "folder"}, "name a folder"),
        ({"source": "folder", "path": "/etc"}, "outside"),
        ({"source": "texts", "text": "x"}, "a line each"),
        ({"source": "elsewhere"}, "source"),
        ({}, "what to look for"),
        ({"image": "data:image/png;base64,AAAA"}, "no image"),
    ],
)
def test_what_cannot_be_searched_is_told(clip: Path, client: httpx.Client, sent: dict[str, str], said: str) -> None:
    answer = client.post("/part/near", json={**ASKED, **sent})
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_other_models_have_no_space(studio: Address) -> None:
    with pytest.raises(Mistake):
        open_space(studio.runs / "moons" / "first", 60, Given("data"))


def test_opening_tells_of_what_there_are_vectors(clip: Path, client: httpx.Client) -> None:
    opened = client.post("/api/open", json={"run": "clip"}).json()
    assert opened["vectors"] == {"images": True, "texts": True}
    assert client.post("/api/open", json={"run": "moons/first"}).json()["vectors"] == {}
