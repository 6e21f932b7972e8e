"""Links to the documents of templates: expiring ones for API answers, lasting ones for events."""

from dataclasses import dataclass
from datetime import datetime

from contracts import links
from contracts.blobs import BlobRef
from services.templates import names


@dataclass(frozen=True)
class FileLinks:
    """Makes links that are good until ``expires_at`` (Unix seconds), or, without it, for callers with an API key only."""

    base_url: str
    secret: str
    expires_at: int | None

    def to_file(self, file: BlobRef, name: str) -> str:
        return self._url(file, names.file_name(name), None)

    def to_preview(self, file: BlobRef, name: str) -> str:
        """A picture of the first page."""
        return self._url(file, names.file_name(name).removesuffix(".pdf") + ".png", 1)

    def _url(self, file: BlobRef, file_name: str, page: int | None) -> str:
        link = links.FileLink(file.key, file.media_type, file_name, self.expires_at, page)
        return links.url(self.base_url, self.secret, link)


@dataclass(frozen=True)
class LinkMaker:
    """``ttl`` in seconds."""

    base_url: str
    secret: str
    ttl: int

    def expiring(self, now: datetime) -> FileLinks:
        return FileLinks(self.base_url, self.secret, int(now.timestamp()) + self.ttl)

    def lasting(self) -> FileLinks:
        return FileLinks(self.base_url, self.secret, None)
