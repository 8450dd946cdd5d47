"""descend chat: history, a context that fills up, stops, and messages that are too long."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.cli import main
from descend.errors import Mistake
from descend.inference.chatter import Chatter
from descend.models import make_model
from descend.models.llama import LlamaConfig
from descend.sampling.filters import TokenSampler
from descend.text.chat_template import add_roles
from descend.text.tokenizer import Tokenizer

CONFIG = LlamaConfig(context=40, width=16, depth=1, heads=2, kv_heads=2, hidden=16)
GREEDY = TokenSampler(temperature=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("assistant")
    tokenizer = add_roles(Tokenizer.characters("abcdef Hi?"))
    torch.manual_seed(0)
    model: Any = make_model(replace(CONFIG, vocab=tokenizer.vocab))
    letters = torch.tensor(tokenizer.encode("abcdef"))
    with torch.no_grad():  # it writes these only
        model.head.weight.copy_(torch.zeros_like(model.head.weight).index_add(0, letters, torch.randn(6, 16)))
    model.save_pretrained(where)
    tokenizer.save(where)
    return where


def talk(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]


def test_the_oldest_exchanges_are_left_out(folder: Path) -> None:
    chatter = Chatter.open(folder)
    long = talk("abcdef", "abcdef", "abcdef", "abc", "abc")
    whole, short = chatter.prepare(long, 5), chatter.prepare(long, 9)
    assert (len(whole.ids), whole.tokens, whole.dropped) == (32, 5, 0)
    assert (len(short.ids), short.tokens, short.dropped) == (17, 9, 2)
    assert short.ids == chatter.prepare(long[2:], 9).ids
    told = [{"role": "system", "content": "bad"}, *long]
    kept = chatter.prepare(told, 9)
    assert kept.dropped == 2
    assert kept.ids == chatter.prepare([told[0], *long[2:]], 9).ids
    assert chatter.prepare(talk("a" * 30), 200).tokens == 40 - 32  # what is left of the context, at most
    with pytest.raises(Mistake, match="a prompt of 62 tokens, and the model's context has 40: shorten it"):
        chatter.prepare(talk("a", "b", "a" * 60), 5)


def test_the_answer_is_what_the_template_asks_for_and_ends_with_its_turn(folder: Path) -> None:
    chatter = Chatter.open(folder)
    prompt = chatter.prepare(talk("Hi?"), 12)
    written = "".join(chatter.answer(prompt, GREEDY))
    assert written == descend.chat(folder, "Hi?", tokens=12, temperature=0)
    assert written == descend.chat(folder, talk("Hi?"), tokens=12, temperature=0)
    assert prompt.ids == chatter.writer.tokenizer.encode_special("<|user|>Hi?<|assistant|>")
    cut = descend.chat(folder, "Hi?", tokens=12, temperature=0, stop=(written[3],))
    assert cut == written[: written.index(written[3])]


def test_lines_of_the_standard_input_are_a_conversation(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"Hi?\n\nabc\n{'a' * 60}\nabc?\n"))
    assert main(["chat", str(folder), "--tokens", "9", "--temperature", "0", "--system", "bad"]) == 0
    said = capsys.readouterr()
    history: list[dict[str, str]] = [{"role": "system", "content": "bad"}]
    expected = []
    for question in ("Hi?", "abc", "abc?"):
        history.append({"role": "user", "content": question})
        expected.append(descend.chat(folder, history, tokens=9, temperature=0))
        history.append({"role": "assistant", "content": expected[-1]})
    assert said.out == "".join(f"{answer}\n" for answer in expected)
    lines = said.err.splitlines()
    assert lines[0].startswith("descend: the message makes a prompt of")
    assert lines[1] == "the oldest 2 messages do not fit into the context of 40 tokens any more, and were left out"


@pytest.mark.parametrize(
    "flag", [["--once", "a" * 60], ["--once", "Hi?", "--temperature", "nan"], ["--once", "Hi?", "--temperature", "-1"]]
)
def test_one_line_of_mistake(folder: Path, flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", str(folder), *flag]) == 2
    said = capsys.readouterr().err
    assert said.startswith("descend: ")
    assert said.count("\n") == 1


def test_models_that_cannot_talk(folder: Path, tmp_path: Path) -> None:
    plain: Any = Chatter.open(folder).writer.trained.model
    plain.save_pretrained(tmp_path)
    for name in ("chat_template.jinja", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(Mistake, match=r"tokenizer.json does not exist"):
        descend.chat(tmp_path, "Hi?")
    Tokenizer.load(folder).save(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(Mistake, match="has no chat template"):
        descend.chat(tmp_path, "Hi?")
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": "{{ messages.__class__ }}"}))
    with pytest.raises(Mistake, match="reaches for what is closed"):
        descend.chat(tmp_path, "Hi?")
