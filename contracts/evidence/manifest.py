"""The description of a submission's evidence: the manifest of the ZIP that ``GET /submissions/:id/evidence`` gives.

docs/evidence.md describes it for whoever writes a checker of their own.
"""

from pydantic import Field

from contracts.types import Moment, SignerCertificate, Tolerant

TYPE = "countersign evidence"


class Member(Tolerant):
    """A file of the ZIP: ``sha256`` in lower-case hex, ``size`` in bytes."""

    sha256: str
    size: int


class Document(Tolerant):
    """A document, each time as the path of a member: ``original`` as it was sent in, ``shown`` the PDF that the signers saw
    (the same where nothing had to be done to it), ``sealed`` as it left. ``name`` is what it is called. ``certificates`` is a
    PEM file with the chain of its seal where a provider signed it, None where this installation did."""

    uuid: str
    name: str
    original: str
    shown: str
    sealed: str
    certificates: str | None = None


class Events(Tolerant):
    """The lines of the trail in the member ``path``, and ``head``, the hash of the last one."""

    path: str
    lines: int
    head: str


class StatementFiles(Tolerant):
    """A statement and its signature, as paths of members."""

    statement: str
    signature: str


class EvidenceParty(Tolerant):
    """A party that has completed; ``statements`` is empty where an older version took the completion. ``signer`` is the
    certificate that they have signed every document with at a provider, None where they did not; ``certificates`` a PEM file
    with its chain."""

    submitter: int
    statements: list[StatementFiles] = Field(default_factory=list)
    signer: SignerCertificate | None = None
    certificates: str | None = None


class Manifest(Tolerant):
    """``members`` has every file of the ZIP but the manifest and its signature. ``certificates`` is a PEM file with the chain
    of the seal, ``root`` one with the root certificates, None where the chain ends in none.
    ``revocation`` are the proofs that the seal carries (DER)."""

    type: str = TYPE
    version: int = 1
    submission: int
    sealed_at: Moment
    events: Events
    audit_trail: str
    documents: list[Document]
    parties: list[EvidenceParty]
    certificates: str | None = None
    root: str | None = None
    revocation: list[str] = Field(default_factory=list)
    members: dict[str, Member]
