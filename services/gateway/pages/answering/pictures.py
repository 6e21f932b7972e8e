"""Pages of documents as pictures, drawn by the rendering service from the very bytes that will be sealed."""

import contextlib
import hashlib

import flask

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.fields.boxes import FieldBox
from contracts.rpc import rendering
from services.gateway.pages.answering.context import PagesContext

WIDTHS = (700, 1400, 2100)
"""Pixels. A phone needs 700 to 1400; few widths, so that each page is drawn few times."""

_PRIVATE_FOR_AN_HOUR = "private, max-age=3600, immutable"


def nearest_width(requested: str | None) -> int:
    """The smallest of WIDTHS that is not below ``requested``."""
    try:
        minimum = int(requested or 1400)
    except ValueError:
        minimum = 1400
    return next((width for width in WIDTHS if width >= minimum), WIDTHS[-1])


def picture(
    context: PagesContext,
    file: BlobRef,
    page: int,
    width: int,
    boxes: list[FieldBox] | None = None,
    *,
    footer: rendering.PageFooter | None = None,
    keep: bool = True,
) -> flask.Response:
    """The PNG of ``page`` (from 1). A document never changes, so the browser may keep it; nobody between us may. ``boxes`` of
    its fields, which may change, are drawn over it; None: none are asked for. ``footer`` is at the foot of it. Without ``keep``
    the picture is not kept on our side: something of one submission is on it."""
    on_page = [box for box in boxes or [] if box.page == page]
    content = f"{file.sha256}/{page}/{width}" + "".join(box.model_dump_json() for box in on_page)
    content += footer.text if footer else ""
    etag = hashlib.sha256(content.encode()).hexdigest()[:32]
    if etag in flask.request.if_none_match:
        answer = flask.Response(status=304)
    else:
        order = rendering.DrawPage(file=file, page=page, width=width, boxes=on_page, footer=footer, keep=keep)
        png: BlobRef = context.bus.call(rendering.DRAW_PAGE, order)
        answer = flask.Response(context.blobs.get(png), mimetype=png.media_type)
        if not keep:
            with contextlib.suppress(ServiceError):  # then the daily sweep removes it
                context.blobs.delete(png.key)
    answer.set_etag(etag)
    answer.headers["Cache-Control"] = _PRIVATE_FOR_AN_HOUR if boxes is None else "private, no-cache"
    return answer
