"""What rendering vouches for when it signs a manifest: its own files, its own statements, and the same answer each time."""

import base64
import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import Erased
from contracts.evidence import statements as stated
from contracts.evidence.manifest import Document, Events, EvidenceParty, Manifest, Member
from contracts.evidence.statements import LineReference, Statement
from contracts.rpc.rendering import SignedEvidence, SignEvidence
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from services.gateway.evidence import verify as checker
from services.rendering import commands
from services.rendering.jobs.sealing import material
from services.rendering.models import Result, ResultSource
from services.rendering.protocol.messages import Mechanism, SealMaterial, Signatory
from services.rendering.sealing import evidence
from services.rendering.signatures import signatories
from services.rendering.storage import confirmations
from tests.support.material.agreement import agreement_pdf
from tests.support.rendering.providers.stamps import provider, stamped
from tests.support.rendering.seal_jobs import blobs, count, database
from tests.support.rendering.seals import identity, sealed

__all__ = ["blobs", "database"]

AT = datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC)


class Renderer:
    """The child's work, done here."""

    def seal_material(self, data: bytes, signatures: Any) -> SealMaterial:
        return material.material(data, signatures)


@pytest.fixture
def trail(database: Database, blobs: BlobStore) -> BlobRef:
    """A sealed file that is known."""
    ref = blobs.put(sealed(agreement_pdf(), identity("rsa-3072")), "application/pdf", "submissions/12/")
    database.write(commands.remember_sealed, [ref.sha256], 12, AT)
    return ref


Sign = Callable[..., SignedEvidence]


@pytest.fixture
def sign(database: Database, blobs: BlobStore) -> Sign:
    def signed(
        trail: BlobRef, kind: Any = "rsa-3072", sealed_documents: Sequence[BlobRef] = (), **more: Any
    ) -> SignedEvidence:
        work = evidence.Evidence(database, blobs, Renderer(), identity(kind))  # type: ignore[arg-type]
        asked = SignEvidence(manifest=manifest(trail, **more), audit_trail=trail, documents=list(sealed_documents))
        return work.signed(asked)

    return signed


def manifest(trail: BlobRef, **more: Any) -> Manifest:
    path = "sealed/audit-trail.pdf"
    given = {"parties": [EvidenceParty(submitter=34)], "documents": [], **more}
    members = {path: Member(sha256=trail.sha256, size=trail.size), **given.pop("members", {})}
    events = Events(path="events.jsonl", lines=1, head="ab" * 32)
    return Manifest(submission=12, sealed_at=AT, events=events, audit_trail=path, members=members, **given)


def statement(**more: Any) -> Statement:
    line = LineReference(number=1, hash="ab" * 32)
    given = {"completed_at": AT, "line": line, "head": line, "values": "cd", "documents": {}, "paper": "ef", **more}
    return Statement(submission=12, submitter=34, **given)


def keep(blobs: BlobStore, made: Statement, *, signature: bytes | None = None) -> None:
    """As rendering keeps it."""
    sha256 = stated.digest(made)
    for key, data in zip(stated.keys(12, 34, sha256), (stated.encoded(made), signature), strict=True):
        if data is not None:
            place, _, name = key.rpartition("/")
            blobs.put(data, "application/json", f"{place}/", name=name)


def cms_over(data: bytes) -> bytes:
    signer = identity("rsa-3072").signer
    return signer.envelope(signer.sign(hashlib.sha256(data).digest()))


