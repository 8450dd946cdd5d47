"""A page for each system, as `descend explain` shows it, and one for each family."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from descend.catalog.coverage import standings
from descend.catalog.explanation import explanation
from descend.catalog.page import make_article
from descend.catalog.plain import plain_words
from descend.catalog.systems import System, families


def write_systems(folder: Path, only: set[str]) -> list[Any]:
    """The pages; returns where they stand in the navigation."""
    known, navigation = standings(), []
    (folder / "systems").mkdir()
    (folder / "systems" / "index.md").write_text(write_overview(), encoding="utf-8")
    for family, members in families().items():
        shown = [system for system in members if not only or system.slug in only]
        if not shown:
            continue
        place = folder / "systems" / family
        place.mkdir()
        rows = [describe(system, known[family][system.slug].state) for system in shown]
        (place / "index.md").write_text("\n".join([f"# {title(family)}", "", *rows, ""]), encoding="utf-8")
        for system in shown:
            write_system(place, system)
        print(f"{family}: {len(shown)} pages", file=sys.stderr, flush=True)
        pages = [{system.name: f"systems/{family}/{system.slug}.md"} for system in shown]
        navigation.append({title(family): [f"systems/{family}/index.md", *pages]})
    return ["systems/index.md", *navigation]


def write_overview() -> str:
    """The families, with how much of each is proven."""
    lines = ["# Systems", "", "| family | systems | proven whole |", "|---|---|---|"]
    for family, members in standings().items():
        whole = sum(one.state == "whole" for one in members.values())
        lines.append(f"| [{title(family)}]({family}/index.md) | {len(members)} | {whole} |")
    return "\n".join([*lines, ""])


def write_system(place: Path, system: System) -> None:
    """The article, whose own title the page's replaces."""
    article = str(make_article(explanation(system.slug)))
    text = f"---\ntitle: {yaml_text(system.name)}\nhide: [toc]\n---\n\n{article}\n"
    (place / f"{system.slug}.md").write_text(text, encoding="utf-8")


def describe(system: System, state: str) -> str:
    said = plain_words().get(system.slug, "")
    return f"- [{system.name}]({system.slug}.md) *{state}*. {said}"


def title(family: str) -> str:
    return family.replace("-", " ").capitalize()


def yaml_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
