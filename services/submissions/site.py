"""Links that this service gives out: to signing pages and to files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts import links
from services.submissions.settings import Settings

_ALWAYS = 253_402_300_799
"""The last second of the year 9999."""
_NOT_IN_FILE_NAMES = re.compile(r'[\x00-\x1f\\/:*?"<>|]')


@dataclass(frozen=True)
class Site:
    """Where the outside finds the suite. ``link_ttl`` and ``mailed_link_ttl`` in seconds."""

    base_url: str
    link_secret: str
    link_ttl: int
    mailed_link_ttl: int

    @classmethod
    def configured(cls, settings: Settings) -> "Site":
        """Build the one that the operator's settings describe."""
        secret = settings.link_secret.get_secret_value()
        return cls(settings.base_url, secret, settings.file_link_ttl, settings.mailed_link_ttl)

    def receipt_page(self, receipt: str) -> str:
        """Return where anybody can check a receipt."""
        return f"{self.base_url}/verify?receipt={receipt}"

    def erasure_receipt(self, submission_id: int) -> str:
        """Return where the API has the signed receipt for a submission that was removed for good."""
        return f"{self.base_url}/api/submissions/{submission_id}/erasure/receipt"

    def signing_page(self, slug: str) -> str:
        return f"{self.base_url}/s/{slug}"

    def submission_page(self, slug: str) -> str:
        return f"{self.base_url}/e/{slug}"

    def expiring(self, now: datetime) -> "FileLinks":
        """For API answers: whoever has the link may fetch the file, for a while."""
        return FileLinks(self, links.expiry_of_answers(now, self.link_ttl))

    def mailed(self, now: datetime) -> "FileLinks":
        """For mails whose files are too big to be attached: their readers have no API key and do not read at once."""
        return FileLinks(self, int(now.timestamp()) + self.mailed_link_ttl)

    def printed(self) -> "FileLinks":
        """For sealed files, which are kept for ever and cannot be changed: whoever has one may fetch the file until the
        submission is removed for good."""
        return FileLinks(self, _ALWAYS)

    def lasting(self, submission_id: int) -> "FileLinks":
        """For events of the submission, which are kept for ever: the link does not end, but works only with an API key."""
        return FileLinks(self, None, links.FieldsOf("submissions", submission_id, ""))


@dataclass(frozen=True)
class FileLinks:
    """Makes links that are good until ``expires_at``. ``of_event``: whose event they are in."""

    site: Site
    expires_at: int | None
    of_event: links.FieldsOf | None = None

    def to(self, file: Mapping[str, Any], name: str) -> str:
        """The URL of a file, given its BlobRef as JSON; ``name`` with extension is what it is saved as."""
        link = links.FileLink(
            file["key"], file["media_type"], file_name(name), self.expires_at, fields_of=self.of_event
        )
        return links.url(self.site.base_url, self.site.link_secret, link)

    def to_pictures(self, file: Mapping[str, Any], name: str, fields_of: links.FieldsOf | None) -> str:
        """Pictures of the pages of a PDF, the first one's when no other is asked for."""
        stem = file_name(f"{name}.png")
        link = links.FileLink(file["key"], file["media_type"], stem, self.expires_at, 1, fields_of)
        return links.url(self.site.base_url, self.site.link_secret, link)

    def to_pdf(self, file: Mapping[str, Any], name: str) -> str:
        return self.to(file, f"{name}.pdf")


def file_name(name: str) -> str:
    """Return what a file is called when it is saved: never a path, whatever somebody called it."""
    stem, _, extension = _NOT_IN_FILE_NAMES.sub("_", name).strip(" .").rpartition(".")
    if not stem:
        return extension[:150] or "file"
    return f"{stem.strip(' .')[:150]}.{extension[:20]}"
