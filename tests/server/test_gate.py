"""Who comes in, and what bodies may be: every refusal is an OpenAI error that names the fix."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from descend.errors import Mistake
from descend.server.gate import Gate, Rules
from tests.server.conftest import Running, running, wait_for

httpx = pytest.importorskip("httpx")
KEY = "a-key-of-the-user"
LONG_TEXT = 3  # a seed whose text does not end before its 90 tokens


@pytest.fixture(scope="module")
def locked(writers: tuple[Path, Path]) -> Iterator[Running]:
    with running(str(writers[0]), key=KEY, rows=1, queue=0, body=4096) as found:
        yield found


def post(address: str, body: Any, path: str = "/v1/completions", **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body)
    return httpx.post(f"{address}{path}", content=content, headers={"Content-Type": "application/json", **headers})


def ask(**more: Any) -> dict[str, Any]:
    return {"model": "llama", "prompt": "the fox", "max_tokens": 2, "seed": LONG_TEXT, **more}


def test_the_key(locked: Running) -> None:
    assert post(locked.address, ask(), Authorization=f"Bearer {KEY}").status_code == 200
    for wrong in ({}, {"Authorization": "Bearer a-key"}, {"Authorization": KEY}, {"Authorization": f"Basic {KEY}"}):
        found = post(locked.address, ask(), **wrong)
        assert found.status_code == 401
        assert found.json()["error"] == {
            "message": "the API key is missing or wrong: send the header Authorization: Bearer KEY",
            "type": "authentication_error",
            "param": None,
            "code": "invalid_api_key",
        }
    assert httpx.get(f"{locked.address}/health").status_code == 200
    for path in ("/metrics", "/docs", "/openapi.json", "/v1/models", "/nothing"):
        assert httpx.get(locked.address + path).status_code == 401


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, locked: Running) -> None:
    import hmac

    compared: list[tuple[int, int]] = []
    whole = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or whole(a, b))
    post(locked.address, ask(), Authorization="Bearer x")
    assert compared == [(32, 32)]  # digests: not even the length is told


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "[::2]:80"])
def test_another_host_is_refused(server: Running, host: str) -> None:
    """A page of another site whose name leads here."""
    assert post(server.address, ask(), Host=host).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:8000", "[::1]:80"])
def test_this_machines_own_names_are_not(server: Running, host: str) -> None:
    assert post(server.address, ask(), Host=host).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost", "http://127.0.0.1:1", "x", "http://[", "file://"]
)
def test_a_page_of_another_origin_is_refused(server: Running, origin: str) -> None:
    """Another site, or another server of this machine."""
    found = post(server.address, ask(), Origin=origin)
    assert found.status_code == 403
    assert "a page of another site asked" in found.json()["error"]["message"]
    assert httpx.get(f"{server.address}/v1/models", headers={"Origin": origin}).status_code == 403


def test_its_own_page_is_not(server: Running) -> None:
    assert post(server.address, ask(), Origin=server.address).status_code == 200


async def enter(gate: Gate, kind: str = "http", method: str = "POST", path: str = "/x", **headers: str) -> Any:
    """What comes back from the gate, first message first."""
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await gate({"type": kind, "method": method, "path": path, "headers": named}, receive, send)
    return said[0]


async def inside(scope: Any, receive: Any, send: Any) -> None:
    """An application behind the gate."""
    kind = "websocket.accept" if scope["type"] == "websocket" else "http.response.start"
    await send({"type": kind, "status": 200, "headers": []})


def test_a_page_may_send_the_key_as_a_cookie() -> None:
    """Only where the rules name the cookie."""
    paged = Gate(inside, Rules("127.0.0.1", KEY, cookie="token"))
    plain = Gate(inside, Rules("127.0.0.1", KEY))
    given = {"host": "localhost", "content_type": "application/json"}
    for gate, cookie, status in (
        (paged, f"other=1; token={KEY}", 200),
        (paged, "token=x", 401),
        (paged, f"other={KEY}", 401),
        (paged, "\x01=;=", 401),
        (plain, f"token={KEY}", 401),
    ):
        assert asyncio.run(enter(gate, cookie=cookie, **given))["status"] == status


def test_a_websocket_meets_the_same_rules() -> None:
    gate = Gate(inside, Rules("127.0.0.1", KEY))
    key = {"authorization": f"Bearer {KEY}"}
    own = {"host": "localhost:8000", "origin": "http://localhost:8000"}
    assert asyncio.run(enter(gate, "websocket", **own, **key))["type"] == "websocket.accept"
    for wrong in ({**own}, {**own, **key, "origin": "http://evil.example"}, {**key, "host": "evil.example"}):
        assert asyncio.run(enter(gate, "websocket", **wrong)) == {"type": "websocket.close", "code": 1008}


def test_any_method_with_a_body_needs_its_type() -> None:
    gate = Gate(inside, Rules("127.0.0.1", body=5))
    given = {"host": "localhost", "method": "PUT"}
    assert asyncio.run(enter(gate, content_length="2", **given))["status"] == 415
    assert asyncio.run(enter(gate, transfer_encoding="chunked", **given))["status"] == 415
    assert asyncio.run(enter(gate, content_length="9", content_type="application/json", **given))["status"] == 413
    assert asyncio.run(enter(gate, method="DELETE", host="localhost"))["status"] == 200


def test_a_form_of_another_page_is_refused(server: Running) -> None:
    """A browser sends these types unasked."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        found = httpx.post(f"{server.address}/v1/completions", content="{}", headers={"Content-Type": kind})
        assert found.status_code == 415


