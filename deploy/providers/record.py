"""What a local provider has signed: one line of JSON for each signature, written before it is given out, kept for ever."""

import json
import os
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Record:
    """Thread-safe; ``path`` survives the provider."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def add(self, credential: str, digest: bytes, **more: Any) -> None:
        line = {"at": datetime.now(UTC).isoformat(), "credential": credential, "hash": digest.hex(), **more}
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[dict[str, Any]]:
        """All signatures, the oldest first; the last line of a process that was killed may be half of one."""
        if not self._path.exists():
            return []
        lines = []
        for line in self._path.read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        return lines

    def counts(self) -> Counter[str]:
        """Return how many signatures were made of each hash (hexadecimal)."""
        return Counter(line["hash"] for line in self.lines())
