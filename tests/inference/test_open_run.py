"""The answerer that fits what a folder holds, and the checkpoint that is asked for."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.image_classifier import ImageClassifier
from descend.inference.player import Player
from descend.inference.sampler import Sampler
from descend.inference.segmenter import Segmenter
from descend.inference.single_object_detector import SingleObjectDetector
from descend.inference.table_predictor import TablePredictor
from descend.inference.trained import load_trained
from descend.inference.writer import Writer
from descend.models.beit import TINY as BEIT_TINY
from descend.models.beit import BeitForMaskedImageModeling
from descend.models.bert import TINY as BERT_TINY
from descend.models.bert import Bert
from descend.models.gan import TINY as GAN_TINY
from descend.models.gan import Generator
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as GPT2_TINY
from descend.models.lenet import LeNet, LeNetConfig
from descend.models.localiser import Localiser, LocaliserConfig
from descend.models.t5 import T5
from descend.models.t5 import TINY as T5_TINY
from descend.models.unet import UNet, UNetConfig
from descend.text.tokenizer import Tokenizer
from tests.contracts.source import PACKAGE

RUNS = Path(__file__).parents[1] / "verbs" / "data" / "last_release"
ANSWERERS = {
    "cnn-digits": ImageClassifier,
    "gan-mixture": Sampler,
    "gpt2-pydoc": Writer,
    "mlp-wine": TablePredictor,
    "ppo-cartpole": Player,
}


@pytest.mark.parametrize("name", list(ANSWERERS))
def test_runs_are_opened_by_what_they_hold(name: str) -> None:
    answerer = open_run(RUNS / name)
    assert type(answerer) is ANSWERERS[name]
    assert answerer.takes


def test_image_models_are_told_apart_by_what_they_make_of_an_image(tmp_path: Path) -> None:
    models = {
        ImageClassifier: LeNet(LeNetConfig(image=(3, 16, 16), classes=3, kernel=3)),
        Segmenter: UNet(UNetConfig(channels=3, classes=3, width=4, depth=2, padding=1)),
        SingleObjectDetector: Localiser(LocaliserConfig(image=(3, 16, 16), classes=3, widths=(4, 6))),
    }
    for answerer, model in models.items():
        folder = tmp_path / answerer.__name__
        model.save_pretrained(folder)
        Preprocessing((3, 16, 16), (0.5,) * 3, (0.25,) * 3, ("cat", "dog", "horse")).save(folder)
        found = open_run(folder)
        assert type(found) is answerer
        assert found.labels == ("cat", "dog", "horse")


def test_classes_without_names_are_numbered(tmp_path: Path) -> None:
    LeNet(LeNetConfig(image=(3, 16, 16), classes=3, kernel=3)).save_pretrained(tmp_path)
    Preprocessing((3, 16, 16), (0.5,) * 3, (0.25,) * 3, ("cat", "dog")).save(tmp_path)
    found = open_run(tmp_path)
    assert isinstance(found, ImageClassifier)
    assert found.labels == ("0", "1", "2")


def test_writers_continue_or_answer(tmp_path: Path) -> None:
    tokenizer = Tokenizer.bpe("some words of a text " * 9, 270)
    for name, model in (
        ("gpt2", GPT2(replace(GPT2_TINY, vocab=tokenizer.vocab))),
        ("t5", T5(replace(T5_TINY, vocab=tokenizer.vocab))),
    ):
        model.save_pretrained(tmp_path / name)
        tokenizer.save(tmp_path / name)
        writer = open_run(tmp_path / name)
        assert isinstance(writer, Writer)
        assert writer.continues == (name == "gpt2")


def test_the_best_checkpoint_is_opened_unless_another_is_named(tmp_path: Path) -> None:
    checkpoints = tmp_path / "run" / "checkpoints"
    for step in (1, 2, 3):
        torch.manual_seed(step)
        folder = checkpoints / f"step-{step:06d}"
        Generator(GAN_TINY).save_pretrained(folder)
        (folder / "checksums.json").write_text("{}")
    (checkpoints / "best").symlink_to("step-000002")
    (checkpoints / "last").symlink_to("step-000003")
    for asked, step in (("best", 2), ("last", 3), (1, 1), ("1", 1), ("step-000001", 1)):
        assert load_trained(tmp_path / "run", asked).folder.resolve().name == f"step-{step:06d}"
    best = open_run(tmp_path / "run")
    assert isinstance(best, Sampler)
    torch.manual_seed(2)
    assert torch.equal(best.trained.model.out.weight, Generator(GAN_TINY).out.weight)
    with pytest.raises(Mistake, match="has no checkpoint '9'; there are: best"):
        open_run(tmp_path / "run", 9)


def test_what_answers_nothing_is_refused(tmp_path: Path) -> None:
    Bert(BERT_TINY).save_pretrained(tmp_path / "bare")
    with pytest.raises(Mistake, match="holds a Bert; no verb supports"):
        open_run(tmp_path / "bare")
    BeitForMaskedImageModeling(replace(BEIT_TINY, mask_token=True)).save_pretrained(tmp_path / "beit")
    Preprocessing((3, 16, 16), (0.5,) * 3, (0.25,) * 3, ()).save(tmp_path / "beit")
    with pytest.raises(Mistake, match="fills in hidden patches and classifies nothing"):
        open_run(tmp_path / "beit")
    with pytest.raises(Mistake, match="--labels are for a CLIP"):
        open_run(RUNS / "cnn-digits", labels=["a cat"])


def test_nothing_asks_for_a_signature() -> None:
    """What a model offers is said by a protocol or a type, not read off its parameters."""
    for folder in ("inference", "verbs", "kinds"):
        for path in (PACKAGE / folder).rglob("*.py"):
            calls = {
                ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
            }
            assert "inspect.signature" not in calls, path
