"""Rewards asked for through a run's folder: of a prompt with responses, and of files of preferences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.cli import main
from descend.data.text.preference_source import Preferences
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.response_judge import ResponseJudge
from descend.kinds.start_language import open_base
from descend.models import load
from descend.models.gpt2 import GPT2Config
from descend.text.tokenizer import Tokenizer
from tests.close import close
from tests.engine.small import train

ASKED = ["how was the film ? ", "the film was good .", "the film was bad .", "it was fine ."]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    whole: Any = recipes.get("reward-opinions")
    model = GPT2Config(context=40, width=16, depth=1, heads=2, dropout=0.0)
    loop = replace(whole.loop, steps=6, batch=8, eval_every=6, save_every=6, threads=1)
    folder = tmp_path_factory.mktemp("runs") / "reward"
    return train(replace(whole, model=model, data=Preferences(records=40), loop=loop), folder).folder


@pytest.mark.system("reward-model")
def test_each_response_is_read_alone_at_its_end(run: Path) -> None:
    judge = open_run(run)
    assert isinstance(judge, ResponseJudge)
    [answer] = judge.predict(ASKED)
    assert answer.input == ASKED[0]
    assert [reward for _, reward in answer.classes] == sorted([r for _, r in answer.classes], reverse=True)
    model, tokenizer = load(run), Tokenizer.load(run / "checkpoints/best")
    for response, reward in answer.classes:
        tokens = torch.tensor([[*tokenizer.encode(ASKED[0]), *tokenizer.encode(response), tokenizer.end]])
        with torch.no_grad():
            close(torch.tensor([reward]), model(tokens, torch.ones_like(tokens, dtype=torch.bool)), loosen=5)


def test_a_file_of_preferences_is_rated(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.jsonl"
    records = [{"prompt": ASKED[0], "chosen": ASKED[1], "rejected": ASKED[2]}, {"prompt": "?", "responses": ASKED[1:]}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert main(["predict", str(run), str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(row["answers"]) for row in found] == [2, 3]
    assert main(["predict", str(run), *ASKED]) == 0
    assert "the film was bad ." in capsys.readouterr().out


def test_what_a_reward_model_cannot_do_is_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for asked, message in (
        (["predict", str(run), "alone"], "give the prompt, then its responses"),
        (["predict", str(run), "how ?", "good", "good"], "two of the responses are the same"),
        (["generate", str(run), "how"], "does not write text"),
    ):
        assert main(asked) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    with pytest.raises(Mistake, match="does not write text; give a language model"):
        open_base(str(run))
