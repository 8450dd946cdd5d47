"""CSV files of the user: read, checked by line, cut without leakage."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.data.tables.source import Table, parse_csv, read_csv
from descend.errors import Mistake
from tests.close import close


def write(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def people(n: int = 60) -> list[str]:
    """A file with every type of column, gaps, a free text and a constant."""
    lines = ["id,age,city,member,since,country,pay"]
    for i in range(n):
        age = "" if i % 10 == 3 else str(20 + i % 30)
        city = "?" if i % 15 == 4 else ("Bonn", "Rome", "Oslo")[i % 3]
        lines.append(f"name{i},{age},{city},{'yes' if i % 2 else 'no'},2024-01-{1 + i % 28:02d},EU,{1000.5 + 10 * i}")
    return lines


def test_types_gaps_and_columns_that_tell_nothing(tmp_path: Path) -> None:
    splits = Table(path=write(tmp_path / "a.csv", people()), target="pay").read()
    kinds = {c.name: getattr(c, "kind", "category") for c in splits.columns.columns}
    assert kinds == {"age": "number", "city": "category", "member": "truth", "since": "date"}
    assert set(splits.left_out) == {"id", "country"}
    assert splits.left_out["id"] == "free text or names: all different"
    assert splits.left_out["country"] == "always 'EU'"
    inputs = [
        "age",
        "age is missing",
        "city = (missing)",
        "city = Bonn",
        "city = Oslo",
        "city = Rome",
        "member",
        "since",
        *(f"since: {day}day" for day in ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")),
    ]
    assert splits.columns.inputs == inputs
    assert splits.train.x.shape == (42, 15)
    assert splits.train.x.isfinite().all()
    gap = splits.train.x[:, 1] == 1
    assert gap.sum() > 0
    assert len(splits.train.x[gap, 0].unique()) == 1  # the median


def test_statistics_are_of_the_training_part(tmp_path: Path) -> None:
    """Other test records change nothing of what the model sees of the rest."""
    lines = people()
    before = Table(path=write(tmp_path / "a.csv", lines), target="pay").read()
    x, y = before.train.x, before.train.y
    close(x[:, 0].mean() + 1, torch.tensor(1.0))
    close(x[:, 0].std(correction=0), torch.tensor(1.0))
    close(y.square().mean(), torch.tensor(1.0))
    moved = list(lines)
    for line in before.test.ids.tolist():
        name, *_ = moved[line - 1].split(",")
        moved[line - 1] = f"{name},9999,Atlantis,no,2030-01-01,EU,1e9"
    after = Table(path=write(tmp_path / "b.csv", moved), target="pay").read()
    assert after.columns == before.columns
    assert torch.equal(after.train.x, x)
    assert torch.equal(after.valid.x, before.valid.x)
    assert after.test.x[:, 2:6].abs().sum() == 0  # Atlantis is unknown: zeros
    assert after.test.x[:, 0].min() > 100


def test_parts_are_disjoint_whole_and_fixed(tmp_path: Path) -> None:
    table = Table(path=write(tmp_path / "a.csv", people()), target="pay")
    one, two = table.read(), table.read()
    ids = [set(part.ids.tolist()) for part in (one.train, one.valid, one.test)]
    assert set.union(*ids) == set(range(2, 62))
    assert sum(map(len, ids)) == 60
    assert torch.equal(one.test.ids, two.test.ids)


def test_a_group_is_in_one_part_only_and_no_input(tmp_path: Path) -> None:
    lines = [
        "dose,patient,pulse,sick",
        *(f"{i % 7},p{i // 4},{60 + i % 41},{'yes' if i % 3 else 'no'}" for i in range(120)),
    ]
    path = write(tmp_path / "a.csv", lines)
    found = Table(path=path, target="sick", group="patient").read()
    patients = [{(line - 2) // 4 for line in part.ids.tolist()} for part in (found.train, found.valid, found.test)]
    assert sum(map(len, patients)) == len(set.union(*patients)) == 30
    assert found.columns.inputs == ["dose", "pulse"]
    assert found.left_out["patient"] == "what records are grouped by"
    with pytest.raises(Mistake, match=r"--data.group patents: there is no such column"):
        Table(path=path, target="sick", group="patents").read()


def test_records_that_are_held_out_and_taught_are_told(tmp_path: Path) -> None:
    lines = ["x,y", *(f"{i % 50},{i % 50}.5" for i in range(100))]
    leaks = Table(path=write(tmp_path / "a.csv", lines), target="y").read().leaks
    assert re.fullmatch(r"\d+ of 15 test records, \d+ of 15 valid records", leaks["in training too"])
    assert not Table(path=write(tmp_path / "b.csv", people()), target="pay").read().leaks


@pytest.mark.parametrize(
    ("target", "values", "classes"),
    [
        ("city", ["Bonn", "Rome"], 2),
        ("member", ["no", "yes"], 2),
        ("grade", ["1", "2", "10"], 3),
        ("price", ["1.5", "2.5", "3.5"], 0),
        ("count", [str(i) for i in range(30)], 0),
    ],
)
def test_classes_or_numbers_are_inferred(tmp_path: Path, target: str, values: list[str], classes: int) -> None:
    lines = [f"x,{target}"] + [f"{i % 7},{values[i % len(values)]}" for i in range(90)]
    table = Table(path=write(tmp_path / "a.csv", lines), target=target)
    splits = table.read()
    assert len(splits.columns.target.labels) == classes
    if classes:
        assert splits.columns.target.labels == tuple(values)
        shares = [part.y.bincount() / len(part.y) for part in (splits.train, splits.test)]
        assert (shares[0] - shares[1]).abs().max() < 0.1
    if target == "grade":
        assert not replace(table, predict="numbers").read().columns.target.labels


def test_an_index_is_left_out_and_none_may_be_a_class(tmp_path: Path) -> None:
    lines = [",x,pain"] + [f"{i},{'-' if i == 5 else i * i % 17},{('none', 'mild')[i % 2]}" for i in range(60)]
    splits = Table(path=write(tmp_path / "a.csv", lines), target="pain").read()
    assert splits.left_out == {"(index)": "counts the records"}
    assert splits.columns.target.labels == ("mild", "none")
    assert [getattr(c, "kind", "category") for c in splits.columns.columns] == ["number"]


def test_separators_quotes_and_decimal_commas() -> None:
    records = parse_csv('\n a ; "b;c"; d\n\n1,5;"x; y";2024-01-01\n2,5;z;\n', "f")
    assert records.columns == {"a": ["1,5", "2,5"], "b;c": ["x; y", "z"], "d": ["2024-01-01", ""]}
    assert records.lines == [4, 5]
    assert parse_csv("a\tb\n1\t2\n", "f").columns == {"a": ["1"], "b": ["2"]}
    two_lines = parse_csv('a,b\n"one\ntwo",3\n4,5\n', "f")
    assert two_lines.lines == [3, 4]  # where each record ends


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n1\n", "line 3: 1 fields, but the header has 2"),
        ("a,a\n1,2\n", "line 1: two columns are called 'a'"),
        ("a,,b\n1,2,3\n", "a column has no name"),
        ("1,2\n3,4\n", "add a header line"),
        ('a,b\n1,"2\n', "correct the quotes"),
    ],
)
def test_files_that_are_no_tables(text: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        parse_csv(text, "f.csv")


def edited(line: int, text: str) -> list[str]:
    lines = people()
    lines[line - 1] = text
    return lines


@pytest.mark.parametrize(
    ("lines", "values", "message"),
    [
        (
            edited(7, "x,old,Bonn,no,2024-01-02,EU,5"),
            {},
            "line 7, column 'age': 'old' is not a number, as the others are; correct it, leave it empty, or use",
        ),
        (edited(9, "x,31,Bonn,no,31.12.2024,EU,5"), {}, "line 9, column 'since': '31.12.2024' is not a date"),
        (edited(5, "x,31,Bonn,no,2024-01-02,EU,inf"), {}, "line 5, column 'pay': 'inf' is not a number"),
        (edited(6, "x,31,Bonn,no,2024-01-02,EU,"), {}, "line 6: a record has no 'pay'; fill it in"),
        (people(), {"target": "pya"}, "--data.target pya: there is no such column. Did you mean 'pay'"),
        (people(), {"target": ""}, "--data.target: name the column to predict; .* has id, age"),
        (people(), {"drop": ("aeg",)}, "--data.drop aeg: .*Did you mean 'age'"),
        (people(), {"drop": ("age", "city", "member", "since")}, "no column is left"),
        (people(), {"most": 0}, "--data.most 0"),
        (people(), {"valid": 0.9}, "their sum below 1"),
        (people()[:1], {}, "has a header but no records"),
        (people(3), {}, "too few; give more"),
        (edited(6, "x,31,Bonn,no,2024-01-02,EU,-"), {}, "line 6: a record has no 'pay'; fill it in"),
        (people(), {"target": "id"}, "60 different values in 60 records, too many for classes"),
        (people(), {"target": "country"}, "every 'country' is 'EU'"),
        (people(), {"target": "city", "unknown": "refuse"}, "records have no 'city'"),
    ],
)
def test_what_is_wrong_is_named_with_the_fix(
    tmp_path: Path, lines: list[str], values: dict[str, object], message: str
) -> None:
    table = replace(Table(path=write(tmp_path / "a.csv", lines), target="pay"), **values)  # type: ignore[arg-type]
    with pytest.raises(Mistake, match=message):
        table.read()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="is a folder"):
        read_csv(tmp_path)
    with pytest.raises(Mistake, match="no such file or folder"):
        read_csv(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("name,x\nJos\xe9,1\n".encode("latin-1"))
    with pytest.raises(Mistake, match="line 2: byte 0xe9 is not UTF-8"):
        read_csv(tmp_path / "latin.csv")


def test_unknown_and_rare_categories(tmp_path: Path) -> None:
    lines = ["c,x,y"] + [f"{'abcd'[min(i % 8, 3)]},{2 * i},{i * 1.5}" for i in range(80)]
    table = Table(path=write(tmp_path / "a.csv", lines), target="y", most=2)
    splits = table.read()
    assert len(splits.columns.inputs) == 3
    assert (splits.train.x[:, :2].sum(1) == 0).any()  # rare: zeros
    line = int(splits.test.ids[0])
    lines[line - 1] = "zzz,1,2.5"
    strange = Table(path=write(tmp_path / "b.csv", lines), target="y")
    assert strange.read().test.x[0, :4].abs().sum() == 0
    with pytest.raises(Mistake, match=f"line {line}, column 'c': 'zzz' was not seen in training"):
        replace(strange, unknown="refuse").read()


@pytest.mark.parametrize(
    ("name", "classes", "records"),
    [("wine", 3, 178), ("iris", 3, 150), ("breast-cancer", 2, 569), ("diabetes", 0, 442), ("homes", 0, 2000)],
)
def test_embedded_tables(name: str, classes: int, records: int) -> None:
    splits = Table(embedded=name).read()  # type: ignore[arg-type]
    assert len(splits.columns.target.labels) == classes
    assert sum(len(part.y) for part in (splits.train, splits.valid, splits.test)) == records
    assert not splits.left_out
