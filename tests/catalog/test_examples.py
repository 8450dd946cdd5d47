"""Every worked example of the books that the library computes agrees with what its inputs really give."""

from __future__ import annotations

import pytest

from descend.catalog.demands import demands
from descend.catalog.run import compare, load_all_examples, plain, run, same
from descend.catalog.systems import examples

COMPUTED, ASIDE = load_all_examples()


def case(worked: str) -> object:
    """An example proves the core of its system, and the demands that name it."""
    system = examples()[worked].system
    assert system is not None
    shown = [d.name for d in demands().get(system, {}).values() if worked in d.examples]
    marks = [pytest.mark.system(system), *(pytest.mark.system(system, demand) for demand in shown)]
    return pytest.param(worked, marks=marks, id=worked)


@pytest.mark.parametrize("worked", [case(worked) for worked in COMPUTED])
def test_agrees_with_the_recomputed_values(worked: str) -> None:
    outcome = run(examples()[worked])
    wrong = [(v.key, v.ours, v.recomputed) for v in outcome.values if v.agree is False]
    assert outcome.state == "agrees", (outcome.reason, wrong)
    assert any(v.agree for v in outcome.values), "every key is set aside: nothing was compared"


@pytest.mark.parametrize(
    ("ours", "right", "expected"),
    [
        (1.0000005, 1.0, True),
        (1.00001, 1.0, False),
        (1e-13, 0.0, True),
        (1e-44, 3e-44, False),
        (1557611200, 1557611200, True),
        (1557611201, 1557611200, False),
        (2.0, 2, True),
        (True, 1, False),
        (1, True, False),
        ("-inf", "-inf", True),
        ([1.0, [2.0]], [1.0, [2.0]], True),
        ([1.0], [1.0, 2.0], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (None, 1.0, False),
    ],
)
def test_same_can_fail(ours: object, right: object, expected: bool) -> None:
    assert same(ours, right) is expected


def test_every_moved_answer_is_refused() -> None:
    """An example whose recomputed number is moved by 1% no longer agrees: the comparison reads the numbers."""
    example = examples()["VOM-8.4.1-output"]
    ours = plain(COMPUTED[example.id](example.inputs))
    assert all(v.agree is not False for v in compare(example, ours, {}))
    ours["output"] = [1.01 * x for x in ours["output"]]
    assert [v.key for v in compare(example, ours, {}) if v.agree is False] == ["output"]


def test_missing_and_extra_keys_are_differences() -> None:
    example = examples()["VOM-8.4.1-output"]
    ours = plain(COMPUTED[example.id](example.inputs))
    ours["more"] = ours.pop("output")
    assert {v.key for v in compare(example, ours, {}) if v.agree is False} == {"output", "more"}


def test_an_erratum_is_flagged_and_compared_with_the_right_value() -> None:
    outcome = run(examples()["DLN-GPT2-small-params"])
    assert outcome.erratum
    assert outcome.state == "agrees"
    [value] = [v for v in outcome.values if v.key == "params_millions"]
    assert (value.printed, value.ours) == (117, 124.439808)


def test_what_is_not_run_is_shown_with_its_reason() -> None:
    homeless = run(examples()["MF-31.1-chapter-numbers"])
    assert homeless.state == "set aside"
    assert homeless.reason
