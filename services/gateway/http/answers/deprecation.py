"""What each answer of a deprecated call says of it: since when (RFC 9745), until when (RFC 8594), and where to read more."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from email.utils import format_datetime

from services.gateway.http.openapi.specification import Operation

Headers = list[tuple[bytes, bytes]]


def headers_of(operations: Iterable[Operation], page: Callable[[Operation], str]) -> dict[str, Headers]:
    """Return the headers of the calls that are deprecated, by their ids; ``page`` gives the address of what is told of one."""
    headers_by_operation: dict[str, Headers] = {}
    for operation in operations:
        if (deprecation := operation.deprecation) is None:
            continue
        headers = [
            ("deprecation", f"@{int(_beginning(deprecation.since).timestamp())}"),
            ("link", f'<{page(operation)}>; rel="deprecation"; type="text/html"'),
        ]
        if deprecation.sunset is not None:
            headers.append(("sunset", format_datetime(_beginning(deprecation.sunset), usegmt=True)))
        headers_by_operation[operation.id] = [(name.encode(), value.encode()) for name, value in headers]
    return headers_by_operation


def _beginning(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