BODIES: list[tuple[bytes, str]] = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"\xff\xfe{}", "not JSON"),
    (b"[]", "not a JSON object"),
    (b'{"model": 3}', "model: input should be a valid string"),
    (b"[" * 3000, "not JSON"),
    (b'{"model": "llama", "prompt": "x", "temperature": NaN}', "temperature: input should be a finite number"),
    (b'{"model": "llama", "prompt": "x", "seed": 1' + b"0" * 3000 + b"}", "seed: input should be less"),
    (b'{"model": "llama", "prompt": "\\ud800"}', "half a character"),
    (b'{"model": "llama"}', "prompt: field required"),
    (b'{"model": "llama", "prompt": {}}', "prompt"),
]


@pytest.mark.parametrize(("body", "said"), BODIES)
def test_a_malformed_body(server: Running, body: bytes, said: str) -> None:
    found = post(server.address, body)
    assert found.status_code == 400
    assert said in found.json()["error"]["message"]
    assert set(found.json()["error"]) == {"message", "type", "param", "code"}


def test_a_body_beyond_the_limit(locked: Running) -> None:
    """Whether it says its length or comes in pieces."""
    found = post(locked.address, ask(prompt="x" * 5000), Authorization=f"Bearer {KEY}")
    assert found.status_code == 413
    assert "more than 4,096 bytes" in found.json()["error"]["message"]
    pieces = (b"x" * 500 for _ in range(20))
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    found = httpx.post(f"{locked.address}/v1/completions", content=pieces, headers=headers)
    assert found.status_code == 413
    assert "more than 4,096 bytes" in found.json()["error"]["message"]


def test_other_routes_and_methods(server: Running) -> None:
    found = httpx.get(f"{server.address}/v2/models")
    assert (found.status_code, found.json()["error"]["type"]) == (404, "invalid_request_error")
    found = httpx.get(f"{server.address}/v1/completions")
    assert (found.status_code, found.headers["allow"]) == (405, "POST")
    assert found.json()["error"]["message"].startswith("method not allowed")


def stream(address: str, **more: Any) -> http.client.HTTPResponse:
    """A request whose answer is read as it comes."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    connection.request("POST", "/v1/completions", json.dumps(ask(stream=True, max_tokens=90, **more)), headers)
    found = connection.getresponse()
    found.connection = connection  # type: ignore[attr-defined]
    return found


@pytest.fixture
def slow(locked: Running, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The model, a step of which takes its time."""
    batcher = locked.service.served["llama"].text.batcher
    step = type(batcher.rows).step

    def wait(*given: Any) -> Any:
        time.sleep(0.02)
        return step(*given)

    monkeypatch.setattr(type(batcher.rows), "step", wait)
    return batcher


def test_a_full_queue_is_429(locked: Running, slow: Any) -> None:
    """One row, and nobody may wait."""
    first = stream(locked.address)
    assert first.readline().startswith(b"data: ")
    found = post(locked.address, ask(), Authorization=f"Bearer {KEY}")
    assert (found.status_code, found.headers["retry-after"]) == (429, "1")
    assert found.json()["error"]["code"] == "queue_full"
    assert found.json()["error"]["type"] == "rate_limit_error"
    assert first.read().endswith(b"data: [DONE]\n\n")  # it was not disturbed
    assert post(locked.address, ask(), Authorization=f"Bearer {KEY}").status_code == 200


