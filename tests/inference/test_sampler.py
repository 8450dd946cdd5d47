"""Samples of a generator, and the verb that draws them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import descend
from descend.cli import main
from descend.contracts import Wish
from descend.data.images.labelled import Preprocessing
from descend.data.tables.points import PointScale
from descend.errors import Mistake
from descend.inference.sampler import Order, Sampler
from descend.inference.trained import Trained
from descend.sampling.chance import PerExample
from descend.seeds import generator
from descend.verbs.sample import write_examples
from tests.close import close

RUN = Path(__file__).parents[1] / "verbs" / "data" / "last_release" / "gan-mixture"


@pytest.mark.system("gan", "sampled")
def test_samples_are_the_generator_of_noise() -> None:
    sampler = Sampler.open(RUN)
    noise = torch.stack([torch.randn(sampler.trained.model.config.latent, generator=generator(3, i)) for i in range(5)])
    found = sampler.sample(5, seed=3)
    assert torch.equal(found, sampler.trained.model(noise).detach())
    assert not torch.equal(found, sampler.sample(5, seed=4))
    with pytest.raises(Mistake, match="0 samples: at least 1"):
        sampler.sample(0)
    with pytest.raises(Mistake, match="GPT2, which does not generate samples"):
        Sampler.open(RUN.parent / "gpt2-pydoc")


def test_one_of_a_batch_can_be_made_again() -> None:
    sampler = Sampler.open(RUN)
    all_at_once, in_pieces = sampler.sample(7, seed=1), sampler.sample(7, seed=1, batch=3)
    close(in_pieces, all_at_once)
    close(sampler.sample(1, seed=1, first=4)[0], all_at_once[4])


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (Order(steps=5), "--steps: a Generator does not take it"),
        (Order(guidance=2.0), "--guidance: a Generator does not take it"),
        (Order(label="7"), "--class: a Generator does not take it"),
        (Order(prompt="a cat"), "--prompt: a Generator does not take it"),
    ],
)
def test_what_a_model_does_not_offer_is_refused(order: Order, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        Sampler.open(RUN).sample(1, order=order)


def test_the_verb(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sample", str(RUN), "-n", "3", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [[float(v) for v in line.split(",")] for line in lines]
    assert rows == [pytest.approx(row, rel=1e-5) for row in descend.sample(RUN, 3, seed=1).tolist()]
    assert main(["sample", str(RUN), "-n", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    file = tmp_path / "points.csv"
    assert main(["sample", str(RUN), "-n", "3", "--seed", "1", "--out", str(file)]) == 0
    assert file.read_text().splitlines() == lines
    assert main(["sample", str(RUN), "--out", str(file)]) == 2
    assert "exists; give --replace" in capsys.readouterr().err


class Blank(nn.Module):
    """Makes grey images of a brightness that belongs to their class."""

    offers = frozenset({"classes", "guidance"})

    def __init__(self) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.tensor([-1.0, 0.0, 1.0]))

    def generate(self, chance: PerExample, wish: Wish) -> torch.Tensor:
        classes = wish.classes if wish.classes is not None else torch.zeros(chance.count, dtype=torch.long)
        return self.level[classes][:, None, None, None].expand(-1, 1, 2, 2)


def test_images_are_brought_back_to_pixels_by_class(tmp_path: Path) -> None:
    prepare = Preprocessing((1, 2, 2), (0.5,), (0.5,), ("dark", "grey", "bright"))
    sampler = Sampler(Trained(Blank(), tmp_path), prepare)
    assert sampler.sample(2, order=Order(label="bright")).tolist() == torch.ones(2, 1, 2, 2).tolist()
    assert float(sampler.sample(1, order=Order(label="grey", guidance=2.0)).mean()) == 0.5
    with pytest.raises(Mistake, match=r"'brigth' is unknown\. Did you mean 'bright'"):
        sampler.sample(1, order=Order(label="brigth"))
    with pytest.raises(Mistake, match="guidance needs something to be guided by; give --class NAME"):
        sampler.sample(1, order=Order(guidance=2.0))
    write_examples(tmp_path / "images", sampler.sample(3), first=5)
    assert sorted(p.name for p in (tmp_path / "images").iterdir()) == ["000005.png", "000006.png", "000007.png"]
    write_examples(tmp_path / "sheet.png", sampler.sample(3), first=0)
    assert (tmp_path / "sheet.png").stat().st_size > 0


def test_points_of_a_file_are_brought_back_to_its_units(tmp_path: Path) -> None:
    plain = Sampler.open(RUN)
    PointScale((10.0, -1.0), (2.0, 0.5)).save(tmp_path)
    scaled = replace(plain, scale=PointScale.read(tmp_path))
    close(scaled.sample(3), plain.sample(3) * torch.tensor([2.0, 0.5]) + torch.tensor([10.0, -1.0]))
