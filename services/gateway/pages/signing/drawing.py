"""``POST /s/<slug>/drawing``: values as they will be on paper, for the signing page to lay over its pictures of the pages.

The submissions service says what this signer may see and what is filled in, rendering draws it as it draws the sealed file.
Nothing is kept.
"""

from typing import Any

import flask

from contracts.errors import ServiceError
from contracts.rpc import rendering, submissions
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit

MOST_AREAS = 100
WIDEST = 4_000
_BURST, _PER_SECOND = 60, 4.0
"""A form with many pages asks often when it is opened, then as often as somebody stops typing."""


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("drawing", __name__, url_prefix="/s/<slug>")
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.post("/drawing")
    def drawing(slug: str) -> flask.Response:
        pace.count(checked(slug))
        body = page_bodies.json_object()
        areas, width = _areas(body), _width(body)
        request = submissions.form.DrawForm(
            **visit(slug, trusted, body.get("time_zone")),
            **page_bodies.answers(body),
            fields=sorted({area.field_uuid for area in areas}),
        )
        filled: rendering.FillRequest = context.bus.call(submissions.form.FORM_DRAWING, request)
        order = rendering.DrawValues(**dict(filled), areas=areas, width=width)
        answer: rendering.DrawnValues = context.bus.call(rendering.DRAW_VALUES, order)
        return flask.jsonify({"areas": [_json(area) for area in answer.areas]})

    return blueprint


def _json(area: rendering.DrawnArea) -> dict[str, Any]:
    """``picture`` is a URL that an ``img`` can show."""
    picture = f"data:{area.media_type};base64,{area.picture}" if area.picture else None
    return {**area.model_dump(mode="json", exclude={"media_type"}), "picture": picture}


def _areas(body: dict[str, Any]) -> list[rendering.AreaToDraw]:
    """``areas``: pairs of a field's uuid and the number of its area, from 0."""
    entries = body.get("areas")
    if not isinstance(entries, list) or not 0 < len(entries) <= MOST_AREAS:
        raise _refused("areas", f"must be an array of 1 to {MOST_AREAS} areas")
    areas = []
    for entry in entries:
        uuid, number = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
        if not isinstance(uuid, str) or len(uuid) > 64 or type(number) is not int or not 0 <= number < 10_000:
            raise _refused("areas", "must be pairs of a field's uuid and the number of its area")
        areas.append(rendering.AreaToDraw(field_uuid=uuid, area=number))
    return areas


def _width(body: dict[str, Any]) -> int:
    """``width`` of the page in pixels of the screen."""
    width = body.get("width")
    if type(width) is not int or not 1 <= width <= WIDEST:
        raise _refused("width", f"must be a whole number from 1 to {WIDEST}")
    return width


def _refused(field: str, reason: str) -> ServiceError:
    return ServiceError("invalid", f"{field} {reason}", [{"field": field, "reason": reason}])
