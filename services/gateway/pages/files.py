"""``/file/<token>/<filename>``: links to files, made by any service, served here (contracts.links)."""

import hashlib
from functools import lru_cache

import flask

from contracts import links
from contracts.blobs import BlobRef
from contracts.errors import ServiceError, not_found
from contracts.runtime import clock
from contracts.runtime.blobstore import is_key
from services.gateway.pages.context import PagesContext
from services.gateway.pages.delivery import file_headers, stored_file
from services.gateway.pages.pictures import nearest_width, picture


def routes(context: PagesContext) -> flask.Blueprint:
    blueprint = flask.Blueprint("files", __name__)

    @lru_cache(maxsize=1000)
    def reference(key: str, media_type: str) -> BlobRef:
        """A link knows only the key; the drawing service wants the digest too. Blobs never change."""
        data = context.blobs.get(key)
        return BlobRef(key=key, sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)

    @blueprint.get("/file/<token>/<path:filename>")
    def file(token: str, filename: str) -> flask.Response:
        link = _link(context, token)
        if link.page is None:
            answer = stored_file(context.blobs, link.key, link.media_type, link.filename)
        else:
            width = nearest_width(flask.request.args.get("width"))
            answer = picture(context, reference(link.key, "application/pdf"), link.page, width)
        if link.expires_at is not None:
            # Whoever has the link may read the file, so a script on another site that was given it may too.
            answer.headers["Access-Control-Allow-Origin"] = "*"
        return file_headers(answer)

    return blueprint


def _link(context: PagesContext, token: str) -> links.FileLink:
    """What the token says, if its bearer may have the file.

    A link in an event's body never expires, because such a body never changes; it is worth nothing without an API key.
    """
    try:
        link = links.read(context.settings.link_secret.get_secret_value(), token)
    except links.BadLink:
        raise not_found("File") from None
    if not is_key(link.key):
        raise not_found("File")
    if link.expired(clock.now()):
        raise ServiceError("forbidden", "This link has expired")
    if link.expires_at is None and not context.authenticated(flask.request.headers.get("X-Auth-Token", "")):
        raise ServiceError("unauthenticated", "This link needs the header X-Auth-Token of an active user")
    return link
