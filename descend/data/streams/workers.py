"""Processes that load data ahead of a run. The signals that stop a run are not for them, and they end when it ends.

A signal to the whole group (`timeout`, a cluster, Ctrl-C) reaches them too. Were they to die of it, the run could not
take its step, save and stop: so they ignore it. The system ends them with the process that they load for.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import signal
import sys
from types import TracebackType

PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def begin_worker(number: int) -> None:
    """What a worker does first."""
    sys.excepthook = report_error
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        parent = multiprocessing.parent_process()
        if parent is not None and os.getppid() != parent.pid:  # it has ended already
            os._exit(1)


def report_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Python's own report of an error, unless it is that the other process has gone in the middle of a batch."""
    if not issubclass(kind, ConnectionError | EOFError):
        sys.__excepthook__(kind, error, trace)


def end_workers() -> None:
    """At the end of the process: the usual way to end them, SIGTERM, is one that they ignore."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler takes the end of a worker for a failure
    for child in multiprocessing.active_children():
        if child.daemon:
            child.kill()


def register_end() -> None:
    """Have the workers ended when the process ends (once, however often it is called)."""
    atexit.unregister(end_workers)
    atexit.register(end_workers)  # functions run last in, first out: before multiprocessing's own, which would wait
