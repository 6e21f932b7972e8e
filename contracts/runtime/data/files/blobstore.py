"""The file store: a folder, or a bucket of an S3 service. Blobs are written once and never changed.

A key is ``<prefix><random>``, so that what a caller sends can never choose a place. ``get`` with a BlobRef checks the
SHA-256: a damaged file is an error, never an answer.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError

if TYPE_CHECKING:
    from botocore.loaders import Loader
    from mypy_boto3_s3 import S3Client

CHUNK = 256 * 1024
IMPATIENT_SECONDS = 2
_SAFE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


@dataclass(frozen=True)
class Stored:
    """A file that is in the store: ``size`` in bytes, ``changed_at`` is when it was put there, ``etag`` the bucket's digest."""

    key: str
    size: int
    changed_at: datetime
    etag: str | None = None


class BlobMissing(ServiceError):
    """There is no such file: it was removed, or the store is not the one it was written to."""

    def __init__(self, key: str) -> None:
        super().__init__("not_found", "File not found")
        self.key = key


class BlobDamaged(Exception):
    """The bytes are not those that were stored."""


class _Place(Protocol):
    def write(self, key: str, data: bytes, media_type: str) -> None: ...
    def read(self, key: str) -> bytes: ...
    def stream(self, key: str, start: int, end: int | None) -> Iterator[bytes]: ...
    def copy(self, source: str, key: str) -> None: ...
    def delete(self, key: str) -> None: ...
    def older(self, prefix: str, before: datetime) -> Iterator[str]: ...
    def size(self, key: str) -> int | None: ...
    def everything(self) -> Iterator[Stored]: ...


class BlobStore:
    """Files by key. Raises ServiceError("unavailable") when the store does not answer or is full."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    @classmethod
    def from_url(cls, url: str, *, impatient: bool = False) -> "BlobStore":
        """``file:///absolute/folder`` or ``s3://bucket/prefix`` (credentials and endpoint from the AWS environment).

        ``impatient``: a bucket that does not answer is given up after ``IMPATIENT_SECONDS`` and not asked again. For small
        files, of somebody who can go on without them.
        """
        parts = urlsplit(url)
        if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
            return cls(_Folder(Path(unquote(parts.path))))
        if parts.scheme == "s3" and parts.netloc:
            return cls(_Bucket(parts.netloc, parts.path.strip("/"), impatient))
        raise ValueError("BLOB_URL must be file:///absolute/folder or s3://bucket/prefix")

    def put(self, data: bytes, media_type: str, prefix: str, *, name: str | None = None) -> BlobRef:
        """Store ``data`` under a new key that starts with ``prefix``, such as ``templates/``. Durable when it returns.

        ``name`` instead of chance: for work that may be killed and must find again what it wrote. It is never a caller's.
        """
        key = f"{prefix}{name or secrets.token_hex(16)}"
        _check(key)
        self._place.write(key, data, media_type)
        return BlobRef(key=key, sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)

    def replace(self, key: str, data: bytes, media_type: str) -> None:
        """Store ``data`` under ``key``, which may be there already: whoever reads gets the old or the new bytes, whole.
        Durable when it returns. For what must outlive the databases (``high_water``), and to put back what a backup holds."""
        _check(key)
        self._place.write(key, data, media_type)

    def everything(self) -> Iterator[Stored]:
        """Every file in the store, in no order; not what somebody is still writing."""
        return self._place.everything()

    def adopt(self, ref: BlobRef, prefix: str) -> BlobRef:
        """A file on its way (``INCOMING``) under a key of one's own, durable when it returns; any other file as it is.

        The incoming one stays for whoever put it there, or for the sweep. BlobMissing when it is gone already.
        """
        if not ref.key.startswith(INCOMING):
            return ref
        key = f"{prefix}{secrets.token_hex(16)}"
        _check(ref.key)
        _check(key)
        self._place.copy(ref.key, key)
        return ref.model_copy(update={"key": key})

    def sweep(self, before: datetime) -> int:
        """Remove the incoming files that were put before that moment: nobody has taken them over. Returns how many."""
        removed = 0
        for key in self._place.older(INCOMING, before):
            self._place.delete(key)
            removed += 1
        return removed

    def older(self, prefix: str, before: datetime) -> list[str]:
        """The keys under ``prefix`` (a folder, with its slash) that were put before that moment, with the names of what a
        killed process had not finished writing."""
        return list(self._place.older(prefix, before))

    def remove_listed(self, key: str) -> None:
        """Remove what ``older`` named."""
        self._place.delete(key)

    def get(self, ref: BlobRef | str) -> bytes:
        """The bytes. BlobMissing when there are none; with a BlobRef also BlobDamaged when they are others."""
        key = ref.key if isinstance(ref, BlobRef) else ref
        _check(key)
        data = self._place.read(key)
        if isinstance(ref, BlobRef) and hashlib.sha256(data).hexdigest() != ref.sha256:
            raise BlobDamaged(f"{key}: SHA-256 differs from the one it was stored with")
        return data

    def stream(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Bytes ``start`` to ``end`` (exclusive), in chunks. BlobMissing is raised by the call, not by the first chunk."""
        _check(key)
        return self._place.stream(key, start, end)

    def delete(self, key: str) -> None:
        """Remove the file; nothing happens when it is gone already."""
        _check(key)
        self._place.delete(key)

    def exists(self, key: str) -> bool:
        _check(key)
        return self._place.size(key) is not None

    def size(self, key: str) -> int:
        """In bytes; BlobMissing when there is no such file."""
        _check(key)
        if (size := self._place.size(key)) is None:
            raise BlobMissing(key)
        return size


