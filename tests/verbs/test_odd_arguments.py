"""Odd words where a name, a text or a path is expected: one line and exit code 2, or an answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from descend.errors import LONGEST, as_one_line
from proofs.verbs import call

RUNS = Path(__file__).parent / "data" / "last_release"
ODD = {
    "nothing": "",
    "a long word": "a" * 10**6,
    "control characters": "a\x00\x01\n\r\x1b[31mb",
    "bytes that are not UTF-8": "caf\udce9",
    "a path that is not there": "nowhere/at/all",
    "a folder": str(RUNS),
    "markup": "[bold]{x}%s[/nope]",
}
NAMED = ("find", "explain", "trace", "lab", "layers", "runs", "doctor", "evaluate", "resume", "predict", "generate")
CASES = {
    **{verb: [verb] for verb in NAMED},
    "sample": ["sample"],
    "plan": ["plan"],
    "trace --at": ["trace", "x*y", "--at"],
    "trace --output": ["trace", "x*y", "--at", "x=1", "--at", "y=2", "--output"],
    "doctor --html": ["doctor", str(RUNS / "mlp-wine"), "--html"],
    "layers --checkpoint": ["layers", str(RUNS / "mlp-wine"), "--checkpoint"],
    "predict a table": ["predict", str(RUNS / "mlp-wine")],
    "predict an image": ["predict", str(RUNS / "cnn-digits")],
    "generate a text": ["generate", str(RUNS / "gpt2-pydoc"), "--tokens", "2"],
}


@pytest.mark.parametrize("odd", list(ODD))
@pytest.mark.parametrize("case", list(CASES))
def test_one_line_or_an_answer(case: str, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call([*CASES[case], ODD[odd]])
    assert not ended.fault
    assert ended.code == 0 or len(ended.said) < 2 * LONGEST


def test_a_message_is_one_line_of_printable_characters() -> None:
    assert as_one_line("a\nb\t c") == "a b c"
    assert as_one_line("\x1b[31m \udce9") == r"\x1b[31m \udce9"
    assert as_one_line("√ “images”") == "√ “images”"
    long = as_one_line("start " + "x" * 10**6 + " end")
    assert long.startswith("start x")
    assert long.endswith("x end")
    assert len(long) <= LONGEST + 3


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ("train --list", ">&- 2>&-"),
        ("find attention", ">&-"),
        ("find attention", "2>&-"),
        ("find attention", ">&- 2>&-"),
        ("find attention", "| true"),
    ],
)
def test_nobody_reads_what_is_printed(words: str, ending: str) -> None:
    """A closed stream or a reader that has gone: it ends, and nothing is said about it."""
    command = f"set -o pipefail; {sys.executable} -m descend {words} {ending}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=os.environ, timeout=60)
    assert ended.returncode in ((0, 141) if "|" in ending else (0,))
    assert ended.stderr == ""
