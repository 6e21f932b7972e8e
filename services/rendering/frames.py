"""What goes over the socket between a service and its child: one JSON header, then binary parts.

Layout: 4 bytes little endian length of the header; the header, whose key ``parts`` lists the lengths of what follows;
the parts. Both sides use this module; it needs nothing but the standard library.
"""

import json
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

MAX_HEADER = 64 * 2**20
MAX_PARTS = 512 * 2**20

Bytes = bytes | bytearray | memoryview


class Closed(Exception):
    """The other side went away in the middle of, or instead of, a message."""


class Late(Exception):
    """The deadline passed."""


def send(
    connection: socket.socket, header: dict[str, Any], parts: Sequence[Bytes] = (), *, until: float | None = None
) -> None:
    """Send one message. ``until`` is a ``time.monotonic`` moment; past it ``Late`` is raised."""
    encoded = json.dumps({**header, "parts": [len(part) for part in parts]}).encode()
    try:
        for piece in (struct.pack("<I", len(encoded)), encoded, *parts):
            _allow(connection, until)
            connection.sendall(piece)
    except TimeoutError as error:
        raise Late from error
    except OSError as error:
        raise Closed from error


def receive(connection: socket.socket, *, until: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """Wait for one message. The sizes are bounded: a child that was taken over must not fill its parent's memory."""
    try:
        (length,) = struct.unpack("<I", _exactly(connection, 4, until))
        if length > MAX_HEADER:
            raise Closed("header too long")
        header = json.loads(_exactly(connection, length, until))
        lengths = header.pop("parts")
        if sum(lengths) > MAX_PARTS:
            raise Closed("parts too long")
        return header, [_exactly(connection, length, until) for length in lengths]
    except TimeoutError as error:
        raise Late from error
    except OSError as error:
        raise Closed from error


def _exactly(connection: socket.socket, size: int, until: float | None) -> bytes:
    buffer = bytearray(size)
    view, filled = memoryview(buffer), 0
    while filled < size:
        _allow(connection, until)
        count = connection.recv_into(view[filled:])
        if not count:
            raise Closed("end of stream")
        filled += count
    view.release()
    return bytes(buffer)


def _allow(connection: socket.socket, until: float | None) -> None:
    """Give the next call on the socket what is left of the time."""
    if until is None:
        return
    left = until - time.monotonic()
    if left <= 0:
        raise Late
    connection.settimeout(left)
