"""Numbers for TensorBoard: one file of events for each process that trains, written where it is asked for.

    record: length (8 bytes), its checksum, an Event, its checksum

The writer of the tensorboard package works in a thread of its own, which opens the file for every number and prints a
traceback when the disk is full. Here records are gathered, and written by whoever calls `flush`.
"""

from __future__ import annotations

import io
import os
import socket
import time
from pathlib import Path

from descend.errors import naming

PERIOD = 30.0  # seconds after which what was gathered is written


class Board:
    """Gathers scalars; what a crash costs is what was gathered since the last flush."""

    def __init__(self, folder: Path):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        now = time.time()
        self.path = folder / f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}.0"
        self.buffer = io.BytesIO()
        self.records = RecordWriter(self.buffer)
        self.flushed = time.monotonic()
        self.records.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())

    def add(self, tags: dict[str, float], step: int) -> None:
        """The values of some tags at a step."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in tags.items()]
        self.records.write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)).SerializeToString())
        if time.monotonic() - self.flushed > PERIOD:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        content = self.buffer.getvalue()
        if content:
            self.path.parent.mkdir(exist_ok=True)
            with naming(self.path), self.path.open("ab") as file:
                file.write(content)
            self.buffer.seek(0)
            self.buffer.truncate()
        self.flushed = time.monotonic()
