"""What goes over the socket between a service and its child: two JSON documents, then binary parts.

Layout, little endian: 4 bytes number of the pieces, 8 bytes length of each; the pieces: a header for pool and child, the
message (``messages``), the parts beside it. Both sides use this module; it needs nothing but the standard library.
"""

import socket
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

MAX_DOCUMENTS = 64 * 2**20
MAX_PARTS = 512 * 2**20
_MOST_PIECES = 2**20

Bytes = bytes | bytearray | memoryview


class Closed(Exception):
    """The other side went away in the middle of, or instead of, a message."""


class Late(Exception):
    """The deadline passed."""


class Frame(NamedTuple):
    """``header`` and ``payload`` are JSON."""

    header: bytes
    payload: bytes
    parts: list[bytes]


def send(
    connection: socket.socket,
    header: bytes,
    payload: bytes = b"",
    parts: Sequence[Bytes] = (),
    *,
    until: float | None = None,
) -> None:
    """Send one message. ``until`` is a ``time.monotonic`` moment; past it ``Late`` is raised."""
    lengths = [len(piece) for piece in (header, payload, *parts)]
    sizes = struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
    try:
        for piece in (sizes + header + payload, *parts):
            _allow(connection, until)
            connection.sendall(piece)
    except TimeoutError as error:
        raise Late from error
    except OSError as error:
        raise Closed from error


def receive(connection: socket.socket, *, until: float | None = None) -> Frame:
    """Wait for one message. The sizes are bounded: a child that was taken over must not fill its parent's memory."""
    try:
        (count,) = struct.unpack("<I", _exactly(connection, 4, until))
        if not 2 <= count <= _MOST_PIECES:
            raise Closed("not so many pieces")
        lengths = struct.unpack(f"<{count}Q", _exactly(connection, 8 * count, until))
        if sum(lengths[:2]) > MAX_DOCUMENTS:
            raise Closed("header or message too long")
        if sum(lengths[2:]) > MAX_PARTS:
            raise Closed("parts too long")
        header, payload, *parts = (_exactly(connection, length, until) for length in lengths)
        return Frame(header, payload, parts)
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
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise Late
    connection.settimeout(remaining)
