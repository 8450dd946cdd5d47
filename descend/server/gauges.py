"""What Prometheus asks for at /metrics, as its text format has it: counters, gauges, and a histogram of latencies."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
CONTENT = "text/plain; version=0.0.4; charset=utf-8"


class Gauges:
    """What has been counted since the start. Its size does not depend on how many requests there were."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.running = 0
        """Requests that are being answered."""

    def answered(self, route: str, status: int, seconds: float) -> None:
        """One more request."""
        with self.lock:
            self.requests[route, status] += 1
            self.seconds[route] += seconds  # type: ignore[assignment]
            self.buckets.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1

    def read(self, model: str, prompt: int, written: int) -> None:
        """Tokens of a request."""
        with self.lock:
            self.tokens[model, "prompt"] += prompt
            self.tokens[model, "completion"] += written

    def show(self, gauges: Iterable[tuple[str, str, Mapping[str, float]]] = ()) -> str:
        """The page; `gauges` are further ones: a name, what it says, and a value for each model."""
        with self.lock:
            lines = head("requests_total", "counter", "Requests answered, by route and status.")
            lines += [line("requests_total", n, route=r, status=s) for (r, s), n in sorted(self.requests.items())]
            lines += head("tokens_total", "counter", "Tokens of prompts and of answers.")
            lines += [line("tokens_total", n, model=m, kind=k) for (m, k), n in sorted(self.tokens.items())]
            lines += head("requests_running", "gauge", "Requests that are being answered.")
            lines += [line("requests_running", self.running)]
            lines += head("request_seconds", "histogram", "Seconds from a request to the end of its answer.")
            for route, counts in sorted(self.buckets.items()):
                lines += self.show_histogram(route, counts)
        for name, text, values in gauges:
            lines += head(name, "gauge", text)
            lines += [line(name, value, model=model) for model, value in values.items()]
        return "\n".join(lines) + "\n"

    def show_histogram(self, route: str, counts: list[int]) -> list[str]:
        """Counts of all requests up to each bound."""
        found, below = [], 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            below += count
            found.append(line("request_seconds_bucket", below, route=route, le=bound))
        total = line("request_seconds_sum", round(self.seconds[route], 6), route=route)
        return [*found, total, line("request_seconds_count", below, route=route)]


def head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP descend_{name} {text}", f"# TYPE descend_{name} {kind}"]


def line(name: str, value: float, **labels: object) -> str:
    shown = ",".join(f'{key}="{escape(str(word))}"' for key, word in labels.items())
    return f"descend_{name}{{{shown}}} {value}" if shown else f"descend_{name} {value}"


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
