"""Look for what the user names: OWL-ViT and OWLv2 as transformers' pipelines tell it, and a detector of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from descend.cli import main
from descend.data.detection.framing import Letterbox
from descend.data.detection.prepare import DetectionPreprocessing
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.detector import Detector
from descend.models.open_vocabulary_detector import TINY, OpenVocabularyDetector
from tests.close import close
from tests.models.peers import random_peer

transformers = pytest.importorskip("transformers")


def make_tokenizer(folder: Path) -> tuple[Any, int]:
    """A CLIP tokenizer of letters."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    pieces = [*letters, *(letter + "</w>" for letter in letters)]
    vocab = {piece: i for i, piece in enumerate([*pieces, "<|startoftext|>", "<|endoftext|>"])}
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    names = {"pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "bos_token": "<|startoftext|>"}
    settings = {"model_max_length": 16, "unk_token": "<|endoftext|>", "tokenizer_class": "CLIPTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names | settings))
    return transformers.CLIPTokenizer.from_pretrained(folder), len(vocab)


def owl_folder(family: str, folder: Path) -> tuple[Any, Any, Any]:
    """A public folder with random weights: model, processor of images, tokenizer."""
    tokenizer, vocab = make_tokenizer(folder.parent / f"tokens-{family}")
    text = {"vocab_size": vocab, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
            "num_attention_heads": 2, "bos_token_id": vocab - 2, "eos_token_id": vocab - 1}  # fmt: skip
    image = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3,
             "image_size": 32, "patch_size": 8}  # fmt: skip
    config = getattr(transformers, f"{family}Config")(text_config=text, vision_config=image, projection_dim=16)
    model = random_peer(getattr(transformers, f"{family}ForObjectDetection"), config, std=0.1)
    for name, layer in model.named_modules():
        if "head" in name and isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.weight, std=0.2)
    processor = getattr(transformers, f"{family}ImageProcessor")(size={"height": 32, "width": 32})
    for part in (model, processor, tokenizer):
        part.save_pretrained(folder)
    return model, processor, tokenizer


@pytest.mark.system("open-vocabulary-detection", "predict")
@pytest.mark.parametrize("family", ["OwlViT", "Owlv2"])
def test_a_public_folder(family: str, tmp_path: Path) -> None:
    """From photograph to boxes in its own pixels, beside transformers' own way."""
    model, processor, tokenizer = owl_folder(family, tmp_path / "owl")
    names = ["a red circle", "a dog", "cat"]
    size = (32, 32) if family == "OwlViT" else (32, 24)  # no interpolation of pixels, which is each library's own
    pixels = np.random.default_rng(0).integers(0, 255, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    detector = open_run(tmp_path / "owl", labels=names)
    assert isinstance(detector, Detector)
    assert detector.labels == tuple(names)
    (ours,) = detector.detect([tmp_path / "a.png"], least=0.4)
    tokens = tokenizer(names, padding="max_length", max_length=16, return_tensors="pt")
    x = processor(images=Image.fromarray(pixels), return_tensors="pt").pixel_values
    with torch.no_grad():
        out = model(input_ids=tokens.input_ids, attention_mask=tokens.attention_mask, pixel_values=x)
    (theirs,) = processor.post_process_object_detection(out, 0.4, torch.tensor([size]))
    boxes = torch.minimum(theirs["boxes"].clamp_min(0), torch.tensor([size[1], size[0]] * 2))
    order = theirs["scores"].argsort(descending=True)
    assert len(ours.objects) == len(order) > 0
    close(torch.tensor([o.score for o in ours.objects]), theirs["scores"][order], loosen=5)
    assert [o.label for o in ours.objects] == [names[k] for k in theirs["labels"][order].tolist()]
    close(torch.tensor([o.box for o in ours.objects]), boxes[order], loosen=50)  # in pixels: 1e-3 of one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    OpenVocabularyDetector(TINY).save_pretrained(tmp_path / "run")
    DetectionPreprocessing(Letterbox(64), labels=TINY.labels.names).save(tmp_path / "run")
    Image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(tmp_path / "a.png")
    return tmp_path / "run"


@pytest.mark.system("open-vocabulary-detection", "predict")
def test_names_on_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = str(tmp_path / "a.png")
    assert main(["predict", str(folder), photo, "--labels", "a blue square, circle", "--threshold", "0", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert {o["label"] for o in found["objects"]} <= {"a blue square", "circle"}
    assert len(found["objects"]) > 0
    assert main(["predict", str(folder), photo, "--threshold", "0", "--json"]) == 0  # its own names
    (found,) = json.loads(capsys.readouterr().out)
    assert {o["label"] for o in found["objects"]} <= set(TINY.labels.names)
    for labels, told in (("a blu square", "Did you mean 'blue'?"), ("circle, circle", "is there twice")):
        assert main(["predict", str(folder), photo, "--labels", labels]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1


def test_owl_without_names(tmp_path: Path) -> None:
    owl_folder("OwlViT", tmp_path / "owl")
    with pytest.raises(Mistake, match="finds what it is asked for; name something"):
        open_run(tmp_path / "owl")
