"""Every verb fits every kind of recipe, or says in one line that it does not. `python -m proofs.verbs` tries them all.

Here each kind is trained for two steps and examined, and one more verb is tried on it, a different one from kind to
kind. The kinds and the verbs are found, not listed: a new one is tried without a line here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from descend import recipes
from proofs.tiny import list_kinds, shrink_flags, write_files
from proofs.verbs import ALWAYS, OF_A_RECIPE, OTHERS, Tiny, call, is_one_line, list_missing, list_verbs

KINDS = list_kinds()
MORE = [verb for verb in OF_A_RECIPE if verb not in ("train", "doctor")]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("kind", list(KINDS))
def test_verbs_fit_the_kind_or_say_so(kind: str, files: Path, tmp_path: Path) -> None:
    tiny, more = Tiny(KINDS[kind][0], files, tmp_path), MORE[list(KINDS).index(kind) % len(MORE)]
    for verb in ("train", "doctor", more):
        for args in OF_A_RECIPE[verb](tiny)[: 1 if verb == "doctor" else None]:
            ended = call(args)
            assert not ended.fault, args
            assert ended.code == 0 or verb not in ALWAYS, (args, ended.said)
    assert list_missing(Path(tiny.run)) == []


def test_every_verb_is_tried() -> None:
    assert sorted([*OF_A_RECIPE, *OTHERS]) == sorted(list_verbs())


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_becomes_tiny(name: str, files: Path) -> None:
    flags = shrink_flags(name, files)
    assert int(flags[flags.index("--steps") + 1]) <= 12
    assert "--batch" in flags


def test_a_traceback_and_a_long_message_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: list[str]) -> int:
        raise KeyError("at")

    assert call(["evaluate", "nowhere"]).kind == "one line"
    assert not is_one_line("descend: one\ntwo\n")
    monkeypatch.setattr("proofs.verbs.main", fail)
    assert "KeyError" in call(["doctor", "run"]).fault
    monkeypatch.setattr("proofs.verbs.main", lambda args: 3)
    assert call(["doctor", "run"]).kind == "fault"
