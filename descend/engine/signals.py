"""Ctrl-C, SIGTERM and SIGHUP (the terminal has gone) ask a run to save and stop; a second one stops it at once, but
for a checkpoint being written. Under `nohup`, which ignores SIGHUP, a run stays with that."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Request:
    """The signal that asked to stop, or 0."""

    signal: int = 0


@contextmanager
def stop_requests() -> Iterator[Request]:
    """Inside, the signals are noted instead of ending the process (in the main thread only)."""
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal:
            raise KeyboardInterrupt
        request.signal = number

    noted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        noted.append(signal.SIGHUP)
    before = {s: signal.signal(s, note) for s in noted}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
