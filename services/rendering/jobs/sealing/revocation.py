"""Proofs that certificates were not revoked: whom to ask, whether an answer is one, whether a file has all it needs.

PAdES B-LT keeps these proofs in the file. The answers come from outside and are read here, in a child; asking is the
business of the service.
"""

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

from asn1crypto import crl as asn1_crl
from asn1crypto import ocsp as asn1_ocsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol.messages import Question

_NO_CHECK = "1.3.6.1.5.5.7.48.1.5"
"""``id-pkix-ocsp-nocheck``: a responder's certificate that need not be asked about (RFC 6960, 4.2.2.2.1)."""
_SKEW = timedelta(minutes=5)
_WITHOUT_END = timedelta(hours=1)


class Revoked(Refused):
    """The answer is genuine, and it says that the certificate was revoked."""


def needing_proof(
    leaves: Iterable[asn1_x509.Certificate], certificates: Sequence[asn1_x509.Certificate], trusted: set[bytes]
) -> list[asn1_x509.Certificate]:
    """The chains of ``leaves`` as far as ``certificates`` has their issuers, without roots: whom one trusts
    one does not ask."""
    needed: dict[bytes, asn1_x509.Certificate] = {}
    for leaf in leaves:
        certificate: asn1_x509.Certificate | None = leaf
        while certificate is not None and not _final(certificate, trusted) and certificate.dump() not in needed:
            needed[certificate.dump()] = certificate
            issuer = certificate.issuer
            certificate = next((candidate for candidate in certificates if candidate.subject == issuer), None)
    return list(needed.values())


def proven(certificate: asn1_x509.Certificate, crls: Iterable[bytes], ocsps: Iterable[bytes]) -> bool:
    """True when one of the lists is of the certificate's issuer, or one of the answers is about it. Whether they are
    genuine is the business of path validation."""
    return any(asn1_crl.CertificateList.load(data).issuer == certificate.issuer for data in crls) or any(
        certificate.serial_number in _serials(data) for data in ocsps
    )


def revoked_since(
    certificate: bytes, certificates_known: Sequence[bytes], crls: Iterable[bytes], ocsps: Iterable[bytes]
) -> datetime | None:
    """Return when, according to a genuine list or answer, the certificate (DER) was revoked; None when none says so."""
    serial = x509.load_der_x509_certificate(certificate).serial_number
    issuers = [x509.load_der_x509_certificate(data) for data in certificates_known]
    for data in crls:
        listed = _load_list(data)
        if listed is not None and any(
            listed.issuer == issuer.subject and _list_signed(listed, issuer) for issuer in issuers
        ):
            entry = listed.get_revoked_certificate_by_serial_number(serial)
            if entry is not None:
                return entry.revocation_date_utc
    for data in ocsps:
        try:
            response = ocsp.load_der_ocsp_response(data)
            single = next(candidate for candidate in response.responses if candidate.serial_number == serial)
        except (ValueError, StopIteration):
            continue
        if single.revocation_time_utc is not None and any(
            _signed(response, key) for key in _responders(response, certificates_known)
        ):
            return single.revocation_time_utc
    return None


def _load_list(data: bytes) -> x509.CertificateRevocationList | None:
    try:
        return x509.load_der_x509_crl(data)
    except ValueError:
        return None


def _list_signed(listed: x509.CertificateRevocationList, by: x509.Certificate) -> bool:
    try:
        return listed.is_signature_valid(by.public_key())  # type: ignore[arg-type]  # other kinds raise TypeError
    except TypeError:
        return False


def questions(leaves: Sequence[bytes], certificates_known: Sequence[bytes]) -> list[Question]:
    """For each certificate (DER) in the chains of ``leaves`` that needs a proof; ``certificates_known`` has the issuers."""
    certificates = [asn1_x509.Certificate.load(data) for data in certificates_known]
    needed = needing_proof([asn1_x509.Certificate.load(data) for data in leaves], certificates, set())
    return [question_about(certificate, certificates) for certificate in needed]


def question_about(certificate: asn1_x509.Certificate, certificates: Sequence[asn1_x509.Certificate]) -> Question:
    """Return whom to ask about one certificate; ``certificates`` has its issuer."""
    issuer = next((other for other in certificates if other.subject == certificate.issuer), None)
    points = [point.url for point in certificate.crl_distribution_points]
    return Question(
        subject=certificate.subject.human_friendly,
        serial=f"{certificate.serial_number:x}",
        ocsp=_ocsp_urls(certificate, issuer) if issuer is not None else [],
        crl=[url for url in points if url and _is_http(url)],
    )


