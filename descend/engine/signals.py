"""Ctrl-C and SIGTERM ask a run to save and stop; a second one stops it at once, but for a checkpoint being written."""

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
    """Inside, the two signals are noted instead of ending the process (in the main thread only)."""
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal:
            raise KeyboardInterrupt
        request.signal = number

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
