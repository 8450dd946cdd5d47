"""The OpenAPI description is the truth: whatever fits it or does not, schemathesis finds no answer beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Running, running

schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")
RELEASED = Path(__file__).parents[1] / "verbs" / "data" / "last_release"


@pytest.fixture(scope="module")
def described(writers: tuple[Path, Path]) -> Any:
    with running(str(writers[0]), str(RELEASED / "ppo-cartpole"), rows=4) as server:
        yield schemathesis.openapi.from_url(f"{server.address}/openapi.json")


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_described(described: Any, mode: str) -> None:
    """Status, type and body of each answer; nothing wrong is taken; no fault of ours."""
    from schemathesis.specs.openapi import checks

    wanted = [
        schemathesis.checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
        checks.response_schema_conformance, checks.negative_data_rejection, checks.allow_header_conformance,
    ]  # fmt: skip
    tried = 0
    for operation in (found.ok() for found in described.get_all_operations()):
        negative = mode == "negative"
        if negative and operation.method == "get":
            continue  # nothing to be wrong
        strategy = operation.as_strategy(schemathesis.GenerationMode(mode))

        @hypothesis.settings(
            max_examples=8, derandomize=True, deadline=None, database=None,
            suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
        )  # fmt: skip
        @hypothesis.given(case=strategy)
        def check(case: Any) -> None:
            nonlocal tried
            tried += 1
            case.call_and_validate(checks=wanted)

        check()
    assert tried >= 20


def test_every_route_is_described(server: Running) -> None:
    import httpx

    found = httpx.get(f"{server.address}/openapi.json").json()
    assert set(found["paths"]) == {
        "/health", "/metrics", "/docs", "/v1/models", "/v1/models/{name}", "/v1/models/{name}/schema",
        "/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/v1/predict",
    }  # fmt: skip
    assert found["components"]["schemas"]["ChatForm"]["properties"]["model"]["enum"] == ["llama", "gpt"]
    assert all("422" not in told["responses"] for methods in found["paths"].values() for told in methods.values())
