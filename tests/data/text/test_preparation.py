"""A corpus is prepared: what is left out on fixtures is exactly what was planted, by the right reason, every time."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import descend
from descend.cli import main
from descend.data.text.copies import EqualCopies, NearCopies
from descend.data.text.plain import Text
from descend.data.text.preparation import Preparation, Wishes, read_documents, split_paragraphs
from descend.data.text.quality import RULES, keep_lines
from descend.errors import Mistake
from descend.ops.minhash import meeting_probability

SLUG = "corpus-preparation"
STEMS = [a + b for a in ("ban", "kel", "lim", "mor", "nus") for b in ("dor", "fil", "gat", "hem", "jun", "kos", "lap")]


def prose(words: int, seed: int) -> str:
    chance = random.Random(seed)
    found = chance.choices(STEMS, k=words)
    return " ".join(word + "." * (k % 10 == 9) for k, word in enumerate(found))


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.system(SLUG, "votes")
def test_three_votes_are_enough_and_two_are_not(tmp_path: Path) -> None:
    pages = write(tmp_path / "pages.jsonl", [{"text": prose(40, i), "votes": i % 6} for i in range(60)])
    report = descend.prepare(pages, tmp_path / "out", votes=3)
    assert (report.documents, report.kept, report.left_out) == (60, 30, {"votes": 30})
    kept = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    assert [record["votes"] for record in kept] == [3, 4, 5] * 10
    write(pages, [{"text": prose(40, 0), "points": 3}, {"text": prose(40, 1), "points": "3"}])
    with pytest.raises(Mistake, match=r"pages.jsonl, line 1: 'votes' is no number.*--votes-field"):
        descend.prepare(pages, tmp_path / "two", votes=3)
    with pytest.raises(Mistake, match="line 2: 'points' is no number"):
        descend.prepare(pages, tmp_path / "two", votes=3, votes_field="points")
    assert not (tmp_path / "two").exists()


BAD = {
    "broken": "A page with a \ufffd in it. And more words. And more.",
    "repeated": "Home\nLogin\nHome\nLogin\nHome\nThis page has words. It has more of them. And still more.",
    "symbols": "1700 4200 9900 ---- 3000 |||| 1200 4000 ==== word. 5000 word! 7000 word.",
    "word-length": "a b c d e f g h. i j k. l m n. o p q r s.",
    "few-sentences": "Only one sentence stands on this page",
    "braces": "Run this piece of code. It is {name} in all places. Then stop and wait.",
    "placeholder": "Lorem ipsum dolor sit amet. Consectetur adipiscing elit. Sed do.",
}


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "rules")
@pytest.mark.parametrize("name", RULES)
def test_each_rule_finds_its_page_and_no_other(name: str) -> None:
    good = "This is a page of prose. It has some sentences, with words as usual. It ends here."
    assert not RULES[name](good)
    assert [page for page, text in BAD.items() if RULES[name](text)] == [name]


@pytest.mark.system(SLUG, "rules")
def test_each_chosen_rule_says_how_many_it_left_out(tmp_path: Path) -> None:
    count = {name: k for k, name in enumerate(BAD, start=1)}
    records = [{"text": f"{BAD[name]} {i}"} for name in BAD for i in range(count[name])]
    pages = write(tmp_path / "pages.jsonl", records)
    report = descend.prepare(pages, tmp_path / "out", rules=tuple(RULES), near=0)
    assert (report.kept, report.left_out) == (0, count)
    report = descend.prepare(pages, tmp_path / "two", rules=("braces",), near=0)
    assert report.left_out == {"braces": 6}
    with pytest.raises(Mistake, match=r"--rules brace: choose .*Did you mean 'braces'"):
        descend.prepare(pages, tmp_path / "three", rules=("brace",))


def test_lines_that_are_no_sentences() -> None:
    page = "Home | Login\nThis line has five words.\nToo short.\nThis one does not end\nAnd so on and so..."
    assert keep_lines(page) == "This line has five words."
    look = Preparation(Wishes(lines=True, rules=())).look
    document = next(iter(read_documents(__file__)))
    text, reason = look(document._replace(text=page))
    assert (text, reason) == ("This line has five words.", None)
    assert look(document._replace(text="Home\nLogin"))[1] == ("lines", "")


@pytest.mark.system(SLUG, "exact-duplicates")
def test_of_equal_documents_the_first_is_kept() -> None:
    copies = EqualCopies()
    texts = ["The cat sat.", "A dog.", "the  CAT\nsat", "The cat sat on", "THE CAT SAT!", "!?", "!?", "?!"]
    found = [copies.find(text, str(i)) for i, text in enumerate(texts)]
    assert found == ["", "", "0", "", "0", "", "5", ""]


@pytest.mark.system(SLUG, "near-duplicates")
def test_planted_near_duplicates_are_found_and_nothing_else() -> None:
    pages = [prose(100, seed) for seed in range(200)]
    for i in range(0, 200, 20):  # two of a hundred words changed: J = 86/106 or so
        words = pages[i].split()
        words[30], words[70] = "other", "word"
        pages.append(" ".join(words))
    copies = NearCopies(0.75)
    found = [copies.find(page, str(i)) for i, page in enumerate(pages)]
    assert [where for where, _ in found] == [""] * 200 + [str(i) for i in range(0, 200, 20)]
    assert all(similarity == pytest.approx(86 / 106) for _, similarity in found[200:])
    strict = NearCopies(0.85)
    assert not any(strict.find(page, str(i))[0] for i, page in enumerate(pages))
    assert meeting_probability(0.75, 32, 4) > 0.999


@pytest.mark.system(SLUG, "contamination")
def test_documents_with_words_of_the_exam_are_left_out_and_named(tmp_path: Path) -> None:
    items, pages = [prose(20, 900 + i) for i in range(5)], [prose(80, i) for i in range(30)]
    exam = write(tmp_path / "exam.jsonl", [{"question": item, "answer": ["four"]} for item in items])
    taken = items[2].split()[3:17]
    pages[7] = " ".join([*pages[7].split()[:40], *taken, *pages[7].split()[40:]]).upper()
    pages[11] += " " + " ".join(items[4].split()[:12])  # one word too few
    write(tmp_path / "pages.jsonl", [{"text": page} for page in pages])
    report = descend.prepare(tmp_path / "pages.jsonl", tmp_path / "out", against=exam)
    assert (report.kept, report.left_out) == (29, {"contamination": 1})
    _, line = (tmp_path / "out" / "left_out.tsv").read_text().splitlines()
    where, reason, words = line.split("\t")
    assert where.endswith("pages.jsonl, line 8")
    assert reason == "contamination"
    assert words in " ".join(taken).replace(".", "")
    assert len(words.split()) == 13
    report = descend.prepare(tmp_path / "pages.jsonl", tmp_path / "two", against=exam, words=12)
    assert report.left_out == {"contamination": 2}
    (tmp_path / "none.txt").write_text("\n")
    with pytest.raises(Mistake, match=r"none.txt is empty; give the evaluation set"):
        descend.prepare(tmp_path / "pages.jsonl", tmp_path / "three", against=tmp_path / "none.txt")


@pytest.mark.system(SLUG, "verb")
def test_one_command_prepares_a_folder_and_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], read: Callable[[Path], list[str]]
) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text(f"{prose(60, 0)}\n\n{prose(60, 1)}\nand on.\n\n{prose(60, 0)}")
    (texts / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps({"text": prose(60, 2), "id": 7}).encode()))
    (texts / "c.md").write_text("bad \ufffd page")
    for out in ("one", "two"):
        assert main(["prepare", str(texts), "--out", str(tmp_path / out), "--paragraphs"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("5 documents: 3 kept, ")
    assert said[1:3] == ["left out: 1 equal", "left out: 1 broken"]
    one, two = tmp_path / "one", tmp_path / "two"
    for name in ("corpus.jsonl", "left_out.tsv", "report.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    records = [json.loads(line) for line in (one / "corpus.jsonl").read_text().splitlines()]
    assert [record["text"] for record in records] == [prose(60, 0), f"{prose(60, 1)}\nand on.", prose(60, 2)]
    assert records[1]["source"].endswith("a.txt, line 3")
    assert records[2]["id"] == 7
    assert read(one / "left_out.tsv") == ["a.txt, line 6|equal|a.txt, line 1", "c.md, line 1|broken|"]
    assert Text(path=str(one / "corpus.jsonl")).read().startswith(prose(60, 0))
    assert main(["prepare", str(texts), "--out", str(one)]) == 2
    assert main(["prepare", str(texts)]) == 2
    assert main(["prepare", str(tmp_path / "nothing"), "--out", str(tmp_path / "three")]) == 2
    told = capsys.readouterr().err
    assert "exists and is not empty" in told
    assert "say where the corpus goes" in told
    assert not (tmp_path / "three").exists()


@pytest.fixture
def read() -> Callable[[Path], list[str]]:
    """What is listed as left out, with file names alone."""

    def shorten(path: Path) -> list[str]:
        rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
        return ["|".join(part.rpartition("/")[2] for part in row) for row in rows]

    return shorten


def test_paragraphs_and_their_lines() -> None:
    assert list(split_paragraphs("\na\nb\n\n \nc\n")) == [(2, "a\nb"), (6, "c")]
    assert list(split_paragraphs("")) == []


@pytest.mark.parametrize(
    ("wishes", "said"),
    [(Wishes(near=1.5), "a similarity is between 0 and 1"), (Wishes(votes=-1), "at least 0 votes and 1 word")],
)
def test_wishes_that_cannot_be(wishes: Wishes, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        Preparation(wishes)
