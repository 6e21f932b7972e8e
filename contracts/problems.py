"""Everything that is wrong with a request, collected, so that the API user can mend it in one go."""

import re

from contracts.errors import ServiceError

_SHOWN = 50


class Problems:
    """Paths in the request body with a reason each, such as ``submitters[0].email`` or ``documents[0].fields[2].type``."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self._message: str | None = None
        self._counted: int | None = None

    def add(self, field: str, reason: str, message: str | None = None) -> None:
        """``reason`` continues the sentence that the path begins; ``message`` is said instead, where clients look for it."""
        self.entries.append({"field": field, "reason": reason})
        if self._message is None:
            self._message = message or f"{field} {reason}"

    def settle(self) -> None:
        """Have the message count only what there is by now, if anything: clients know the sentence about it. What is looked at
        afterwards is told beside it."""
        if self.entries and self._counted is None:
            self._counted = len(self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def refuse(self) -> None:
        """Raises ServiceError("invalid") when there was any problem; the first one is the message."""
        if self._message is None:
            return
        count = len(self.entries) if self._counted is None else self._counted
        raise ServiceError("invalid", with_more(self._message, count), list(self.entries[:_SHOWN]))


def with_more(message: str, count: int) -> str:
    """The first problem in words, and how many there are besides."""
    more = count - 1
    return f"{message} (and {more} more problem{'s' if more > 1 else ''})" if more > 0 else message


def without_more(message: str) -> str:
    """The first problem alone."""
    return re.sub(r" \(and \d+ more problems?\)$", "", message)
