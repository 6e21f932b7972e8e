"""The answer to ``dry_run``: what a creating call would make."""

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from contracts.detection import DetectedField, PagePicture
from contracts.types import FieldDefinition, Notice, PageSize, Tolerant


class DryRunDocument(Tolerant):
    """A document that would be kept; ``sha256`` is of what was sent in. Sizes are points, upright. ``pictures`` show what was
    detected, where that was asked for."""

    name: str
    pages: list[PageSize]
    signed: bool = False
    sha256: str
    pictures: list[PagePicture] | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without(handler(self), "pictures")


class DryRunSubmitter(Tolerant):
    """A submitter that would be created. ``fields`` are the names of those that they fill in."""

    role: str
    email: str | None = None
    name: str | None = None
    phone: str | None = None
    order: int | None = None
    completed: bool = False
    fields: list[str] = Field(default_factory=list)


class DryRun(Tolerant):
    """The result of a creating call that was only tried: nothing was stored, and nobody was told.

    ``problems`` are what the call would be refused for; when there are none it would be accepted. ``report`` is what was
    changed or skipped in the documents, and why. ``warnings`` are what of the request would be ignored. ``detected``: all
    proposals where fields were to be detected; those that are sure enough are among the ``fields``, too.
    """

    dry_run: Literal[True] = True
    accepted: bool
    problems: list[dict[str, str]] = Field(default_factory=list)
    warnings: list[dict[str, str]] = Field(default_factory=list)
    report: list[Notice] = Field(default_factory=list)
    name: str | None = None
    roles: list[str] = Field(default_factory=list)
    fields: list[FieldDefinition] = Field(default_factory=list)
    documents: list[DryRunDocument] = Field(default_factory=list)
    submitters: list[DryRunSubmitter] | None = None
    detected: list[DetectedField] | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without(handler(self), "detected")


def _without(plain: dict[str, Any], key: str) -> dict[str, Any]:
    """Leave out a key that was not asked for."""
    if isinstance(plain, dict) and plain.get(key) is None:
        plain.pop(key, None)
    return plain
