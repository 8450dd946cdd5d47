"""Graphs as pictures: every node and edge is drawn, names where there is room, texts escaped."""

from __future__ import annotations

import re
from typing import Any

from descend.contracts import Exhibit
from descend.report.exhibits import make_section

GRAPH: dict[str, Any] = {
    "at": [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]],
    "edges": [[0, 1], [1, 2]],
    "classes": [0, 1, 1],
    "labels": ["<red>", "blue"],
    "names": ["a", "<b>", "c"],
    "rings": ["given", "wrong", ""],
}


def shown(kind: str, content: dict[str, Any]) -> str:
    return str(make_section(Exhibit(kind, "Graph", content)))


def test_nodes_edges_names_and_classes() -> None:
    html = shown("graph", GRAPH)
    assert html.count("<circle") == 3
    assert len(re.findall(r"M[\d.]+,[\d.]+L[\d.]+,[\d.]+", html)) == 2
    assert 'class="given"' in html
    assert 'class="wrong"' in html
    assert "&lt;b&gt;" in html
    assert "&lt;red&gt;" in html
    assert "<b>" not in html
    assert re.findall(r'<g class="c(\d)"><circle', html) == ["0", "1", "1"]


def test_weights_shade_and_new_links_are_coloured() -> None:
    html = shown("graph", {**GRAPH, "weights": [0.0, 1.0], "extra": [[0, 2]]})
    assert re.findall(r'opacity="([\d.]+)"', html) == ["0.12", "1.00", "1.00"]
    assert 'class="links new"' in html


def test_names_are_left_out_where_there_are_many() -> None:
    n = 60
    content = {"at": [[i, i * i % 7] for i in range(n)], "edges": [], "classes": [0] * n, "labels": ["a"]}
    html = shown("graph", {**content, "names": [f"node {i}" for i in range(n)]})
    assert "<text" not in html
    assert html.count("<title>node") == n


def test_small_graphs_stand_side_by_side() -> None:
    html = shown("graphs", {"graphs": [GRAPH, {"at": [[0, 0]], "edges": [], "classes": [3]}], "captions": ["<1>", "2"]})
    assert html.count("<svg") == html.count("<figure>") == 2
    assert "&lt;1&gt;" in html


def test_what_cannot_be_drawn_says_so() -> None:
    assert "could not be drawn" in shown("graph", {**GRAPH, "classes": [0]})
