"""How a field's value reads, on paper and on the signing page (peer facts 4.2). Nothing here knows of PDF."""

import hashlib
import re
from datetime import UTC, date, datetime, time, tzinfo
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from contracts.fields.date_formats import DEFAULT_DATE_FORMAT, TOKEN
from contracts.fields.kinds import KINDS
from contracts.types import Account, FieldDefinition, FieldType

if TYPE_CHECKING:
    from contracts.languages.saying import Section

CHECK_MARK = "\u2714"
DEFAULT_CURRENCY = "USD"
SMALLEST_SIZE = 4.0
"""Points: what does not fit at this size is not drawn smaller, it is refused."""

_NO_BREAK = "\u00a0"
# Sign before or behind, separator of thousands, decimal sign, decimals (None: as many as the number has).
_NUMBER_FORMATS: dict[str, tuple[str, str, str, str, int | None]] = {
    "usd": ("$", "", ",", ".", 2),
    "gbp": ("£", "", ",", ".", 2),
    "eur": ("", f"{_NO_BREAK}€", _NO_BREAK, ",", 2),
    "comma": ("", "", ",", ".", None),
    "dot": ("", "", ".", ",", None),
    "space": ("", "", _NO_BREAK, ",", None),
    "percent": ("", "%", "", ".", None),
    "percent_space": ("", f"{_NO_BREAK}%", "", ",", None),
}
_MOST_DIGITS = 24
"""Beyond it a number is shown as it was given: nobody reads it, and 1e999999 must not become a million digits."""

_MASK_KEEPS = frozenset(" -_[]()+?.,\n")


def display(field: FieldDefinition, value: Any, account: Account) -> str:
    """The value as it is read, masked where the field says so; empty for no value, and for pictures and files."""
    if KINDS[field.type].drawn in ("picture", "file", "line", "nothing"):
        return ""
    if field.type == FieldType.HEADING:
        return str(value if value not in (None, "") else field.default_value or "")
    if field.type == FieldType.PAYMENT:
        return payment_text(field, value, account)
    if value is None or value == "" or value == []:
        return ""
    return masked(_plain(field, value, account), field.preferences.get("mask"))


def document_id(submission_slug: str) -> str:
    """Return what every page of a submission's documents can be told by: 32 hexadecimal digits that only it has. Not a proof of
    anything, and the slug cannot be had from it (peer facts 4.2: MD5, upper case)."""
    return hashlib.md5(submission_slug.encode(), usedforsecurity=False).hexdigest().upper()


def page_footer(account: Account, submission_slug: str) -> str:
    """The line at the foot of every page, empty where the account wants none."""
    if not account.with_signature_id or not submission_slug:
        return ""
    return words_of(account)("number", number=document_id(submission_slug))


def mark_of_test(account: Account) -> str:
    """Return what every page of a document of test mode says."""
    return words_of(account)("test_mark")


def words_of(account: Account) -> "Section":
    """Return what documents say that nobody has written: in the account's language, as the audit trail."""
    # Babel reads files the first time, which most documents do not need.
    from contracts.languages.saying import language_for

    return language_for(account.locale).section("document")


def _plain(field: FieldDefinition, value: Any, account: Account) -> str:
    match field.type:
        case FieldType.DATE:
            return date_text(value, field.preferences.get("format"), account)
        case FieldType.NUMBER:
            return number_text(value, field.preferences.get("format"), account)
        case FieldType.CHECKBOX:
            return CHECK_MARK if value in (True, "true", "1") else ""
        case FieldType.MULTIPLE | FieldType.SELECT | FieldType.RADIO:
            chosen = value if isinstance(value, list) else [value]
            return ", ".join(option_text(field, str(option), account) for option in chosen)
        case FieldType.VERIFICATION:
            return words_of(account)("verified")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def payment_text(field: FieldDefinition, value: Any, account: Account) -> str:
    """The amount that a payment field asks for, in its currency; what is no amount is shown as it is."""
    amount = field.preferences.get("price") if value in (None, "") else value
    if isinstance(amount, int | float):
        return number_text(amount, str(field.preferences.get("currency") or DEFAULT_CURRENCY).lower(), account)
    return "" if amount is None else str(amount)


def option_text(field: FieldDefinition, option: str, account: Account) -> str:
    """An option without a text is called by its place."""
    if option or option not in field.options:
        return option
    return words_of(account)("option", number=field.options.index(option) + 1)


def masked(text: str, mask: Any) -> str:
    """``mask`` true hides all, a positive number keeps that many characters at the beginning, a negative one at the end."""
    keep = _mask_number(mask)
    if keep is None:
        return text
    if keep > 0:
        shown, hidden = text[:keep], text[keep:]
        return shown + _hidden(hidden)
    if keep < 0:
        return _hidden(text[:keep]) + text[keep:]
    return _hidden(text)


