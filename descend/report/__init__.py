"""The page of a run: `write_report(run, exhibits)` makes report.html from the run's folder."""

from __future__ import annotations

from descend.report.page import write_report

__all__ = ["write_report"]
