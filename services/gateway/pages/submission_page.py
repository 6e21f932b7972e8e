"""``/e/<slug>``: how far a submission is. Mails to the sender, events and file fields in sealed PDFs link here.

The link travels with the sealed file, so whoever reads it may be a stranger: the page names the document, its state and how
many have signed, and nothing else. Files and values are for those who have a signing link or an API key.
"""

import flask

from contracts.errors import not_found
from contracts.rpc import submissions
from contracts.types import Actor, Role, Submission
from services.gateway.pages.answering.context import PagesContext

SLUG_LENGTH = 100
_READER = Actor(user_id=0, role=Role.ADMIN, email="")
_STATES = {
    "pending": "submission.pending",
    "completed": "submission.completed",
    "declined": "submission.declined",
    "expired": "submission.expired",
}


def routes(context: PagesContext) -> flask.Blueprint:
    blueprint = flask.Blueprint("submission", __name__)

    @blueprint.get("/e/<slug>")
    def page(slug: str) -> str:
        submission = _submission_by_slug(context, slug)
        done = sum(submitter.status == "completed" for submitter in submission.submitters)
        is_sealing = submission.status == "pending" and submission.sealing_status is not None
        state = "submission.sealing" if is_sealing else _STATES[submission.status]
        return flask.render_template("submission.html", submission=submission, state=state, done=done)

    return blueprint


def _submission_by_slug(context: PagesContext, slug: str) -> Submission:
    if not 0 < len(slug) <= SLUG_LENGTH:
        raise not_found("Submission")
    request = submissions.api.ListSubmissions(actor=_READER, slug=slug, limit=1, archived=False)
    matches: list[Submission] = context.bus.call(submissions.api.LIST, request).data
    if not matches:
        raise not_found("Submission")
    return matches[0]
