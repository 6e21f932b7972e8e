"""The pictures of a mail: what is not there is not shown, and only the logo is worth waiting for."""

from pathlib import Path

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.runtime.data.files.blobstore import BlobStore
from services.notifications.sending import inline_pictures

HTML = '<p>a</p><!--logo--><img src="cid:logo"><!--/logo--><p>b</p><!--first_page--><img src="cid:first_page"><!--/first_page-->'


class Silent(BlobStore):
    """A store that does not answer."""

    def __init__(self) -> None:
        pass

    def get(self, ref: BlobRef | str) -> bytes:
        raise ServiceError("unavailable", "The file store is not available. Try again later.")


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}")


def stored(blobs: BlobStore, data: bytes) -> dict[str, object]:
    return blobs.put(data, "image/png", "rendering/").model_dump(mode="json")


def test_a_picture_that_is_there_is_shown(blobs: BlobStore) -> None:
    pictures = inline_pictures.data(blobs, {"logo": None, "first_page": stored(blobs, b"page")})
    assert pictures == {"first_page": b"page"}
    without_logo = '<p>a</p><p>b</p><!--first_page--><img src="cid:first_page"><!--/first_page-->'
    assert inline_pictures.shown(HTML, pictures) == without_logo
    assert 'src="data:image/png;base64,cGFnZQ=="' in inline_pictures.within(HTML, pictures)
    assert "cid:" not in inline_pictures.within(HTML, pictures)
    both = inline_pictures.data(blobs, {"logo": stored(blobs, b"logo"), "first_page": stored(blobs, b"page")})
    assert inline_pictures.shown(HTML, both) == HTML
    assert inline_pictures.shown(HTML, {}) == "<p>a</p><p>b</p>"


def test_a_picture_that_is_gone_or_damaged_keeps_no_mail(blobs: BlobStore, tmp_path: Path) -> None:
    gone, damaged = stored(blobs, b"gone"), stored(blobs, b"damaged")
    blobs.delete(str(gone["key"]))
    (tmp_path / str(damaged["key"])).write_bytes(b"another")
    assert inline_pictures.data(blobs, {"logo": gone, "first_page": gone}) == {}
    assert inline_pictures.data(blobs, {"logo": None, "first_page": damaged}) == {}


def test_a_mail_waits_for_its_logo_and_for_no_first_page(blobs: BlobStore) -> None:
    picture = stored(blobs, b"x")
    assert inline_pictures.data(Silent(), {"logo": None, "first_page": picture}) == {}
    with pytest.raises(ServiceError, match="not available"):
        inline_pictures.data(Silent(), {"logo": picture, "first_page": None})
