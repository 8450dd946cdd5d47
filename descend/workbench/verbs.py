"""Asks a verb of the command line in a process of its own, so that the shell and the studio give the same answer."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from descend.errors import Mistake

PATIENCE = 300.0  # seconds that a verb may take
AT_ONCE = asyncio.Semaphore(2)


async def ask_verb(args: Sequence[str], folder: Path) -> Any:
    """What `descend ARGS` prints as JSON."""
    return json.loads(await run_verb(args, folder))


async def run_verb(args: Sequence[str], folder: Path) -> str:
    """What `descend ARGS` prints; what it refuses is a mistake in its words."""
    async with AT_ONCE:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "descend", *args,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            cwd=folder, env={**os.environ, "NO_COLOR": "1"}, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError:
            raise Mistake(
                f"this takes more than {PATIENCE:.0f} s; ask in the shell: descend {' '.join(args)}"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
    if process.returncode:
        lines = err.decode(errors="replace").strip().splitlines() or ["it ended without a word"]
        raise Mistake(lines[-1].removeprefix("descend: "))
    return out.decode()
