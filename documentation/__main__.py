"""python -m documentation [--only SLUG …]: the site, into docs/site.

written      docs/pages, docs/tutorials, README, ARCHITECTURE, CONTRIBUTING, CHANGELOG
from code    a page for each family and each system (as `descend explain`, numbers computed while it is built), the
             reference of Python's functions and of the commands (their --help)
from records what was proven by training, the labs, the speed, the reliability: with date and machine
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

from documentation.reference import write_commands, write_functions
from documentation.systems import write_systems

HERE = Path(__file__).resolve().parent.parent
SOURCE, SITE = HERE / "build" / "documentation", HERE / "docs" / "site"
PLUGINS = [{"search": {"lang": "en"}}]
THEME = {
    "name": "material",
    "font": False,  # nothing is fetched
    "features": ["navigation.tabs", "navigation.indexes", "navigation.top", "content.code.copy", "search.suggest"],
    "palette": [
        {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo",
         "toggle": {"icon": "material/weather-night", "name": "dark"}},
        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo",
         "toggle": {"icon": "material/weather-sunny", "name": "light"}},
    ],
}  # fmt: skip
LEDGERS = {
    "Proven by training": "proofs/RESULTS.md",
    "Labs": "proofs/LABS.md",
    "Speed": "benchmarks/RESULTS.md",
    "Reliability": "docs/reliability.md",
}


def copy_written() -> dict[str, str]:
    """The pages that people wrote, and the first of each section."""
    for name in ("tour", "coming-from", "adding"):
        shutil.copy(HERE / "docs" / "pages" / f"{name}.md", SOURCE / f"{name}.md")
    shutil.copytree(HERE / "docs" / "tutorials", SOURCE / "tutorials", ignore=shutil.ignore_patterns("data"))
    for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"):
        (SOURCE / f"{name.lower()}.md").write_text(relink((HERE / f"{name}.md").read_text(encoding="utf-8")))
    (SOURCE / "index.md").write_text(relink((HERE / "README.md").read_text(encoding="utf-8")))
    for picture in (HERE / "docs").glob("*.png"):
        (SOURCE / "docs").mkdir(exist_ok=True)
        shutil.copy(picture, SOURCE / "docs" / picture.name)
    return {"Ten minutes": "tour.md", "Coming from another library": "coming-from.md", "Adding a part": "adding.md"}


def copy_ledgers() -> list[dict[str, str]]:
    """What was measured, as it was recorded."""
    found = []
    for title, path in LEDGERS.items():
        page = f"ledgers/{title.lower().replace(' ', '-')}.md"
        (SOURCE / page).parent.mkdir(exist_ok=True)
        (SOURCE / page).write_text(relink((HERE / path).read_text(encoding="utf-8")), encoding="utf-8")
        found.append({title: page})
    return found


def relink(text: str) -> str:
    """Links between files of the repository as links between pages of the site; to code, none."""
    pages = {path: f"/ledgers/{title.lower().replace(' ', '-')}/" for title, path in LEDGERS.items()}
    pages |= {f"{name}.md": f"/{name.lower()}/" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")}
    pages |= {"docs/tutorials/README.md": "/tutorials/"}
    for path, page in pages.items():
        text = text.replace(f"]({path})", f"]({page})")
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#|/|docs/[\w.-]+\.png)[^)\s]*\)", r"\1", text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m documentation", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="systems to make pages of; all by default")
    parser.add_argument("--out", type=Path, default=SITE)
    options = parser.parse_args()
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    written = copy_written()
    tutorials = [f"tutorials/{path.name}" for path in sorted((SOURCE / "tutorials").glob("[0-9]*.md"))]
    navigation = [
        {"Start": ["index.md", *({title: page} for title, page in written.items() if page != "adding.md")]},
        {"Tutorials": ["tutorials/README.md", *tutorials]},
        {"Systems": write_systems(SOURCE, set(options.only))},
        {"Reference": [{"Python": write_functions(SOURCE)}, {"Commands": write_commands(SOURCE)}]},
        {"Measured": copy_ledgers()},
        {"Contribute": ["adding.md", "architecture.md", "contributing.md", "changelog.md"]},
    ]
    config = {
        "site_name": "descend", "docs_dir": str(SOURCE), "site_dir": str(options.out), "theme": THEME,
        "plugins": PLUGINS, "nav": navigation, "use_directory_urls": True,
        "markdown_extensions": ["tables", "fenced_code", "toc", "attr_list", "md_in_html"],
        "validation": {"links": {"not_found": "info", "absolute_links": "ignore"}, "nav": {"omitted_files": "ignore"}},
    }  # fmt: skip
    path = SOURCE.parent / "mkdocs.yml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    line = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(path)]
    done = subprocess.run(line, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False)
    if not done.returncode:
        print(options.out / "index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
