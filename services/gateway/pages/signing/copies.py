"""``GET /s/<slug>/copy/<document>/<filename>``: what a party has completed, at once, marked as not finished.

The link is the party's own and works until the finished documents are there; then, and wherever there is nothing to be had, it
leads to the page, which asks for the code, or offers what there is. Nothing is kept.
"""

import flask

from contracts.errors import ServiceError
from contracts.languages.formatting import moment
from contracts.languages.saying import Section
from contracts.rpc import rendering, submissions
from contracts.rpc.submissions.signing.form import FormCopy
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.delivery import content_disposition, file_headers, forget
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import proofs
from services.gateway.pages.texts import speak_to

_BURST, _PER_SECOND = 10, 0.2
"""Each copy is drawn anew."""

_ELSEWHERE = (403, 404, 409, 422)


def routes(context: PagesContext) -> flask.Blueprint:
    blueprint = flask.Blueprint("copies", __name__, url_prefix="/s/<slug>")
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.get("/copy/<document_uuid>/<path:filename>")
    def copy(slug: str, document_uuid: str, filename: str) -> flask.Response:
        pace.count(checked(slug))
        query = submissions.form.FormPage(slug=slug, document_uuid=document_uuid, proofs=proofs())
        try:
            form_copy: FormCopy = context.bus.call(submissions.form.FORM_COPY, query)
        except ServiceError as error:
            if error.status not in _ELSEWHERE:
                raise
            answer: flask.Response = flask.redirect(f"{context.root}/s/{slug}", 303)  # type: ignore[assignment]
            return answer
        text = speak_to(form_copy.lang)
        order = rendering.FillCopy(**{**dict(form_copy.filled), "mark": _mark(text, form_copy)}, document=document_uuid)
        drawn = context.bus.call(rendering.FILL_COPY, order)
        answer = flask.Response(context.blobs.get(drawn), mimetype="application/pdf")
        forget(context.blobs, drawn)
        name = text("copy.file", name=form_copy.name)
        answer.headers["Content-Disposition"] = content_disposition(f"{name}.pdf", inline=False)
        return file_headers(answer)

    return blueprint


def _mark(text: Section, form_copy: FormCopy) -> str:
    """Return what stands at the head of each page."""
    when = moment(form_copy.completed_at, text.spoken.locale, form_copy.time_zone)
    return text("copy.mark", done=form_copy.done, count=form_copy.parties, moment=when)
