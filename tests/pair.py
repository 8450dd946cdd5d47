"""Two processes of one module, with the variables that torchrun gives them, forked from one that has imported it.

    python -m tests.pair tests.tasks.split FOLDER        calls its main(["FOLDER"]) in both

Starting torchrun costs three imports of torch, this costs one; what torchrun itself does is tested with torchrun.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIZE = 2
GRACE = 20.0
# What both would import after the fork, each for itself.
LATER = ("torch._dynamo", "torch.distributed.fsdp", "descend.verbs.train")
Main = Callable[[list[str]], int | None]


def run_pair(module: str, *args: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Start the two and wait for them."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.pair", module, *args]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)


def start(main: Main, args: list[str], rank: int, port: int) -> int:
    """Fork one of the two; returns its process."""
    child = os.fork()
    if child:
        return child
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": SIZE, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in places.items()})
    code = 1
    try:
        code = main(args) or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(module: str, args: list[str]) -> int:
    """Both, until they end; their codes are the last line printed. Where one has failed, the other one has to end by
    itself within GRACE seconds. Returns the first code that is not 0."""
    called: Main = import_module(module).main
    for name in LATER:
        import_module(name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = {start(called, args, rank, port): rank for rank in range(SIZE)}
    codes: dict[int, int] = {}
    failed, end = 0, float("inf")
    while len(codes) < SIZE:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            codes[ranks[child]] = code = os.waitstatus_to_exitcode(status)
            if code and not failed:
                failed, end = code, time.monotonic() + GRACE
            continue
        if time.monotonic() > end:
            for left in (process for process, rank in ranks.items() if rank not in codes):
                os.kill(left, signal.SIGKILL)
        time.sleep(0.02)
    print(*(codes[rank] for rank in range(SIZE)), flush=True)
    return abs(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
