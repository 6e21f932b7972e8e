"""E-mail addresses, telephone numbers, names and URLs that API users give: refused when wrong, never 'corrected'."""

import re
import unicodedata
from email.utils import parseaddr

import phonenumbers

from contracts.fields.preferences import MOST_ADDRESSES
from contracts.fields.rules import LONGEST_NAME
from contracts.formats import mentions
from contracts.formats.email_address import NOT_AN_EMAIL, is_email
from contracts.formats.phone_number import in_e164
from contracts.formats.web_url import NOT_A_URL, is_web_url

mailbox = mentions.mailbox
_SEPARATOR = re.compile(r"[,;]")
_TURNING = re.compile("[\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]")


class BadAddress(Exception):
    """``reason`` continues the sentence that the field's path begins."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def email(raw: str) -> str:
    """One address, as it was written, without blanks around it; of ``Name <a@b.co>`` the address alone."""
    text = raw.strip()
    if text.endswith(">") and "<" in text:
        text = parseaddr(text)[1]
    if not is_email(text):
        raise BadAddress(NOT_AN_EMAIL)
    return text


def emails(raw: str) -> list[str]:
    """Several addresses, separated by ``,`` or ``;``, each only once whatever its case. CR and LF are refused."""
    if re.search(r"[\r\n\x00]", raw):
        raise BadAddress("must be one line")
    parts = [part for part in _SEPARATOR.split(raw) if part.strip()]
    if not parts:
        raise BadAddress(NOT_AN_EMAIL)
    if len(parts) > MOST_ADDRESSES:
        raise BadAddress(f"must not have more than {MOST_ADDRESSES} addresses")
    return list({address.lower(): address for address in map(email, parts)}.values())


def phone(raw: str) -> str:
    """E.164, such as ``+14155550123``. Blanks, dashes and brackets are dropped; whether the number is in use is not asked."""
    digits = in_e164(raw)
    if digits is None:
        raise BadAddress("must start with +<country code> and contain only digits")
    try:
        phonenumbers.parse(digits)
    except phonenumbers.NumberParseException:
        raise BadAddress("must start with the code of a country") from None
    return digits


def calling_code(phone: str) -> str:
    """Of an E.164 number that of its country, or of the countries that share it: ``+49``, ``+1``."""
    return f"+{phonenumbers.parse(phone).country_code}"


def name(raw: str | None) -> str | None:
    """A name that is shown: NFC, without control characters and those that turn the direction of text around."""
    if raw is None:
        return None
    text = unicodedata.normalize("NFC", _TURNING.sub("", raw))
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text if unicodedata.category(c) != "Cs")
    text = " ".join(text.split())
    if len(text) > LONGEST_NAME:
        raise BadAddress(f"must not be longer than {LONGEST_NAME} characters")
    return text or None


def text(raw: str) -> str:
    """A text of several lines: as ``name``, but line breaks stay and nothing limits its length."""
    cleaned = _TURNING.sub("", unicodedata.normalize("NFC", raw.replace("\r\n", "\n")))
    return "".join(c for c in cleaned if c == "\n" or unicodedata.category(c) not in ("Cc", "Cs")).strip()


def web_url(raw: str | None) -> str | None:
    """An http or https URL, as it was written; blank is None."""
    if not raw or not raw.strip():
        return None
    if not is_web_url(raw.strip()):
        raise BadAddress(NOT_A_URL)
    return raw.strip()


def searchable(*parts: str | None) -> str:
    """Return what searches look through: lower-cased, one space between the parts."""
    return unicodedata.normalize("NFC", " ".join(part for part in parts if part)).lower()
