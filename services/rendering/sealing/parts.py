"""Sealed files that are kept while their duty stamps are waited for: what is known of each, as a row has it."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.blobs import BlobRef
from services.rendering.protocol.messages import ProviderSignature


@dataclass(frozen=True)
class Part:
    """A sealed file. ``document`` is the uuid of one of the submission's documents, None for the combined file; ``pages`` and
    PAdES ``level`` are as they were found when it was read back."""

    document: str | None
    file: BlobRef
    pages: int
    level: str
    conformance: list[str] | None = None
    signature: ProviderSignature | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        signature = self.signature
        return {
            "document": self.document,
            "file": self.file.model_dump(mode="json"),
            "pages": self.pages,
            "level": self.level,
            "conformance": self.conformance,
            "signature": signature
            and {
                "provider": signature.provider,
                "certificate": b64encode(signature.certificate).decode(),
                "signed_at": signature.signed_at.isoformat(),
            },
        }


def read(data: dict[str, Any]) -> Part:
    """The part that ``as_json`` has made JSON of."""
    signature = data["signature"]
    return Part(
        document=data["document"],
        file=BlobRef.model_validate(data["file"]),
        pages=data["pages"],
        level=data["level"],
        conformance=data["conformance"],
        signature=signature
        and ProviderSignature(
            signature["provider"],
            b64decode(signature["certificate"]),
            datetime.fromisoformat(signature["signed_at"]),
        ),
    )
