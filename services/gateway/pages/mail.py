"""``/dev/mail``: the mails and text messages that were not sent, because no SMTP server and no SMS provider is configured, or
because they are of test mode.

For people who try the suite on their own machine. The mails hold signing links, so there is no such page where others may
reach the installation: with a BASE_URL that is https, or behind a proxy. With an SMTP server it has what was kept in test mode
and nothing else. Where there is such a page, it answers only under the machine's own names, so that no other site's name that
leads here (DNS rebinding) opens it.
"""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import flask

from contracts.errors import ServiceError, not_found
from contracts.rpc import notifications
from contracts.types import Page
from services.gateway.http.client_address import is_local, networks
from services.gateway.pages.answering.context import PagesContext, PagesSettings

_NEWER_THAN_ALL = 2**53
_PER_PAGE = 50
_PROVIDER_MAILBOX = "provider.jsonl"
_OWN_NAME = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.ASCII | re.IGNORECASE)
_FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via")
# The mail is shown in a frame of no origin. Links open beside it, because the pages they lead to refuse to be framed.
_MAIL_POLICY = (
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'self'"
)


def is_there(settings: PagesSettings) -> bool:
    """True when mails are shown at all. That loopback is trusted is the default and means no proxy."""
    behind_proxy = not all(network.is_loopback for network in networks(settings.trusted_proxies))
    return not settings.base_url.lower().startswith("https:") and not behind_proxy


def only_tests(settings: PagesSettings) -> bool | None:
    """True where mails are sent, so that only those of test mode are kept; None where all are."""
    return True if settings.smtp_url else None


def local_providers(settings: PagesSettings) -> list[tuple[str, str, str]]:
    """Providers that are tried on this machine: the address of each one's page, and the keys of its name and of what it does;
    none where there is no page of mails."""
    configured = [
        (settings.local_provider_url, "welcome.provider", "welcome.provider_text"),
        (settings.local_stamp_issuer_url, "welcome.stamps", "welcome.stamps_text"),
    ]
    return [provider for provider in configured if provider[0]] if is_there(settings) else []


def routes(context: PagesContext) -> flask.Blueprint:
    blueprint = flask.Blueprint("mail", __name__, url_prefix="/dev/mail")
    blueprint.add_app_template_filter(parted)

    @blueprint.before_request
    def only_here() -> None:
        if not is_there(context.settings):
            raise not_found("Page")
        request = flask.request
        # Not `request.host`: without the header that is the address on which the server listens.
        own_name = _OWN_NAME.fullmatch(request.headers.get("Host", ""))
        if not own_name or any(name in request.headers for name in _FORWARDED) or not is_local(request.remote_addr):
            raise ServiceError("forbidden", "Mails are shown on this machine only, at http://localhost/dev/mail.")

    @blueprint.get("")
    def index() -> str:
        before = flask.request.args.get("before", type=int) or _NEWER_THAN_ALL
        page: Page[notifications.Mail] = context.bus.call(
            notifications.LIST,
            notifications.ListMails(limit=_PER_PAGE, before=before, test=only_tests(context.settings)),
        )
        mails = sorted(page.data, key=lambda mail: mail.id, reverse=True)
        older = mails[-1].id if len(mails) == _PER_PAGE else None
        messages = _texts(flask.request.args.get("texts_before", type=int))
        codes = provider_codes(context.settings.var_dir)
        more = messages[-1].id if len(messages) == _PER_PAGE else None
        return flask.render_template(
            "mail/list.html",
            mails=mails,
            older=older,
            messages=messages,
            more=more,
            codes=codes,
            only_tests=only_tests(context.settings),
            providers=local_providers(context.settings),
        )

    @blueprint.get("/<int:number>")
    def show(number: int) -> str:
        mail = _mail(number)
        flask.g.frames_own_pages = True
        return flask.render_template("mail/mail.html", mail=mail, links=web_links(mail.links))

    @blueprint.get("/<int:number>/html")
    def html(number: int) -> flask.Response:
        answer = flask.Response('<base target="_blank">' + _mail(number).html, mimetype="text/html")
        answer.headers["Content-Security-Policy"] = _MAIL_POLICY
        return answer

    def _texts(before: int | None) -> list[notifications.PhoneMessage]:
        """Text messages, the newest first, with their links apart."""
        page: Page[notifications.PhoneMessage] = context.bus.call(
            notifications.LIST_PHONE_MESSAGES,
            notifications.ListMails(
                limit=_PER_PAGE, before=before or _NEWER_THAN_ALL, test=only_tests(context.settings)
            ),
        )
        return sorted(page.data, key=lambda message: message.id, reverse=True)

    def _mail(number: int) -> notifications.MailText:
        query = notifications.GetMail(id=number, test=only_tests(context.settings))
        mail: notifications.MailText = context.bus.call(notifications.GET, query)
        return mail

    return blueprint


def provider_codes(var_dir: Path | None) -> list[dict[str, str]]:
    """One-time codes that the local provider of remote certificates has sent (deploy/suite.py), the newest first."""
    path = var_dir / "mail" / _PROVIDER_MAILBOX if var_dir is not None else None
    if path is None or not path.exists():
        return []
    codes = []
    for line in path.read_text(errors="replace").splitlines()[-_PER_PAGE:]:
        try:
            content = json.loads(line)
        except ValueError:  # half of a line, which is being written
            continue
        codes.append({key: str(content.get(key, "")) for key in ("to", "text", "at")})
    return codes[::-1]


def parted(text: str) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it is a link that a browser may follow."""
    pieces = re.split(r"(https?://\S+)", text)
    return [(piece, bool(index % 2)) for index, piece in enumerate(pieces) if piece]


def web_links(links: list[str]) -> list[str]:
    """Those that a browser may follow: http and https."""
    return [link for link in links if urlsplit(link).scheme in ("http", "https")]
