"""The models that pages use: opened by `server/`, asked by its routes, closed when others are asked for.

/model/KEY/v1/…  is what `descend serve RUN` answers at /v1/…; KEY names a run and a checkpoint.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from descend.errors import Mistake
from descend.server.refusal import Refusal
from descend.workbench.lazy import IMPORTS
from descend.workbench.place import Place

if TYPE_CHECKING:
    from descend.server.app import Service

MOST = 2  # models in memory
ROWS, QUEUE = 2, 8


class Opened:
    """Services by their keys, the latest last; an ASGI application that finds the right one."""

    def __init__(self, place: Place):
        self.place = place
        self.services: OrderedDict[str, Service] = OrderedDict()
        self.lock = asyncio.Lock()

    async def open(self, run: str, checkpoint: str) -> tuple[str, Service]:
        """A run's service, with its key: opened now, or already."""
        step = self.find(run, checkpoint)
        key = hashlib.sha256(f"{run}\n{step.name}".encode()).hexdigest()[:16]
        async with self.lock:
            if key not in self.services:
                self.services[key] = await asyncio.to_thread(self.make, run, step.name)
                for one in self.services[key].served.values():
                    if one.text is not None:
                        one.text.start()
                while len(self.services) > MOST:
                    await close(self.services.popitem(last=False)[1])
            self.services.move_to_end(key)
        return key, self.services[key]

    def find(self, run: str, checkpoint: str) -> Path:
        """The folder of a run's checkpoint."""
        folder = self.place.find_run(run)
        step = (folder / "checkpoints" / checkpoint).resolve()
        if step.parent != (folder / "checkpoints").resolve() or not step.is_dir():
            raise Mistake(f"{run} has no checkpoint {checkpoint!r} yet")
        return step

    def make(self, run: str, step: str) -> Service:
        with IMPORTS:
            from descend.server.app import Service  # and torch with it: the studio itself starts without
            from descend.server.served import Limits, Served

        limits = Limits(ROWS, QUEUE)
        name = run.rpartition("/")[2]
        served = Served.open(name, str(self.place.find_run(run)), int(step.removeprefix("step-")), limits)
        return Service({name: served}, limits, "127.0.0.1", "")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a request to the model that it names."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        key, _, rest = path.lstrip("/").partition("/")
        service = self.services.get(key)
        if service is None:
            refusal = Refusal(404, "this model was closed for another: open it again", "closed")
            await refusal.respond()(scope, receive, send)
            return
        await service.api({**scope, "path": f"/{rest}", "root_path": ""}, receive, send)

    async def close(self) -> None:
        while self.services:
            await close(self.services.popitem()[1])


async def close(service: Service) -> None:
    for one in service.served.values():
        if one.text is not None:
            await asyncio.to_thread(one.text.batcher.close)
    service.thread.shutdown(wait=False, cancel_futures=True)
