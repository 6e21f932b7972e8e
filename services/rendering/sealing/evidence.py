"""The manifest of a submission's evidence, completed and signed.

The signature is made as that of a seal is and covers the manifest's bytes (detached CMS). It says that this installation put
the evidence together, and nothing about a time. Only files that were sealed here are vouched for. The first answer is kept,
so that who asks again gets the same bytes.
"""

import base64
import hashlib
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.evidence import statements as stated
from contracts.evidence.manifest import EvidenceParty, Manifest, Member, StatementFiles
from contracts.rpc.rendering import SignedEvidence, SignEvidence
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobMissing, BlobStore
from contracts.types import SignerCertificate
from services.rendering import commands, queries
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.results import FreshResult, Results
from services.rendering.rules import domain
from services.rendering.sealing import statements
from services.rendering.signatures import signatories
from services.rendering.storage import confirmations

KIND = "evidence"
KINDS = (stated.JSON, stated.SIGNATURE)
_PATIENCE = 3.0
"""Seconds that a statement which is not signed yet is waited for: a little more than ``commands.AFTER_SEALING``."""
_KEPT = timedelta(days=100 * 365)
"""Until the submission is erased: they are a few kilobytes."""


class Evidence:
    """Completes and signs manifests."""

    def __init__(self, database: Database, blobs: BlobStore, renderer: Renderer, identity: SealIdentity) -> None:
        self._database, self._blobs, self._renderer, self._identity = database, blobs, renderer, identity
        self._results = Results(database, blobs, _KEPT)

    def signed(self, request: SignEvidence) -> SignedEvidence:
        """Raises ServiceError("invalid") when one of the files was not sealed here."""
        manifest = request.manifest
        names = {document.sealed: manifest.members[document.sealed].sha256 for document in manifest.documents}
        names[manifest.audit_trail] = request.audit_trail.sha256
        names |= {f"documents[{number}]": document.sha256 for number, document in enumerate(request.documents)}
        self._refuse_unknown(manifest.submission, names)
        statement_files = self._statements(manifest.submission)
        digest = domain.digest_of(
            request.model_dump(mode="json"), {path: ref.sha256 for path, (_, ref) in statement_files.items()}
        )
        try:
            answer = self._results.get(
                KIND, digest, lambda: self._make(request, statement_files), sources=[*names.values()]
            )
        except commands.SourceForgotten:
            self._refuse_unknown(manifest.submission, names)
            raise
        try:
            self._refuse_unknown(manifest.submission, names)
        except ServiceError:  # erased meanwhile
            self._database.write(commands.forget_result, KIND, digest)
            raise
        return SignedEvidence.model_validate(answer)

    def _refuse_unknown(self, submission_id: int, names: Mapping[str, str]) -> None:
        """``names``: the SHA-256 of each file that was sealed, by what it is called."""
        unknown = self._database.read(queries.not_sealed_for, submission_id, [*names.values()])
        if strange := [name for name, sha256 in names.items() if sha256 in unknown]:
            raise invalid(f"{strange[0]} is not a file that was sealed for this submission")

    def _statements(self, submission_id: int) -> dict[str, tuple[int, BlobRef]]:
        """The statements of a submission and their signatures: whose, and where they are kept, by path in the evidence. Waits
        for the last one, which is signed when everything is sealed, and so may be a moment later than whoever heard of that."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._statement_files(submission_id)
            except BlobMissing as error:
                if time.monotonic() > give_up:
                    raise ServiceError("unavailable", "A statement is still being signed. Try again later.") from error
            time.sleep(0.05)

    def _statement_files(self, submission_id: int) -> dict[str, tuple[int, BlobRef]]:
        """Raises BlobMissing when one is not signed yet."""
        files = {}
        for known_statement in statements.known_statements(self._database, self._blobs, submission_id):
            submitter, sha256 = known_statement.statement.submitter, stated.digest(known_statement.statement)
            for key, media_type in zip(stated.keys(submission_id, submitter, sha256), KINDS, strict=True):
                data = self._blobs.get(key)
                ref = BlobRef(key=key, sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)
                files[f"statements/{key.rpartition('/')[2]}"] = (submitter, ref)
        return dict(sorted(files.items()))

    def _make(self, request: SignEvidence, statement_files: dict[str, tuple[int, BlobRef]]) -> FreshResult:
        signatures = [self._blobs.get(ref) for path, (_, ref) in statement_files.items() if path.endswith(".p7s")]
        material = self._renderer.seal_material(self._blobs.get(request.audit_trail), signatures)
        own_certificate = self._identity.encoded[-1]
        chain = self._identity.chain[-1]
        roots = [
            *material.roots,
            *([own_certificate] if chain.issuer == chain.subject and own_certificate not in material.roots else []),
        ]
        files = {"certificates/seal.pem": _pem(material.chain)}
        if roots:
            files["certificates/root.pem"] = _pem(roots)
        proofs = {f"revocation/{number}.crl": data for number, data in enumerate(material.lists, 1)}
        proofs |= {f"revocation/{number}.ocsp": data for number, data in enumerate(material.answers, 1)}
        files |= proofs
        by_document = self._chains_of_providers(request, material.chain[0])
        files |= dict(by_document.values())
        signers = self._signers(request.manifest.submission)
        files |= {path: chain for _, path, chain in signers.values()}
        members = {
            path: Member(sha256=hashlib.sha256(data).hexdigest(), size=len(data)) for path, data in files.items()
        }
        members |= {path: Member(sha256=ref.sha256, size=ref.size) for path, (_, ref) in statement_files.items()}
        documents = [
            document.model_copy(update={"certificates": by_document[document.sealed][0]})
            if document.sealed in by_document
            else document
            for document in request.manifest.documents
        ]
        manifest = request.manifest.model_copy(
            update={
                "documents": documents,
                "parties": [
                    party.model_copy(
                        update={"signer": signers[party.submitter][0], "certificates": signers[party.submitter][1]}
                    )
                    if party.submitter in signers
                    else party
                    for party in _parties(request.manifest.parties, statement_files)
                ],
                "certificates": "certificates/seal.pem",
                "root": "certificates/root.pem" if roots else None,
                "revocation": [*proofs],
                "members": {**request.manifest.members, **members},
            }
        )
        text = written(manifest)
        signer = self._identity.signer
        signature = signer.envelope(signer.sign(hashlib.sha256(text.encode()).digest()))
        answer = SignedEvidence(
            manifest=text,
            signature=base64.b64encode(signature).decode(),
            made={path: base64.b64encode(data).decode() for path, data in files.items()},
            stored={path: ref for path, (_, ref) in statement_files.items()},
        )
        return FreshResult(answer.model_dump(mode="json"))

    def _chains_of_providers(self, request: SignEvidence, own_certificate: bytes) -> dict[str, tuple[str, bytes]]:
        """Return, of each document that was sealed with another certificate than our own, by its path: the path and the content
        of a file with the chain of the seal."""
        chains_by_document: dict[str, tuple[str, bytes]] = {}
        for document, sealed in zip(request.manifest.documents, request.documents, strict=False):
            chain = self._renderer.seal_material(self._blobs.get(sealed), []).chain
            if chain and chain[0] != own_certificate:
                name = hashlib.sha256(chain[0]).hexdigest()[:16]
                chains_by_document[document.sealed] = (f"certificates/provider-{name}.pem", _pem(chain))
        return chains_by_document

    def _signers(self, submission_id: int) -> dict[int, tuple[SignerCertificate, str, bytes]]:
        """Of each submitter who has signed at a provider: their certificate, and path and content of a file with its chain."""
        signers = {}
        for row in self._database.read(confirmations.signed_of, submission_id):
            if row.signer is not None and row.prepared_for is not None:
                signer = SignerCertificate.model_validate(row.signer)
                chain = list(signatories.read(row.prepared_for["signatory"]).chain)
                signers[row.submitter_id] = (signer, f"certificates/signer-{signer.sha256[:16]}.pem", _pem(chain))
        return signers


def _parties(
    completed: Sequence[EvidenceParty], statement_files: Mapping[str, tuple[int, BlobRef]]
) -> list[EvidenceParty]:
    """The parties with their statements; also those that have a statement and are not named by who asks."""
    by_submitter: dict[int, list[StatementFiles]] = {party.submitter: [] for party in completed}
    for path, (submitter, _) in statement_files.items():
        if path.endswith(".json"):
            files = StatementFiles(statement=path, signature=path.removesuffix("json") + "p7s")
            by_submitter.setdefault(submitter, []).append(files)
    return [EvidenceParty(submitter=submitter, statements=files) for submitter, files in by_submitter.items()]


def written(manifest: Manifest) -> str:
    """The text of manifest.json, for people to read as well."""
    return json.dumps(manifest.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _pem(certificates: list[bytes]) -> bytes:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates)).encode()
