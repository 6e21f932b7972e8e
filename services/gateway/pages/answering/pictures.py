"""Pages of documents as pictures and as text, made by the rendering service from the very bytes that will be sealed."""

import contextlib
import hashlib
import json
from collections.abc import Sequence

import flask

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.fields.boxes import FieldBox
from contracts.rpc import rendering
from services.gateway.pages.answering.context import PagesContext

WIDTHS = (700, 1400, 2100)
"""Pixels, of the previews that the API links to. Few widths, so that each page is drawn few times."""

LIGHT_WIDTHS = (160, 700, 1000, 1400, 2100)
"""Pixels, of the pages of the signing page: a thumbnail, a phone, a laptop, and for looking closely."""

_PRIVATE_FOR_AN_HOUR = "private, max-age=3600, immutable"


def nearest_width(requested: str | None, widths: Sequence[int] = WIDTHS) -> int:
    """The smallest of ``widths`` that is not below ``requested``."""
    try:
        minimum = int(requested or 1400)
    except ValueError:
        minimum = 1400
    return next((width for width in widths if width >= minimum), widths[-1])


def takes_webp() -> bool:
    """Return whether the browser names WebP among what it shows; Safari before 14 does not."""
    return any(media_type == "image/webp" for media_type, _ in flask.request.accept_mimetypes)


def picture(
    context: PagesContext,
    file: BlobRef,
    page: int,
    width: int,
    boxes: list[FieldBox] | None = None,
    *,
    footer: rendering.PageFooter | None = None,
    keep: bool = True,
    light: bool = False,
) -> flask.Response:
    """The picture of ``page`` (from 1): a PNG, or a ``light`` one of the format that takes fewest bytes. A document never
    changes, so the browser may keep it; nobody between us may. ``boxes`` of its fields, which may change, are drawn over it;
    None: none are asked for. ``footer`` is at the foot of it. Without ``keep`` the picture is not kept on our side: something
    of one submission is on it."""
    on_page = [box for box in boxes or [] if box.page == page]
    content = f"{file.sha256}/{page}/{width}" + "".join(box.model_dump_json() for box in on_page)
    content += footer.text if footer else ""
    content += "light" if light else ""
    etag = hashlib.sha256(content.encode()).hexdigest()[:32]
    if etag in flask.request.if_none_match:
        answer = flask.Response(status=304)
    else:
        order = rendering.DrawPage(
            file=file,
            page=page,
            width=width,
            boxes=on_page,
            footer=footer,
            format="light" if light else "png",
            keep=keep,
        )
        drawn: BlobRef = context.bus.call(rendering.DRAW_PAGE, order)
        answer = flask.Response(context.blobs.get(drawn), mimetype=drawn.media_type)
        if not keep:
            with contextlib.suppress(ServiceError):  # then the daily sweep removes it
                context.blobs.delete(drawn.key)
    answer.set_etag(etag)
    answer.headers["Cache-Control"] = _PRIVATE_FOR_AN_HOUR if boxes is None else "private, no-cache"
    return answer


def text(context: PagesContext, file: BlobRef, first: int, footer: str | None) -> flask.Response:
    """The text of the pages from ``first`` on, as many as rendering gives at once (``rendering.ReadText``); ``footer`` is at
    the foot of each of them, and in no file."""
    etag = hashlib.sha256(f"text/{file.sha256}/{first}/{footer or ''}".encode()).hexdigest()[:32]
    if etag in flask.request.if_none_match:
        answer = flask.Response(status=304)
    else:
        stored: BlobRef = context.bus.call(rendering.READ_TEXT, rendering.ReadText(file=file, first=first))
        data = context.blobs.get(stored)
        if footer:
            data = json.dumps({**json.loads(data), "footer": footer}, ensure_ascii=False).encode()
        answer = flask.Response(data, mimetype="application/json")
    answer.set_etag(etag)
    answer.headers["Cache-Control"] = _PRIVATE_FOR_AN_HOUR
    return answer
