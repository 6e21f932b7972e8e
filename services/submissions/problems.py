"""Everything that is wrong with a request, collected, so that the API user can mend it in one go."""

from contracts.errors import ServiceError

_SHOWN = 50


class Problems:
    """Paths in the request body with a reason each, such as ``submitters[0].email``."""

    def __init__(self) -> None:
        self._found: list[dict[str, str]] = []
        self._message: str | None = None

    def add(self, field: str, reason: str, message: str | None = None) -> None:
        """``reason`` continues the sentence that the path begins; ``message`` is said instead, where clients look for it."""
        self._found.append({"field": field, "reason": reason})
        if self._message is None:
            self._message = message or f"{field} {reason}"

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self) -> None:
        """Raises ServiceError("invalid") when there was any problem; the first one is the message."""
        if self._message is None:
            return
        more = len(self._found) - 1
        rest = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        raise ServiceError("invalid", f"{self._message}{rest}", list(self._found[:_SHOWN]))
