"""The page's own scripts, styles and pictures, at an address that names their content, so that a browser keeps them
for ever and still never mixes two versions."""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

import flask

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

_FOLDER = Path(__file__).parents[1] / "static"


@dataclass(frozen=True)
class StaticFile:
    data: bytes
    compressed: bytes
    media_type: str


class StaticFiles:
    """Everything in ``static/``, read once. ``version`` is a digest of all of it."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self.files = {
            path.relative_to(folder).as_posix(): _read(path)
            for path in sorted(folder.rglob("*"))
            if path.suffix in MEDIA_TYPES
        }
        digest = hashlib.sha256()
        for name, file in self.files.items():
            digest.update(name.encode() + b"\0" + file.data + b"\0")
        self.version = digest.hexdigest()[:16]

    def modules(self) -> list[str]:
        """The scripts, for the browser to fetch at once instead of import by import."""
        return [name for name in self.files if name.endswith(".js")]

    def answer(self, version: str, name: str) -> flask.Response:
        """The file, or 404. While an update is under way a page may ask for another version's file: it gets this one, but
        must not keep it."""
        file = self.files.get(name)
        if file is None:
            flask.abort(404)
        small = flask.request.accept_encodings.quality("gzip") > 0
        answer = flask.Response(file.compressed if small else file.data, mimetype=file.media_type)
        if small:
            answer.headers["Content-Encoding"] = "gzip"
        answer.headers["Vary"] = "Accept-Encoding"
        current = version == self.version
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable" if current else "no-store"
        return answer


def _read(path: Path) -> StaticFile:
    data = path.read_bytes()
    return StaticFile(data, gzip.compress(data, mtime=0), MEDIA_TYPES[path.suffix])
