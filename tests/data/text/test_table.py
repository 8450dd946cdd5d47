"""Tables of labelled texts in the shapes people have them: which column is which, what is said, what is refused."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
import torch

from descend import recipes
from descend.data.images.labelled import split_by_class
from descend.data.text.labelled import LabelledText
from descend.data.text.sentiment import Opinions
from descend.data.text.table import Wanted, is_header, read_text_table
from descend.errors import Mistake
from descend.kinds.changes import change

WORDS = ("go", "until", "the", "point", "crazy", "only", "great", "world", "cup", "free", "entry", "call", "now", "win")


def texts(n: int, seed: int = 0) -> list[str]:
    """n different messages."""
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(5, 20))) + f" {i}." for i in range(n)]


def messages(n: int = 100) -> str:
    """Messages as UCI gives them: no header, the label first, quotation marks that do not close."""
    return "".join(f'{"spam" if i % 5 == 0 else "ham"}\t"{text}\n' for i, text in enumerate(texts(n)))


def reviews(n: int = 100) -> str:
    """Reviews in a .csv file, the label first, under names of their own."""
    lines = (f'{("negative", "positive")[i % 2]},"{text}, and <br /> more"\n' for i, text in enumerate(texts(n)))
    return "sentiment,review\n" + "".join(lines)


def tweets(n: int = 100) -> str:
    """Tweets with an identifier, a date and an author."""
    rows = (
        f"{5703 + 17 * i},{('neutral', 'positive', 'negative')[i % 3]},2015-02-{1 + i % 28:02} 11:3{i % 10}:52,"
        f"user{i % 40},{text}\n"
        for i, text in enumerate(texts(n))
    )
    return "tweet_id,mood,created,user,tweet\n" + "".join(rows)


def write(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return str(path)


def test_messages_without_a_header(tmp_path: Path) -> None:
    data = LabelledText(write(tmp_path / "SMSSpamCollection", messages())).read()
    assert data.names == ("ham", "spam")
    assert data.texts == ['"' + text for text in texts(100)]
    assert data.ids[:2].tolist() == [1, 2]
    assert data.facts == {
        "text column": "column 2 (there is no header)",
        "label column": "column 1 (there is no header)",
    }


def test_reviews_under_other_names(tmp_path: Path) -> None:
    data = LabelledText(write(tmp_path / "imdb.csv", reviews())).read()
    assert data.names == ("negative", "positive")
    assert len(data.texts) == 100
    assert data.texts[0].endswith(", and <br /> more")
    assert data.ids[0] == 2
    assert data.facts == {"text column": "review", "label column": "sentiment"}


def test_tweets_with_an_identifier(tmp_path: Path) -> None:
    data = LabelledText(write(tmp_path / "tweets.csv", tweets())).read()
    assert data.names == ("negative", "neutral", "positive")
    assert data.texts == texts(100)
    assert data.facts["label column"] == "mood"
    assert data.facts["left out"].startswith("tweet_id (all different); created (")
    assert "user (40 different values)" in data.facts["left out"]


def test_columns_of_objects(tmp_path: Path) -> None:
    lines = [{"id": 9 * i, "stars": 1 + i % 5, "body": text, "tags": ["x"]} for i, text in enumerate(texts(60))]
    content = "".join(json.dumps(line) + "\n" for line in lines)
    data = LabelledText(write(tmp_path / "a.jsonl", content)).read()
    assert data.names == ("1", "2", "3", "4", "5")
    assert data.facts["text column"] == "body"
    assert data.facts["left out"] == "id (all different); tags (empty)"
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    assert LabelledText(str(tmp_path / "a.jsonl.gz")).read().texts == data.texts
    del lines[7]["stars"]
    with pytest.raises(Mistake, match="line 8: no 'stars'"):
        LabelledText(write(tmp_path / "b.jsonl", "".join(json.dumps(line) + "\n" for line in lines))).read()


def test_flags_name_columns_or_count_them(tmp_path: Path) -> None:
    path = write(tmp_path / "tweets.csv", tweets())
    by_name = LabelledText(path, text="tweet", label="mood").read()
    assert LabelledText(path, text="5", label="2").read().texts == by_name.texts
    assert len(set(read_text_table(Path(path), Wanted(label="user")).labels)) == 40
    assert LabelledText(write(tmp_path / "s.tsv", messages()), label="1").read().names == ("ham", "spam")
    with pytest.raises(Mistake, match=r"--data.label moot: .*has no such column.*mood"):
        LabelledText(path, label="moot").read()
    with pytest.raises(Mistake, match=r"--data.text 3: .*Columns: 1 to 2, without names"):
        LabelledText(write(tmp_path / "s.tsv", messages()), text="3").read()


def test_a_label_with_nearly_as_many_values_as_records_stops(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", messages())
    with pytest.raises(Mistake, match=r"100 different labels in 100 records: is --data.label right"):
        LabelledText(path, text="1", label="2").read()
    with pytest.raises(Mistake, match="60 different labels in 60 records"):
        Opinions(write(tmp_path / "n.tsv", "".join(f"{t}\tid{i}\n" for i, t in enumerate(texts(60))))).read()


def test_two_possible_labels_are_asked_for(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2},{i % 3},{text}\n" for i, text in enumerate(texts(60)))
    with pytest.raises(Mistake, match=r"several columns could be the label: a \(2 values\), b \(3 values\); name it"):
        LabelledText(write(tmp_path / "t.csv", "a,b,words\n" + rows)).read()


@pytest.mark.parametrize(
    ("first", "rest", "header"),
    [
        (["sentiment", "review"], [["good", "fine film"], ["bad", "poor film"]], True),
        (["v1", "v2"], 5 * [["ham", "Go until jurong point"], ["spam", "Free entry in a weekly cup"]], True),
        (
            ["rare", "Free entry"],
            [["ham", "Go until jurong point, crazy"], ["spam", "Free entry in a weekly cup"]],
            False,
        ),
        (["ham", "Ok lar"], [["ham", "Go until jurong point"], ["spam", "Free entry in a weekly cup"]], False),
        (["0", "1"], [["ham", "Go until jurong point"], ["spam", "Free entry in a weekly cup"]], False),
        (["x", "a"], [["y", "b"]], False),
        (["a long story about it", "good"], [["one more story", "bad"]], False),
    ],
)
def test_what_a_header_is(first: list[str], rest: list[list[str]], header: bool) -> None:
    assert is_header(first, rest, Wanted()) is header


def test_equal_texts_are_in_one_part(tmp_path: Path) -> None:
    """509 of 4,574 messages are copies of others: in two parts they would be asked what was taught."""
    twice = texts(100) + [text.upper() for text in texts(100)[:40]]
    path = write(tmp_path / "s.tsv", "".join(f"{'ab'[i % 2]}\t{text}\n" for i, text in enumerate(twice)))
    data = LabelledText(path).read()
    part = {row: name for name, rows in data.parts.items() for row in rows.tolist()}
    assert all(part[i] == part[100 + i] for i in range(40))
    assert sorted(part) == list(range(140))
    assert "in training too" not in data.facts
    assert {name: len(rows) > 10 for name, rows in data.parts.items()} == dict.fromkeys(
        ("train", "valid", "test"), True
    )


def test_equal_texts_are_told_where_they_cannot_be_kept_together(tmp_path: Path) -> None:
    """Two texts cannot fill three parts."""
    rows = "".join(f"{'ab'[i % 2]}\t{('the first text', 'another one')[i % 2]}\n" for i in range(40))
    data = LabelledText(write(tmp_path / "s.tsv", rows)).read()
    assert data.facts["in training too"] == "6 of 6 valid records, 6 of 6 test records"


def test_parts_of_different_texts_and_of_the_embedded_ones_stay(tmp_path: Path) -> None:
    for data in (LabelledText().read(), LabelledText(write(tmp_path / "s.tsv", messages())).read()):
        valid, test, train = split_by_class(data.y, (0.15, 0.15))
        for name, rows in (("train", train), ("valid", valid), ("test", test)):
            assert torch.equal(data.parts[name], rows)


def test_groups_stay_together(tmp_path: Path) -> None:
    path = write(tmp_path / "tweets.csv", tweets(200))
    data = LabelledText(path, group="user").read()
    users = read_text_table(Path(path), Wanted(group="user")).groups
    taught = {users[i] for i in data.parts["train"].tolist()}
    assert not taught & {users[i] for name in ("valid", "test") for i in data.parts[name].tolist()}
    assert "user (what records are grouped by)" in data.facts["left out"]


def test_a_folder_takes_the_columns_of_its_training_file_and_tells_leaks(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(messages(60))
    (tmp_path / "dev.tsv").write_text("spam\tnot seen before in here\nham\tneither was this one\n")
    (tmp_path / "test.tsv").write_text("spam\tnobody saw this\n" + messages(3))
    read = Opinions(str(tmp_path)).read()
    assert read["valid"].labels == ["spam", "ham"]
    assert read.facts["in training too"] == "3 of 4 test records"


@pytest.mark.parametrize("name", ["lstm-sentiment", "bert-classify"])
def test_a_run_says_what_it_took(name: str, tmp_path: Path) -> None:
    recipe = change(recipes.get(name), {"data.path": write(tmp_path / "tweets.csv", tweets()), "data.label": "mood"})
    facts = recipe.build().facts
    assert facts["text column"] == "tweet"
    assert facts["label column"] == "mood"
    assert facts["left out"].startswith("tweet_id (all different)")
