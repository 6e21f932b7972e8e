"""The pages in frames of other sites, and in the account's colour."""

import re

import flask

from contracts.errors import ServiceError
from contracts.types import Account
from services.gateway.pages.answering.context import PagesContext

_OF_SIGNERS = ("/s/", "/d/", "/identity/")
_COLOR = re.compile(r"[0-9a-f]{6}")
_DARKER, _LIGHTER = 0.73, 0.1


def framers(context: PagesContext) -> list[str]:
    """Return the sites that may show this page in a frame: a page of a signer, where the account says so."""
    return _account(context).frame_ancestors if flask.request.path.startswith(_OF_SIGNERS) else []


def accent(context: PagesContext) -> str:
    """Return the digits of the account's colour, ``""`` where the pages have their own."""
    return _account(context).accent_color.lstrip("#") if flask.request.path.startswith(_OF_SIGNERS) else ""


def colors(digits: str) -> str | None:
    """Return the style sheet that gives pages this colour; None when the digits are none of a colour.

    Darker it is that of links, and of a button under the pointer; lighter that of what lies behind words.
    """
    if _COLOR.fullmatch(digits) is None:
        return None
    red, green, blue = (int(digits[place : place + 2], 16) for place in (0, 2, 4))
    darker = [round(part * _DARKER) for part in (red, green, blue)]
    lighter = [round(255 - (255 - part) * _LIGHTER) for part in (red, green, blue)]
    return (
        f":root{{--accent:#{digits};--accent-dark:rgb({_listed(darker)});--accent-tint:rgb({_listed(lighter)});"
        f"--mine-filled:rgb({_listed([red, green, blue])}/7%)}}"
    )


def _listed(parts: list[int]) -> str:
    return " ".join(map(str, parts))


def _account(context: PagesContext) -> Account:
    """The account, read once for a page. When it cannot be read nobody may frame the page."""
    if "account" not in flask.g:
        try:
            flask.g.account = context.account()
        except ServiceError:
            flask.g.account = Account()
    account: Account = flask.g.account
    return account
