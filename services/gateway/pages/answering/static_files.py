"""The page's own scripts, styles and pictures, at an address that names their content, so that a browser keeps them
for ever and still never mixes two versions."""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import flask

from services.gateway.http import encodings
from services.gateway.pages.answering import bundles

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ENTRIES = (
    "form/main.js",
    "code.js",
    "completed.js",
    "confirming.js",
    "handing/screen.js",
    "language.js",
    "link.js",
    "phone.js",
    "times.js",
    "verify.js",
    "state.js",
    "sheets/code.css",
    "sheets/handing.css",
    "sheets/link.css",
    "sheets/ops.css",
    "sheets/phone.css",
    "sheets/prepared.css",
    "sheets/progress.css",
    "sheets/signing.css",
    "sheets/state.css",
    "sheets/verify.css",
)
"""What pages name: each is made into one file, with all that it imports."""

FOR_OTHERS = ("embed.js", "peer_form.js")
"""What pages of other sites load: made in the same way, at an address that stays."""

_FOLDER = Path(__file__).parents[1] / "static"


@dataclass(frozen=True)
class StaticFile:
    data: bytes
    media_type: str
    version: str
    encoded: dict[str, bytes] = field(default_factory=dict, compare=False)

    def in_encoding(self, encoding: str) -> bytes:
        """The content as ``encoding`` has it, made when it is asked for the first time."""
        if not encoding:
            return self.data
        if encoding not in self.encoded:
            self.encoded[encoding] = encodings.encoded(self.data, encoding, smallest=True)
        return self.encoded[encoding]


class StaticFiles:
    """Everything in ``static/``, read once, and the files that are made of it. ``as_modules``: pages name what is written, not
    what is made."""

    def __init__(self, *, as_modules: bool = False) -> None:
        self.files = _files()
        self._as_modules = as_modules

    def address(self, name: str) -> str:
        """The address of a file below ``/static/``; of an entry that of the file made of it."""
        name = name if self._as_modules or name not in ENTRIES else _minified_name(name)
        return f"{self.files[name].version}/{name}"

    def answer(self, version: str, name: str) -> flask.Response:
        """The file, or 404. While an update is under way a page may ask for another version's file: it gets this one, but
        must not keep it."""
        file = self.files.get(name)
        if file is None:
            flask.abort(404)
        answer = _encoded(file)
        current = version == file.version
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable" if current else "no-store"
        return answer

    def for_others(self, name: str) -> flask.Response:
        """A script that any site may load. It is asked for again after an hour, and not sent again when it is the same."""
        file = self.files[_minified_name(name)]
        answer = _encoded(file)
        answer.headers["Cache-Control"] = "public, max-age=3600"
        answer.headers["Access-Control-Allow-Origin"] = "*"
        answer.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        answer.set_etag(f"{file.version}-{answer.headers.get('Content-Encoding', 'plain')}")
        return answer.make_conditional(flask.request)  # type: ignore[return-value]


def _encoded(file: StaticFile) -> flask.Response:
    """The file in the coding that the client takes."""
    encoding = encodings.chosen(flask.request.headers.get("Accept-Encoding", ""))
    answer = flask.Response(file.in_encoding(encoding), mimetype=file.media_type)
    if encoding:
        answer.headers["Content-Encoding"] = encoding
    answer.headers["Vary"] = "Accept-Encoding"
    return answer


@cache
def _files() -> dict[str, StaticFile]:
    """Return what is written under one version, because modules name each other without one; what is made under its own."""
    written = {
        path.relative_to(_FOLDER).as_posix(): path.read_text("utf-8")
        for path in sorted(_FOLDER.rglob("*"))
        if path.suffix in MEDIA_TYPES
    }
    version = _digest("\0".join(f"{name}\0{text}" for name, text in written.items()))
    files = {name: _file(name, text, version) for name, text in written.items()}
    for name in ENTRIES:
        text = bundles.script(written, name) if name.endswith(".js") else bundles.style_sheet(written, name)
        files[_minified_name(name)] = _file(_minified_name(name), text, _digest(text))
    for name in FOR_OTHERS:
        text = bundles.script(written, name, classic=True)
        files[_minified_name(name)] = _file(_minified_name(name), text, _digest(text))
    return files


def _file(name: str, text: str, version: str) -> StaticFile:
    return StaticFile(text.encode(), MEDIA_TYPES[Path(name).suffix], version)


def _minified_name(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.min{dot}{suffix}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