def is_key(key: str) -> bool:
    """True for what a key can be; anything else is in no store and is refused with ValueError."""
    return len(key) <= 500 and _SAFE_KEY.fullmatch(key) is not None


def _check(key: str) -> None:
    if not is_key(key):
        raise ValueError(f"unsafe blob key {key!r}")


def _unavailable(error: Exception) -> ServiceError:
    unavailable = ServiceError("unavailable", "The file store is not available. Try again later.")
    unavailable.__cause__ = error
    return unavailable


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, key: str, data: bytes, media_type: str) -> None:
        path = self._root / key
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            self._make_folder(path.parent)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.rename(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            _sync_folder(path.parent)
        except OSError as error:
            raise _unavailable(error) from error

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        missing = [folder, *folder.parents]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for created in missing:
            if created == self._root.parent:
                break
            _sync_folder(created)

    def read(self, key: str) -> bytes:
        try:
            return (self._root / key).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            raise BlobMissing(key) from None
        except OSError as error:
            raise _unavailable(error) from error

    def stream(self, key: str, start: int, end: int | None) -> Iterator[bytes]:
        try:
            file = (self._root / key).open("rb")
        except (FileNotFoundError, IsADirectoryError):
            raise BlobMissing(key) from None
        except OSError as error:
            raise _unavailable(error) from error

        def chunks() -> Iterator[bytes]:
            with file:
                file.seek(start)
                remaining = None if end is None else max(0, end - start)
                while remaining is None or remaining > 0:
                    chunk = file.read(CHUNK if remaining is None else min(CHUNK, remaining))
                    if not chunk:
                        return
                    remaining = None if remaining is None else remaining - len(chunk)
                    yield chunk

        return chunks()

    def copy(self, source: str, key: str) -> None:
        """By a second name for the same bytes, which never change; on file systems that have no such names by copying."""
        path = self._root / key
        try:
            self._make_folder(path.parent)
            path.hardlink_to(self._root / source)
            _sync_folder(path.parent)
        except FileNotFoundError:
            raise BlobMissing(source) from None
        except OSError:
            self.write(key, self.read(source), "")

    def delete(self, key: str) -> None:
        try:
            (self._root / key).unlink(missing_ok=True)
        except OSError as error:
            raise _unavailable(error) from error

    def older(self, prefix: str, before: datetime) -> Iterator[str]:
        """Also what a killed process had not finished writing."""
        try:
            with os.scandir(self._root / prefix) as entries:
                for entry in entries:
                    try:
                        changed = entry.stat(follow_symlinks=False).st_mtime
                    except FileNotFoundError:
                        continue
                    if datetime.fromtimestamp(changed, UTC) < before:
                        yield f"{prefix}{entry.name}"
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unavailable(error) from error

    def size(self, key: str) -> int | None:
        try:
            return (self._root / key).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unavailable(error) from error

    def everything(self) -> Iterator[Stored]:
        try:
            for folder, _, names in os.walk(self._root):
                for path in (Path(folder, name) for name in names if is_key(name)):
                    try:
                        status = path.stat()
                    except FileNotFoundError:
                        continue
                    changed_at = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield Stored(path.relative_to(self._root).as_posix(), status.st_size, changed_at)
        except OSError as error:
            raise _unavailable(error) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _BeyondTheEnd(Exception):
    """A range that starts behind the last byte."""


_clients: dict[tuple[bool, frozenset[tuple[str, str]]], "S3Client"] = {}
"""By whether they are impatient, and by the AWS environment that they were made in."""


@cache
def _descriptions() -> "Loader":
    """Return what reads the descriptions of S3's interface, and keeps them: for the first client and for the next."""
    from botocore.loaders import create_loader

    return create_loader()


def _client(impatient: bool) -> "S3Client":
    """Return the client for S3 that all buckets of this process share. To make one takes a tenth of a second of a processor,
    and its first calls as much: it reads descriptions of the whole interface, and each of a dozen stores would do so. Threads
    that ask first at the same moment may each make one; all but one of them are dropped."""
    key = impatient, frozenset(item for item in os.environ.items() if item[0].startswith("AWS_"))
    if key not in _clients:
        import boto3
        import botocore.session
        from botocore.config import Config

        session = botocore.session.get_session()
        session.register_component("data_loader", _descriptions())
        client = boto3.session.Session(botocore_session=session).client(
            "s3",
            config=Config(
                connect_timeout=IMPATIENT_SECONDS if impatient else 5,
                read_timeout=IMPATIENT_SECONDS if impatient else 30,
                retries={"total_max_attempts": 1 if impatient else 5, "mode": "standard"},
                max_pool_connections=50,
                s3={"addressing_style": "path"} if os.environ.get("AWS_ENDPOINT_URL") else {},
            ),
        )
        return _clients.setdefault(key, client)
    return _clients[key]


class _Bucket:
    def __init__(self, bucket: str, prefix: str, impatient: bool) -> None:
        self._bucket = bucket
        self._impatient = impatient
        self._prefix = f"{prefix}/" if prefix else ""
        self._shared: S3Client | None = None

    @property
    def _s3(self) -> "S3Client":
        if self._shared is None:
            self._shared = _client(self._impatient)
        return self._shared

    def write(self, key: str, data: bytes, media_type: str) -> None:
        self._ask("put_object", key, Body=data, ContentType=media_type)

    def read(self, key: str) -> bytes:
        body = self._ask("get_object", key)["Body"]
        with body:
            return bytes(body.read())

    def stream(self, key: str, start: int, end: int | None) -> Iterator[bytes]:
        if end is not None and end <= start:
            return iter(())
        span = f"bytes={start}-{'' if end is None else end - 1}"
        try:
            body = self._ask("get_object", key, **({"Range": span} if start or end is not None else {}))["Body"]
        except _BeyondTheEnd:
            return iter(())

        def chunks() -> Iterator[bytes]:
            with body:
                yield from body.iter_chunks(CHUNK)

        return chunks()

    def copy(self, source: str, key: str) -> None:
        self._ask("copy_object", key, CopySource={"Bucket": self._bucket, "Key": self._prefix + source})

    def delete(self, key: str) -> None:
        self._ask("delete_object", key)

    def older(self, prefix: str, before: datetime) -> Iterator[str]:
        return (blob.key for blob in self._listed(prefix) if blob.changed_at < before)

    def everything(self) -> Iterator[Stored]:
        return (blob for blob in self._listed("") if is_key(blob.key))

    def _listed(self, prefix: str) -> Iterator[Stored]:
        from botocore.exceptions import BotoCoreError, ClientError

        pages = self._s3.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix):
                for entry in page.get("Contents", ()):
                    key = entry["Key"].removeprefix(self._prefix)
                    yield Stored(key, entry["Size"], entry["LastModified"], entry["ETag"].strip('"'))
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error

    def size(self, key: str) -> int | None:
        try:
            return int(self._ask("head_object", key)["ContentLength"])
        except BlobMissing:
            return None

    def _ask(self, operation: str, key: str, **parameters: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._s3, operation)(Bucket=self._bucket, Key=self._prefix + key, **parameters)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404", "NotFound"):
                raise BlobMissing(key) from None
            if error.response.get("Error", {}).get("Code") == "InvalidRange":
                raise _BeyondTheEnd from None
            raise _unavailable(error) from error
        except BotoCoreError as error:
            raise _unavailable(error) from error
