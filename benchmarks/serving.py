"""A served LLaMA (that of `llama_decode`, with a tokenizer): 64 clients at once, each a prompt of 16 and 64 new tokens.

    offline     the same 64 texts as one batch, without a server
    served      `descend serve --rows 64`, whole answers and streamed ones
    theirs      `transformers serve --continuous-batching`; without that flag it takes longer

Greedy, and all write the same; the clients are threads of another process, and read bytes without looking at them.
"""

from __future__ import annotations

import atexit
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.llama_decode import saved
from benchmarks.turns import take_turns

CLIENTS, PROMPT, NEW = 64, 16, 64
TOKENS = CLIENTS * NEW


def make_tokenizer(folder: str) -> None:
    """4,096 tokens of the Python documentation."""
    from pydoc_data.topics import topics

    from descend.text.tokenizer import Tokenizer

    Tokenizer.bpe("\n".join(topics.values()), 4096).save(folder)


def make_prompts(folder: str) -> list[str]:
    """Texts of exactly `PROMPT` tokens, each another one."""
    from pydoc_data.topics import topics

    from descend.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(folder)
    ids = tokenizer.encode("\n".join(topics.values())[:40_000])
    found: list[str] = []
    for i in range(0, len(ids) - PROMPT, PROMPT):
        text = tokenizer.decode(ids[i : i + PROMPT])
        if len(tokenizer.encode(text)) == PROMPT and text not in found:
            found.append(text)
    return found[:CLIENTS]


def prepare() -> tuple[str, list[str]]:
    """The folder of the model, which is there until the process ends, and the prompts."""
    place = tempfile.TemporaryDirectory(prefix="serving-")
    atexit.register(place.cleanup)
    with saved() as (_, model):
        model.generation_config.eos_token_id = None
        model.save_pretrained(place.name)
    make_tokenizer(place.name)
    return place.name, make_prompts(place.name)


def offline() -> Callable[[], object]:
    from descend.models import load
    from descend.sampling.generate import generate
    from descend.text.tokenizer import Tokenizer

    folder, texts = prepare()
    tokenizer, decoder = Tokenizer.load(folder), load(folder).decoder()  # type: ignore[operator]
    x = torch.tensor([tokenizer.encode(text) for text in texts])
    return lambda: [tokenizer.decode(ids) for ids in generate(decoder, x, NEW)]


def find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(command: list[str], port: int) -> None:
    """A server, which ends with this process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    atexit.register(process.kill)
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {' '.join(command)}")
        try:
            ask(port, "GET", "/health", {})
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server does not answer")


def ask(port: int, method: str, path: str, body: dict[str, Any]) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    found = connection.getresponse()
    said = found.read()
    connection.close()
    if found.status != 200:
        raise RuntimeError(f"{found.status}: {said[:300]!r}")
    return said


def wave(port: int, model: str, folder: str, texts: list[str], stream: bool) -> Callable[[], list[bytes]]:
    """All clients at once."""
    pool = ThreadPoolExecutor(CLIENTS)

    def one(text: str) -> bytes:
        body = {"model": model, "prompt": text, "max_tokens": NEW, "temperature": 0, "stream": stream}
        return ask(port, "POST", "/v1/completions", body)

    if not stream:
        check(folder, texts[0], json.loads(one(texts[0]))["choices"][0]["text"])
    return lambda: list(pool.map(one, texts))


def check(folder: str, prompt: str, text: str) -> None:
    """A server that writes something else is not measured."""
    import descend

    expected = descend.generate(folder, prompt, tokens=NEW, temperature=0.0).removeprefix(prompt)
    if text != expected:
        raise RuntimeError(f"another text: {text!r}, not {expected!r}")


def serve_ours(stream: bool) -> Callable[[], object]:
    (folder, texts), port = prepare(), find_port()
    command = [sys.executable, "-m", "descend", "serve", f"m={folder}", "--port", str(port), "--rows", str(CLIENTS)]
    start(command, port)
    return wave(port, "m", folder, texts, stream)


def served() -> Callable[[], object]:
    return serve_ours(False)


def streamed() -> Callable[[], object]:
    return serve_ours(True)


def theirs() -> Callable[[], object]:
    (folder, texts), port = prepare(), find_port()
    program = str(Path(sys.executable).with_name("transformers"))
    blocks = ["--continuous-batching", "--cb-num-blocks", "512", "--cb-block-size", "32"]  # unsaid, they take 12 GB
    start([program, "serve", folder, "--port", str(port), "--device", "cpu", "--log-level", "error", *blocks], port)
    return wave(port, folder, folder, texts, False)


def measure(rounds: int = 2, calls: int = 1) -> list[dict[str, object]]:
    """Tokens a second."""
    names = ("offline", "served", "streamed", "theirs")
    times, _ = take_turns({name: f"benchmarks.serving:{name}" for name in names}, rounds, calls)
    best = {name: min(values) for name, values in times.items()}
    rows: list[dict[str, object]] = []
    for name, other, title, bar in (
        ("served", "offline", "Server at 64 clients, against one batch offline", 0.8),
        ("streamed", "offline", "Server at 64 clients, streamed, against one batch offline", 0.8),
        ("served", "theirs", "Server at 64 clients, against transformers serve --continuous-batching", 2.0),
    ):
        rows.append({
            "name": title, "ours": TOKENS / best[name], "theirs": TOKENS / best[other], "unit": "tokens/s",
            "ratio": best[other] / best[name], "bar": bar,
            "note": f"{NEW} tokens after {PROMPT}; {best[name]:.2f} s against {best[other]:.2f}",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
