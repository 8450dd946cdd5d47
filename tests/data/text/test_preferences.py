"""Preferences: files, tokens, simulated annotators."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
import torch

from descend.data.text.annotators import Annotator, collect, write_preferences
from descend.data.text.preference_source import Preferences
from descend.data.text.preferences import (
    PreferencesInOrder,
    Ranked,
    begin_answer,
    read_preferences,
    split_pairs,
    tokenize,
    tokenize_prompts,
)
from descend.data.text.rated_opinions import PROMPTS, answer_differently, quality
from descend.errors import Mistake
from descend.text.chat_template import add_roles
from descend.text.tokenizer import Tokenizer

USER = {"role": "user", "content": "how was it ?"}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def save(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def learn(*records: Ranked) -> Tokenizer:
    return Tokenizer.characters(" ".join(text for record in records for text in record.texts))


@pytest.mark.system("preference-data")
@pytest.mark.system("preference-data", "comparisons")
def test_k_responses_make_all_their_pairs() -> None:
    ranked = Ranked("how ?", ("best", "good", "poor", "worst"), "line 1")
    pairs = split_pairs([ranked])
    assert len(pairs) == 4 * 3 // 2
    assert [pair.responses for pair in pairs] == list(combinations(ranked.responses, 2))
    assert {pair.prompt for pair in pairs} == {"how ?"}


@pytest.mark.system("preference-data", "files")
def test_texts_messages_and_rankings_are_read(tmp_path: Path) -> None:
    path = save(
        tmp_path / "p.jsonl",
        {"prompt": "how ?", "chosen": "good .", "rejected": "bad ."},
        {"prompt": [USER], "chosen": [said("good .")], "rejected": [said("bad .")]},
        {"chosen": [USER, said("good .")], "rejected": [USER, said("bad .")]},
        {"prompt": "how ?", "responses": ["good .", "so so .", "bad ."]},
    )
    text, messages, implicit, ranking = read_preferences(path)
    assert text.prompt == "how ?"
    assert text.responses == messages.responses == implicit.responses == ("good .", "bad .")
    assert messages.prompt == implicit.prompt == (USER,)
    assert ranking.responses == ("good .", "so so .", "bad .")
    write_preferences(tmp_path / "again.jsonl", [text, messages, ranking])
    again = read_preferences(tmp_path / "again.jsonl")
    assert [(r.prompt, r.responses) for r in again] == [(r.prompt, r.responses) for r in (text, messages, ranking)]


@pytest.mark.system("preference-data", "files")
@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        ({"prompt": "x", "chosen": "a", "rejected": "a"}, "chosen and rejected are equal"),
        ({"prompt": "x", "responses": ["a", "b", "a"]}, "response 1 and response 3 are equal"),
        ({"prompt": "x", "chosen": "a", "rejected": " "}, "rejected: is empty"),
        ({"prompt": "x", "chosen": "a", "rejectd": "b"}, "no 'rejected'.*Did you mean 'rejectd'"),
        ({"chosen": "a", "rejected": "b"}, 'chosen: there is no "prompt"'),
        ({"prompt": "x", "responses": ["a"]}, "two or more texts"),
        ({"prompt": "x", "chosen": 3, "rejected": "b"}, "chosen: a int"),
        ({"chosen": [USER, said("a")], "rejected": [said("b")]}, "rejected: an answer to nothing"),
        ({"chosen": [USER, said("a")], "rejected": [{**USER, "content": "?"}, said("b")]}, "different prompts"),
        ({"prompt": [USER, USER], "chosen": [said("a")], "rejected": [said("b")]}, "both the user's"),
        ({"prompt": [USER], "chosen": [USER], "rejected": [said("b")]}, "must be the assistant's"),
        ({"prompt": [{"role": "bot"}], "chosen": [said("a")], "rejected": [said("b")]}, "role 'bot' is unknown"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, record: object, wrong: str) -> None:
    path = save(tmp_path / "p.jsonl", {"prompt": "how ?", "chosen": "good .", "rejected": "bad ."}, record)
    with pytest.raises(Mistake, match=rf"p\.jsonl, line 2.*{wrong}"):
        read_preferences(path)


@pytest.mark.system("preference-data", "files")
def test_only_the_responses_tokens_are_written() -> None:
    records = [Ranked("ab", ("cd", "e", "abcde"), "1"), Ranked("a", ("b", "c"), "2")]
    tokenizer = learn(*records)
    batch = tokenize(records, tokenizer, 20)
    assert batch["tokens"].shape == (2, 3, 8)
    for record, tokens, written in zip(records, batch["tokens"], batch["written"], strict=True):
        for response, row, mine in zip(record.responses, tokens, written, strict=False):
            assert row[mine].tolist() == [*tokenizer.encode(response), tokenizer.end]
            assert row[: int(mine.nonzero()[0])].tolist() == tokenizer.encode(str(record.prompt))
    assert not batch["written"][1, 2].any()
    [first, second] = PreferencesInOrder(batch, 1)
    assert (first["tokens"].shape[-1], second["tokens"].shape[-1]) == (8, 3)
    assert tokenize_prompts([*records, *records], tokenizer, 1) == [tokenizer.encode("a")]


@pytest.mark.system("preference-data", "files")
def test_messages_take_the_chat_template() -> None:
    record = Ranked((USER,), ("good", "bad"), "1")
    tokenizer = add_roles(learn(record))
    prompt = begin_answer(record, tokenizer)
    assert tokenizer.decode(prompt) == "<|user|>how was it ?<|assistant|>"
    batch = tokenize([record], tokenizer, 99)
    assert tokenizer.decode(batch["tokens"][0, 1][batch["written"][0, 1]].tolist()) == "bad<|endoftext|>"


@pytest.mark.system("preference-data", "files")
def test_what_is_cut_away_is_named() -> None:
    record = Ranked("abc", ("dddde", "ddddf"), "p.jsonl, line 7")
    tokenizer = learn(record)
    with pytest.raises(Mistake, match=r"line 7: the prompt has 3 tokens, so with 3 in all nothing is left"):
        tokenize([record], tokenizer, 3)
    with pytest.raises(Mistake, match=r"line 7: responses 1 and 2 differ only after token 7"):
        tokenize([record], tokenizer, 7)
    assert tokenize([record], tokenizer, 8)["written"].sum() == 10
    with pytest.raises(Mistake, match="shortest prompt has 3 tokens"):
        tokenize_prompts([record], tokenizer, 2)


@pytest.mark.system("preference-data")
@pytest.mark.system("preference-data", "noise-free")
def test_without_noise_the_order_is_that_of_the_quality() -> None:
    random = torch.Generator().manual_seed(0)
    annotate = Annotator(quality)
    for prompt in PROMPTS[:12]:
        texts = answer_differently(prompt, 6, random)
        order = annotate(prompt, texts)
        found = [quality(prompt, texts[i]) for i in order]
        assert found == sorted(found, reverse=True)
        for first, second in combinations(texts, 2):  # and so no pair contradicts the ranking
            if quality(prompt, first) != quality(prompt, second):
                better = texts[order[min(order.index(texts.index(t)) for t in (first, second))]]
                assert (first, second)[annotate(prompt, (first, second))[0]] == better


@pytest.mark.system("preference-data", "bradley-terry-noise")
def test_a_noisy_annotator_is_that_of_bradley_and_terry() -> None:
    values = {"a": 1.5, "b": -0.5, "c": 0.0}
    annotate = Annotator(lambda _, text: values[text], noise=2.0, seed=10)
    n, wins = 20_000, Counter[tuple[str, str]]()
    for _ in range(n):
        order = [list(values)[i] for i in annotate("", list(values))]
        wins.update(combinations(order, 2))
    for a, b in combinations(values, 2):
        p = float(torch.tensor((values[a] - values[b]) / 2.0).sigmoid())
        assert abs(wins[a, b] / n - p) < 4 * (p * (1 - p) / n) ** 0.5
    with pytest.raises(Mistake, match="noise is -1"):
        Annotator(quality, -1.0)


@pytest.mark.system("preference-data", "collection")
def test_a_person_ranks_what_a_model_answers() -> None:
    def person(prompt: str, responses: list[str]) -> list[int]:  # prefers short answers
        return sorted(range(len(responses)), key=lambda i: len(responses[i]))

    answers = {"x": ["long", "s", "long"], "y": ["one", "one"]}
    [ranked] = collect(answers, lambda prompt: answers[prompt], person)  # type: ignore[arg-type]
    assert (ranked.prompt, ranked.responses) == ("x", ("s", "long"))
    with pytest.raises(Mistake, match=r"prompt 1: the annotator's order \[0, 0\]"):
        collect(answers, lambda prompt: answers[prompt], lambda prompt, responses: [0, 0])


@pytest.mark.system("preference-data", "collection")
def test_the_generated_records_have_known_qualities_and_prompts_apart() -> None:
    data = Preferences(records=200)
    parts = data.read()
    assert parts.quality is quality
    prompts = [{record.prompt for record in parts[part]} for part in ("train", "valid", "test")]
    assert sum(map(len, prompts)) == len(set().union(*prompts))
    for record in parts["train"]:
        found = [quality(str(record.prompt), response) for response in record.responses]
        assert found == sorted(found, reverse=True)
        assert len(set(found)) == len(found)
    assert data.read()["train"] == parts["train"]
    assert quality("how was the film ? ", "the film was good , good and dull .") == 0
    assert quality("how was the film ? ", "the plot was bright .") == -1
    with pytest.raises(Mistake, match=r"--data\.responses 1"):
        Preferences(responses=1).read()
