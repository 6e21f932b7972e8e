"""Everything that is wrong with a request, collected, so that the API user can mend it in one go."""

from contracts.errors import ServiceError

_SHOWN = 50


class Problems:
    """Paths in the request body with a reason each, such as ``documents[0].fields[2].type``."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []

    def add(self, field: str, reason: str) -> None:
        """``reason`` continues the sentence that the field's path begins: ``must be ...``."""
        self.found.append({"field": field, "reason": reason})

    def refuse(self) -> None:
        """Raises ServiceError("invalid") when there was any problem; the first one is the message."""
        if not self.found:
            return
        first = self.found[0]
        more = len(self.found) - 1
        rest = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        raise ServiceError("invalid", f"{first['field']} {first['reason']}{rest}", list(self.found[:_SHOWN]))
