"""What a sealed file carries for those who check its seal: the chain of certificates, and proofs of non-revocation."""

import io
from collections.abc import Sequence

import pikepdf
from asn1crypto import cms, x509

from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol.messages import SealMaterial


def material(data: bytes, signatures: Sequence[bytes]) -> SealMaterial:
    """Collect what the seal of ``data`` carries, and the roots of its chain and of those in ``signatures``. Raises
    Refused without a seal."""
    entries, _trick = signature_fields.read(data)
    seal = signature_fields.seal_in(entries)
    if seal is None or not seal.contents:
        raise Refused("the file has no seal")
    chains = [_chain(contents) for contents in (seal.contents, *signatures)]
    roots = dict.fromkeys(certificate.dump() for chain in chains for certificate in chain if certificate.self_issued)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        store = pdf.Root.get("/DSS", pikepdf.Dictionary())
        lists, answers = (
            [stream.read_bytes() for stream in store.get(key, pikepdf.Array())] for key in ("/CRLs", "/OCSPs")
        )
    return SealMaterial([certificate.dump() for certificate in chains[0]], [*roots], lists, answers)


def _chain(encoded: bytes) -> list[x509.Certificate]:
    """The certificates of a CMS, the signer's first, each followed by its issuer."""
    content = cms.ContentInfo.load(encoded)["content"]
    certificates = [certificate.chosen for certificate in content["certificates"] if certificate.name == "certificate"]
    serial = content["signer_infos"][0]["sid"].chosen["serial_number"].native
    chain = [certificate for certificate in certificates if certificate.serial_number == serial][:1]
    while chain and not chain[-1].self_issued:
        issuers = [
            certificate
            for certificate in certificates
            if certificate.subject == chain[-1].issuer and certificate not in chain
        ]
        if not issuers:
            break
        chain.append(issuers[0])
    return chain
