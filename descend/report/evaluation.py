"""The page of an evaluation: the scores of a checkpoint on a set, and what there is to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from descend.errors import Mistake
from descend.report.exhibits import make_section
from descend.report.scores import format_score, spell
from descend.web.markup import html
from descend.web.page import make_page, write_page
from descend.web.parts import make_card, make_header, make_table

if TYPE_CHECKING:
    from descend.contracts import Exhibit


def check_page(path: Path) -> None:
    """Before anything is computed."""
    if path.suffix.lower() != ".html":
        raise Mistake(f"--html {path}: give a file that ends in .html")
    if not path.parent.is_dir():
        raise Mistake(f"--html {path}: the folder {path.parent} does not exist")


def write_evaluation(
    path: Path, title: str, scores: Mapping[str, float], exhibits: Callable[[], list[Exhibit]] | None
) -> Path:
    """Write the page, and return its path."""
    rows = [[spell(name), format_score(value)] for name, value in scores.items()]
    sections = [make_section(exhibit) for exhibit in (exhibits() if exhibits else [])]
    return write_page(
        path,
        make_page(
            title,
            make_header(title, "", ""),
            make_card("Scores", make_table(["score", "value"], rows)),
            html('<div class="exhibits">{}</div>', sections),
        ),
    )
