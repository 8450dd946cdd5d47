"""The detector of words: names are sums of words, new names need no training, names kept apart are never asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.contracts import Boxes, Detects
from descend.losses.detection.task_aligned import TaskAligned
from descend.models.open_vocabulary_detector import TINY, TINY_INPUT, OpenVocabularyDetector, split_words
from descend.weights.labels import Labels
from tests.close import close


def make(apart: int = 0) -> OpenVocabularyDetector:
    torch.manual_seed(0)
    return OpenVocabularyDetector(replace(TINY, apart=apart))


@pytest.mark.system("open-vocabulary-detection")
@pytest.mark.system("open-vocabulary-detection", "similarity-head")
def test_logits_are_similarities() -> None:
    """e^s cos(e, Σ words) + shift, written once more."""
    model, x = make().eval(), TINY_INPUT()
    maps = model.body.neck(model.body.pyramid(x))
    e, _ = model.body.head(maps)
    place = {word: i for i, word in enumerate(model.config.vocabulary)}
    for q, name in enumerate(TINY.labels.names):
        t = torch.stack([model.words.weight[place[word]] for word in name.split()]).sum(dim=0)
        cosine = (e * t).sum(dim=-1) / ((e.square().sum(-1).sqrt() + 1e-6) * (t.square().sum().sqrt() + 1e-6))
        close(model(x).logits[..., q], model.score.scale.exp() * cosine + model.score.shift, loosen=2)
    assert isinstance(model, Detects)


@pytest.mark.system("open-vocabulary-detection", "new-names")
def test_new_names() -> None:
    """A pair of known words that is no label; articles, case and order do not matter; an unknown word is named."""
    model, x = make().eval(), TINY_INPUT()
    texts = model.encode_names(["a Blue square", "square, blue", "red circle"])
    close(texts[0], texts[1])
    found = model.find(x, texts)
    assert found.logits.shape[-1] == 3
    close(found.logits[..., 2], model(x).logits[..., 0])
    with pytest.raises(
        ValueError, match=r"the word 'blu' is not known. Did you mean 'blue'\? Known: blue, circle, red"
    ):
        model.encode_names(["a blu square"])
    with pytest.raises(ValueError, match="has no word in it"):
        model.encode_names(["the"])
    assert split_words("An orange-red RING") == ["orange", "red", "ring"]


@pytest.mark.system("open-vocabulary-detection", "new-names")
def test_names_kept_apart_are_not_asked_for_in_training() -> None:
    model, x = make(apart=1), TINY_INPUT()
    assert model.train()(x).logits.shape[-1] == 2
    assert model.eval()(x).logits.shape[-1] == 3
    with pytest.raises(ValueError, match="apart 3: of 3 names"):
        make(apart=3)
    with pytest.raises(ValueError, match="'green'"):
        OpenVocabularyDetector(replace(TINY, words=("red", "circle"), labels=Labels(("green circle",))))


@pytest.mark.system("open-vocabulary-detection", "learns")
def test_it_learns_words() -> None:
    """Two objects under two names, asked for in other words than those of the labels."""
    torch.manual_seed(0)
    model = OpenVocabularyDetector(replace(TINY, widths=(8, 12, 16, 16, 16), bins=8))
    x = torch.zeros(1, 3, 64, 64)
    x[:, 0, 6:40, 4:30], x[:, 2, 20:60, 34:60] = 2.0, 2.0
    boxes = torch.tensor([[[4.0, 6, 30, 40], [34, 20, 60, 60]]])
    truth = Boxes(boxes, torch.tensor([[2, 1]]), torch.ones(1, 2))
    rule, loss = torch.optim.AdamW(model.parameters(), 1e-2), TaskAligned()
    for _ in range(70):
        rule.zero_grad()
        loss(model(x), truth, torch.zeros(1, 0)).total().backward()
        rule.step()
    with torch.no_grad():  # by the statistics of this image: the running ones follow slowly
        found = model.decode(model.find(x, model.encode_names(["square red", "the blue circle"])), 0.3)
    assert found.classes[0, :2].tolist() in ([0, 1], [1, 0])
    order = found.boxes[0, :2, 0].argsort()
    assert found.classes[0, :2][order].tolist() == [0, 1]
    assert (found.boxes[0, :2][order] - boxes[0]).abs().max() < 8
