"""What is left of a request's files, by how it ended: on a real folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError, invalid
from contracts.runtime.data.files.blobstore import BlobMissing, BlobStore
from contracts.runtime.data.files.staging import StagedFiles, files_of
from contracts.stored_documents import StoredDocument

UNKNOWN = (ServiceError("unavailable", "Try again"), ServiceError("internal", "Internal error"), LookupError("a bug"))


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(tmp_path.as_uri())


def incoming(blobs: BlobStore, data: bytes = b"upload") -> BlobRef:
    return blobs.put(data, "application/pdf", INCOMING)


def keys(blobs: BlobStore) -> set[str]:
    return {stored.key for stored in blobs.everything()}


def attempt(blobs: BlobStore, error: Exception | None, use: Callable[[StagedFiles], object]) -> None:
    try:
        with StagedFiles(blobs, "submissions/") as files:
            use(files)
            if error is not None:
                raise error
    except Exception as raised:
        if raised is not error:
            raise


def test_done_leaves_what_the_record_names(blobs: BlobStore) -> None:
    adopted: list[BlobRef] = []

    def use(files: StagedFiles) -> None:
        upload = incoming(blobs)
        files.receive(upload)
        adopted.append(files.adopt(files.put(b"picture", "image/png")))

    attempt(blobs, None, use)
    assert keys(blobs) == {adopted[0].key}
    assert adopted[0].key.startswith("submissions/")
    assert blobs.get(adopted[0]) == b"picture"


def test_what_others_take_care_of_stays_after_a_success(blobs: BlobStore) -> None:
    upload = incoming(blobs)
    attempt(blobs, None, lambda files: files.adopt(upload))
    assert upload.key in keys(blobs)
    assert len(keys(blobs)) == 2


def test_refused_leaves_nothing(blobs: BlobStore) -> None:
    kept = blobs.put(b"kept", "application/pdf", "templates/")

    def use(files: StagedFiles) -> None:
        upload = incoming(blobs)
        files.receive(upload, kept)
        files.adopt(upload)
        files.adopt(files.put(b"picture", "image/png"))
        assert files.adopt(files.track(kept)) == kept

    attempt(blobs, invalid("No", "field"), use)
    assert keys(blobs) == {kept.key}


@pytest.mark.parametrize("error", UNKNOWN, ids=lambda error: getattr(error, "code", "bug"))
def test_an_unknown_outcome_leaves_what_the_record_may_name(blobs: BlobStore, error: Exception) -> None:
    def use(files: StagedFiles) -> None:
        upload = incoming(blobs)
        files.receive(upload)
        files.adopt(files.put(b"picture", "image/png"))

    attempt(blobs, error, use)
    assert len(keys(blobs)) == 3


@pytest.mark.parametrize("error", UNKNOWN, ids=lambda error: getattr(error, "code", "bug"))
def test_before_anything_is_adopted_what_was_made_goes(blobs: BlobStore, error: Exception) -> None:
    upload = incoming(blobs)

    def use(files: StagedFiles) -> None:
        files.receive(upload)
        files.put(b"picture", "image/png")

    attempt(blobs, error, use)
    assert keys(blobs) == {upload.key}


def test_a_file_that_is_gone_is_refused_and_leaves_no_copy(blobs: BlobStore) -> None:
    first, gone = incoming(blobs), incoming(blobs)
    blobs.delete(gone.key)
    with pytest.raises(BlobMissing):
        attempt(blobs, None, lambda files: [files.adopt(first), files.adopt(gone)])
    assert keys(blobs) == {first.key}


def test_copies_that_nobody_wrote_down_go_without_a_refusal(blobs: BlobStore) -> None:
    upload = incoming(blobs)
    with StagedFiles(blobs, "templates/") as files:
        files.adopt(upload)
        files.discard_copies()
        assert keys(blobs) == {upload.key}


def test_documents_are_copied_file_by_file(blobs: BlobStore) -> None:
    """One file that is both is one copy; each submission of several has its own."""
    same, normalised = incoming(blobs), incoming(blobs, b"normalised")
    documents = [
        StoredDocument(uuid="a", name="a", file=same, original=same, pages=[]),
        StoredDocument(uuid="b", name="b", file=normalised, original=same, pages=[]),
    ]
    with StagedFiles(blobs, "submissions/") as files:
        files.receive(*files_of(documents))
        first, second = files.adopt_documents(documents), files.adopt_documents(documents)
    assert first[0].file == first[0].original
    assert blobs.get(first[1].file) == b"normalised"
    assert keys(blobs) == {file.key for file in files_of([*first, *second])}
    assert len(keys(blobs)) == 6


def test_a_store_that_removes_nothing_neither_fails_a_request_nor_hides_a_refusal(
    blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(key: str) -> None:
        raise ServiceError("unavailable", f"{key} stays")

    monkeypatch.setattr(blobs, "delete", fail)
    with StagedFiles(blobs, "submissions/") as files:
        picture = files.put(b"picture", "image/png")
    assert keys(blobs) == {picture.key}
    refusal = invalid("No", "field")
    attempt(blobs, refusal, lambda files: files.track(picture))  # any other error would be raised
    assert keys(blobs) == {picture.key}
