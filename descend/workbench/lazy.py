"""What brings torch with it is imported when it is first asked for, by one thread at a time.

Python lets two threads that import in different orders see each other's half-made modules, rather than wait for ever:
two parts of a page that are asked for at once would find such ones.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

IMPORTS = threading.RLock()


def bring(name: str) -> Any:
    """A module of the studio, whole."""
    with IMPORTS:
        return import_module(f"descend.workbench.{name}")
