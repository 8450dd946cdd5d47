"""The labs on graphs: a short run of each, its figure, and what its verdict follows."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
import torch

from descend.labs import karate_sides, over_smoothing, ring_counting, scene_pruning, wl_and_gin
from descend.labs._evidence import judge_seed
from descend.ops.graph.structure import Graph
from tests.close import close

SHORT = {
    "karate_sides": (0.02, 1),
    "link_prediction": (0.05, 1),
    "molecule_regression": (0.02, 1),
    "ring_counting": (0.02, 1),
    "scene_pruning": (0.02, 1),
    "wl_and_gin": (0.01, 1),
}


@pytest.fixture(autouse=True)
def few_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labs that generate much, generate less here."""
    for name in ("ring_counting", "molecule_regression"):
        monkeypatch.setattr(f"descend.labs.{name}.TAUGHT", 60)
        monkeypatch.setattr(f"descend.labs.{name}.NEW", 40)
        monkeypatch.setattr(f"descend.labs.{name}.BATCH", 20)
    monkeypatch.setattr(scene_pruning, "TAUGHT", 32)
    monkeypatch.setattr(scene_pruning, "NEW", 10)
    monkeypatch.setattr(over_smoothing, "DEPTHS", (1, 2, 3))
    monkeypatch.setattr(over_smoothing, "NODES", 100)


@pytest.mark.parametrize("name", SHORT)
def test_a_short_run_says_nothing_yet(name: str) -> None:
    lab = import_module(f"descend.labs.{name}")
    budget, panels = SHORT[name]
    numbers = lab.measure(seed=0, budget=budget)
    json.dumps(numbers)
    assert judge_seed(lab, numbers) == "open"
    assert len(lab.figure(numbers).axes) == panels


@pytest.mark.system("over-smoothing")
@pytest.mark.system("over-smoothing", "rate")
def test_the_rate_of_the_club_is_measured_at_any_budget() -> None:
    numbers = over_smoothing.measure(seed=0, budget=0.06)
    assert judge_seed(over_smoothing, numbers) == "open"
    assert numbers["rate"] == pytest.approx(numbers["eigenvalue"], rel=0.01)
    assert numbers["energy_before"][0] > numbers["energy_before"][1] > numbers["energy_before"][2]
    assert len(over_smoothing.figure(numbers).axes) == 2


@pytest.mark.system("weisfeiler-lehman")
@pytest.mark.system("gin")
@pytest.mark.system("gin", "separates")
@pytest.mark.system("weisfeiler-lehman", "aggregators")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_weights_separate_what_wl_does(seed: int) -> None:
    """All 21,528 pairs of graphs of up to six nodes; the whole budget takes those of seven nodes, too."""
    numbers = wl_and_gin.measure(seed, budget=209 / wl_and_gin.PRICE)
    assert numbers["pairs"] == 209 * 208 // 2
    assert numbers["wl"] < numbers["pairs"]
    assert judge_seed(wl_and_gin, numbers) == "supported", numbers
    assert numbers["least"][0] > 1e-6 > 1e-12 > numbers["most"][0]


def test_an_aggregation_is_put_in_the_place_of_the_sum() -> None:
    graph = wl_and_gin.join_small_graphs(30)
    torch.manual_seed(0)
    model = wl_and_gin.GINForGraphs(wl_and_gin.CONFIG).double()
    close(wl_and_gin.embed(model, graph, wl_and_gin.sum_neighbours), model(graph))
    other = wl_and_gin.embed(model, graph, wl_and_gin.mean_neighbours)
    assert not torch.allclose(other, model(graph))


def test_the_score_of_a_pair_does_not_depend_on_its_order() -> None:
    graph, pairs, relation = scene_pruning.draw_pairs(3, seed=0)
    assert isinstance(graph, Graph)
    assert len(pairs) == len(relation)
    torch.manual_seed(0)
    model = scene_pruning.GCNForEdges(scene_pruning.CONFIG)
    close(scene_pruning.score_pairs(model, graph, pairs), scene_pruning.score_pairs(model, graph, pairs.flip(1)))


