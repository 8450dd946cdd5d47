"""descend serve: trained models behind HTTP, by OpenAI's routes and one typed route for everything else."""

from __future__ import annotations

import os
from contextlib import nullcontext

from descend.errors import Mistake
from descend.own_code import use_code

MISSING = 'serving needs FastAPI and uvicorn: pip install "descend[serve]"'
KEY = "DESCEND_API_KEY"


def serve(
    *runs: str,
    port: int = 8000,
    host: str = "127.0.0.1",
    api_key: str = "",
    rows: int = 16,
    queue: int = 256,
    context: int = 0,
    checkpoint: str | int = "best",
    check: bool = False,
) -> None:
    """Serve trained models over HTTP until a signal ends it.

    Args:
        runs: folders of runs or models; NAME=FOLDER gives one another name.
        port: where to listen; 0: any port that is free.
        host: the address to listen at; beyond this machine it needs a key.
        api_key: what clients have to send; empty: the environment's DESCEND_API_KEY, or none.
        rows: texts that are written at once by each model.
        queue: requests that may wait; more are refused with 429.
        context: tokens of a text, prompt included; 0: the model's own, at most 8,192.
        checkpoint: best, last or a step.
        check: open the runs, say what each offers, and end.
    """
    try:
        from descend.server.port import open_port
        from descend.server.served import Limits, describe
        from descend.server.server import check_safe, open_service, run_server
    except ModuleNotFoundError as error:
        if error.name in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise Mistake(MISSING) from None
        raise
    key = api_key or os.environ.get(KEY, "")
    check_safe(host, key)
    with nullcontext() if check else open_port(host, port) as listening:  # taken or not, before the runs are read
        service = open_service(runs, checkpoint, Limits(rows, queue, context), host, key)
        if listening is None:
            print("\n".join(describe(one) for one in service.served.values()))
        else:
            run_server(service, listening)


def command(
    runs: tuple[str, ...],
    /,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    api_key: str = "",
    rows: int = 16,
    queue: int = 256,
    context: int = 0,
    checkpoint: str = "best",
    code: str = "",
    check: bool = False,
) -> None:
    """Serve trained models over HTTP: OpenAI's routes for texts, chats and vectors, /v1/predict for everything else.

    Args:
        runs: folders of runs or models; NAME=FOLDER gives one another name.
        port: where to listen; 0: any port that is free.
        host: the address to listen at; beyond this machine it needs a key.
        api_key: what clients have to send; empty: the environment's DESCEND_API_KEY, or none.
        rows: texts that are written at once by each model.
        queue: requests that may wait; more are refused with 429.
        context: tokens of a text, prompt included; 0: the model's own, at most 8,192.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        check: open the runs, say what each offers, and end.

    Examples:
        descend serve runs/demo
        descend serve runs/chat runs/digits --port 9000 --rows 64
        descend serve assistant=runs/chat --host 0.0.0.0 --api-key "$KEY"
    """
    use_code(code)
    serve(
        *runs, port=port, host=host, api_key=api_key, rows=rows, queue=queue, context=context, checkpoint=checkpoint,
        check=check,
    )  # fmt: skip
