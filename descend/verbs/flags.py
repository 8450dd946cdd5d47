"""Flags from type hints (tyro's), with errors in one line and help that stays clean in a pipe."""

from __future__ import annotations

import functools
import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import tyro

from descend.errors import Mistake, nearest
from descend.ranges import shorten

KINDS = {"INT": "a whole number", "FLOAT": "a number", "{None}|INT": "a whole number", "{None}|FLOAT": "a number"}
QUOTED = r"'(.*?)'(?:, |$)"


def parse(target: Callable[..., Any], args: list[str], prog: str, default: Any = tyro.MISSING_NONPROP) -> Any:
    """The instance of a class that the flags describe, or what a function returns when called with them.

    `default` is the instance that the flags change. Help is printed and ends the program; a wrong flag or value is a
    Mistake that names it and the nearest flag.
    """
    if not inspect.isfunction(target):
        return read_flags(target, args, prog, target.__doc__ or "", default)

    @functools.wraps(target)
    def bind(*values: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return values, named

    # The function is called only after parsing, so that what it prints is not taken for tyro's output.
    values, named = read_flags(bind, args, prog, target.__doc__ or "", default)
    return target(*values, **named)


def read_flags(target: Callable[..., Any], args: list[str], prog: str, doc: str, default: Any) -> Any:
    """Call tyro, keep what it prints, and turn its report of an error into one line."""
    config = (
        (tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName) if inspect.isfunction(target) else ()
    )
    ask = functools.partial(tyro.cli, target, prog=prog, default=default, config=config)
    if {"-h", "--help"} & set(args):
        show_help(ask, doc)
        raise SystemExit(0)
    out, err = io.StringIO(), io.StringIO()
    try:
        with widen_output(), redirect_stdout(out), redirect_stderr(err):
            return ask(args=args)
    except SystemExit:
        raise Mistake(f"{condense(err.getvalue(), functools.partial(list_flags, ask))} See {prog} --help") from None


def show_help(ask: Callable[..., Any], doc: str) -> None:
    """tyro's help, and the examples of the docstring, which tyro leaves out."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR")
    # In a buffer tyro draws neither boxes nor colours.
    out = io.StringIO() if plain else sys.stdout
    try:
        with redirect_stdout(out):
            ask(args=["--help"])
    except SystemExit:
        pass
    if isinstance(out, io.StringIO):
        print(re.sub(r"[ \t]+$", "", out.getvalue(), flags=re.MULTILINE).rstrip() + "\n")
    _, found, examples = inspect.cleandoc(doc).partition("Examples:\n")
    if found:
        print(("" if plain else "\n") + "examples\n" + examples.rstrip())


def list_flags(ask: Callable[..., Any]) -> list[str]:
    """Every flag, read from the help page, which may have several columns."""
    page = io.StringIO()
    try:
        with widen_output(), redirect_stdout(page):
            ask(args=["--help"])
    except SystemExit:
        pass
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][\w.-]*\w", page.getvalue())))


def condense(report: str, list_known: Callable[[], list[str]]) -> str:
    """tyro's boxed report of an error, in one sentence."""
    parts = re.split(r"^ *-{3,} *$", report, flags=re.MULTILINE)
    reason = parts[1] if len(parts) > 1 else report
    said = " ".join(reason.split())
    if found := re.match(r"Unrecognized options: (.*)", said):
        return describe_unknown_flag(found[1].split(", "), list_known())
    if found := re.match(r"Error parsing (\S+): (.*)", said):
        return describe_wrong_value(found[1], found[2], parts[2] if len(parts) > 2 else "")
    if "Missing from" in said:
        names = re.findall(r"^ {6}(\S.*?) *$", reason, re.MULTILINE)
        return f"missing: {', '.join(names)}."
    if found := re.match(r"Missing value for argument '(.*?)'", said):
        return f"{found[1]} needs a value."
    if found := re.match(r"invalid choice '(.*)' for argument '(.*?)'. Expected one of \((.*?),?\)", said):
        choices = found[3].replace("'", "")
        return f"{found[2]}: {found[1]!r} is not one of {choices}.{nearest(found[1], choices.split(', '))}"
    return said


def describe_unknown_flag(words: list[str], flags: list[str]) -> str:
    """Name the first unknown flag and the flag that may be meant: the same leaf elsewhere, or the nearest spelling."""
    unknown = [word.partition("=")[0] for word in words if word.startswith("-")]
    if not unknown:
        return f"{words[0]!r} is one argument too many."
    flag = unknown[0]
    leaf = flag.lstrip("-").rpartition(".")[2]
    same = [known for known in flags if known.lstrip("-").rpartition(".")[2] == leaf]
    return f"unknown flag {flag}.{f' Did you mean {same[0]!r}?' if same else nearest(flag, flags)}"


def describe_wrong_value(name: str, reason: str, helptext: str) -> str:
    """Say what was given and what is expected, in words."""
    if found := re.match(r"(?:.*\]: )?(.*: must be .*)", reason):  # as a range says it, alone or among other types
        return f"{name} {found[1].rstrip('.')}."
    kind = re.search(rf"{re.escape(name)} (\S.*)", helptext)
    value = re.search(r"(?:float|int\(\) with base 10|instantiated from): \[?'(.*?)'", reason) or re.search(
        r"instantiated from \['(.*?)'\]", reason
    )
    if kind and value and kind[1].split()[0] in KINDS:
        return f"{name} takes {KINDS[kind[1].split()[0]]}, not {value[1]!r}."
    if kind and (found := re.match(r"Could not (?:find|parse).*?\[(.*?)\]", reason)):
        return f"{name} {shorten(' '.join(re.findall(QUOTED, found[1])))}: give {kind[1].strip()}."
    return f"{name}: {reason.rstrip('.')}."


def read_seconds(text: str, flag: str = "--budget") -> float:
    """A time such as 90, 90s, 5m, 2h or 1d, in seconds."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smhd]?)", text.strip())
    if not found or not 0 < float(found[1]) < float("inf"):
        raise Mistake(f"{flag} {text!r}: give a time such as 90s, 5m or 2h")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


@contextmanager
def widen_output() -> Iterator[None]:
    """Let tyro write lines of any length, so that no word is broken before the report is read."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "1000"
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
