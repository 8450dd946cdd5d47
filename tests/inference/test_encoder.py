"""Vectors of images and texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import normalize

from descend.data.images.captions import Captions, caption_tokens
from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.inference.encoder import Encoder
from descend.models import load
from descend.models.bert import Bert, BertConfig
from descend.models.clip import TINY as CLIP_TINY
from descend.models.clip import Clip
from descend.models.gan import TINY as GAN_TINY
from descend.models.gan import Generator
from descend.models.roberta import TINY as ROBERTA_TINY
from descend.models.roberta import Roberta
from descend.models.vit import ViTConfig, ViTForImageClassification
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from tests.close import close

TEXTS = ["a good film", "bad", "a long story about a good film"]


def test_images_by_the_vectors_before_the_head(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = ViTConfig(channels=3, side=8, patch=4, width=12, depth=1, heads=2, hidden=16)
    ViTForImageClassification(config).save_pretrained(tmp_path)
    Preprocessing((3, 8, 8), (0.5,) * 3, (0.5,) * 3).save(tmp_path)
    x = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    encoder = Encoder.open(tmp_path)
    vectors = encoder.encode_images(x)
    assert vectors.shape == (3, 12)
    close(vectors, load(tmp_path).features(2 * x - 1).detach())  # type: ignore[operator]
    with pytest.raises(Mistake, match="does not embed texts"):
        encoder.encode_texts(["a text"])


def test_texts_by_the_mean_of_their_tokens(tmp_path: Path) -> None:
    """Padding has no part in it: a text alone has the same vector as in a batch."""
    inputs = Inputs.extend(Tokenizer.bpe("good bad film story " * 20, 280), 16)
    torch.manual_seed(0)
    model = Bert(BertConfig(inputs.tokenizer.vocab, 16, 8, 1, 2, 16, dropout=0.0, pad=inputs.pad)).eval()
    model.save_pretrained(tmp_path)
    inputs.tokenizer.save(tmp_path)
    encoder = Encoder.open(tmp_path)
    vectors = encoder.encode_texts(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        tokens = torch.tensor([inputs.encode(text).tokens])
        close(vector, model.hidden(tokens)[0].mean(dim=0).detach())
    with pytest.raises(Mistake, match="does not embed images"):
        encoder.encode_images(torch.rand(1, 3, 8, 8))


def test_a_roberta_has_no_segments(tmp_path: Path) -> None:
    inputs = Inputs.extend(Tokenizer.bpe("good bad film story " * 20, 280), 16)
    torch.manual_seed(0)
    config = replace(ROBERTA_TINY, vocab=inputs.tokenizer.vocab, pad=inputs.pad, context=inputs.pad + 17)
    Roberta(config).save_pretrained(tmp_path)
    inputs.tokenizer.save(tmp_path)
    assert Encoder.open(tmp_path).encode_texts(["good film"]).shape == (1, ROBERTA_TINY.width)


def test_a_clip_encodes_both_into_one_space(tmp_path: Path) -> None:
    tokenizer = Captions(vocab=280).learn_tokenizer(["a red ring", "a blue star"])
    text = replace(CLIP_TINY.text, vocab=tokenizer.vocab, end=tokenizer.end or 0)
    torch.manual_seed(0)
    model = Clip(replace(CLIP_TINY, text=text)).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    Preprocessing((3, 8, 8), (0.5,) * 3, (0.5,) * 3).save(tmp_path)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    encoder, texts = Encoder.open(tmp_path), ["a red ring", "a blue star"]
    images, captions = encoder.encode_images(x), encoder.encode_texts(texts)
    close(images, normalize(images))
    tokens = caption_tokens(tokenizer, texts, text.context)
    close(model.scale.exp().detach() * images @ captions.T, model(2 * x - 1, tokens).detach())


def test_a_model_without_vectors_is_refused(tmp_path: Path) -> None:
    Generator(GAN_TINY).save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="Generator, which does not embed"):
        Encoder.open(tmp_path)
