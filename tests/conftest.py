"""The suite's record of proof: what the tests prove of which system, and whether they passed.

`@pytest.mark.system("gru")` says that a test proves the core of a system (its numbers agree), and
`@pytest.mark.system("gru", "books-form")` that it proves this demand of the system's row. An unknown system or demand
is an error at collection. A run replaces in `descend/catalog/proof.tsv` the lines of the test files that it ran whole,
and drops those of files that are gone; in CI it fails when that changes anything: the record was not the truth.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator, Iterator
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

# The suite runs in two processes (`-n 2`); more threads than cores make every one of them slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from descend.catalog.demands import demands
from descend.catalog.proof import CORE, PATH, Key, file_of, format_record, merge_record, read_record
from descend.catalog.systems import systems
from descend.errors import nearest

LONGEST = ("tests/workbench/test_browser.py", "tests/native", "tests/labs/test_q_learning_rates.py")
"""Where single tests or what they share take long: begun last, they would leave the other process without work."""


@pytest.fixture(scope="session", autouse=True)
def spare_repetitions() -> Iterator[None]:
    """What hundreds of runs do alike is done at length once, in the tests of it.

    A report draws a map by t-SNE: here in as few steps as it takes, except in the tests of maps. A disk is waited for
    before a file counts as written: here only where a test watches it. tyro reads the source of a recipe's classes for
    every command and forgets it again: here it remembers.
    """
    from tyro import _docstrings

    from descend.interpret import representations

    sources = _docstrings._ClassTokenization
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(representations, "STEPS", 250)
        patch.setattr(os, "fsync", lambda handle: None)
        patch.setattr(sources, "make", staticmethod(cache(sources.make.__wrapped__)))
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof", type=Path, default=PATH, help="the record of proof to compare with, and to write")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Record(config), "proof-record")
    gc.disable()  # while tests are collected: a third of the time would go into a search for garbage that is not there


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse a file that marks a test with a system or a demand nobody knows."""
    report = yield
    for item in report.result or ():
        for mark in item.iter_markers("system") if isinstance(item, pytest.Item) else ():
            wrong = explain_mistake(*mark.args)
            if wrong:
                report.outcome, report.result = "failed", []
                report.longrepr = f"{item.nodeid}: {wrong}"
                return report
    return report


def explain_mistake(slug: str = "", *wanted: str) -> str:
    """What is wrong with a marker, or nothing."""
    if slug not in systems():
        return f"no system {slug!r} in systems.tsv.{nearest(slug, systems())}"
    known = demands().get(slug, {})
    for demand in wanted:
        if demand not in known:
            return f"no demand {demand!r} of {slug} in demands/{systems()[slug].family}.tsv.{nearest(demand, known)}"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what a test proves into its report, which also travels from a worker process of xdist; the longest first."""
    for item in items:
        item.user_properties += [("proves", tuple(key)) for key in proven_by(item)]
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """What has been collected stays: Python's search for garbage, put off until now, need never look at it."""
    gc.collect()
    gc.freeze()
    gc.enable()


def proven_by(item: pytest.Item) -> list[Key]:
    """The lines of the record that a test takes part in; none when it is always skipped."""
    if item.get_closest_marker("skip"):
        return []
    test = item.nodeid.partition("[")[0]
    marks = {tuple(mark.args) for mark in item.iter_markers("system")}
    return sorted({Key(test, slug, demand) for slug, *wanted in marks for demand in wanted or [CORE]})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The size report and the granted exceptions, after every long run."""
    if len(terminalreporter.stats.get("passed", [])) > 500:
        from tests.contracts.source import size_report
        from tests.contracts.test_sizes import EXCEPTIONS

        for line in [*size_report(), *(f"exception {name}: {why}" for name, why in EXCEPTIONS.items())]:
            terminalreporter.write_line(line)


class Record:
    """Gathers the outcomes; in a worker of xdist it only counts the tests, and the controller does the rest."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.died = False  # a worker did, and with it the outcome of its test
        self.counts: Counter[str] = Counter()  # file -> tests collected in it; a file that was emptied has 0
        self.parts: set[str] = set()  # files of which tests were left out, or that could not be read
        self.outcomes: dict[str, set[str]] = {}  # test -> outcomes of set-up, call and tear-down
        self.proves: dict[str, list[Key]] = {}  # test -> what it proves
        self.says: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        file = report.nodeid.partition("::")[0]
        if file.endswith(".py"):
            self.counts[file] += 0
            self.parts |= set() if report.passed else {file}

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.parts |= {item.nodeid.partition("::")[0] for item in items}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.counts.update(item.nodeid.partition("::")[0] for item in session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.outcomes.setdefault(report.nodeid, set()).add(report.outcome)
        self.proves[report.nodeid] = [Key(*value) for name, value in report.user_properties if name == "proves"]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker is done: every worker collects all tests, so its counts are the suite's. Or it died."""
        self.died |= error is not None
        counts, parts = getattr(node, "workeroutput", {}).get("collected", ({}, []))
        self.counts, self.parts = Counter(counts), self.parts | set(parts)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["collected"] = (dict(self.counts), sorted(self.parts))
        elif not self.died and not self.config.option.collectonly:
            self.compare(session)

    def compare(self, session: pytest.Session) -> None:
        """Write the record when this run found another one, and say so."""
        path = self.config.getoption("proof")
        old = read_record(path)
        gone = {file_of(key) for key in old if not (self.config.rootpath / file_of(key)).exists()}
        text = format_record(merge_record(old, self.found(), {*self.whole_files(), *gone}))
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if before == text:
            return
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
        if os.environ.get("CI"):
            self.says.append(f"{path.name} is stale: run make test and commit it")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            self.says.append(f"{path.name} was out of date and is written anew: commit it")
        changes = unified_diff(before.split("\n"), text.split("\n"), n=0, lineterm="")
        self.says += [line for line in changes if line[:1] in "+-" and line[:3] not in ("+++", "---")][:20]

    def whole_files(self) -> Iterator[str]:
        """The test files of which every test ran."""
        named = [arg.partition("::")[0] for arg in self.config.invocation_params.args if "::" in str(arg)]
        asked = {Path(self.config.invocation_params.dir, arg).resolve() for arg in named}
        ran = Counter(test.partition("::")[0] for test in self.outcomes)
        for file, count in self.counts.items():
            whole = file not in self.parts and ran[file] == count
            if whole and (self.config.rootpath / file).resolve() not in asked:
                yield file

    def found(self) -> dict[Key, bool | None]:
        """What the tests that ran prove, and whether all cases passed; None where every case was skipped."""
        record: dict[Key, bool | None] = {}
        for test, outcome in self.outcomes.items():
            for key in self.proves[test]:
                before = record.setdefault(key, None)
                if "skipped" not in outcome:
                    record[key] = before is not False and outcome == {"passed"}
        return record

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.says:
            terminalreporter.write_line(line, yellow=True)