def check_ocsp(answer: bytes, serial: int, certificates: Sequence[bytes], now: datetime) -> datetime:
    """Until when the answer may be used. Raises Refused when it does not prove anything, Revoked when the contrary."""
    try:
        response = ocsp.load_der_ocsp_response(answer)
        if response.response_status != ocsp.OCSPResponseStatus.SUCCESSFUL:
            raise Refused(f"the OCSP responder answers {response.response_status.name.lower()}")
        single = next((single for single in response.responses if single.serial_number == serial), None)
        if single is None:
            raise Refused("the OCSP answer is about another certificate")
        if not any(_signed(response, key) for key in _responders(response, certificates)):
            raise Refused("the OCSP answer is not signed by an authorised responder")
        if single.certificate_status == ocsp.OCSPCertStatus.REVOKED:
            raise Revoked("the certificate was revoked")
        if single.certificate_status != ocsp.OCSPCertStatus.GOOD:
            raise Refused("the OCSP responder does not know the certificate")
        return _usable_until(single.this_update_utc, single.next_update_utc, now)
    except (ValueError, TypeError) as error:
        raise Refused("the answer is not an OCSP response") from error


def check_list(answer: bytes, serial: int, certificates: Sequence[bytes], now: datetime) -> datetime:
    """The same for a certificate revocation list (RFC 5280, section 5)."""
    try:
        listed = x509.load_der_x509_crl(answer)
        issuers = [
            certificate
            for certificate in map(x509.load_der_x509_certificate, certificates)
            if certificate.subject == listed.issuer
        ]
        if not any(_list_signed(listed, issuer) for issuer in issuers):
            raise Refused("the revocation list is not signed by the certificate's issuer")
        if listed.get_revoked_certificate_by_serial_number(serial) is not None:
            raise Revoked("the certificate was revoked")
        return _usable_until(listed.last_update_utc, listed.next_update_utc, now)
    except (ValueError, TypeError) as error:
        raise Refused("the answer is not a revocation list") from error


def _final(certificate: asn1_x509.Certificate, trusted: set[bytes]) -> bool:
    extensions = certificate["tbs_certificate"]["extensions"]
    no_check = any(extension["extn_id"].dotted == _NO_CHECK for extension in extensions)
    return no_check or certificate.subject == certificate.issuer or certificate.dump() in trusted


def _serials(data: bytes) -> set[int]:
    answer = asn1_ocsp.OCSPResponse.load(data)
    if answer["response_status"].native != "successful":
        return set()
    return {single["cert_id"]["serial_number"].native for single in answer.response_data["responses"]}


def _ocsp_urls(certificate: asn1_x509.Certificate, issuer: asn1_x509.Certificate) -> list[str]:
    subject_certificate, issuer_certificate = (
        x509.load_der_x509_certificate(item.dump()) for item in (certificate, issuer)
    )
    # SHA-1 only names the issuer here, and is what every responder knows (RFC 6960, 4.3; RFC 5019).
    builder = ocsp.OCSPRequestBuilder().add_certificate(subject_certificate, issuer_certificate, hashes.SHA1())  # noqa: S303
    request = base64.b64encode(builder.build().public_bytes(serialization.Encoding.DER))
    return [f"{url.rstrip('/')}/{quote(request, safe='')}" for url in certificate.ocsp_urls if _is_http(url)]


def _responders(response: ocsp.OCSPResponse, certificates: Sequence[bytes]) -> list[x509.Certificate]:
    """The issuers, and those whom an issuer certified for it (RFC 6960, 4.2.2.2)."""
    issuers = [x509.load_der_x509_certificate(data) for data in certificates]
    delegates = [
        certificate
        for certificate in response.certificates
        if _is_responder(certificate) and any(_issued(certificate, by) for by in issuers)
    ]
    return [*issuers, *delegates]


def _is_responder(certificate: x509.Certificate) -> bool:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    return ExtendedKeyUsageOID.OCSP_SIGNING in usage


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _signed(response: ocsp.OCSPResponse, by: x509.Certificate) -> bool:
    key, digest = by.public_key(), response.signature_hash_algorithm
    try:
        if isinstance(key, rsa.RSAPublicKey) and digest is not None:
            key.verify(response.signature, response.tbs_response_bytes, padding.PKCS1v15(), digest)
        elif isinstance(key, ec.EllipticCurvePublicKey) and digest is not None:
            key.verify(response.signature, response.tbs_response_bytes, ec.ECDSA(digest))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def _usable_until(since: datetime, until: datetime | None, now: datetime) -> datetime:
    if since > now + _SKEW:
        raise Refused("the answer is from the future")
    if until is not None and until < now:
        raise Refused("the answer is out of date")
    return until or now + _WITHOUT_END


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))
