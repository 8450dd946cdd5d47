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
from documentation.packages import escape

OVERVIEW = """What five books describe, each with its equation, its code, the books' worked examples computed again
while this site was built, and the tests that prove it. The search above finds them by name; `descend find WORDS` does
in the shell. *Whole*: everything that the list asks for is proven; *core*: the numbers agree, and something is still
open."""
TITLES = {
    "perceptron-mlp": "Perceptron and MLP",
    "preprocessing-tuning": "Preprocessing and tuning",
    "generalization-labs": "Generalization",
    "convnets": "Convolutional networks",
    "tracking-robotics": "Tracking and robotics",
    "embeddings-tokenizers": "Embeddings and tokenizers",
    "attention-transformers": "Attention and transformers",
    "finetuning-alignment": "Fine-tuning and alignment",
    "retrieval-rag": "Retrieval and RAG",
    "vae-latent": "VAE and latent variables",
    "gan": "GAN",
    "energy-based": "Energy-based models",
    "diffusion-score": "Diffusion and score",
    "reinforcement": "Reinforcement learning",
    "probability-generative-theory": "Theory of generative models",
    "systems": "Training at scale",
}


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
    lines = ["# Systems", "", OVERVIEW, "", "| family | systems | proven whole |", "|---|---|---|"]
    for family, members in standings().items():
        whole = sum(one.state == "whole" for one in members.values())
        lines.append(f"| [{title(family)}]({family}/index.md) | {len(members)} | {whole} |")
    return "\n".join([*lines, ""])


def write_system(place: Path, system: System) -> None:
    """The article, whose own title the page's replaces."""
    article = str(make_article(explanation(system.slug))).replace("</h1><span", "</h1> <span")  # for the search
    text = f"---\ntitle: {yaml_text(system.name)}\nhide: [toc]\n---\n\n{article}\n"
    (place / f"{system.slug}.md").write_text(text, encoding="utf-8")


def describe(system: System, state: str) -> str:
    said = plain_words().get(system.slug, "")
    return f'- [{escape(system.name)}]({system.slug}.md) <span class="state">{state}</span> {escape(said)}'


def title(family: str) -> str:
    return TITLES.get(family) or family.replace("-", " ").capitalize()


def yaml_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
