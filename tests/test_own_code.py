"""Code of the user's own is found by name or by file, and never executed from a run's folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from descend import own_code
from descend.errors import Mistake
from descend.own_code import find_own, get_named, import_file, name_main, refuse_while_importing, store_name, use_code

CONFIG = """
from dataclasses import dataclass

@dataclass(frozen=True)
class OwnConfig:
    width: int = 4
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder of the user's; what it leaves in this process is taken back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own_code, "GIVEN", [])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_is_imported_by_its_name_from_the_current_folder(here: Path) -> None:
    (here / "their_net.py").write_text(CONFIG)
    kind = find_own("their_net:OwnConfig", "recipe.json")
    assert isinstance(kind, type)
    assert store_name(kind) == "their_net:OwnConfig"


def test_a_file_of_a_package_has_its_dotted_name(here: Path) -> None:
    (here / "their" / "nets").mkdir(parents=True)
    for folder in (here / "their", here / "their" / "nets"):
        (folder / "__init__.py").touch()
    (here / "their" / "nets" / "one.py").write_text(CONFIG)
    module = import_file("their/nets/one.py")
    assert module.__name__ == "their.nets.one"
    assert import_file("their/nets/one.py") is module
    assert find_own("their.nets.one:OwnConfig", "recipe.json") is module.OwnConfig


def test_what_does_not_define_the_class_is_not_executed(here: Path) -> None:
    (here / "their_trap.py").write_text("raise SystemExit(7)")
    with pytest.raises(Mistake, match=r"does not define a dataclass OwnConfig; give --code their_trap.py"):
        find_own("their_trap:OwnConfig", "recipe.json")
    with pytest.raises(Mistake, match=r"no module their_missing is found; give --code their_missing\.py"):
        find_own("their_missing:OwnConfig", "recipe.json")


def test_a_file_in_a_runs_folder_is_never_executed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = here / "run"
    (run / "checkpoints" / "step-1").mkdir(parents=True)
    (run / "recipe.json").touch()
    (run / "their_own.py").write_text(CONFIG + "raise SystemExit(7)")
    monkeypatch.chdir(run)
    for record in ("recipe.json", "checkpoints/step-1/config.json"):
        with pytest.raises(Mistake, match="no code is executed"):
            find_own("their_own:OwnConfig", record)
    with pytest.raises(Mistake, match="no code is executed"):
        import_file("their_own.py")
    with pytest.raises(Mistake, match="no code is executed"):
        get_named("their_own:OwnConfig")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("their_bad.py", "x = 1\ny = z", r"their_bad.py:2: NameError: name 'z' is not defined"),
        ("their_bad.py", "x = (", r"their_bad.py:1: '\(' was never closed"),
        ("json.py", "", "there is another module 'json'; rename the file"),
        ("cmd.py", "", "there is another module 'cmd'; rename the file"),
        ("their.bad.py", "", "is not a module of Python"),
        ("their_bad.txt", "", "is not a module of Python"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(here: Path, name: str, text: str, message: str) -> None:
    (here / name).write_text(text)
    with pytest.raises(Mistake, match=message):
        import_file(name)
    with pytest.raises(Mistake, match="there is no file"):
        import_file("their_none.py")


def test_a_script_must_not_train_while_it_is_imported(here: Path) -> None:
    (here / "their_script.py").write_text("import descend\ndescend.train('mlp-wine')\n")
    with pytest.raises(Mistake, match=r"their_script.py would train while it is imported; put that under if __name__"):
        import_file("their_script.py")
    refuse_while_importing("train")  # afterwards all is as before


@dataclass(frozen=True)
class Local:
    width: int = 4


def test_what_a_notebook_defined_is_found_there_or_in_the_code_that_is_given(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    monkeypatch.setattr(Local, "__module__", "__main__")
    assert name_main() == "__main__"
    assert store_name(Local) == "__main__:Local"
    with pytest.raises(Mistake, match="Local was defined in a notebook or at a prompt"):
        find_own("__main__:Local", "recipe.json")
    vars(notebook)["Local"] = Local
    assert find_own("__main__:Local", "recipe.json") is Local
    (here / "their_cells.py").write_text(CONFIG)
    use_code("their_cells.py")
    assert find_own("__main__:OwnConfig", "recipe.json") is sys.modules["their_cells"].OwnConfig


def test_what_a_script_defined_is_stored_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ModuleType("__main__")
    vars(script).update(__file__="somewhere/their_script.py", Local=Local)
    monkeypatch.setitem(sys.modules, "__main__", script)
    monkeypatch.setattr(Local, "__module__", "__main__")
    assert store_name(Local) == "their_script:Local"
    assert find_own("their_script:Local", "recipe.json") is Local


def test_a_class_in_a_function_is_refused_before_it_is_lost() -> None:
    @dataclass(frozen=True)
    class Hidden:
        width: int = 4

    with pytest.raises(Mistake, match="defined in a function or class; move it out"):
        store_name(Hidden)
