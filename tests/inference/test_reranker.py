"""Passages that a search found are ranked anew by a cross-encoder, with the numbers that it was trained on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import descend
from descend import cli
from descend.data.text.passages import Passage
from descend.errors import Mistake
from descend.inference.passage_index import Found
from descend.inference.reranker import Reranker
from descend.kinds.retrieve import compare_within
from descend.models.bert import BertConfig, BertForSequenceClassification
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels
from tests.close import close

TEXTS = ["the cat sat", "a dog ran far away from the cat", "gradient descent", "the mat"]


@pytest.fixture
def ranker(tmp_path: Path) -> Path:
    """An untrained cross-encoder as a run saves it."""
    inputs = Inputs.extend(Tokenizer.bpe(" ".join(TEXTS) * 9, 270), 32)
    torch.manual_seed(0)
    config = BertConfig(
        inputs.tokenizer.vocab, 32, 16, 1, 2, 32, dropout=0.0, pad=inputs.pad, labels=Labels(("relevant",))
    )
    model = BertForSequenceClassification(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)  # a model with something to say
    model.save_pretrained(tmp_path / "ranker")
    inputs.tokenizer.save(tmp_path / "ranker")
    (tmp_path / "ranker/ranker.json").write_text('{"trust": 0.5, "candidates": 4}')
    return tmp_path / "ranker"


@pytest.mark.system("cross-and-bi-encoder", "re-ranked")
def test_the_score_is_that_of_the_pair_and_a_share_of_the_search(ranker: Path) -> None:
    found = [Found(Passage(text, "a.md", i, i), 2.0 - 0.5 * i) for i, text in enumerate(TEXTS)]
    opened = Reranker.open(ranker)
    anew = opened.rank("where is the cat", found)
    r = compare_within(torch.tensor([[one.score for one in found]]))[0]
    expected = {}
    for i, text in enumerate(TEXTS):  # one pair at a time
        joined = opened.inputs.batch([opened.inputs.encode("where is the cat", text)])
        z = opened.trained.model(joined["x"], joined["mask"], joined["segments"]).detach()
        expected[text] = float(z[0, 0] + 0.5 * r[i])
    assert [one.passage.text for one in anew] == sorted(TEXTS, key=lambda text: -expected[text])
    close(torch.tensor([one.score for one in anew]), torch.tensor(sorted(expected.values(), reverse=True)))
    assert [one.passage.text for one in anew] != TEXTS
    assert opened.rank("cat", []) == []


@pytest.mark.system("cross-and-bi-encoder", "re-ranked")
def test_a_question_is_answered_from_the_best_of_more_candidates(
    ranker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, index = tmp_path / "docs", str(tmp_path / "index")
    docs.mkdir()
    for i, text in enumerate(TEXTS):
        (docs / f"{i}.txt").write_text(text + "\n")
    descend.index(docs, index)
    first = [one.passage.source for one in descend.ask(index, "the cat", top=4).sources]
    assert cli.main(["ask", index, "the cat", "--top", "1", "--rerank", str(ranker), "--json"]) == 0
    sources = json.loads(capsys.readouterr().out)["sources"]
    anew = Reranker.open(ranker).rank("the cat", descend.ask(index, "the cat", top=4).sources)
    assert [one["source"] for one in sources] == [anew[0].passage.source]
    assert {one.passage.source for one in anew} == set(first)


def test_a_model_that_was_not_trained_to_rank_is_refused(ranker: Path) -> None:
    (ranker / "ranker.json").unlink()
    with pytest.raises(Mistake, match=r"and no ranker.json: it was not trained to rank; give a run of"):
        Reranker.open(ranker)