@pytest.mark.system("graph-task-labs")
@pytest.mark.system("graph-task-labs", "karate")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_labels_are_enough_for_the_club(seed: int) -> None:
    """At least 31 of 34 right; by distance 28, none wrong and 6 ties."""
    numbers = karate_sides.measure(seed, budget=1.0)
    assert judge_seed(karate_sides, numbers) == "supported", numbers


DEPTHS = [1, 2, 3, 4, 8, 16, 32]
GOOD: dict[str, dict[str, Any]] = {
    "karate_sides": {"steps": 200, "right": 32, "distance_right": 28, "distance_wrong": 0, "distance_ties": 6},
    "link_prediction": {"steps": 240, "auc": 0.95, "popularity": 0.5},
    "molecule_regression": {"steps": 1500, "error": 0.03, "linear": 0.07},
    "ring_counting": {"steps": 600, "accuracy": 0.98, "baseline": 0.53},
    "scene_pruning": {
        "steps": 2000, "auc": 0.99, "nearness": 0.9, "threshold": [0.0, 0.5, 1.0], "kept": [100, 10, 0],
        "found": [1.0, 0.95, 0.0], "pairs": 100,
    },
    "wl_and_gin": {"graphs": 209, "pairs": 100, "separated": [98, 50, 40], "as_wl": [100, 52, 42], "off": 0.0},
    "over_smoothing": {
        "steps": 75, "rate": 0.896, "eigenvalue": 0.8961, "depth": DEPTHS,
        "accuracy": [0.8, 0.95, 0.97, 0.96, 0.975, 0.5, 0.25],
        "energy_before": [0.5, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-5],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("karate_sides", {"right": 30}),
        ("karate_sides", {"distance_ties": 5}),
        ("link_prediction", {"auc": 0.89}),
        ("link_prediction", {"popularity": 0.91}),
        ("molecule_regression", {"error": 0.11, "linear": 0.2}),
        ("molecule_regression", {"linear": 0.02}),
        ("ring_counting", {"accuracy": 0.94}),
        ("ring_counting", {"baseline": 0.7}),
        ("scene_pruning", {"auc": 0.94}),
        ("scene_pruning", {"nearness": 0.995}),
        ("scene_pruning", {"kept": [99, 10, 0]}),
        ("scene_pruning", {"kept": [100, 10, 1]}),
        ("scene_pruning", {"found": [1.0, 0.85, 0.0]}),
        ("wl_and_gin", {"as_wl": [99, 52, 42]}),
        ("wl_and_gin", {"separated": [98, 98, 40]}),
        ("wl_and_gin", {"off": 0.1}),
        ("over_smoothing", {"rate": 0.8}),
        ("over_smoothing", {"accuracy": [0.8, 0.95, 0.97, 0.96, 0.985, 0.5, 0.25]}),
        ("over_smoothing", {"accuracy": [0.8, 0.95, 0.97, 0.96, 0.97, 0.9, 0.25]}),
        ("over_smoothing", {"energy_before": [0.5, 0.1, 0.05, 0.02, 0.03, 1e-3, 1e-5]}),
    ],
)
def test_the_verdict_follows_the_numbers(name: str, change: dict[str, Any]) -> None:
    lab = import_module(f"descend.labs.{name}")
    assert judge_seed(lab, GOOD[name]) == "supported"
    assert judge_seed(lab, {**GOOD[name], **change}) == "refuted"


def test_the_baseline_sees_no_links() -> None:
    """Two rings or more can be told from the mean of the elements no better than by chance."""
    numbers = ring_counting.measure(seed=0, budget=0.02)
    assert len(numbers["by_rings"]) == len(numbers["baseline_by_rings"]) == 4
