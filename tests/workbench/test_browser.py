"""The studio in a real browser: a run from form to end, playground, a look inside. No error, no stranger."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from descend.report.difference import find_partings
from descend.report.history import read_history
from descend.verbs.train import train
from tests.workbench.conftest import BROWSERS, TOKEN, Address

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: the studio is not tried in a browser")
PATH = next(filter(None, map(shutil.which, BROWSERS)), None)
if PATH is None:
    pytest.skip(f"no browser ({', '.join(BROWSERS)}): the studio is not tried in one", allow_module_level=True)

LONG = 120_000  # milliseconds: other tests may take the processors


def expect(page: Any, place: str) -> Any:
    """What a place of the page comes to show."""
    return playwright.expect(page.locator(place))


class Watched:
    """A page, what it complained about, and where it sent requests."""

    def __init__(self, page: Any, url: str):
        self.page, self.url = page, url
        self.errors: list[str] = []
        self.strangers: list[str] = []
        page.set_default_timeout(LONG)
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self.note)

    def note(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.strangers.append(request.url)

    def open(self, path: str) -> Any:
        self.page.goto(self.url + path, timeout=LONG)
        return self.page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        playwright.expect.set_options(timeout=LONG)
        found = p.chromium.launch(executable_path=PATH, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def watched(browser: Any, studio: Address) -> Iterator[Watched]:
    page = browser.new_page()
    found = Watched(page, studio.url)
    found.open(f"/?token={TOKEN}")
    yield found
    page.close()
    assert not found.errors
    assert not found.strangers


def test_a_run_from_the_form_is_stopped_and_resumed(watched: Watched, studio: Address) -> None:
    values = {"steps": 4000, "eval_every": 500, "save_every": 500, "threads": 1}
    page = watched.open("/train/form?recipe=mlp-moons")
    page.fill("[data-own=name]", "from/form")
    page.click("summary:has-text('training')")
    for name, value in values.items():
        page.fill(f"[name='{name}']", str(value))
    expect(page, "#command").to_contain_text("--threads 1")
    page.click("button[type=submit]")
    page.wait_for_url("**/run?**")
    page.wait_for_selector(".state.running")
    page.wait_for_selector("main svg.chart")
    page.reload()
    page.click("text=Stop and save")
    page.wait_for_selector(".state.interrupted")
    page.click("text=Resume")
    page.wait_for_selector(".state.finished")
    whole, _ = train("mlp-moons", values, out=studio.runs / "from" / "shell", quiet=True)
    resumed = read_history(studio.runs / "from" / "form")
    assert [job.args[0] for job in studio.studio.queue.jobs if job.run == "from/form"] == ["train", "resume"]
    assert find_partings(resumed, read_history(whole.folder)) == []


def test_names_do_not_become_scripts(watched: Watched, studio: Address) -> None:
    table = studio.runs / ".studio" / "files" / "evil.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    evil = "<img src=x onerror=document.title='broken'>"
    rows = "".join(f"{i % 7},{i % 5},{evil if i % 2 else 'b'}\n" for i in range(60))
    table.write_text(f'"{evil}",x,class\n{rows}')
    train(
        "mlp-csv", {"data.path": str(table), "data.target": "class", "steps": 4}, out=studio.runs / "evil", quiet=True
    )
    for path in ("/", "/run?run=evil", "/use?run=evil"):
        page = watched.open(path)
        page.wait_for_selector("h1")
        page.wait_for_timeout(500)
        assert page.title() != "broken"


def test_the_playground_takes_steps(watched: Watched) -> None:
    page = watched.open("/playground")
    page.wait_for_selector("#neurons canvas")
    page.click("#one")
    expect(page, "#at").to_contain_text("step 1 ")
    assert "step=1" in page.url
    page.reload()
    expect(page, "#at").to_contain_text("step 1 ")


def test_a_dropped_folder_is_checked(watched: Watched, studio: Address, tmp_path: Path) -> None:
    for name in ("cat/1.png", "big owl/ü 2.png"):
        (tmp_path / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pets" / name).write_bytes(b"no image")
    page = watched.open("/train/form?recipe=cnn-images")
    page.set_input_files("input[webkitdirectory]", tmp_path / "pets")
    expect(page, "#plan .warning").to_contain_text("cannot be read as an image")
    expect(page, "#plan .warning").to_contain_text("(1 more cannot be used: ")
    assert page.input_value("[name='data.path']") == str(studio.studio.place.own / "files" / "pets")


def test_a_row_of_ones_own_follows_the_slider(watched: Watched) -> None:
    page = watched.open("/inside?run=moons/first")
    page.fill("[data-column=x1]", "1.5")
    page.click("button:text-is('Look')")
    expect(page, "#seen h2 >> nth=0").to_have_text("Units of layer 1")
    late = page.inner_html("#seen")
    page.focus("#step")
    page.keyboard.press("ArrowLeft")
    expect(page, "#seen").not_to_have_js_property("innerHTML", late)


def test_inside_at_two_checkpoints(watched: Watched) -> None:
    page = watched.open("/inside?run=moons/first")
    page.wait_for_selector("#inside .card")
    late = page.inner_html("#inside")
    page.focus("#step")
    page.keyboard.press("ArrowLeft")
    expect(page, "#at").not_to_have_text("step 60")
    expect(page, "#inside:not([aria-busy]) .card >> nth=0").to_be_visible()
    page.wait_for_timeout(200)
    expect(page, "#inside:not([aria-busy]) .card >> nth=0").to_be_visible()
    assert page.inner_html("#inside") != late
