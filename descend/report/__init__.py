"""The page of a run: `write(run, exhibits)` makes report.html from the run's folder."""

from __future__ import annotations

from descend.report.page import write

__all__ = ["write"]
