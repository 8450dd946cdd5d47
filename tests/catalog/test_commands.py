"""Labs, recipes, verbs and flags are found by what people call them."""

from __future__ import annotations

import dataclasses

import pytest

from descend.catalog.commands import flags, known_words, search_things, split_kind, things
from descend.engine.loop import Loop


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        ("early stopping", "flag", "--patience"),
        ("gradient clipping", "flag", "--clip"),
        ("learning rate", "flag", "--optim.lr"),
        ("GPU", "flag", "--device"),
        ("batch size", "flag", "--batch"),
        ("warm-up", "flag", "--schedule.warmup"),
        ("attention scale", "lab", "attention-scale"),
        ("saturate the softmax", "lab", "attention-scale"),
        ("gpt2 pydoc", "recipe", "gpt2-pydoc"),
        ("wrong with a run", "verb", "doctor"),
        ("interrupted", "verb", "resume"),
    ],
)
def test_it_is_found_by_its_kind_and_among_all(words: str, kind: str, name: str) -> None:
    assert search_things(words, kind)[0].name == name
    assert name in {thing.name for thing in search_things(words, limit=20)}


@pytest.mark.parametrize(
    ("typed", "kind", "rest"),
    [
        ("early stopping flag", "flag", "early stopping"),
        ("Labs about attention", "lab", "about attention"),
        ("recipe", "", "recipe"),  # nothing would be left to look for
        ("byte pair encoding", "", "byte pair encoding"),
    ],
)
def test_a_word_may_name_the_kind(typed: str, kind: str, rest: str) -> None:
    assert split_kind(typed) == (kind, rest)


def test_all_values_of_the_loop_are_flags_with_their_lines() -> None:
    found = {thing.name: thing for thing in things()}
    for field in dataclasses.fields(Loop):
        thing = found[f"--{field.name.replace('_', '-')}"]
        assert thing.text
        path, _, line = thing.at.rpartition(":")
        assert path == "descend/engine/loop.py"
        assert int(line) > 1


def test_every_lab_recipe_and_verb_says_what_it_does() -> None:
    silent = [thing.name for thing in things() if thing.kind != "flag" and len(thing.text) < 20]
    assert not silent
    assert {"lab", "recipe", "verb", "flag"} == {thing.kind for thing in things()}


def test_every_flag_that_people_have_a_name_for_exists() -> None:
    assert not known_words().keys() - {flag.name for flag in flags()}


def test_all_words_must_be_there() -> None:
    assert not search_things("early zebra")
    assert not search_things("")
