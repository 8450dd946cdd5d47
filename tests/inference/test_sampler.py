"""Samples of a generator, and the verb that draws them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import descend
from descend.cli import main
from descend.errors import Mistake
from descend.inference.sampler import Sampler

RUN = Path(__file__).parents[1] / "verbs" / "data" / "last_release" / "gan-mixture"


@pytest.mark.system("gan", "sampled")
def test_samples_are_the_generator_of_noise() -> None:
    sampler = Sampler.open(RUN)
    noise = torch.randn(5, sampler.trained.model.config.latent, generator=torch.Generator().manual_seed(3))
    found = sampler.sample(5, seed=3)
    assert torch.equal(found, sampler.trained.model(noise).detach())
    assert not torch.equal(found, sampler.sample(5, seed=4))
    with pytest.raises(Mistake, match="0 samples: at least 1"):
        sampler.sample(0)
    with pytest.raises(Mistake, match="GPT2, which does not generate samples"):
        Sampler.open(RUN.parent / "gpt2-pydoc")


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", str(RUN), "-n", "3", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [[float(v) for v in line.split(",")] for line in lines] == [
        pytest.approx(row, rel=1e-5) for row in descend.sample(RUN, 3, seed=1)
    ]
    assert main(["sample", str(RUN), "-n", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
