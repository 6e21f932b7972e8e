"""Files in a folder and in a bucket of a real S3 HTTP server (moto's): the same promises for both."""

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobDamaged, BlobMissing, BlobStore


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server with the bucket ``files``."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    address = f"http://127.0.0.1:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="for-tests",
        aws_secret_access_key="for-tests",
    )
    client.create_bucket(Bucket="files")
    client.close()
    yield address
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    if request.param == "folder":
        return BlobStore.from_url(f"file://{tmp_path}/blobs")
    reach(monkeypatch, request.getfixturevalue("s3"))
    return BlobStore.from_url(f"s3://files/{tmp_path.name}")


def reach(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "for-tests",
        "AWS_SECRET_ACCESS_KEY": "for-tests",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000], ids=["empty", "one byte", "1.3 MB"])
def test_what_was_put_is_what_is_got(store: BlobStore, data: bytes) -> None:
    ref = store.put(data, "application/pdf", "templates/")
    assert ref.key.startswith("templates/")
    assert (ref.size, ref.media_type) == (len(data), "application/pdf")
    assert ref.sha256 == hashlib.sha256(data).hexdigest()
    assert store.get(ref) == store.get(ref.key) == b"".join(store.stream(ref.key)) == data
    assert store.exists(ref.key)
    assert store.size(ref.key) == len(data)


def test_every_file_has_its_own_key(store: BlobStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        refs = list(pool.map(lambda n: store.put(str(n).encode(), "text/plain", "submissions/7/"), range(40)))
    assert len({ref.key for ref in refs}) == 40
    assert [store.get(ref) for ref in refs] == [str(n).encode() for n in range(40)]


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, None), (5, None), (0, 3), (300_000, 700_001), (999_990, 2_000_000), (7, 7), (2_000_000, None)],
)
def test_a_part_of_a_file(store: BlobStore, start: int, end: int | None) -> None:
    data = os.urandom(1_000_000)
    ref = store.put(data, "application/pdf", "incoming/")
    assert b"".join(store.stream(ref.key, start, end)) == data[start:end]


def test_what_is_not_there(store: BlobStore) -> None:
    for attempt in (store.get, store.stream, store.size):
        with pytest.raises(BlobMissing) as missing:
            attempt("incoming/never")
        assert missing.value.status == 404
    assert not store.exists("incoming/never")
    store.delete("incoming/never")
    ref = store.put(b"x", "text/plain", "incoming/")
    store.delete(ref.key)
    assert not store.exists(ref.key)


def test_an_incoming_file_is_adopted_and_what_nobody_adopts_is_swept(store: BlobStore) -> None:
    later = now() + timedelta(minutes=1)
    first, second = (store.put(data, "text/plain", INCOMING) for data in (b"first", b"second"))
    own = store.put(b"own", "text/plain", "templates/")
    adopted = store.adopt(first, "templates/")
    assert adopted.key.startswith("templates/")
    assert adopted == first.model_copy(update={"key": adopted.key})
    assert store.adopt(own, "submissions/") == own, "already somebody's"

    assert store.sweep(now() - timedelta(minutes=1)) == 0
    assert (store.get(first), store.get(second)) == (b"first", b"second")
    assert store.sweep(later) == 2
    assert (store.get(adopted), store.get(own)) == (b"first", b"own")
    assert not store.exists(first.key)
    assert not store.exists(second.key)
    assert store.sweep(later) == 0
    with pytest.raises(BlobMissing):
        store.adopt(second, "templates/")


def test_what_a_killed_process_left_half_written_is_swept(tmp_path: Path) -> None:
    store = BlobStore.from_url(f"file://{tmp_path}/blobs")
    store.put(b"x", "text/plain", INCOMING)
    (tmp_path / "blobs" / "incoming" / ".half.0123abcd").write_bytes(b"ha")
    assert store.sweep(now() + timedelta(minutes=1)) == 2
    assert list((tmp_path / "blobs" / "incoming").iterdir()) == []


def test_a_file_system_without_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BlobStore.from_url(f"file://{tmp_path}/blobs")
    ref = store.put(b"x", "text/plain", INCOMING)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    adopted = store.adopt(ref, "templates/")
    store.delete(ref.key)
    assert store.get(adopted) == b"x"


def test_a_damaged_file_is_never_given_out(store: BlobStore) -> None:
    ref = store.put(b"original", "text/plain", "incoming/")
    other = store.put(b"something else", "text/plain", "incoming/")
    with pytest.raises(BlobDamaged):
        store.get(BlobRef(key=other.key, sha256=ref.sha256, size=ref.size, media_type=ref.media_type))