def test_openssl_accepts_the_signature_and_a_changed_manifest_is_refused(
    sign: Sign, trail: BlobRef, tmp_path: Path
) -> None:
    signed = sign(trail)
    (tmp_path / "manifest.json").write_text(signed.manifest)
    (tmp_path / "manifest.p7s").write_bytes(base64.b64decode(signed.signature))
    (tmp_path / "root.pem").write_bytes(base64.b64decode(signed.made["certificates/root.pem"]))
    asked = (
        "openssl cms -verify -binary -inform DER -in manifest.p7s -content manifest.json -CAfile root.pem -purpose any"
    )
    subprocess.run([*asked.split(), "-out", "/dev/null"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "manifest.json").write_text(signed.manifest.replace('"submission": 12', '"submission": 13'))
    refused = subprocess.run([*asked.split(), "-out", "/dev/null"], cwd=tmp_path, check=False, capture_output=True)
    assert refused.returncode != 0


def test_the_same_is_answered_the_same_also_with_a_key_that_signs_otherwise_each_time(
    sign: Sign, trail: BlobRef
) -> None:
    first = sign(trail, "ec-p256")
    assert sign(trail, "ec-p256") == first
    other = sign(trail, "ec-p256", parties=[])
    assert other.signature != first.signature


def test_only_files_that_were_sealed_here_are_vouched_for(sign: Sign, trail: BlobRef, blobs: BlobStore) -> None:
    foreign = blobs.put(sealed(agreement_pdf(), identity("ec-p256")), "application/pdf", "submissions/12/")
    path = "sealed/01-a.pdf"
    document = Document(uuid="u", name="a", original=path, shown=path, sealed=path)
    members = {path: Member(sha256=foreign.sha256, size=foreign.size)}
    with pytest.raises(ServiceError, match=r"sealed/01-a\.pdf is not a file that was sealed for"):
        sign(trail, documents=[document], members=members)
    with pytest.raises(ServiceError, match=r"audit-trail\.pdf is not a file that was sealed for"):
        sign(foreign)
    with pytest.raises(ServiceError, match=r"documents\[0\] is not a file that was sealed for"):
        sign(trail, sealed_documents=[foreign])


def test_a_provider_that_sealed_documents_comes_with_its_chain(
    sign: Sign, trail: BlobRef, database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    """Also where a stamp follows the seal. What ``verify.py`` makes of it, openssl takes."""
    provided = stamped(sealed(agreement_pdf(["Provided"]), provider("A provider")), (400, 100, 472, 172))
    files = {"sealed/01-a.pdf": provided, "sealed/02-b.pdf": sealed(agreement_pdf(["Ours"]), identity("rsa-3072"))}
    refs = [blobs.put(data, "application/pdf", "submissions/12/") for data in files.values()]
    database.write(commands.remember_sealed, [ref.sha256 for ref in refs], 12, AT)
    members = {path: Member(sha256=ref.sha256, size=ref.size) for path, ref in zip(files, refs, strict=True)}
    documents = [Document(uuid=path, name="a", original=path, shown=path, sealed=path) for path in files]
    signed = sign(trail, documents=documents, members=members, sealed_documents=refs)
    told = json.loads(signed.manifest)
    (chain, none) = (document["certificates"] for document in told["documents"])
    assert none is None
    leaf = provider("A provider").encoded[0]
    assert base64.b64decode(signed.made[chain]).startswith(ssl.DER_cert_to_PEM_cert(leaf).encode())
    assert chain in told["members"]
    for path, encoded in signed.made.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(base64.b64decode(encoded))
    told["sealed_at"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    for (path, data), certificate in zip(files.items(), (leaf, identity("rsa-3072").encoded[0]), strict=True):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        seal, covered, _ = checker.seal_of(data, certificate)
        (tmp_path / "seal").write_bytes(seal)
        (tmp_path / f"{path}.signed").write_bytes(covered)
        command = checker.command(told, "seal", f"{path}.signed", None)
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_a_file_of_another_submission_is_not_vouched_for(sign: Sign, database: Database, blobs: BlobStore) -> None:
    other = blobs.put(sealed(agreement_pdf(["Other"]), identity("rsa-3072")), "application/pdf", "submissions/13/")
    database.write(commands.remember_sealed, [other.sha256], 13, AT)
    with pytest.raises(ServiceError, match="is not a file that was sealed for this submission"):
        sign(other)


def test_its_own_statements_are_in_it_all_of_them(sign: Sign, trail: BlobRef, blobs: BlobStore) -> None:
    first, second = statement(), statement(values="dd")
    for one in (first, second):
        keep(blobs, one, signature=cms_over(stated.encoded(one)))
    signed = sign(trail, parties=[])  # whatever the caller says of the parties
    told = json.loads(signed.manifest)
    paths = {f"statements/34-{stated.digest(one)}.json" for one in (first, second)}
    assert [party["submitter"] for party in told["parties"]] == [34]
    assert {one["statement"] for one in told["parties"][0]["statements"]} == paths
    assert paths <= set(told["members"])
    assert paths <= set(signed.stored)


def test_a_statement_that_is_not_signed_yet_is_waited_for(sign: Sign, trail: BlobRef, blobs: BlobStore) -> None:
    keep(blobs, statement())
    with pytest.raises(ServiceError, match="still being signed") as refused:
        sign(trail)
    assert refused.value.code == "unavailable"
    later = threading.Timer(0.3, keep, (blobs, statement()), {"signature": cms_over(stated.encoded(statement()))})
    later.start()
    assert [one for one in sign(trail).stored if one.endswith(".p7s")]
    later.join()


def test_it_is_kept_until_its_submission_is_erased(sign: Sign, trail: BlobRef, database: Database) -> None:
    first = sign(trail, "ec-p256")
    assert database.write(commands.expire_results, AT + timedelta(days=50 * 365)) == []
    assert sign(trail, "ec-p256") == first
    erase(database)
    assert (count(database, Result), count(database, ResultSource)) == (0, 0)


def erase(database: Database) -> None:
    envelope = Envelope(
        id=uuid7(), type="submission.erased", source="submissions", subject="submission:12", occurred_at=AT, data={}
    )
    database.write(commands.erase, envelope, Erased(submission_id=12), AT)


def test_nothing_is_kept_of_what_is_erased_while_it_is_made(
    database: Database, blobs: BlobStore, trail: BlobRef
) -> None:
    class Slow(Renderer):
        def seal_material(self, data: bytes, signatures: Any) -> SealMaterial:
            erase(database)
            return super().seal_material(data, signatures)

    work = evidence.Evidence(database, blobs, Slow(), identity("rsa-3072"))  # type: ignore[arg-type]
    with pytest.raises(ServiceError, match="is not a file that was sealed for this submission"):
        work.signed(SignEvidence(manifest=manifest(trail), audit_trail=trail))
    assert (count(database, Result), count(database, ResultSource)) == (0, 0)


def test_signers_own_certificates_are_named(sign: Sign, trail: BlobRef, database: Database) -> None:
    own = identity("ec-p256")
    leaf = hashlib.sha256(own.encoded[0]).hexdigest()
    signer = {
        "provider": "sign.example.com",
        "subject": "CN=Ann Ray",
        "issuer": "CN=Root",
        "serial": "1f",
        "sha256": leaf,
        "signed_at": AT.isoformat(),
    }

    def signed(session: Any) -> None:
        for number, (stage, submitter) in enumerate((("signed", 34), ("discarded", 35)), 1):
            row = confirmations._new(f"c{number}", 12, AT)
            row.stage, row.submitter_id, row.signer = stage, submitter, signer
            row.prepared_for = {
                "signatory": signatories.as_json(
                    Signatory(
                        chain=own.encoded,
                        name="Ann Ray",
                        subject="CN=Ann Ray",
                        issuer=b"",
                        serial="1f",
                        mechanism=Mechanism("ecdsa"),
                        signature_size=72,
                        valid_from=AT,
                        valid_to=AT,
                    )
                )
            }
            session.add(row)

    database.write(signed)
    answer = sign(trail, parties=[EvidenceParty(submitter=34), EvidenceParty(submitter=35)])
    ann, other = json.loads(answer.manifest)["parties"]
    path = f"certificates/signer-{leaf[:16]}.pem"
    assert (ann["signer"]["subject"], ann["certificates"]) == ("CN=Ann Ray", path)
    assert (other["signer"], other["certificates"]) == (None, None)
    made = base64.b64decode(answer.made[path]).decode()
    assert made == "".join(map(ssl.DER_cert_to_PEM_cert, own.encoded))
    assert json.loads(answer.manifest)["members"][path]["sha256"] == hashlib.sha256(made.encode()).hexdigest()
