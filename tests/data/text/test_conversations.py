"""Conversations as users have them: every form is read, and what is wrong is named by file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from descend.data.text.conversation_batches import Dialogues, DialoguesInOrder, Replayed, encode_records, join_rows
from descend.data.text.conversation_source import Conversations, GeneralText, converse
from descend.data.text.conversations import Dialogue, Document, PlainPair, encode_record, read_record, read_records
from descend.data.text.instruction_sources import (
    BOOK_MIX,
    SENTIMENT,
    InstructionTemplate,
    ask_teacher,
    convert_classes,
    convert_pairs,
    mix_records,
    share_counts,
)
from descend.data.text.text_to_text import Labels
from descend.data.toys.instructions import SKILLS, ask, split_instructions
from descend.errors import Mistake
from descend.text.chat_template import add_roles
from descend.text.tokenizer import Tokenizer

USER, ANSWER = {"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}
TELL = {"role": "system", "content": "You are terse."}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return add_roles(Tokenizer.characters("You are terse. 2 + 2? 4 Reverse abc. cba\n"))


def learned(record: Any, tokenizer: Tokenizer) -> tuple[str, str]:
    """The whole text, and what of it counts."""
    tokens, said = encode_record(record, tokenizer, 200)
    return tokenizer.decode(tokens), tokenizer.decode([t for t, mine in zip(tokens, said, strict=True) if mine])


@pytest.mark.system("instruction-dataset", "formats")
def test_every_form_is_read(tokenizer: Tokenizer) -> None:
    read = lambda value: learned(read_record(value, "x"), tokenizer)
    end = "<|endoftext|>"
    assert read({"messages": [TELL, USER, ANSWER, USER, ANSWER]})[1] == f"4{end}4{end}"
    asked = f"<|user|>2 + 2?<|assistant|>4{end}"
    assert read({"messages": [USER, ANSWER]}) == (asked, f"4{end}")
    assert read({"prompt": [USER], "completion": [ANSWER]}) == (asked, f"4{end}")
    assert read({"prompt": [USER, ANSWER, USER], "completion": [ANSWER]}) == (asked * 2, f"4{end}")
    assert read({"prompt": "2 + 2", "completion": "? 4"}) == (f"2 + 2? 4{end}", f"? 4{end}")
    assert read({"instruction": "Reverse abc.", "output": "cba"}) == (f"<|user|>Reverse abc.<|assistant|>cba{end}",
                                                                      f"cba{end}")  # fmt: skip
    given = read({"instruction": "Reverse.", "input": "abc", "output": "cba"})[0]
    assert given == f"<|user|>Reverse.\n\nabc<|assistant|>cba{end}"
    assert read({"text": "2 + 2"}) == (f"2 + 2{end}", f" + 2{end}")


@pytest.mark.system("instruction-dataset", "refused")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"messages": [USER, USER, ANSWER]}, "messages 1 and 2 are both the user's"),
        ({"messages": [USER, ANSWER, ANSWER]}, "messages 2 and 3 are both the assistant's"),
        ({"messages": [USER]}, "the last message is the user's, with no answer"),
        ({"messages": [ANSWER, USER, ANSWER]}, "message 1 is the assistant's, but nothing was asked"),
        ({"messages": [USER, TELL, ANSWER]}, "message 2 is the system's; it comes first"),
        ({"messages": [USER, {"role": "assistant", "content": " "}]}, "message 2: the assistant's answer is empty"),
        ({"messages": [{"role": "asistant", "content": "4"}]}, "role 'asistant' is unknown.*Did you mean 'assistant'"),
        ({"messages": "hi"}, '"messages" must be a list of'),
        ({"messages": []}, "there are no messages"),
        ({"prompt": "2", "completion": [ANSWER]}, "must both be texts, or both lists"),
        ({"prompt": "2", "completion": ""}, '"completion" is empty'),
        ({"prompt": "", "completion": "4"}, '"prompt" is empty'),
        ({"prompt": [USER]}, "must both be texts, or both lists"),
        ({"instruction": "a", "output": ""}, "message 2: the assistant's answer is empty"),
        ({"instruction": 3, "output": "a"}, '"instruction" must be a text, not int'),
        ({"text": " "}, '"text" is empty'),
        ({"question": "a"}, "a record with 'question'; it needs messages, prompt and completion"),
    ],
)
def test_what_is_no_conversation_is_named(value: dict[str, Any], said: str, tmp_path: Path) -> None:
    good = json.dumps({"messages": [USER, ANSWER]})
    (tmp_path / "chats.jsonl").write_text(f"{good}\n\n{json.dumps(value)}\n")
    with pytest.raises(Mistake, match=f"chats.jsonl, line 3: .*{said}"):
        read_records(tmp_path / "chats.jsonl")


@pytest.mark.system("instruction-dataset", "refused")
def test_an_answer_that_the_context_cuts_away_is_refused(tokenizer: Tokenizer) -> None:
    record = Dialogue("chats.jsonl, line 7", (USER, {"role": "assistant", "content": "4444"}))
    assert len(encode_record(record, tokenizer, 9).tokens) == 9  # one token of the answer is left
    with pytest.raises(
        Mistake, match=r"chats.jsonl, line 7: the answer begins at token 9 of 13, beyond the context of 8"
    ):
        encode_record(record, tokenizer, 8)


def test_folders_and_files(tmp_path: Path) -> None:
    line = lambda n: json.dumps({"messages": [{"role": "user", "content": f"a{n}"}, ANSWER]}) + "\n"
    for name, n in (("train.jsonl", 3), ("val.jsonl", 2), ("test.jsonl", 1)):
        (tmp_path / name).write_text("".join(line(i) for i in range(n)))
    parts = Conversations(path=str(tmp_path)).read()
    assert [len(part) for part in parts] == [3, 2, 1]
    (tmp_path / "train.jsonl").rename(tmp_path / "mine.jsonl")
    assert [len(part) for part in Conversations(path=str(tmp_path)).read()] == [3, 2, 1]
    (tmp_path / "mine.jsonl").unlink()
    with pytest.raises(Mistake, match="no record to train on"):
        Conversations(path=str(tmp_path)).read()
    (tmp_path / "empty").mkdir()
    with pytest.raises(Mistake, match="no conversations in this folder"):
        Conversations(path=str(tmp_path / "empty")).read()
    (tmp_path / "none.jsonl").write_text("\n")
    with pytest.raises(Mistake, match=r"none.jsonl holds no record"):
        Conversations(path=str(tmp_path / "none.jsonl")).read()
    with pytest.raises(Mistake, match="too few to train and to validate"):
        Conversations(path=str(tmp_path / "test.jsonl")).read()


def test_equal_prompts_stay_on_one_side(tmp_path: Path) -> None:
    pair = lambda i: json.dumps({"prompt": f"q{i % 20}", "completion": f"{i}"}) + "\n"
    (tmp_path / "pairs.jsonl").write_text("".join(pair(i) for i in range(200)))
    train, valid, test = Conversations(path=str(tmp_path / "pairs.jsonl"), valid=0.2).read()
    prompts = [{record.prompt for record in part if isinstance(record, PlainPair)} for part in (train, valid)]
    assert not prompts[0] & prompts[1]
    assert (len(train), len(valid), len(test)) == (160, 40, 0)


@pytest.mark.system("instruction-dataset")
def test_generated_answers_are_right_and_nothing_is_in_two_parts() -> None:
    parts = split_instructions(tuple(SKILLS), 1200, 120)
    keys = [{one.key for one in part} for part in parts]
    assert sum(map(len, keys)) == len(keys[0] | keys[1] | keys[2])
    assert len(parts.train) == 1200
    assert {one.task for one in parts.valid} == set(SKILLS)
    for one in parts.train:
        task, *content = one.key.split()
        true = {
            "reverse": lambda w: w[::-1], "upper": lambda w: w.upper(), "sort": lambda w: "".join(sorted(w)),
            "last": lambda w: w[-1], "count": lambda a, w: str(w.count(a)), "add": lambda a, b: str(int(a) + int(b)),
            "second": lambda w: w[1], "third": lambda w: w[2], "capital": lambda w: w[0].upper(),
            "twice": lambda w: w[-1] * 2, "first": lambda w: w[0], "has": lambda a, w: "yes" if w.count(a) else "no",
            "parity": lambda n: ("even", "odd")[int(n) % 2], "larger": lambda a, b: "yes" if int(a) > int(b) else "no",
        }[task](*content)  # fmt: skip
        assert one.answer == true
        assert all(part in one.instruction for part in content)
    assert split_instructions(tuple(SKILLS), 60, 12) == split_instructions(tuple(SKILLS), 60, 12)
    turns = [len(record.messages) for record in converse(parts.valid) if isinstance(record, Dialogue)]
    assert turns == [2, 2, 2, 4] * 24
    with pytest.raises(Mistake, match=r"'revers': choose .* Did you mean 'reverse'"):
        Conversations(tasks=("revers",)).read()
    with pytest.raises(ValueError, match="no content is left"):
        ask(("last",), 1, without=Everything())


class Everything(set[str]):
    def __contains__(self, key: object) -> bool:
        return True


def test_batches_are_as_wide_as_their_longest_row(tokenizer: Tokenizer) -> None:
    records = [Dialogue("x", ({"role": "user", "content": "2" * n}, ANSWER)) for n in range(1, 41)]
    arrays = encode_records(records, tokenizer, 100)
    assert arrays["tokens"].shape == (40, 44)
    assert int(arrays["said"].sum()) == 80
    assert not arrays["said"][arrays["tokens"] == -1].any()
    stream, seen = Dialogues(arrays, 8, 4, seed=0), []
    for _ in range(10):
        batch = next(stream)
        assert batch["tokens"].shape == batch["said"].shape
        assert (batch["tokens"][:, -1] != -1).any()
        seen += batch["ids"].tolist()
    assert sorted(seen) == list(range(40))
    lengths = [len(batch["tokens"][0]) for batch in DialoguesInOrder(arrays, 16)]
    assert lengths == sorted(lengths)
    piece = stream.take(3, 5)
    joined = join_rows([piece, Replayed(torch.arange(500), 60, 0).take(0, 2)])
    assert joined["tokens"].shape == (4, 60)
    assert joined["said"][2:, 1:].all()
    assert not joined["said"][2:, 0].any()
    assert (joined["tokens"][2:].diff() == 1).all()
    with pytest.raises(Mistake, match="forgets white space"):
        Conversations(tokenizer="words").learn_tokenizer(records)


def test_general_text_is_split_by_place(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "general.txt").write_text("2 + 2? " * 100 + "4 abc. " * 12)
    general = GeneralText(path=str(tmp_path / "general.txt"))
    train, valid = general.read(tokenizer, 16)
    assert tokenizer.decode(train.tolist()) == general.read_training()
    assert len(valid) == pytest.approx(0.1 * (len(train) + len(valid)), abs=1)


@pytest.mark.system("instruction-dataset", "converters")
def test_other_data_sets_become_instructions_and_come_back() -> None:
    words = ("negative", "positive")
    texts, classes = ["Bad: film {text}", "A fine film."], [0, 1]
    records = convert_classes(texts, classes, words)
    template, labels = InstructionTemplate(SENTIMENT), Labels(words)
    for record, text, y in zip(records, texts, classes, strict=True):
        assert isinstance(record, Dialogue)
        assert record.messages[0]["content"].startswith(
            "Classify the sentiment of this review as positive or negative: "
        )
        back, answer = template.extract(record)
        assert (back, labels.parse(answer)) == (text, y)
    [pair] = convert_pairs([("The cat sleeps.", "Le chat dort.")])
    assert [m["content"] for m in pair.messages] == ["Translate to French: The cat sleeps.", "Le chat dort."]  # type: ignore[attr-defined]
    with pytest.raises(Mistake, match="was not made by"):
        template.extract(pair)  # type: ignore[arg-type]
    with pytest.raises(Mistake, match=r"needs one {text}"):
        InstructionTemplate("Classify.")


@pytest.mark.system("instruction-dataset", "mix")
def test_a_mix_has_the_books_proportions() -> None:
    assert share_counts(BOOK_MIX, 160_000) == BOOK_MIX
    assert share_counts(BOOK_MIX, 17) == {"human": 1, "reformatted": 11, "synthetic": 5}
    assert sum(share_counts({"a": 1, "b": 1, "c": 1}, 100).values()) == 100
    sources = {name: [Document(f"{name} {i}", "a") for i in range(400)] for name in BOOK_MIX}
    mixed = mix_records(sources, BOOK_MIX, 320)
    assert len({record.where for record in mixed}) == 320
    assert {name: sum(r.where.startswith(name) for r in mixed) for name in BOOK_MIX} == share_counts(BOOK_MIX, 320)
    assert mixed == mix_records(sources, BOOK_MIX, 320)
    with pytest.raises(Mistake, match="'reformatted' has 400 records, and its share needs 625"):
        mix_records(sources, BOOK_MIX, 1000)
    with pytest.raises(Mistake, match=r"no source 'humans'.*Did you mean 'human'"):
        mix_records(sources, {"humans": 1}, 10)
    with pytest.raises(Mistake, match="0 or more, and not all 0"):
        share_counts({"a": 0}, 10)


@pytest.mark.system("instruction-dataset", "teacher")
def test_a_teachers_answers_become_records() -> None:
    teacher = lambda asked: ["" if "b" in m[0]["content"] else m[0]["content"].upper() for m in asked]
    records, silent = ask_teacher(teacher, ["a", "b", "c"])
    assert silent == 1
    assert [r.messages[1]["content"] for r in records if isinstance(r, Dialogue)] == ["A", "C"]