@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_that_goes_frees_its_row(locked: Running, slow: Any, streamed: bool) -> None:
    drawn = slow.drawn
    if streamed:
        first = stream(locked.address)
        first.readline()
        first.connection.sock.close()  # type: ignore[attr-defined]
        first.close()
    else:
        headers = {"Authorization": f"Bearer {KEY}"}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{locked.address}/v1/completions", json=ask(max_tokens=90), headers=headers, timeout=0.2)
    wait_for(lambda: not slow.texts)
    assert 0 < slow.drawn - drawn < 60
    assert len(slow.free) == 1
    assert post(locked.address, ask(), Authorization=f"Bearer {KEY}").status_code == 200


def test_metrics_count_what_happened(server: Running) -> None:
    def read() -> dict[str, float]:
        lines = httpx.get(f"{server.address}/metrics").text.splitlines()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _, value in pairs}

    before = read()
    assert post(server.address, ask(max_tokens=5, temperature=0)).status_code == 200
    assert post(server.address, ask(max_tokens=0)).status_code == 400
    after = read()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown['descend_requests_total{route="/v1/completions",status="200"}'] == 1
    assert grown['descend_requests_total{route="/v1/completions",status="400"}'] == 1
    assert grown['descend_tokens_total{model="llama",kind="prompt"}'] == 3
    assert grown['descend_tokens_total{model="llama",kind="completion"}'] == 5
    assert grown['descend_request_seconds_count{route="/v1/completions"}'] == 2
    assert grown['descend_request_seconds_bucket{route="/v1/completions",le="+Inf"}'] == 2
    assert after['descend_rows{model="llama"}'] == after['descend_queue{model="llama"}'] == 0
    assert after['descend_rows_limit{model="llama"}'] == 8


def test_the_page_of_routes_needs_no_other_page(server: Running) -> None:
    page = httpx.get(f"{server.address}/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "/v1/chat/completions" in page.text
    assert "CompletionForm" in page.text
    assert "https://" not in page.text
    assert "src=" not in page.text


# Before the server begins


def test_beyond_this_machine_it_needs_a_key(writers: tuple[Path, Path]) -> None:
    import descend

    with pytest.raises(Mistake, match=r"--host 0.0.0.0 lets other machines in: give --api-key"):
        descend.serve(str(writers[0]), host="0.0.0.0", check=True)
    descend.serve(str(writers[0]), host="0.0.0.0", api_key="x", check=True)


def test_a_port_that_is_taken(server: Running) -> None:
    import descend
    from descend.server.port import open_port

    port = int(server.address.rpartition(":")[2])
    with pytest.raises(Mistake, match=rf"--port {port} is taken by another program"):
        open_port("127.0.0.1", port)
    with pytest.raises(Mistake, match=f"--port {port} is taken"):
        descend.serve("no-such-run", port=port)  # before the run is read
    with pytest.raises(Mistake, match="no-such-run is not a folder"):
        descend.serve("no-such-run", port=0)
    with pytest.raises(Mistake, match="--port 70000"):
        open_port("127.0.0.1", 70000)
    with pytest.raises(Mistake, match="this machine has no such address"):
        open_port("203.0.113.7", 0)


def test_a_model_without_a_tokenizer(writers: tuple[Path, Path], tmp_path: Path) -> None:
    import shutil

    import descend

    folder = shutil.copytree(writers[0], tmp_path / "bare")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(Mistake, match=r"tokenizer.json does not exist; text needs the tokenizer"):
        descend.serve(str(folder), check=True)


def test_more_rows_than_there_is_memory_for(writers: tuple[Path, Path]) -> None:
    import descend

    with pytest.raises(
        Mistake, match=r"--rows 1000000000: there is no memory for so many texts of 96 tokens; give few"
    ):
        descend.serve(str(writers[0]), rows=10**9, check=True)


def test_names_of_runs(writers: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    import descend

    with pytest.raises(Mistake, match="two runs are called 'llama'; give one another name: other-name="):
        descend.serve(str(writers[0]), str(writers[0]), check=True)
    descend.serve(f"one={writers[0]}", f"two={writers[1]}", check=True, rows=3)
    assert capsys.readouterr().out == (
        "one: Llama, completions, chat; texts of up to 96 tokens, 3 at once\n"
        "two: GPT2, completions; texts of up to 96 tokens, 3 at once\n"
    )
    with pytest.raises(Mistake, match="name at least one run"):
        descend.serve()
    with pytest.raises(Mistake, match="--rows 0: at least 1"):
        descend.serve(str(writers[0]), rows=0)
