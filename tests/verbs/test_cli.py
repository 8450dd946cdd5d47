from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro

import descend
from descend import cli
from descend.errors import Mistake
from descend.verbs.flags import parse
from tests.report.synthetic import make_run

NAMES = [verb.name for group in cli.VERBS.values() for verb in group]


def run(*args: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "descend", *args]
    return subprocess.run(command, capture_output=True, text=True, **kwargs)  # type: ignore[call-overload,no-any-return]


# The first screen


def test_one_screen() -> None:
    lines = cli.format_screen().splitlines()
    assert len(lines) <= 34
    assert max(map(len, lines)) <= 80
    for name in NAMES:
        alone = any(line.split()[:1] == [name] for line in lines)
        assert alone or any(name in line.replace(",", "").split() for line in lines if not line[:2].strip())


def test_the_first_screen_is_quick_and_loads_nothing_heavy() -> None:
    heavy = (
        "import sys; from descend.cli import main; main([]);"
        "print(sorted({'torch', 'rich', 'tyro', 'numpy'} & set(sys.modules)))"
    )
    took = []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True)
        took.append(time.perf_counter() - began)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stdout.startswith("descend: deep learning")
    assert min(took) < 0.5  # the best of three: the machine may be busy


def test_every_verb_has_its_file_and_an_example() -> None:
    for group in cli.VERBS.values():
        for verb in group:
            assert (Path(cli.__file__).parent / "verbs" / f"{verb.name.replace('-', '_')}.py").exists()
            assert verb.example.startswith(f"descend {verb.name}")
            assert verb.name.replace("-", "_") in descend.__all__


def test_python_offers_the_same_verbs() -> None:
    assert set(descend.__all__) == {*(name.replace("-", "_") for name in NAMES), "load"}
    assert set(descend.__all__) <= set(dir(descend))
    assert callable(descend.runs)
    assert descend.__version__
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = descend.trian


def test_import_descend_is_light_and_train_stays_callable() -> None:
    code = (
        "import sys, descend; assert 'torch' not in sys.modules; assert callable(descend.train);"
        "import descend.engine.progress as p; assert p.clock(75) == '1:15'; assert callable(descend.train)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Mistakes


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "descend: there is no verb 'trian'. Did you mean 'train'? descend --help lists the verbs\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["runs", "--jsn"], "unknown flag --jsn. Did you mean '--json'?"),
        (["runs", "a", "b"], "'b' is one argument too many."),
        (["lab", "--seed", "x"], "--seed takes a whole number, not 'x'."),
        (["lab", "--seed"], "--seed needs a value."),
        (["runs", "nowhere"], "nowhere is not a folder"),
        (["lab", "atention-scale"], "there is no lab 'atention-scale'. Did you mean 'attention-scale'?"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("descend: ")
    assert said in err
    assert err.count("\n") == 1


def test_our_own_mistake_is_a_traceback(tmp_path: Path) -> None:
    code = "import sys, descend.verbs.runs as r, descend.cli as c; r.runs = None; sys.exit(c.main(['runs', '.']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(args: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "dispatch", stop)
    assert cli.main([]) == 130


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    for i in range(400):
        make_run(tmp_path / f"run-{i:03d}", steps=1)
    command = f"{sys.executable} -m descend runs {tmp_path} --json | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout == "[\n"
    assert done.stderr == ""


def test_a_terminal_without_unicode_is_served() -> None:
    done = run("lab", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "divided by ?d_k" in done.stdout


def test_python_m_descend() -> None:
    assert run("--version").stdout == f"descend {descend.__version__}\n"
    assert run("trian").returncode == 2


# Flags


@dataclass(frozen=True)
class Optim:
    lr: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)

    def __post_init__(self) -> None:
        if self.lr < 0:
            raise ValueError(f"lr must be positive, not {self.lr}")


@dataclass(frozen=True)
class Loop:
    steps: int = 10
    """How long."""
    clip: float = 0.0
    how: Literal["fast", "exact"] = "fast"


@dataclass(frozen=True)
class Recipe:
    """A recipe.

    Examples:
        descend train tiny
    """

    optim: Optim = field(default_factory=Optim)
    loop: Annotated[Loop, tyro.conf.arg(name="")] = field(default_factory=Loop)
    tied: bool = True


def test_flags_change_the_default() -> None:
    default = Recipe(Optim(lr=1.0))
    found = parse(Recipe, ["--steps", "3", "--optim.betas", "0.8", "0.9", "--no-tied"], "descend train", default)
    assert found == Recipe(Optim(1.0, (0.8, 0.9)), Loop(3), tied=False)
    assert parse(Recipe, [], "descend train", default) == default


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--optim.lrr", "1"], "unknown flag --optim.lrr. Did you mean '--optim.lr'?"),
        (["--lr=1"], "unknown flag --lr. Did you mean '--optim.lr'?"),
        (["--stepz", "1"], "unknown flag --stepz. Did you mean '--steps'?"),
        (["--optim.lr", "fast"], "--optim.lr takes a number, not 'fast'."),
        (["--optim.betas", "0.9"], "--optim.betas needs a value."),
        (["--how", "exat"], "--how: 'exat' is not one of fast, exact. Did you mean 'exact'?"),
        (["--optim.lr=-1"], "optim: lr must be positive, not -1.0."),
        (["tiny"], "'tiny' is one argument too many."),
        (["--qqqq"], "unknown flag --qqqq. See"),
    ],
)
def test_wrong_flags(args: list[str], said: str) -> None:
    with pytest.raises(Mistake) as caught:
        parse(Recipe, args, "descend train tiny", Recipe())
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith("See descend train tiny --help")
    assert "\n" not in str(caught.value)


def test_a_required_argument_is_named() -> None:
    def command(run: str, /, *, seed: int = 0) -> None:
        """Score a run."""

    with pytest.raises(Mistake, match=r"missing: RUN\. See descend evaluate --help"):
        parse(command, [], "descend evaluate")


def test_a_function_prints_for_itself_and_its_mistakes_pass(capsys: pytest.CaptureFixture[str]) -> None:
    def command(name: str = "x", /, *, n: int | None = None) -> int:
        """Say a name."""
        print("hello", name, n)
        if name == "bad":
            raise Mistake("bad name")
        return 7

    assert parse(command, ["you", "--n", "3"], "descend say") == 7
    assert capsys.readouterr().out == "hello you 3\n"
    with pytest.raises(Mistake, match=r"^bad name$"):
        parse(command, ["bad"], "descend say")
    with pytest.raises(Mistake, match="--n takes a whole number, not 'q'"):
        parse(command, ["--n", "q"], "descend say")


@pytest.mark.parametrize("verb", ["runs", "lab"])
def test_help_has_examples_and_no_boxes_in_a_pipe(verb: str) -> None:
    done = run(verb, "--help", env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0
    assert f"usage: descend {verb}" in done.stdout
    assert f"examples\n    descend {verb}" in done.stdout
    assert not set("╭╮╰╯│─\x1b") & set(done.stdout)


def test_help_keeps_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    with pytest.raises(SystemExit):
        parse(Recipe, ["--help"], "descend train tiny", Recipe())
    out = capsys.readouterr().out
    assert "--optim.lr FLOAT" in out
    assert "descend train tiny" in out
    assert os.environ["COLUMNS"] == "72"
