"""python -m proofs.requests: 10,000 requests to a server, whole, streamed, given up and wrong: memory stays flat.

64 clients ask for texts, chats, vectors and predictions; one of eight goes before the answer is there, one of eight
asks for what cannot be. Every text must be what the first answer to its question was, and that must be what
`descend generate` writes; every refusal must have its status. After each hundredth of them the server is quiet: no row
is taken, nobody waits, and its memory, files and threads are counted. After the first fifth nothing may grow: no file,
no thread, at most 4 MB.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import descend
from proofs.flat import find_growth
from proofs.reliability import record
from tests.server.conftest import save_writer

CLIENTS, ROUNDS, QUESTIONS = 64, 100, 40
RELEASED = Path(__file__).parents[1] / "tests" / "verbs" / "data" / "last_release"


class Question(NamedTuple):
    """A request, the status that it must have, and whether the client goes before the answer is there."""

    path: str
    body: bytes
    status: int = 200
    goes: bool = False


def encode(**body: Any) -> bytes:
    return json.dumps(body).encode()


def show_image(seed: int) -> str:
    page = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(page, format="PNG")
    return base64.b64encode(page.getvalue()).decode()


def ask_text(seed: int, **more: Any) -> bytes:
    """One of the questions that come again and again."""
    return encode(model="gpt", prompt=f"the fox {seed}", max_tokens=1 + seed % 24, seed=seed, **more)


def ask_chat(seed: int, **more: Any) -> bytes:
    said = [{"role": "user", "content": f"the dog {seed}?"}]
    return encode(model="llama", messages=said, max_tokens=1 + seed % 24, seed=seed, **more)


WRONG: tuple[Callable[[], Question], ...] = (
    lambda: Question("/v1/completions", b"{", 400),
    lambda: Question("/v1/completions", ask_text(0).replace(b'"seed": 0', b'"temperature": NaN'), 400),
    lambda: Question("/v1/completions", encode(model="gpt", prompt="x", max_tokens=10**6), 400),
    lambda: Question("/v1/completions", encode(model="other", prompt="x"), 404),
    lambda: Question("/v1/chat/completions", encode(model="gpt", messages=[{"role": "user", "content": "x"}]), 400),
    lambda: Question("/v1/predict", encode(model="cnn-digits", images=["x"]), 400),
    lambda: Question("/v1/predict", b'{"x": "' + b"x" * 2**20 + b'"}', 400),
    lambda: Question(f"/v1/{random.randrange(10**9)}", b"{}", 404),
)


def draw(chance: random.Random) -> Question:
    """What a client asks next."""
    kind, seed = chance.randrange(16), chance.randrange(QUESTIONS)
    if kind < 2:
        return chance.choice(WRONG)()
    if kind < 8:
        return Question("/v1/completions", ask_text(seed, stream=kind % 2 == 0), goes=kind < 4)
    if kind < 12:
        return Question("/v1/chat/completions", ask_chat(seed, stream=kind % 2 == 0))
    if kind < 14:
        return Question("/v1/predict", encode(model="cnn-digits", images=[show_image(seed)]))
    return Question("/v1/predict", encode(model="ppo-cartpole", observations=[[0.1, 0.2, 0.1, seed / 100]]))


def send(address: str, question: Question) -> tuple[int, bytes]:
    """Status and body; nothing of a client that goes."""
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        connection.request("POST", question.path, question.body, {"Content-Type": "application/json"})
        if question.goes:
            time.sleep(0.002)
            return 0, b""
        found = connection.getresponse()
        return found.status, found.read()
    finally:
        connection.close()


def read_text(body: bytes) -> str:
    """The text of a whole or streamed answer; of a prediction all that it says."""
    if body.startswith(b"data:"):
        events = [json.loads(line[6:]) for line in body.split(b"\n\n") if line and line != b"data: [DONE]"]
        choices = [event["choices"][0] for event in events]
        return "".join(c["text"] if "text" in c else c["delta"].get("content", "") for c in choices)
    found = json.loads(body)
    if "choices" not in found:
        return json.dumps(found)
    choice = found["choices"][0]
    return str(choice["text"] if "text" in choice else choice["message"]["content"])


class Clients:
    """All of them: what they asked, and what was wrong with the answers."""

    def __init__(self, address: str):
        self.address, self.counts = address, Counter[str]()
        self.known: dict[tuple[str, bytes], str] = {}
        self.pool = ThreadPoolExecutor(CLIENTS)

    def ask(self, questions: list[Question]) -> None:
        """All at once; back when every answer is there."""
        for question, (status, body) in zip(questions, self.pool.map(self.send, questions), strict=True):
            self.counts["requests"] += 1
            if question.goes:
                self.counts["given up"] += 1
            elif status != question.status:
                self.counts["wrong"] += 1
                print(f"{question.path} {question.body[:200]!r}: {status} {body[:200]!r}", flush=True)
            elif status != 200:
                self.counts["refused"] += 1
            else:
                self.compare(question, read_text(body))

    def send(self, question: Question) -> tuple[int, bytes]:
        return send(self.address, question)

    def compare(self, question: Question, text: str) -> None:
        key = question.path, question.body.replace(b', "stream": true', b"").replace(b', "stream": false', b"")
        self.counts["different"] += self.known.setdefault(key, text) != text


def is_quiet(address: str) -> bool:
    """Whether nobody writes or waits."""
    connection = http.client.HTTPConnection(address, timeout=120)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    busy = ("descend_rows{", "descend_queue{", "descend_answering")
    running = next(float(line.split()[-1]) for line in lines if line.startswith("descend_requests_running"))
    return running == 1 and not any(float(line.split()[-1]) for line in lines if line.startswith(busy))


def wait_until_quiet(address: str) -> bool:
    """Whether it is quiet within a while."""
    for _ in range(500):
        if is_quiet(address):
            time.sleep(0.05)
            return True
        time.sleep(0.02)
    return False


def sample(process: int) -> dict[str, int]:
    """Bytes, files and threads of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "files": len(os.listdir(f"/proc/{process}/fd")),
        "threads": len(os.listdir(f"/proc/{process}/task")),
    }


