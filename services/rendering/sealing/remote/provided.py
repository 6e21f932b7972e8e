"""What a provider has signed for a seal job: the files that were prepared, its signatures of them, its certificate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from contracts.blobs import BlobRef
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Notice
from services.rendering.jobs.sealing import cms
from services.rendering.models import CertsignJob, CertsignSigning
from services.rendering.protocol.messages import ProviderSignature, Reserved, ValueDrawn, Waiver
from services.rendering.signatures import signatories
from services.rendering.signatures.sealer import ProviderSealer
from services.rendering.signatures.signatories import ProviderIdentity

DRAWN = TypeAdapter(list[ValueDrawn])

ProviderSealers = Callable[[ProviderIdentity], ProviderSealer]


class NotSigned(Exception):
    """The provider has not signed everything; nothing else is sealed in its place."""


@dataclass(frozen=True)
class Provided:
    """Every document of a job with its signature. ``has_room``: a time-stamp fits into the files."""

    provider: str
    sealer: ProviderSealer
    has_room: bool
    notices: Sequence[Notice]
    _signings: Sequence[CertsignSigning]
    _blobs: BlobStore

    def file(self, number: int, *, stamped: bool) -> bytes:
        """The sealed file of a document. Raises TimeStampFailed."""
        signing = self._signings[number]
        data = self._blobs.get(BlobRef.model_validate(signing.prepared))
        unsigned = Reserved(data, signing.start, signing.size, b"")
        assert signing.signature is not None, "`provided` saw to it"
        signed = cms.Signed(signing.attributes, signing.signature)
        return self.sealer.finish(unsigned, signed, stamped=stamped and self.has_room)

    def drawn(self, number: int) -> list[ValueDrawn]:
        """Return what must be found in the file."""
        return DRAWN.validate_python(self._signings[number].drawn)

    def conformance(self, number: int) -> list[str] | None:
        return self._signings[number].conformance

    def signature(self, number: int) -> ProviderSignature:
        """Return what the audit trail says of who signed."""
        signed_at = self._signings[number].signed_at
        assert signed_at is not None
        return ProviderSignature(self.provider, self.sealer.identity.encoded[0], signed_at)


def provided(
    row: CertsignJob | None, signings: Sequence[CertsignSigning], blobs: BlobStore, sealers: ProviderSealers
) -> Provided | Waiver:
    """Return what came of the order that a provider signs, from ``certsigning.with_signings``. Raises NotSigned."""
    if row is None or row.state != "done":
        raise NotSigned("the provider has not signed yet")
    if row.waived_by is not None and row.waived_at is not None:
        return Waiver(row.provider, row.waived_by, row.waived_at)
    if row.prepared_for is None or row.assurance is None or len(signings) != row.documents:
        raise NotSigned("the provider has not signed all documents")
    if any(signing.signature is None for signing in signings):
        raise NotSigned("the provider has not signed all documents")
    identity = ProviderIdentity(signatories.read(row.prepared_for["signatory"]))
    notices = [Notice.model_validate(notice) for notice in row.assurance["notices"]]
    return Provided(row.provider, sealers(identity), row.assurance["has_room"], notices, signings, blobs)
