"""Which media type a client would rather have (RFC 9110, 12.5.1)."""

from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header


def prefers(accept: str, media_type: str) -> bool:
    """True for a client with this ``Accept`` that names the media type, and would not rather have JSON.

    One that takes everything (``*/*``) gets what it always got.
    """
    accepted = parse_accept_header(accept, MIMEAccept)
    wish = next((quality for value, quality in accepted if value.lower() == media_type), 0.0)
    plain = next((quality for value, quality in accepted if value.lower() == "application/json"), 0.0)
    return wish > 0 and wish >= plain
