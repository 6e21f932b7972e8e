"""What a provider of certificates is good for, tried out for an admin: its certificate, and a signature of a random hash."""

import os

from contracts.providers import CertsignMode, CertsignOrder, CertsignSettings
from contracts.rpc.rendering import CertsignCheck, CheckCertsign
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from services.rendering.children.pool import JobFailed, JobRefused
from services.rendering.protocol.messages import Signatory
from services.rendering.providers.certificates.certsign import CertificateProvider, Credential, Pending
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.opening import OpenForChecks, host_of, settings_of
from services.rendering.sealing.remote.credentials import counts_tries, mark_of, may_have_counted
from services.rendering.signatures.anchors import anchors_of
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import certsigning

_PERSON = "The provider asks a person to confirm the signature, and a seal is made without one."
_NOBODY_COMES_BACK = "https://nobody.invalid/identity/return"
"""Nobody is sent to the provider by a check: it only tells that it would have them come."""

_LABEL = "Test of the connection"


class CertsignChecks:
    """Thread-safe; remembers nothing."""

    def __init__(self, database: Database, workshop: Workshop, open_provider: OpenForChecks, link_secret: str) -> None:
        self._database, self._workshop = database, workshop
        self._open_provider, self._secret = open_provider, link_secret

    def check(self, request: CheckCertsign) -> CertsignCheck:
        """Ask for the certificate, and for a signature if that is wished. Raises nothing that a provider does wrong: that is
        the answer's ``problem``."""
        try:
            settings = settings_of(CertsignOrder(settings=request.settings, provider=""), self._secret)
        except ProviderFailed as failed:
            return CertsignCheck(provider="", problem=failed.message)
        name = host_of(settings)
        result = CertsignCheck(provider=name, last_signed_at=self._database.read(certsigning.last_signed_at, name))
        try:
            by_signers = settings.mode is CertsignMode.SIGNER
            provider = self._open_provider(settings, _NOBODY_COMES_BACK if by_signers else None)
            credential = provider.credential(state=_NOBODY_COMES_BACK if by_signers else None)
            if isinstance(credential, Pending):
                # Signers log in there themselves: more than that it asks for them cannot be found out.
                return result if by_signers else result.model_copy(update={"problem": _PERSON})
            signatory = self._signatory(settings, credential)
            certificate = {"subject": signatory.subject, "valid_to": signatory.valid_to}
            result = result.model_copy(update=certificate)
            problem = self._sign(settings, provider, credential, signatory) if request.sign and not by_signers else None
        except ProviderFailed as failed:
            problem = failed.message
        except JobRefused as refused:
            problem = refused.reason
        except JobFailed as failed:
            problem = str(failed)
        return result.model_copy(update={"problem": problem})

    def _signatory(self, settings: CertsignSettings, credential: Credential) -> Signatory:
        anchors = [*self._workshop.provider_anchors, *anchors_of(settings)]
        return self._workshop.renderer.check_chain(credential.chain, credential.mechanisms, anchors, now())

    def _sign(
        self, settings: CertsignSettings, provider: CertificateProvider, credential: Credential, signatory: Signatory
    ) -> str | None:
        """Return what is wrong, None when a signature was made that holds. Submissions know by it whether PIN and codes are
        right."""
        mechanism, key = signatory.mechanism, f"check-{uuid7()}"
        hashes = (os.urandom(int(mechanism.hash.removeprefix("sha")) // 8),)
        mark = mark_of(settings, self._secret)
        try:
            grant = provider.authorize(credential, hashes, mechanism, _LABEL, idempotency_key=f"{key}-authorize")
        except ProviderFailed as failed:
            if failed.counts or (counts_tries(settings, provider) and may_have_counted(failed)):
                self._database.write(certsigning.note_problem, mark, now(), failed.message, refused=failed.counts)
            raise
        if isinstance(grant, Pending):
            return _PERSON if grant.poll_after is None else None
        self._database.write(certsigning.end_turn, mark, now(), works=True)
        signatures = provider.sign(credential, grant, hashes, mechanism, idempotency_key=f"{key}-sign")
        if not isinstance(signatures, Pending):  # else it is at work, which is all that can be told now
            self._workshop.renderer.check_signatures(signatory.chain[0], mechanism, hashes, signatures)
        return None
