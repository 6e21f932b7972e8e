"""Who signs for a provider: their certificates, as they were checked, and as a row keeps them."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from services.rendering.jobs.sealing.cms import CmsEncoder
from services.rendering.protocol.messages import Mechanism, Signatory


@dataclass(frozen=True)
class ProviderIdentity:
    """The certificates of a provider's credential, which it signs with. No revocation list of theirs is kept here."""

    signatory: Signatory
    revocation_list: None = None

    @property
    def name(self) -> str:
        """The common name, else the organisation, of the certificate."""
        return self.signatory.name

    @property
    def encoded(self) -> list[bytes]:
        """The chain in DER, leaf first."""
        return list(self.signatory.chain)

    @property
    def serial(self) -> int:
        return int(self.signatory.serial, 16)

    @property
    def sha256(self) -> str:
        """Of the leaf, in lower-case hex."""
        return hashlib.sha256(self.signatory.chain[0]).hexdigest()

    @cached_property
    def signer(self) -> CmsEncoder:
        signatory = self.signatory
        return CmsEncoder(signatory.chain, signatory.issuer, self.serial, signatory.mechanism, signatory.signature_size)


def as_json(signatory: Signatory) -> dict[str, Any]:
    """The signatory as JSON."""
    mechanism = signatory.mechanism
    return {
        "chain": [b64encode(certificate).decode() for certificate in signatory.chain],
        "name": signatory.name,
        "subject": signatory.subject,
        "issuer": b64encode(signatory.issuer).decode(),
        "serial": signatory.serial,
        "mechanism": {"algorithm": mechanism.algorithm, "hash": mechanism.hash},
        "signature_size": signatory.signature_size,
        "valid_from": signatory.valid_from.isoformat(),
        "valid_to": signatory.valid_to.isoformat(),
        "issuer_name": signatory.issuer_name,
    }


def read(data: Mapping[str, Any]) -> Signatory:
    """The signatory that ``as_json`` has made JSON of."""
    return Signatory(
        chain=[b64decode(encoded) for encoded in data["chain"]],
        name=data["name"],
        subject=data["subject"],
        issuer=b64decode(data["issuer"]),
        serial=data["serial"],
        mechanism=Mechanism(**data["mechanism"]),
        signature_size=data["signature_size"],
        valid_from=datetime.fromisoformat(data["valid_from"]),
        valid_to=datetime.fromisoformat(data["valid_to"]),
        issuer_name=data.get("issuer_name", ""),
    )
