"""A check that comes to no end, in children that really fail: nothing is said about the file."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from contracts.errors import ServiceError
from contracts.rpc.rendering import Verification
from services.rendering.children import renderer as rendering
from services.rendering.children.pool import ChildPool
from services.rendering.children.renderer import Renderer

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    pool = ChildPool(size=1, tasks="tests.support.rendering.rendering_tasks", memory=512 * 2**20).start()
    yield Renderer(pool, most_bytes=2**20, most_pages=10)
    pool.close()


@pytest.mark.parametrize("how", [b"fail", b"crash", b"hoard", b"recurse", b"spin"])
@pytest.mark.parametrize("sealed_here", [True, False])
def test_a_check_that_fails_says_nothing_about_the_file(
    renderer: Renderer, how: bytes, sealed_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the file is one that was sealed here is known without the check, and stays said."""
    monkeypatch.setattr(rendering, "HOSTILE_SECONDS", 1.0)
    verdict = renderer.verify(how, [], NOW, sealed_here=sealed_here)
    assert verdict == Verification(checksum_status="unknown", sealed_here=sealed_here)


def test_what_is_no_pdf_is_still_refused(renderer: Renderer) -> None:
    with pytest.raises(ServiceError, match="No, thank you") as caught:
        renderer.verify(b"refuse", [], NOW, sealed_here=False)
    assert caught.value.code == "invalid"
