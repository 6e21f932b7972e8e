"""The files of one request, until a record names them.

What comes with a request, and what is made for it, lies among the incoming files. A service adopts what it keeps, as copies
under keys of its own, writes the record that names them, and lets the incoming ones go.

A process may be killed anywhere. Before the commit no record names a file; after it, all files that the record names are there.
Incoming files that are left are swept; copies that no record names cost only space.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.stored_documents import StoredDocument


class StagedFiles:
    """Clean up after a request, by how it ends::

        with StagedFiles(blobs, "submissions/") as files:
            files.receive(upload)
            picture = files.track(draw(upload))
            return database.write(create, files.adopt(picture))

    Done: what was received or made goes. Refused: the copies go as well. Otherwise (``unavailable``, ``internal``, a bug) the
    transaction may have been committed, and the request may come again: everything stays. Only what was made goes, and only
    before anything was adopted: it is made again. Failing to remove a file costs only space.
    """

    def __init__(self, blobs: BlobStore, prefix: str) -> None:
        """``prefix`` is the service's own, such as ``templates/``."""
        self._blobs, self._prefix = blobs, prefix
        self._received: set[str] = set()
        self._made: set[str] = set()
        self._copies: set[str] = set()

    def receive(self, *files: BlobRef) -> None:
        """Take charge of files that came with the request; those that are kept already are nobody's business here."""
        self._received |= {file.key for file in files if file.key.startswith(INCOMING)}

    def track(self, file: BlobRef) -> BlobRef:
        """Take charge of a file that was made for the request."""
        if file.key.startswith(INCOMING):
            self._made.add(file.key)
        return file

    def put(self, data: bytes, media_type: str) -> BlobRef:
        """Store bytes that are made for the request."""
        return self.track(self._blobs.put(data, media_type, INCOMING))

    def adopt(self, file: BlobRef) -> BlobRef:
        """Copy an incoming file under a key of the service, durably; return any other as it is. BlobMissing when it is gone."""
        copy = self._blobs.adopt(file, self._prefix)
        if copy.key != file.key:
            self._copies.add(copy.key)
        return copy

    def adopt_documents(self, documents: Iterable[StoredDocument]) -> list[StoredDocument]:
        """Return the documents with files that a record may name. Each call makes copies of its own."""
        return [self._adopt_document(document) for document in documents]

    def discard_copies(self) -> None:
        """For a use case that wrote nothing, and was not refused either."""
        self._remove(self._copies)
        self._copies.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self._remove(self._received | self._made)
        elif isinstance(error, ServiceError) and error.status < 500:
            self._remove(self._received | self._made | self._copies)
        elif not self._copies:
            self._remove(self._made)

    def _adopt_document(self, document: StoredDocument) -> StoredDocument:
        original = self.adopt(document.original)
        same = document.file.key == document.original.key
        return document.model_copy(
            update={"original": original, "file": original if same else self.adopt(document.file)}
        )

    def _remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            with suppress(ServiceError):
                self._blobs.delete(key)


def files_of(documents: Sequence[StoredDocument]) -> list[BlobRef]:
    """Return every file of the documents."""
    return [file for document in documents for file in (document.file, document.original)]
