"""The grammar of a search space, and flags that make the same recipe as values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from descend import recipes
from descend.classic.search import Choice, LogUniform, LogWhole, Uniform, Whole
from descend.errors import Mistake
from descend.models.mlp import MLPConfig
from descend.tuning.space import choose_space, find_difference, format_flags, list_leaves, read_space, type_values
from descend.verbs.flags import parse
from descend.verbs.train import TrainFlags

LENET, MLP = recipes.get("lenet-digits"), recipes.get("mlp-lbfgs-digits")


@pytest.mark.parametrize(
    ("text", "name", "prior"),
    [
        ("optim.lr=1e-4..1e-1:log", "optim.lr", LogUniform(1e-4, 0.1)),
        ("--optim.lr=0..1", "optim.lr", Uniform(0, 1)),
        ("optim.weight_decay=0..0.5", "optim.weight-decay", Uniform(0, 0.5)),
        ("batch=16..128", "batch", Whole(16, 128)),
        ("loop.batch=16..128:log", "batch", LogWhole(16, 128)),
        ("batch=16,32", "batch", Choice((16, 32))),
        ("optim.lr=1e-3,1e-2", "optim.lr", Choice((0.001, 0.01))),
        ("optim.lr=1e-4..1e-1:log:4", "optim.lr", Choice((0.0001, 0.001, 0.01, 0.1))),
        ("watch=min loss,max accuracy", "watch", Choice(("min loss", "max accuracy"))),
    ],
)
def test_grammar(text: str, name: str, prior: Any) -> None:
    [found] = read_space([text], LENET)
    assert (found.name, found.prior) == (name, prior)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["optim.lrr=1..2"], "no flag --optim.lrr. Did you mean 'optim.lr'?"),
        (["lr=1..2"], "Did you mean 'optim.lr'?"),
        (["about=a,b"], "no flag --about"),
        (["optim.lr"], "write NAME=LOW..HIGH"),
        (["optim.lr=1..x"], "'x' is not a number"),
        (["optim.lr=2..1"], "the first number must be the smaller one"),
        (["optim.lr=0..1:log"], "orders of magnitude need 0 < first"),
        (["optim.lr=1..2:lin"], "'lin' after the range"),
        (["batch=1.5..4"], "takes whole numbers"),
        (["batch=8,8.5"], "not a whole number"),
        (["batch=8,8"], "list each value once"),
        (["data.path=1..2"], "not a number; list its values"),
        (["batch=8,16", "loop.batch=32,64"], "given twice"),
        ([], "nothing to search"),
    ],
)
def test_mistakes_name_the_flag(asked: list[str], said: str) -> None:
    with pytest.raises(Mistake) as caught:
        read_space(asked, LENET)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", recipes.names())
def test_every_leaf_is_a_flag(name: str) -> None:
    recipe = recipes.get(name)
    assert (
        parse(TrainFlags, format_flags(list_leaves(recipe)), "descend train", default=TrainFlags(recipe)).recipe
        == recipe
    )


def test_a_trial_is_what_its_flags_say() -> None:
    dimensions = read_space(["model.hidden=8,16 16", "optim.lr=0.1..2"], MLP)
    words = type_values(dimensions, {"model.hidden": "16 16", "optim.lr": 0.5})
    made = parse(TrainFlags, words, "descend train", default=TrainFlags(MLP)).recipe
    expected = replace(MLP, model=MLPConfig(hidden=(16, 16), activations=("tanh",)), optim=replace(MLP.optim, lr=0.5))
    assert made == expected
    assert find_difference(MLP, made) == ["--model.hidden", "16", "16", "--optim.lr", "0.5"]
    assert find_difference(MLP, MLP) == []


def test_the_default_space_is_around_the_recipe() -> None:
    assert choose_space(LENET) == ["optim.lr=0.0002..0.02:log", "batch=32,64,128"]
    assert choose_space(MLP) == ["optim.lr=0.1..10:log"]  # a batch of all the images has no double
    assert [d.partition("=")[0] for d in choose_space(recipes.get("gan-mixture"))] == [
        "optim.d.lr",
        "optim.g.lr",
        "batch",
    ]
    two = replace(LENET, loop=replace(LENET.loop, batch=6, accumulate=2))
    assert choose_space(two)[-1] == "batch=6,12"  # 3 does not divide
    for name in recipes.names():
        assert read_space(choose_space(recipes.get(name)), recipes.get(name))


def test_a_grid_has_few_digits_inside_the_range() -> None:
    [found] = read_space(["optim.lr=0.00033333..0.3:log"], LENET)
    assert found.list_values() == [0.00033333, 0.001826, 0.01, 0.05477, 0.3]
