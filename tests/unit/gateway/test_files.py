"""Files that callers send: every usual form of base64, limits, and nothing left in the store when the call is refused."""

import asyncio
import base64
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ServiceError
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from services.gateway.api.requests import files
from services.gateway.api.requests.context import GatewayContext
from services.gateway.background import INCOMING_KEPT, loops
from services.gateway.settings import Settings
from tests.support.servers.receiver import Receiver
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 3


def encoded(form: str, data: bytes) -> str:
    plain = base64.b64encode(data).decode()
    return {
        "standard": plain,
        "URL-safe": base64.urlsafe_b64encode(data).decode(),
        "without padding": plain.rstrip("="),
        "in lines": base64.encodebytes(data).decode(),
        "in CRLF lines": base64.encodebytes(data).decode().replace("\n", "\r\n"),
        "data URI": f"data:application/pdf;base64,{plain}",
        "data URI with name": f"data:application/pdf;name=a.pdf;base64,{plain}",
        "data URI without type": f"data:;base64,{plain}",
    }[form]


FORMS = [
    "standard", "URL-safe", "without padding", "in lines", "in CRLF lines", "data URI", "data URI with name",
    "data URI without type",
]  # fmt: skip


@given(st.sampled_from(FORMS), st.binary(min_size=1, max_size=300))
def test_every_form_of_base64(form: str, data: bytes) -> None:
    assert files.decode(encoded(form, data), "file", 1000) == data


def test_more_than_one_slice_is_put_together() -> None:
    data = bytes(range(251)) * 8000
    assert files.decode(base64.b64encode(data).decode(), "file", len(data)) == data


@pytest.mark.parametrize(
    "text", ["%%%", "a", "aGVsbG8=x", "aGVs*G8=", "data:application/pdf,hi", "ftp://example.com/x", "é"]
)
def test_what_is_no_base64_is_refused_by_field(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        files.decode(text, "documents[0].file", 1000)
    assert refused.value.code == "invalid"
    assert refused.value.details == [{"field": "documents[0].file", "reason": "is neither base64 nor a URL"}]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\n%PDF-1.7", "application/pdf"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF89a", "image/gif"),
        (b"MM\0*", "image/tiff"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x18ftypheic", "image/heic"),
        (b"\0\0\0\x18ftypisom", "application/octet-stream"),
        (b"<svg>", "application/octet-stream"),
    ],
)
def test_kinds_of_files_are_told_by_content(data: bytes, kind: str) -> None:
    assert files.media_type(data) == kind


@pytest.mark.parametrize("text", ["", "=", "data:application/pdf;base64,", "\n"])
def test_nothing_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="empty"):
        files.decode(text, "file", 1000)


@pytest.mark.parametrize("size", [1001, 4000])
def test_a_large_file_is_too_large_with_the_limit_named(size: int) -> None:
    limit = 1000
    with pytest.raises(ServiceError) as refused:
        files.decode(base64.b64encode(b"x" * size).decode(), "files[1]", limit)
    assert refused.value.status == 413
    assert refused.value.details[0]["field"] == "files[1]"
    assert "MB" in refused.value.message
    assert files.decode(base64.b64encode(b"x" * limit).decode(), "f", limit) == b"x" * limit


@pytest.fixture
def context(tmp_path: Path) -> Iterator[GatewayContext]:
    settings = Settings(
        amqp_url="amqp://unused",
        blob_url=f"file://{tmp_path}/blobs",
        base_url="http://localhost",
        link_secret=LINK_SECRET,
        database_url="sqlite://",
        key_encryption_secret=KEY_ENCRYPTION_SECRET,
        max_file_size=2000,
        fetch_timeout=2.0,
    )
    threads, fetching = ThreadPoolExecutor(2), ThreadPoolExecutor(2)
    nothing: Any = None
    yield GatewayContext(
        settings=settings,
        database=nothing,
        direct=None,
        blobs=BlobStore.from_url(settings.blob_url),
        bus=nothing,
        keys=nothing,
        outbound=Outbound("127.0.0.0/8"),
        threads=threads,
        fetching=fetching,
    )
    threads.shutdown()
    fetching.shutdown()


