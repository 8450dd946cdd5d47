"""descend judge: figures of samples beside real images, with the network and the number of images."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.inference.judge import Judge, digest_weights
from descend.kinds.diffusion import DiffuseImages
from descend.models.ddpm_pipeline import DDPMConfig
from descend.models.unet_2d import UNet2DConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.recipes.lenet_digits import RECIPE as CLASSIFIER
from descend.verbs.judge import command, judge

UNET = UNet2DConfig(widths=(8, 16), attention=(False, False), blocks=1, groups=4)
LOOP = Loop(steps=2, batch=8, eval_every=2, save_every=2, threads=1)
GENERATOR = DiffuseImages(
    model=DDPMConfig(unet=UNET, plan=Plan(NoiseSchedule("cosine", 20), method="ddim", steps=2)), loop=LOOP
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    descend.train(GENERATOR, out=folder / "generator")
    small = replace(CLASSIFIER, loop=replace(LOOP, steps=60, eval_every=60, save_every=60))
    descend.train(small, out=folder / "reader")
    return folder / "generator", folder / "reader"


@pytest.mark.system("fid", "named-network")
@pytest.mark.system("fid", "beside")
def test_figures_with_network_and_count(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    generator, reader = runs
    found = judge(generator, reader, count=200)
    model = descend.load(reader / "checkpoints" / "best")
    assert found["network"] == f"{type(model).__name__} {digest_weights(model)}"
    assert found["n"] == 200
    assert found["fid"] > 3 * found["real_fid"] > 0  # two steps of training give noise
    assert found["fid_ratio"] == found["fid"] / found["real_fid"]
    assert found["precision"] < found["real_precision"]
    command(str(generator), by=str(reader), count=200)
    told = capsys.readouterr().out
    assert "200 images of each, as seen by" in told
    assert digest_weights(model) in told
    assert "times that of real images" in told
    command(str(generator), by=str(reader), count=200, json=True)
    assert json.loads(capsys.readouterr().out) == found


def test_a_changed_weight_is_another_network() -> None:
    model = torch.nn.Linear(2, 2)
    before = digest_weights(model)
    with torch.no_grad():
        model.weight[0, 0] += 1
    assert digest_weights(model) != before


@pytest.mark.system("fid", "few-refused")
def test_what_cannot_be_judged_is_refused(runs: tuple[Path, Path]) -> None:
    generator, reader = runs
    with pytest.raises(Mistake, match="needs more than"):
        judge(generator, reader, count=20)
    with pytest.raises(Mistake, match="not a generator of images"):
        judge(reader, reader)
    with pytest.raises(Mistake, match="has no features of images"):
        Judge.open(generator)
    with pytest.raises(Mistake, match="have 3 channels"):
        Judge.open(reader).look(torch.zeros(1, 3, 4, 4))
    assert Judge.open(reader).read(torch.rand(3, 1, 8, 8)).shape == (3,)