def _mask_number(mask: Any) -> int | None:
    """None for no mask, 0 for a whole one."""
    if isinstance(mask, str):
        lowered = mask.strip().lower()
        if re.fullmatch(r"[+-]?\d{1,6}", lowered):
            return int(lowered) or None
        return 0 if lowered == "true" else None
    if mask is True:
        return 0
    return int(mask) or None if isinstance(mask, int | float) else None


def _hidden(text: str) -> str:
    return "".join(character if character in _MASK_KEEPS else "X" for character in text)


def date_text(value: Any, format_: str | None, account: Account) -> str:
    """A stored date (``YYYY-MM-DD``, ``YYYY-MM`` or ISO 8601 with time) in the field's format; as it is when it cannot be
    read. A time with a zone is shown in the account's zone."""
    moment = _moment(str(value), account)
    if moment is None:
        return str(value)
    locale = account.locale
    return TOKEN.sub(lambda match: _part(match[0], moment, locale), format_ or DEFAULT_DATE_FORMAT)


def _moment(text: str, account: Account) -> datetime | None:
    if re.fullmatch(r"\d{4}-\d{2}", text):
        text += "-01"
    try:
        if len(text) == len("YYYY-MM-DD"):
            return datetime.combine(date.fromisoformat(text), time(), _zone(account.time_zone))
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    zone = _zone(account.time_zone)
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


def _part(token: str, moment: datetime, locale: str) -> str:
    if token.startswith("["):
        return token[1:-1]
    twelve = moment.hour % 12 or 12
    match token:
        case "YYYY":
            return f"{moment.year:04}"
        case "YY":
            return f"{moment.year % 100:02}"
        case "MMMM" | "MMM":
            return _month(moment, len(token) == len("MMMM"), locale)
        case "M" | "D" | "H" | "m" | "s":
            number = {"M": moment.month, "D": moment.day, "H": moment.hour, "m": moment.minute, "s": moment.second}
            return str(number[token])
        case "MM" | "DD" | "HH" | "mm" | "ss":
            return f"{int(_part(token[0], moment, locale)):02}"
        case "h":
            return str(twelve)
        case "hh":
            return f"{twelve:02}"
        case "A":
            return "AM" if moment.hour < 12 else "PM"
        case "a":
            return "am" if moment.hour < 12 else "pm"
    return zone_text(moment)


def _month(moment: datetime, in_full: bool, locale: str) -> str:
    # Babel reads files the first time, which most documents do not need.
    from babel.dates import get_month_names

    # Beside a day some languages inflect the name: "5 marca", not "marzec".
    width = "wide" if in_full else "abbreviated"
    return str(get_month_names(width, context="format", locale=babel_locale(locale))[moment.month])


def number_text(value: Any, format_: str | None, account: Account) -> str:
    """A number in the field's format: ``usd`` ``$1,234.50``, ``eur`` ``1 234,50 €``, ``comma``, ``dot``, ``space``,
    ``percent``, ``percent_space``, any other currency by its code; plain without one."""
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return str(value)
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return str(value)
    name = (format_ or "").lower()
    if name in _NUMBER_FORMATS:
        return _formatted(number, *_NUMBER_FORMATS[name])
    if re.fullmatch(r"[a-z]{3}", name):
        from babel.numbers import format_currency, is_currency

        if is_currency(name.upper()):
            return str(format_currency(number, name.upper(), locale=babel_locale(account.locale)))
    return _digits(number, None)


def _formatted(number: Decimal, before: str, behind: str, thousands: str, point: str, decimals: int | None) -> str:
    digits = _digits(abs(number), decimals)
    sign = "-" if number < 0 and digits.strip("0.") else ""
    whole, _, fraction = digits.partition(".")
    if thousands:
        whole = f"{int(whole):,}".replace(",", thousands)
    return f"{sign}{before}{whole}{point + fraction if fraction else ''}{behind}"


def _digits(number: Decimal, decimals: int | None) -> str:
    """Without exponent, and without idle zeros unless the number of decimals is fixed."""
    if decimals is not None:
        return f"{number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def printed_time(moment: datetime, time_zone: str, locale: str) -> str:
    """A moment as it is printed on paper: date and time in the reader's way, always with the zone."""
    from babel.dates import format_datetime

    local = moment.astimezone(_zone(time_zone))
    # Some locales have a narrow no-break space before AM, which not every font has.
    text = str(format_datetime(local, "medium", locale=babel_locale(locale))).replace("\u202f", _NO_BREAK)
    return f"{text} {zone_text(local)}"


def zone_text(moment: datetime) -> str:
    """``CET``, or ``UTC+3`` for a zone without letters of its own."""
    name = f"{moment:%Z}"
    if name[0] not in "+-":
        return name
    offset = moment.utcoffset()
    minutes = round(offset.total_seconds() / 60) if offset else 0
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


def babel_locale(locale: str) -> Any:
    """The locale, or English when there is no such one."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(locale.replace("_", "-"), sep="-")
    except (ValueError, UnknownLocaleError):
        return Locale("en", "US")


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
