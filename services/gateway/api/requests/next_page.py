"""Tell in a header where the next page of a list is (RFC 8288), for clients that follow it and never look into the answer."""

from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

_CURSORS = ("after", "before")


def header(answer: Any, scope: Any, base_url: str) -> list[tuple[bytes, bytes]]:
    """Return ``Link`` for a page that is answered to a GET, with its ``pagination.next`` as the cursor; nothing for an empty
    page, which is the last one, and for anything else."""
    if scope["method"] not in ("GET", "HEAD") or not isinstance(answer, dict):
        return []
    cursor = (answer.get("pagination") or {}).get("next")
    if cursor is None:
        return []
    parameters = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True)
    query = urlencode([*((name, value) for name, value in parameters if name not in _CURSORS), ("after", cursor)])
    return [(b"link", f'<{base_url}{quote(scope["path"])}?{query}>; rel="next"'.encode())]