@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../x", "a/../b", "a/./b", "a//b", "a/", ".hidden", "a/.b", "a b", "a\\b", "a\x00", "a\n", "ü", "a" * 501],
)  # fmt: skip
def test_keys_that_could_lead_elsewhere(store: BlobStore, key: str) -> None:
    for attempt in (store.get, store.stream, store.delete, store.exists, store.size):
        with pytest.raises(ValueError, match="unsafe blob key"):
            attempt(key)


def test_prefixes_that_could_lead_elsewhere(store: BlobStore) -> None:
    for prefix in ("../", "/", "a/../", "a//"):
        with pytest.raises(ValueError, match="unsafe blob key"):
            store.put(b"x", "text/plain", prefix)


@pytest.mark.parametrize(
    "url", ["", "blobs", "file://", "file://host/x", "file:relative", "s3://", "http://x/y", "gs://b/c"]
)
def test_other_places(url: str) -> None:
    with pytest.raises(ValueError, match="BLOB_URL"):
        BlobStore.from_url(url)


# The folder.


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    store = BlobStore.from_url(f"file://{tmp_path}/new%20folder")
    ref = store.put(b"x", "text/plain", "submissions/7/")
    path = tmp_path / "new folder" / ref.key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_full_or_broken_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F8, F9: the file is there whole or not at all."""
    store = BlobStore.from_url(f"file://{tmp_path}/blobs")
    store.put(b"before", "text/plain", "incoming/")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ServiceError) as refused:
        store.put(b"x" * 100_000, "text/plain", "incoming/")
    assert refused.value.status == 503
    monkeypatch.undo()
    assert len(list((tmp_path / "blobs" / "incoming").iterdir())) == 1


def test_a_reader_never_sees_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BlobStore.from_url(f"file://{tmp_path}/blobs")
    real, written = os.fsync, threading.Event()
    seen: list[Any] = []

    def look(descriptor: int) -> None:
        if not written.is_set():
            written.set()
            folder = tmp_path / "blobs" / "incoming"
            seen.extend(path.name for path in folder.iterdir() if not path.name.startswith("."))
        real(descriptor)

    store.put(b"first", "text/plain", "incoming/")
    before = {path.name for path in (tmp_path / "blobs" / "incoming").iterdir()}
    monkeypatch.setattr(os, "fsync", look)
    store.put(b"second", "text/plain", "incoming/")
    assert set(seen) == before


# The bucket.


def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    reach(monkeypatch, f"http://127.0.0.1:{free_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    store = BlobStore.from_url("s3://files/x")
    for attempt in (lambda: store.put(b"x", "text/plain", "incoming/"), lambda: store.get("incoming/x")):
        with pytest.raises(ServiceError) as refused:
            attempt()
        assert refused.value.status == 503


def test_a_bucket_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, s3: str) -> None:
    reach(monkeypatch, s3)
    with pytest.raises(ServiceError) as refused:
        BlobStore.from_url("s3://other/x").put(b"x", "text/plain", "incoming/")
    assert refused.value.status == 503


def test_objects_have_their_media_type_and_prefix(monkeypatch: pytest.MonkeyPatch, s3: str) -> None:
    import boto3

    reach(monkeypatch, s3)
    ref = BlobStore.from_url("s3://files/some/prefix/").put(b"x", "application/pdf", "templates/")
    client = boto3.client("s3")
    head = client.head_object(Bucket="files", Key=f"some/prefix/{ref.key}")
    client.close()
    assert head["ContentType"] == "application/pdf"


def test_a_file_that_is_replaced_is_the_old_or_the_new_one(store: BlobStore) -> None:
    """For readers at every moment; a blob proper gets a new key each time."""
    store.replace("marks/x.json", b"1" * 100_000, "application/json")
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(store.get("marks/x.json"))

    reader = threading.Thread(target=read)
    reader.start()
    for digit in b"23":
        store.replace("marks/x.json", bytes([digit]) * 100_000, "application/json")
    done.set()
    reader.join()
    assert seen <= {digit * 100_000 for digit in (b"1", b"2", b"3")}
    assert store.get("marks/x.json") == b"3" * 100_000
    with pytest.raises(ValueError, match="unsafe"):
        store.replace("../x", b"", "x")


def test_everything_is_listed_with_its_size(store: BlobStore, tmp_path: Path) -> None:
    assert list(store.everything()) == []
    stored = [
        store.put(b"x" * size, "text/plain", prefix) for size, prefix in enumerate(["a/", "a/b/", INCOMING, ""], 1)
    ]
    if (tmp_path / "blobs").exists():
        (tmp_path / "blobs" / "a" / ".half.0123abcd").write_bytes(b"what a killed process left behind")
    found = {one.key: one for one in store.everything()}
    assert {key: one.size for key, one in found.items()} == {ref.key: ref.size for ref in stored}
    assert all(abs(now() - one.changed_at) < timedelta(minutes=5) for one in found.values())
