"""``/language``: the language that a reader chooses on a page.

Their browser keeps it for all pages, and a party's is stored, so that later mails to them are written in it.
"""

import contextlib
import re
from datetime import timedelta

import flask

from contracts.errors import ServiceError, invalid
from contracts.languages import choosing
from contracts.rpc import submissions
from contracts.runtime import clock
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit
from services.gateway.pages.codes import keep_value
from services.gateway.pages.texts import CHOSEN

_KEPT = timedelta(days=365)
_LONGEST_PAGE = 2_000
_OWN_PAGE = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path of this origin: nobody is led to another site."""


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("language", __name__)

    @blueprint.post("/language")
    def choose() -> flask.Response:
        tag, page = flask.request.form.get("lang", ""), flask.request.form.get("page", "")
        if tag not in (*choosing.languages(), choosing.PSEUDO):
            raise invalid("lang must be a supported language", "lang", "must be a supported language")
        if len(page) > _LONGEST_PAGE or not _OWN_PAGE.fullmatch(page) or not page.startswith(f"{context.root}/"):
            page = f"{context.root}/"
        if (signing := re.match(r"/s/([^/?#]+)", page[len(context.root) :])) is not None:
            _store(signing[1], tag)
        answer = flask.Response(status=303)
        answer.headers["Location"] = page
        keep_value(answer, context, "/", CHOSEN, tag, clock.now() + _KEPT)
        return answer

    def _store(slug: str, tag: str) -> None:
        with contextlib.suppress(ServiceError):  # the browser keeps it; what is wrong with the link, its page says
            command = submissions.form.ChooseLanguage(**visit(checked(slug), trusted), lang=tag)
            context.bus.call(submissions.form.CHOOSE_LANGUAGE, command)

    return blueprint
