"""The suite's record of proof: which systems have tests, and whether they passed.

`@pytest.mark.system("slug")` says that a test proves a system. An unknown slug is an error at collection. After a
complete run (every test collected, none left out) the outcome is compared with `descend/catalog/proof.json`; when it
differs, the file is written anew, and in CI the run fails: the record in the repository was not the truth.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from difflib import unified_diff
from pathlib import Path
from typing import Any

# The suite runs in two processes (`-n 2`); more threads than cores make every one of them slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from descend.catalog.proof import PATH, Proof, written
from descend.catalog.systems import systems
from descend.errors import nearest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof", type=Path, default=PATH, help="the record of proof to compare with, and to write")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Record(config), "proof-record")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse a file that marks a test with a system nobody knows."""
    report = yield
    for item in report.result or ():
        for slug in slugs(item) if isinstance(item, pytest.Item) else ():
            if slug not in systems():
                report.outcome, report.result = "failed", []
                report.longrepr = f"{item.nodeid}: no system {slug!r} in systems.tsv.{nearest(slug, systems())}"
                return report
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slugs into the report, which also travels from a worker process of xdist."""
    for item in items:
        item.user_properties += [("system", slug) for slug in slugs(item)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The size report and the granted exceptions, after every complete run."""
    if len(terminalreporter.stats.get("passed", [])) > 500:
        from tests.contracts.source import size_report
        from tests.contracts.test_sizes import EXCEPTIONS

        for line in [*size_report(), *(f"exception {name}: {why}" for name, why in EXCEPTIONS.items())]:
            terminalreporter.write_line(line)


def slugs(item: pytest.Item) -> list[str]:
    return sorted({slug for mark in item.iter_markers("system") for slug in mark.args})


class Record:
    """Gathers the outcomes; in a worker of xdist it only counts, and the controller does the rest."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.collected, self.deselected, self.broken = 0, 0, 0
        self.outcomes: dict[str, set[str]] = {}  # test -> outcomes of set-up, call and tear-down
        self.proves: dict[str, list[str]] = {}  # test -> slugs
        self.says: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.broken += report.failed

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.deselected += len(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = len(session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.outcomes.setdefault(report.nodeid, set()).add(report.outcome)
        self.proves[report.nodeid] = [str(value) for name, value in report.user_properties if name == "system"]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker is done: every worker collects all tests, so its counts are the suite's. Or it died."""
        self.broken += error is not None
        self.collected, self.deselected = getattr(node, "workeroutput", {}).get("counts", (0, 0))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["counts"] = (self.collected, self.deselected)
            return
        if not self.complete():
            return
        path, text = self.config.getoption("proof"), written(self.record())
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            return
        path.write_text(text, encoding="utf-8")
        if os.environ.get("CI"):
            self.says.append(f"{path.name} is stale: run make test and commit it")
            changes = unified_diff(old.split("\n"), text.split("\n"), n=0)
            self.says += [line for line in changes if line[:1] in "+-"][:20]
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            self.says.append(f"{path.name} was out of date and is written anew: commit it")

    def complete(self) -> bool:
        """Every test of the suite ran: whole folders were asked for, nothing was ignored, deselected or cut short."""
        root, option = self.config.rootpath, self.config.option
        asked = {Path(self.config.invocation_params.dir, arg).resolve() for arg in self.config.args}
        suite = {(root / folder).resolve() for folder in self.config.getini("testpaths")} or {root}
        whole = all(any(path == a or a in path.parents for a in asked) for path in suite)
        left_out = option.ignore or option.ignore_glob or self.deselected or self.broken
        return whole and not left_out and 0 < self.collected == len(self.outcomes)

    def record(self) -> dict[str, Proof]:
        """slug -> its tests that were not skipped, and whether all of them passed."""
        found: dict[str, dict[str, bool]] = {}
        for test, outcome in self.outcomes.items():
            for slug in self.proves[test] if "skipped" not in outcome else ():
                found.setdefault(slug, {})[test] = outcome == {"passed"}
        return {slug: Proof(tuple(sorted(tests)), all(tests.values())) for slug, tests in found.items()}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.says:
            terminalreporter.write_line(line, yellow=True)