@contextmanager
def serving(runs: list[str], log: Path) -> Iterator[tuple[str, int]]:
    """A server of its own: address and process."""
    command = [sys.executable, "-m", "descend", "serve", *runs, "--port", "0", "--rows", "16", "--queue", "256"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("http://"))
            yield line.split()[0].removeprefix("http://"), process.pid
        finally:
            process.terminate()
            process.wait(30)


def compare_with_generate(clients: Clients, writer: Path) -> int:
    """Texts that `descend generate` writes otherwise."""
    wrong = 0
    for seed in range(QUESTIONS):
        prompt = f"the fox {seed}"
        served = clients.known.get(("/v1/completions", ask_text(seed)))
        written = descend.generate(writer, prompt, tokens=1 + seed % 24, temperature=1.0, seed=seed)
        wrong += served is not None and served != written.removeprefix(prompt)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.requests", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, samples = random.Random(options.seed), list[dict[str, int]]()
    with tempfile.TemporaryDirectory(prefix="requests-") as place:
        root = Path(place)
        runs = [save_writer(root / "llama", "llama", True), save_writer(root / "gpt", "gpt2", False)]
        runs += [RELEASED / "cnn-digits", RELEASED / "ppo-cartpole"]
        with serving([str(run) for run in runs], root / "log") as (address, process):
            clients = Clients(address)
            for _ in range(ROUNDS):
                clients.ask([draw(chance) for _ in range(max(1, options.requests // ROUNDS))])
                clients.counts["lost"] += not wait_until_quiet(address)
                samples.append(sample(process))
        clients.counts["tracebacks"] = (root / "log").read_text().count("Traceback")
        clients.counts["different"] += compare_with_generate(clients, root / "gpt")
    grown = find_growth(samples)
    for name, by in grown.items():
        print(f"{name} grew by {by:,}")
    names = ("requests", "given up", "refused", "wrong", "different", "lost", "tracebacks")
    told = {name: clients.counts[name] for name in names}
    told |= {"growing": len(grown), "megabytes": samples[-1]["memory"] // 2**20}
    return 0 if record("requests", told, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
