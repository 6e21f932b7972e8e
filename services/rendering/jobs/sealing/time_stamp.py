"""The answer of a time-stamping authority (RFC 3161). It comes from outside, so it is read here, in a child; asking is the
business of the service.
"""

import hashlib

from asn1crypto import cms, core, tsp
from pyhanko.sign.general import extract_certificate_info
from pyhanko.sign.validation.generic_cms import validate_sig_integrity

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol.messages import Token


class _Answer(core.Sequence):  # type: ignore[misc]
    """A TimeStampResp as RFC 3161 has it; asn1crypto's own does not know a refusal, which comes without a token."""

    _fields = [("status", tsp.PKIStatusInfo), ("time_stamp_token", cms.ContentInfo, {"optional": True})]  # noqa: RUF012


def read_token(response: bytes, digest: bytes, nonce: int) -> Token:
    """The token in a TimeStampResp (RFC 3161, 2.4.2), when it is one for what has this SHA-256.

    Raises Refused for a refusal, garbage, another digest or nonce, or a signature that does not hold: a token that would
    make the seal invalid must not get into it.
    """
    try:
        answer = _Answer.load(response, strict=True)
        status = answer["status"]["status"].native
        if status not in ("granted", "granted_with_mods"):
            raise Refused(f"the authority refused: {_refusal(answer)}")
        return checked_token(answer["time_stamp_token"], digest, nonce)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(f"the answer is not a time-stamp ({type(error).__name__})") from error


def _refusal(answer: _Answer) -> str:
    texts = answer["status"]["status_string"].native or []
    return " ".join([answer["status"]["status"].native, *(str(text) for text in texts)])[:200]


def checked_token(token: cms.ContentInfo, digest: bytes, nonce: int | None = None) -> Token:
    """The token, when it is one for what has this SHA-256 (and answers the request with this nonce). Raises Refused, or what a
    CMS that is none raises."""
    signed = token["content"]
    info = signed["encap_content_info"]["content"].parsed
    imprint = info["message_imprint"]
    if imprint["hash_algorithm"]["algorithm"].native != "sha256":
        raise Refused("the time-stamp uses another digest than SHA-256")
    if imprint["hashed_message"].native != digest:
        raise Refused("the time-stamp is for other data")
    if nonce is not None and info["nonce"].native != nonce:
        raise Refused("the time-stamp answers another request")
    certificates = extract_certificate_info(signed)
    signer = signed["signer_infos"][0]
    content = hashlib.new(
        signer["digest_algorithm"]["algorithm"].native, bytes(signed["encap_content_info"]["content"])
    )
    intact, valid = validate_sig_integrity(signer, certificates.signer_cert, "tst_info", content.digest())
    if not (intact and valid):
        raise Refused("the signature of the time-stamp does not hold")
    usage = certificates.signer_cert.extended_key_usage_value
    if usage is None or "time_stamping" not in usage.native:
        raise Refused("the time-stamp is signed with a certificate that is not for time-stamps")
    chain = [certificates.signer_cert, *certificates.other_certs]
    return Token(token.dump(), info["gen_time"].native, [certificate.dump() for certificate in chain])
