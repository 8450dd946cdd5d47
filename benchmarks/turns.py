"""Implementations in processes of their own, taking turns: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module


class Worker:
    """A process that builds one implementation and times calls of it when asked."""

    def __init__(self, target: str, environment: dict[str, str] | None = None):
        command = [sys.executable, "-m", "benchmarks.turns", target]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.ask(0)

    def ask(self, calls: int) -> list[float]:
        """Seconds of each of so many calls."""
        self.stdin.write(f"{calls}\n")
        self.stdin.flush()
        line = self.stdout.readline()
        if not line:
            raise RuntimeError("a worker ended; its error is above")
        return list(json.loads(line))

    def close(self) -> int:
        """End it; returns its peak memory in bytes."""
        self.stdin.write("end\n")
        self.stdin.flush()
        peak = int(self.stdout.readline())
        self.process.wait()
        return peak


def take_turns(
    targets: dict[str, str], rounds: int, calls: int, bfloat16: tuple[str, ...] = ()
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """All times of every implementation ("module:function" that returns a callable), and peak memory.

    Those named in `bfloat16` take their training steps in it, the others in float32.
    """
    half = {"BENCHMARK_PRECISION": "bfloat16"}
    workers = {name: Worker(target, half if name in bfloat16 else None) for name, target in targets.items()}
    times: dict[str, list[float]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, worker in workers.items():
            times[name] += worker.ask(calls)
    return times, {name: worker.close() for name, worker in workers.items()}


def serve(target: str) -> None:
    """The worker's side: build, warm up, then answer."""
    import resource

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not disturb the answers
    module, _, name = target.partition(":")
    call: Callable[[], object] = getattr(import_module(module), name)()
    for _ in range(2):
        call()
    for line in sys.stdin:
        if line.strip() == "end":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=out, flush=True)
            return
        times = []
        for _ in range(int(line)):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        print(json.dumps(times), file=out, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
