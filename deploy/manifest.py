"""What a backup is: a folder with the databases, the files, a manifest that says what they are and when they were taken, and
the SHA-256 of everything in a form that ``sha256sum -c SHA256SUMS`` reads.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from contracts.runtime.data.database import normalised
from contracts.runtime.settings import SecretFileFaults, secret_setting
from deploy.services import SERVICES
from deploy.suite import settings_of_var_dir

FORMAT = 1
MANIFEST, SUMS, DATABASES, FILES, LISTED = "manifest.json", "SHA256SUMS", "databases", "files", "files.json"
CHUNK = 1024 * 1024


class Unsuitable(Exception):
    """It cannot be done, and nothing was changed; the message says why."""


class DatabaseCopy(BaseModel):
    """One service's database: ``taken_at`` is the moment that it shows, ``given`` the highest number given out by table,
    ``rows`` how many each table has. ``epoch`` names the life of its event stream."""

    file: str
    kind: Literal["sqlite", "postgresql"]
    taken_at: datetime
    revision: str | None
    epoch: str | None = None
    given: dict[str, int]
    rows: dict[str, int]


class ListedFile(BaseModel):
    """A file that stays in its bucket: the backup of the bucket must have it."""

    key: str
    size: int
    etag: str | None = None


class FilesCopy(BaseModel):
    """The blob store: ``copied`` into the backup, or only ``listed`` in ``files.json``. ``bytes`` in all."""

    kind: Literal["copied", "listed"]
    taken_at: datetime
    count: int
    bytes: int


class Manifest(BaseModel):
    """Of a whole backup. ``secrets`` are names only: their values are kept apart, and nothing opens without them."""

    format: int = FORMAT
    version: str
    began_at: datetime
    finished_at: datetime
    databases: dict[str, DatabaseCopy]
    files: FilesCopy
    secrets: list[str]


@dataclass(frozen=True)
class Places:
    """Where the suite keeps what it knows: a database URL by service, and the blob store's URL."""

    databases: dict[str, str]
    blobs: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Places":
        """As the services read them: ``<SERVICE>_DATABASE_URL`` and ``BLOB_URL``. Where none of them is set, those of
        ``make up`` in VAR_DIR (``./var``). Raises Unsuitable when some are missing."""
        names = {service: f"{service.upper()}_DATABASE_URL" for service in SERVICES}
        required = [*names.values(), "BLOB_URL"]
        try:
            settings = {name: secret_setting(name, environment) or "" for name in required}
        except SecretFileFaults as fault:
            raise Unsuitable(str(fault)) from fault
        missing = [name for name in required if not settings[name]]
        if missing and len(missing) < len(required):
            raise Unsuitable(f"not set: {', '.join(missing)}")
        values = settings_of_var_dir(Path(environment.get("VAR_DIR") or "var").resolve()) if missing else settings
        return cls({service: values[name] for service, name in names.items()}, values["BLOB_URL"])


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection to a database of ours that leaves its settings as they are."""
    engine = sa.create_engine(normalised(url), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def tables_of(connection: Connection) -> list[str]:
    """The names of all tables, without those of the database itself."""
    return sorted(name for name in sa.inspect(connection).get_table_names() if not name.startswith("sqlite_"))


def read(folder: Path) -> Manifest:
    """The manifest of a finished backup. Raises Unsuitable for anything else."""
    if folder.name.endswith(".partial"):
        raise Unsuitable(f"{folder} was never finished")
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise Unsuitable(f"{folder} is no backup: {error}") from error
    if manifest.format != FORMAT:
        raise Unsuitable(f"{folder} has format {manifest.format}, this program reads {FORMAT}")
    return manifest


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return digest_of(iter(lambda: file.read(CHUNK), b""))


def digest_of(chunks: Iterable[bytes]) -> str:
    """SHA-256 of what comes in pieces, in hex."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def write_sums(folder: Path) -> None:
    """The digests of every file in ``folder``, as sha256sum writes them."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    write(folder / SUMS, "".join(f"{digest(folder / name)}  {name}\n" for name in names).encode())


def check_sums(folder: Path) -> dict[str, str]:
    """The digests by file. Raises Unsuitable naming what is missing, too much or different."""
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except OSError as error:
        raise Unsuitable(f"{folder} is no backup: {error}") from error
    sums = {name: sum_ for sum_, _, name in (line.partition("  ") for line in lines)}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {SUMS}
    wrong = sorted({*sums} ^ there) + sorted(name for name in {*sums} & there if digest(folder / name) != sums[name])
    if wrong or MANIFEST not in sums:
        raise Unsuitable(f"{folder} is damaged: {', '.join(wrong[:10]) or MANIFEST}")
    return sums


def write(path: Path, data: bytes) -> None:
    """A new file, on the disk when this returns."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Put a file's bytes, or a folder's names, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
