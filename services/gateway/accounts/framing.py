"""Rules about the sites that may show signing pages in a frame, and about the colour of the pages."""

import re
from collections.abc import Sequence

from contracts.errors import ServiceError, invalid

SELF = "'self'"
LEAST_CONTRAST = 4.5
"""What WCAG 2.2 asks of text (1.4.3, level AA)."""

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SITE = re.compile(rf"https?://(?:\*\.(?={_LABEL}\.{_LABEL}))?{_LABEL}(?:\.{_LABEL})*(?::[1-9][0-9]{{0,4}})?")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


def sites(texts: Sequence[str]) -> list[str]:
    """Return the sites as Content-Security-Policy has them, each once. Raises ServiceError for anything that is not one: a
    scheme or a star alone would let everybody."""
    sites_listed: list[str] = []
    for number, text in enumerate(texts):
        site = text.strip().lower().rstrip("/")
        if site != SELF and _SITE.fullmatch(site) is None:
            reason = "must be a site such as https://app.example.com or https://*.example.com"
            raise invalid(f"frame_ancestors[{number}] {reason}", f"frame_ancestors[{number}]", reason)
        if site not in sites_listed:
            sites_listed.append(site)
    return sites_listed


def accent(text: str) -> str:
    """Return the colour in lower case, ``""`` for none. Raises ServiceError when white words on it, or its words on white,
    could not be read."""
    text = text.strip().lower()
    if not text:
        return ""
    if _COLOR.fullmatch(text) is None:
        raise _refused("must be a colour such as #175c4c")
    if (ratio := contrast(text, "#ffffff")) < LEAST_CONTRAST:
        raise _refused(
            f"must reach a contrast of {LEAST_CONTRAST:g} to 1 against white (WCAG 2.2, 1.4.3); it has {ratio:.2f}"
        )
    return text


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2.2: 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _refused(reason: str) -> ServiceError:
    return invalid(f"accent_color {reason}", "accent_color", reason)
