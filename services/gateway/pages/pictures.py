"""Pages of documents as pictures, drawn by the rendering service from the very bytes that will be sealed."""

import hashlib

import flask

from contracts.blobs import BlobRef
from contracts.rpc import rendering
from services.gateway.pages.context import PagesContext

WIDTHS = (700, 1400, 2100)
"""Pixels. A phone needs 700 to 1400; few widths, so that each page is drawn few times."""

_PRIVATE_FOR_AN_HOUR = "private, max-age=3600, immutable"


def nearest_width(asked: str | None) -> int:
    """The smallest of WIDTHS that is not below ``asked``."""
    try:
        wanted = int(asked or 1400)
    except ValueError:
        wanted = 1400
    return next((width for width in WIDTHS if width >= wanted), WIDTHS[-1])


def picture(context: PagesContext, file: BlobRef, page: int, width: int) -> flask.Response:
    """The PNG of ``page`` (from 1). A document never changes, so the browser may keep it; nobody between us may."""
    etag = hashlib.sha256(f"{file.sha256}/{page}/{width}".encode()).hexdigest()[:32]
    if etag in flask.request.if_none_match:
        answer = flask.Response(status=304)
    else:
        drawn: BlobRef = context.bus.call(rendering.DRAW_PAGE, rendering.DrawPage(file=file, page=page, width=width))
        answer = flask.Response(context.blobs.get(drawn), mimetype=drawn.media_type)
    answer.set_etag(etag)
    answer.headers["Cache-Control"] = _PRIVATE_FOR_AN_HOUR
    return answer
