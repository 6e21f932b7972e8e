"""Links to the documents of templates: expiring ones for API answers, lasting ones for events."""

from dataclasses import dataclass
from datetime import datetime

from contracts import links
from contracts.blobs import BlobRef
from services.templates.rules import names

_SHORT = 3600
"""Seconds. Incoming files are swept after a day."""


@dataclass(frozen=True)
class FileLinks:
    """Makes links that are good until ``expires_at`` (Unix seconds), or, without it, for callers with an API key only.
    ``of_event``: the template whose event they are in."""

    base_url: str
    secret: str
    expires_at: int | None
    of_event: links.FieldsOf | None = None

    def to_file(self, file: BlobRef, name: str) -> str:
        file_name = names.file_name(name)
        return self._url(links.FileLink(file.key, file.media_type, file_name, self.expires_at, fields_of=self.of_event))

    def to_preview(self, file: BlobRef, name: str, fields_of: links.FieldsOf) -> str:
        """A picture of the first page; of another one, and with the fields, when the link is asked for that."""
        file_name = names.file_name(name).removesuffix(".pdf") + ".png"
        return self._url(links.FileLink(file.key, file.media_type, file_name, self.expires_at, 1, fields_of))

    def to_detected(self, file: BlobRef, name: str, fields_of: links.FieldsOf, page: int) -> str:
        """A picture of a page with the fields that are proposed for it drawn over it."""
        return f"{self.to_preview(file, name, fields_of)}?page={page}&detected=true"

    def to_picture(self, file: BlobRef, name: str, page: int) -> str:
        """A picture that was drawn for this answer."""
        file_name = f"{names.file_name(name).removesuffix('.pdf')}-{page}.png"
        return self._url(links.FileLink(file.key, file.media_type, file_name, self.expires_at))

    def _url(self, link: links.FileLink) -> str:
        return links.url(self.base_url, self.secret, link)


@dataclass(frozen=True)
class LinkMaker:
    """``ttl`` in seconds."""

    base_url: str
    secret: str
    ttl: int

    def expiring(self, now: datetime) -> FileLinks:
        return FileLinks(self.base_url, self.secret, links.expiry_of_answers(now, self.ttl))

    def short(self, now: datetime) -> FileLinks:
        """Links to what is not kept: good for an hour at most."""
        return FileLinks(self.base_url, self.secret, int(now.timestamp()) + min(self.ttl, _SHORT))

    def lasting(self, template_id: int) -> FileLinks:
        """Links in events of this template."""
        return FileLinks(self.base_url, self.secret, None, links.FieldsOf("templates", template_id, ""))
