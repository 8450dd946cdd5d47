"""The end of a server: those inside get the whole answer, nobody new gets in, and it does not wait for ever."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Running, running, wait_for

httpx = pytest.importorskip("httpx")
LONG_TEXT = 3  # a seed whose text does not end before its 90 tokens


def begin(address: str, tokens: int = 90) -> Any:
    """A streamed answer, of which the first event is there."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    body = {"model": "llama", "prompt": "the fox", "max_tokens": tokens, "seed": LONG_TEXT, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    found = connection.getresponse()
    found.kept = connection  # type: ignore[attr-defined]
    assert found.readline().startswith(b"data: ")
    return found


def slow_down(server: Running, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    rows = server.service.served["llama"].text.batcher.rows  # type: ignore[union-attr]
    step = type(rows).step

    def wait(*given: Any) -> Any:
        time.sleep(seconds)
        return step(*given)

    monkeypatch.setattr(type(rows), "step", wait)


def test_the_end_lets_those_inside_finish(writers: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(str(writers[0]), rows=2) as server:
        slow_down(server, monkeypatch, 0.01)
        first = begin(server.address)
        before = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=30)
        before.connect()
        server.server.handle_exit(signal.SIGTERM, None)
        before.request("GET", "/health")
        answer = before.getresponse()
        assert (answer.status, json.loads(answer.read())) == (503, {"status": "ending"})
        before.request("GET", "/v1/models")
        answer = before.getresponse()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert json.loads(answer.read())["error"]["code"] == "ending"
        events = first.read()
        assert b'"finish_reason": "length"' in events
        assert events.endswith(b"data: [DONE]\n\n")
        wait_for(lambda: not server.thread.is_alive())


def test_a_second_signal_insists(
    writers: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(str(writers[0]), rows=2) as server:
        slow_down(server, monkeypatch, 0.1)  # nine seconds in all
        first = begin(server.address)
        began = time.monotonic()
        for _ in range(2):
            server.server.handle_exit(signal.SIGINT, None)
        wait_for(lambda: not server.thread.is_alive())
        assert time.monotonic() - began < 4
        with pytest.raises(http.client.HTTPException):
            first.read()
    said = capfd.readouterr().err
    assert "Cancel 1 running task" in said
    assert "Traceback" not in said


def test_nobody_stays_for_ever(writers: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is inside after the time that there is, is cut off."""
    monkeypatch.setattr("descend.server.server.GRACE", 0.3)
    monkeypatch.setattr("descend.server.server.CLOSING", 1)
    with running(str(writers[0]), rows=2) as server:
        slow_down(server, monkeypatch, 0.1)
        begin(server.address)
        server.server.handle_exit(signal.SIGTERM, None)
        began = time.monotonic()
        wait_for(lambda: not server.thread.is_alive())
        assert time.monotonic() - began < 5


def test_sigterm_ends_the_command_after_the_last_answer(writers: tuple[Path, Path]) -> None:
    """The real process: it says where it is, drains, and ends without an error."""
    command = [sys.executable, "-m", "descend", "serve", str(writers[0]), "--port", "0", "--rows", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    killer = threading.Timer(60, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "llama: Llama, completions, chat; texts of up to 96 tokens, 2 at once\n"
        address = process.stdout.readline().split()[0]
        first = begin(address, 93)
        process.send_signal(signal.SIGTERM)
        assert first.read().endswith(b"data: [DONE]\n\n")
        assert process.wait() == 0
        assert process.communicate()[1] == ""
    finally:
        killer.cancel()
        process.kill()
        process.wait()
