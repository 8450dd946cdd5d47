"""A port to listen at."""

from __future__ import annotations

import errno
import socket

from descend.errors import Mistake

BACKLOG = 2048  # connections that may wait to be taken


def open_port(host: str, port: int) -> socket.socket:
    """A socket that listens there, or a mistake that says why not."""
    if not 0 <= port < 65536:
        raise Mistake(f"--port {port}: give 1 to 65535, or 0 for any that is free")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(BACKLOG)  # from now on nobody else can have it
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise Mistake(
                f"--port {port} is taken by another program; give another, or 0 for any that is free"
            ) from None
        if error.errno == errno.EACCES:
            raise Mistake(f"--port {port} is the system's; give one from 1024 on") from None
        raise Mistake(f"--host {host}: this machine has no such address ({error.strerror or error})") from None
    return found
