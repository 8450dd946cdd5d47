"""The demands of the rows: each belongs to a row of its family, has a name of its own, and says what must be shown."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from descend.catalog.demands import demands, read_demands
from descend.catalog.run import load_all_examples
from descend.catalog.systems import examples, systems

ALL = read_demands()


def test_every_demand_stands_in_the_file_of_its_family() -> None:
    for demand in ALL:
        assert demand.system in systems(), demand
        assert systems()[demand.system].family == demand.family, demand


def test_names_are_short_and_unique_within_the_row() -> None:
    assert [k for k, n in Counter((d.system, d.name) for d in ALL).items() if n > 1] == []
    for demand in ALL:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", demand.name), demand
        assert len(demand.name) <= 40, demand
        assert demand.name != "core", demand


def test_the_text_is_one_line_that_says_what_must_be_shown() -> None:
    for demand in ALL:
        assert len(demand.text.split()) >= 3, demand
        assert demand.text == demand.text.strip(), demand


def test_the_examples_of_a_demand_are_computed_and_of_its_row() -> None:
    for demand in ALL:
        for worked in demand.examples:
            assert worked in load_all_examples()[0], f"{demand.system} {demand.name}: nothing computes {worked}"
            assert examples()[worked].system == demand.system, (demand, worked)


def test_the_files_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = 'system\tdemand\ttext\texamples\nrelu\tat-zero\tThe slope at 0 is "0 or 1"\tA-1, A-2\nrelu\tsparse\tHalf\n'
    (tmp_path / "activations.tsv").write_text(text, encoding="utf-8")
    assert demands(tmp_path)["relu"]["at-zero"].examples == ("A-1", "A-2")
    assert demands(tmp_path)["relu"]["at-zero"].text == 'The slope at 0 is "0 or 1"'
    assert demands(tmp_path)["relu"]["sparse"].examples == ()
    assert list(demands(tmp_path)) == ["relu"]


@pytest.mark.parametrize("family", sorted({d.family for d in ALL}))
def test_the_rows_stand_in_the_order_of_the_list(family: str) -> None:
    rows = list(dict.fromkeys(d.system for d in ALL if d.family == family))
    assert rows == [slug for slug in systems() if slug in rows]
