"""``/file/<token>/<filename>``: links to files, made by any service, served here (contracts.links).

A link to pictures of a document takes ``?page=2``, ``?width=700`` (or 1400, 2100) and ``?fields=true``: with the boxes of its
fields. Of a template's document ``?detected=true`` shows the fields that are proposed instead.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

import flask

from contracts import links
from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid, not_found
from contracts.fields.boxes import FieldBox, FieldBoxes
from contracts.rpc import submissions, templates
from contracts.runtime import clock
from contracts.runtime.data.files.blobstore import is_key
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.delivery import file_headers, stored_file
from services.gateway.pages.answering.pictures import nearest_width, picture

_BOXES = {"templates": templates.FIELD_BOXES, "submissions": submissions.api.FIELD_BOXES}


def routes(context: PagesContext) -> flask.Blueprint:
    blueprint = flask.Blueprint("files", __name__)

    @lru_cache(maxsize=1000)
    def reference(key: str, media_type: str) -> BlobRef:
        """A link knows only the key; the drawing service wants the digest too. Blobs never change."""
        data = context.blobs.get(key)
        return BlobRef(key=key, sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)

    @blueprint.get("/file/<token>/<path:filename>")
    def file(token: str, filename: str) -> flask.Response:
        link = link_of(context, token)
        if link.page is None:
            answer = stored_file(context.blobs, link.key, link.media_type, link.filename)
        else:
            query = flask.request.args
            boxes = _boxes(context, link, detected=query.get("detected") == "true") if _asks_for_boxes(query) else None
            file_ = reference(link.key, "application/pdf")
            of_template = link.fields_of is not None and link.fields_of.service == "templates"
            width = nearest_width(query.get("width"))
            answer = picture(context, file_, _page(link), width, boxes, keep=of_template)
        if link.expires_at is not None and not link.expired(clock.now()):
            # Whoever has the link may read the file, so a script on another site that was given it may too.
            answer.headers["Access-Control-Allow-Origin"] = "*"
        return file_headers(answer)

    return blueprint


def _page(link: links.FileLink) -> int:
    """The page that is asked for, by default that of the link."""
    number = flask.request.args.get("page")
    if number is None:
        return link.page or 1
    if not re.fullmatch(r"[1-9][0-9]{0,4}", number, re.ASCII):
        raise invalid("page must be the number of a page, from 1", "page", "must be the number of a page, from 1")
    return int(number)


def _asks_for_boxes(query: Mapping[str, str]) -> bool:
    return "true" in (query.get("fields"), query.get("detected"))


def _boxes(context: PagesContext, link: links.FileLink, *, detected: bool) -> list[FieldBox]:
    """The boxes of the fields on the document, as they are now, or of those that are proposed."""
    key = "detected" if detected else "fields"
    if link.fields_of is None or (detected and link.fields_of.service != "templates"):
        reason = "are not known for this document"
        raise invalid(f"{key} {reason}", key, reason)
    call = _BOXES[link.fields_of.service]
    document = link.fields_of.document_uuid
    request = templates.GetFieldBoxes(id=link.fields_of.id, document_uuid=document, detected=detected)
    boxes: FieldBoxes = context.bus.call(call, request)
    return boxes.boxes


def link_of(context: PagesContext, token: str, holder: str = "") -> links.FileLink:
    """Read the token, if its bearer, who must be the ``holder`` that it was made for, may have the file.

    A link in an event's body never expires, because such a body never changes; it is worth nothing without an API key
    that reads. Where a webhook has them open for a time, that is so afterwards.
    """
    try:
        link = links.read(context.settings.link_secret.get_secret_value(), token, holder)
    except links.BadLink:
        raise not_found("File") from None
    if not is_key(link.key):
        raise not_found("File")
    expired = link.expired(clock.now())
    if expired and not link.key_after:
        raise ServiceError("forbidden", "This link has expired.")
    if (expired or link.expires_at is None) and not context.authenticated(
        flask.request.headers.get("X-Auth-Token", "")
    ):
        raise ServiceError("unauthenticated", "This link needs the header X-Auth-Token of an active user.")
    return link
