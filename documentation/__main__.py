"""python -m documentation [--only SLUG …]: the site, into docs/site.

written      docs/pages, docs/tutorials, docs/*.md, README, ARCHITECTURE, CONTRIBUTING, CHANGELOG; examples/
from code    a page for each family and each system (as `descend explain`, numbers computed while it is built), the
             reference of Python's functions and packages, and of the commands (their --help)
from records what was proven by training, the labs, the speed, the reliability: with date and machine

A link that leads nowhere is an error. The pages open from the disk; their search wants a server of files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from documentation.examples import write_examples
from documentation.packages import write_packages
from documentation.reference import write_commands, write_functions
from documentation.systems import write_systems

HERE = Path(__file__).resolve().parent.parent
SOURCE, SITE = HERE / "build" / "documentation", HERE / "docs" / "site"
PLUGINS = [{"search": {"lang": "en"}}]
THEME = {
    "name": "material",
    "font": False,  # nothing is fetched
    "features": ["navigation.tabs", "navigation.indexes", "navigation.top", "navigation.prune", "content.code.copy"],
    "palette": [  # as the reader's system has it; the articles know no other switch
        {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo"},
        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo"},
    ],
}
GUIDES = {
    "The studio": "studio",
    "From a run to other programs": "export",
    "Which models become graphs": "exports",
    "Serving": "serving",
}
LEDGERS = {
    "Proven by training": "proofs/RESULTS.md",
    "Labs": "proofs/LABS.md",
    "Speed": "benchmarks/RESULTS.md",
    "Reliability": "docs/reliability.md",
}


def copy_written() -> None:
    """The pages that people wrote, and their pictures."""
    for path in [*(HERE / "docs" / "pages").glob("*.md"), *(HERE / "docs").glob("*.md")]:
        write(path.name, path.read_text(encoding="utf-8"))
    for path in sorted((HERE / "docs" / "tutorials").glob("*.md")):
        write(f"tutorials/{path.name}", path.read_text(encoding="utf-8"))
    for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"):
        write(f"{name.lower()}.md", (HERE / f"{name}.md").read_text(encoding="utf-8"))
    write("index.md", (HERE / "README.md").read_text(encoding="utf-8"))
    for title, path in LEDGERS.items():
        write(place(title), "---\nhide: [toc]\n---\n\n" + (HERE / path).read_text(encoding="utf-8"))
    for picture in (HERE / "docs").glob("*.png"):
        (SOURCE / "docs").mkdir(exist_ok=True)
        shutil.copy(picture, SOURCE / "docs" / picture.name)
    shutil.copy(Path(__file__).parent / "site.css", SOURCE / "site.css")


def write(page: str, text: str) -> None:
    path = SOURCE / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(relink(text), encoding="utf-8")


def place(title: str) -> str:
    return f"ledgers/{title.lower().replace(' ', '-')}.md"


def relink(text: str) -> str:
    """Links between files of the repository as links between pages of the site; to code, none."""
    pages = {path: f"/{place(title)}" for title, path in LEDGERS.items()}
    pages |= {f"{name}.md": f"/{name.lower()}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")}
    pages |= {"docs/tutorials/README.md": "/tutorials/README.md", "docs/tutorials": "/tutorials/README.md"}
    pages |= {"examples/README.md": "/examples/index.md", "examples": "/examples/index.md"}
    pages |= {f"docs/{name}.md": f"/{name}.md" for name in GUIDES.values()}
    for path, page in pages.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(path)}/?\)", f"]({page})", text)
    kept = r"https?:|#|/|docs/[\w.-]+\.png|(?:tutorials/)?[\w-]+\.md[)#]"
    return re.sub(rf"\[([^\]]*)\]\((?!{kept})[^)\s]*\)", r"\1", text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m documentation", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="systems to make pages of; all by default")
    parser.add_argument("--out", type=Path, default=SITE)
    options = parser.parse_args()
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    copy_written()
    tutorials = [f"tutorials/{path.name}" for path in sorted((SOURCE / "tutorials").glob("[0-9]*.md"))]
    guides = [{title: f"{name}.md"} for title, name in GUIDES.items() if (SOURCE / f"{name}.md").exists()]
    navigation = [
        {"Start": ["index.md", {"Ten minutes": "tour.md"}, {"Coming from another library": "coming-from.md"}, *guides]},
        {"Tutorials": ["tutorials/README.md", *tutorials]},
        {"Examples": write_examples(SOURCE)},
        {"Systems": write_systems(SOURCE, set(options.only))},
        {"Reference": [{"Python": write_functions(SOURCE)}, {"Commands": write_commands(SOURCE)},
                       *write_packages(SOURCE)]},
        {"Measured": [{title: place(title)} for title in LEDGERS]},
        {"Contribute": ["adding.md", "architecture.md", "contributing.md", "changelog.md"]},
    ]  # fmt: skip
    config = {
        "site_name": "descend", "docs_dir": str(SOURCE), "site_dir": str(options.out), "theme": THEME,
        "plugins": PLUGINS, "nav": navigation, "use_directory_urls": False, "extra_css": ["site.css"],
        "markdown_extensions": [
            "tables", "toc", "attr_list", "md_in_html", "pymdownx.superfences",
            {"pymdownx.highlight": {"guess_lang": False}},
        ],
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "absolute_links": "relative_to_docs",
                                 "unrecognized_links": "warn"},
                       "nav": {"omitted_files": "warn", "not_found": "warn"}},
    }  # fmt: skip
    path = SOURCE.parent / "mkdocs.yml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    line = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(path)]
    done = subprocess.run(line, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False)
    if not done.returncode:
        print(options.out / "index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