def stored(folder: Path) -> list[Path]:
    return [path for path in (folder / "blobs").rglob("*") if path.is_file()]


TEXTS = {f"documents[{number}].file": base64.b64encode(PDF + bytes([number])).decode() for number in range(3)}


async def use(
    context: GatewayContext, texts: dict[str, str], outcome: BaseException | None = None, *, adopted: bool = True
) -> Any:
    """As a service would deal with them: it takes them over before it answers."""
    async with files.uploads(context, adopted=adopted) as uploads:
        sent = await uploads.add(texts)
        if outcome is not None:
            raise outcome
        return [context.blobs.adopt(ref, "templates/") for ref in sent] if adopted else []


def test_files_are_stored_in_order_and_only_the_service_has_them_when_it_succeeds(
    context: GatewayContext, tmp_path: Path
) -> None:
    kept = asyncio.run(use(context, TEXTS))
    assert [context.blobs.get(ref) for ref in kept] == [PDF + bytes([number]) for number in range(3)]
    assert {ref.media_type for ref in kept} == {"application/pdf"}
    assert {path.parent.name for path in stored(tmp_path)} == {"templates"}


@pytest.mark.parametrize("code", ["invalid", "not_found", "forbidden", "too_large", "conflict"])
def test_nothing_stays_when_the_service_refuses(context: GatewayContext, tmp_path: Path, code: str) -> None:
    with pytest.raises(ServiceError):
        asyncio.run(use(context, TEXTS, ServiceError(code, "refused")))
    assert stored(tmp_path) == []


def test_they_stay_when_nobody_knows_whether_the_service_took_them(context: GatewayContext, tmp_path: Path) -> None:
    with pytest.raises(ServiceError):
        asyncio.run(use(context, TEXTS, ServiceError("unavailable", "no answer")))
    assert len(stored(tmp_path)) == 3
    sweep, *_ = loops(context.settings, context.database, context.blobs)
    sweep.turn()
    assert len(stored(tmp_path)) == 3, "the service may still be about to take them"
    for path in stored(tmp_path):
        long_ago = path.stat().st_mtime - INCOMING_KEPT.total_seconds() - 60
        os.utime(path, (long_ago, long_ago))
    sweep.turn()
    assert stored(tmp_path) == []


@pytest.mark.parametrize("outcome", [None, ServiceError("unavailable", "no answer"), ServiceError("invalid", "no")])
def test_a_tool_leaves_nothing(context: GatewayContext, tmp_path: Path, outcome: ServiceError | None) -> None:
    try:
        asyncio.run(use(context, TEXTS, outcome, adopted=False))
    except ServiceError as error:
        assert error is outcome  # noqa: PT017 - with None there is none
    assert stored(tmp_path) == []


def test_one_bad_file_leaves_none_of_the_others(context: GatewayContext, tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as refused:
        asyncio.run(use(context, {**TEXTS, "documents[3].file": "%%%"}))
    assert refused.value.details[0]["field"] == "documents[3].file"
    assert stored(tmp_path) == []


def test_a_url_is_fetched(context: GatewayContext, tmp_path: Path) -> None:
    with Receiver(lambda _: (404, {}, b"")) as receiver, pytest.raises(ServiceError) as refused:
        asyncio.run(use(context, {"documents[0].file": f" {receiver.url}"}))
    assert refused.value.code == "invalid"
    assert refused.value.details[0]["field"] == "documents[0].file"
    assert refused.value.details[0]["reason"].startswith("cannot be loaded: the address answered")
    assert stored(tmp_path) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://[::ffff:a00:1]/",
        "https://user:pass@example.com/",
        "http://10.0.0.1/x.pdf",
    ],
)
def test_addresses_that_may_not_be_called(context: GatewayContext, tmp_path: Path, url: str) -> None:
    with pytest.raises(ServiceError) as refused:
        asyncio.run(use(context, {"file": url}))
    assert refused.value.code == "invalid"
    assert refused.value.details[0]["field"] == "file"
    assert stored(tmp_path) == []
