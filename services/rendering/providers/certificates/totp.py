"""One-time codes from a shared secret (RFC 6238): SHA-1, six digits, thirty seconds, as authenticator apps make them."""

import base64
import binascii
import hmac
from datetime import datetime

STEP_SECONDS, DIGITS = 30, 6


def code(secret: str, moment: datetime) -> str:
    """The code of ``secret`` (base32, blanks and case do not count) at ``moment``. Raises ValueError when it is no base32."""
    letters = "".join(secret.split()).upper().rstrip("=")
    try:
        key = base64.b32decode(letters + "=" * (-len(letters) % 8))
    except binascii.Error as error:
        raise ValueError("is not base32") from error
    counter = int(moment.timestamp()) // STEP_SECONDS
    digest = hmac.digest(key, counter.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"
