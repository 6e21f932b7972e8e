"""What a listener keeps between its starts: how far it is, and the secret that it signs with. One listener at a time has it."""

import base64
import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from deploy.command.remote import forwarding
from deploy.command.remote.installation import Misused

try:
    import fcntl
except ImportError:  # Windows: nothing there keeps a second listener away
    fcntl = None  # type: ignore[assignment]

_SECRET_BYTES = 24


@dataclass
class Progress:
    """``cursor``: the sequence of the last event that was taken; None before the first start knows where to begin."""

    path: Path
    url: str
    forward: str
    signing_secret: str
    cursor: int | None = None

    def keep(self, cursor: int) -> None:
        """Write that all events up to this one were taken: wholly or not at all, and on the disk when this returns."""
        self.cursor = cursor
        beside = self.path.with_name(f"{self.path.name}.new")
        content = {
            "version": 1,
            "url": self.url,
            "forward": self.forward,
            "signing_secret": self.signing_secret,
            "cursor": cursor,
        }
        with _opened(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        _sync(self.path.parent)


def default_path(url: str, forward: str, environment: Mapping[str, str]) -> Path:
    """One file for each pair of installation and receiver, in the folder for state of the XDG base directories."""
    root = environment.get("XDG_STATE_HOME", "")
    folder = Path(root) if root.startswith("/") else Path.home() / ".local" / "state"
    name = hashlib.sha256(f"{url}\n{forward}".encode()).hexdigest()[:16]
    return folder / "countersign" / f"listen-{name}.json"


@contextmanager
def hold(path: Path, url: str, forward: str) -> Iterator[Progress]:
    """The progress that is kept in a file, or a new one, and no other listener's meanwhile.

    Raises Misused where another process has it, or it is damaged or of another installation or receiver.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _opened(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT) as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Misused(f"another listener is at work with {path}; name another file with --state") from None
        yield _read(path, url, forward)


def _read(path: Path, url: str, forward: str) -> Progress:
    try:
        text = path.read_text()
    except FileNotFoundError:
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        return Progress(path, url, forward, secret)
    try:
        content = json.loads(text)
        kept_progress = Progress(
            path, str(content["url"]), str(content["forward"]), str(content["signing_secret"]), int(content["cursor"])
        )
        forwarding.key_of(kept_progress.signing_secret)
    except (KeyError, TypeError, ValueError):
        raise Misused(f"{path} is not what a listener keeps: name another file with --state, or remove it") from None
    if (kept_progress.url, kept_progress.forward) != (url, forward):
        raise Misused(
            f"{path} is of a listener from {kept_progress.url} to {kept_progress.forward}; name another file with --state"
        )
    return kept_progress


def _opened(path: Path, flags: int) -> TextIO:
    """With the owner's rights alone: there is a secret in it."""
    return os.fdopen(os.open(path, flags, 0o600), "r+" if flags & os.O_RDWR else "w")


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):  # folders cannot be synchronised everywhere
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
