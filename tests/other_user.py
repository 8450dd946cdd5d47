"""A call in a process of another user. Needs root; what it uses has to be imported before, since the other one may not
be able to read this user's Python."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

NOBODY, SOMEBODY = 65534, 65533  # numbers of users without rights, and who own nothing
AS_ROOT = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can be somebody else")


def open_folders(home: Path) -> None:
    """Let everybody into a temporary folder of a test; pytest makes those above it for its own user alone."""
    for folder in (home, *home.parents):
        if folder == home or folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(0o755)


def call_as(user: int, action: Callable[[], object], log: Path) -> tuple[int, str]:
    """The exit code and what was said of an action, as this user: without rights, home and groups."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.environ["HOME"] = "/nonexistent"
            os.chdir("/")
            code = int(str(action() or 0))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, log.read_text(errors="replace")
