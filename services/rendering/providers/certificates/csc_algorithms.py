"""Mechanisms as the CSC API names them: object identifiers, and parameters of RSASSA-PSS."""

from base64 import b64encode
from collections.abc import Iterable

from services.rendering.jobs.sealing.cms import pss_parameters
from services.rendering.providers.certificates.certsign import Mechanism

HASHES = {"sha256": "2.16.840.1.101.3.4.2.1", "sha384": "2.16.840.1.101.3.4.2.2", "sha512": "2.16.840.1.101.3.4.2.3"}

_RSA_KEY, _RSASSA_PSS, _EC_KEY = "1.2.840.113549.1.1.1", "1.2.840.113549.1.1.10", "1.2.840.10045.2.1"
_OF_ANY_HASH = {_RSA_KEY: "rsa", _RSASSA_PSS: "rsa-pss", _EC_KEY: "ecdsa"}
_SIGNATURES = {
    Mechanism("rsa", "sha256"): "1.2.840.113549.1.1.11",
    Mechanism("rsa", "sha384"): "1.2.840.113549.1.1.12",
    Mechanism("rsa", "sha512"): "1.2.840.113549.1.1.13",
    Mechanism("ecdsa", "sha256"): "1.2.840.10045.4.3.2",
    Mechanism("ecdsa", "sha384"): "1.2.840.10045.4.3.3",
    Mechanism("ecdsa", "sha512"): "1.2.840.10045.4.3.4",
}
_KEYS = {"rsa": _RSA_KEY, "ecdsa": _EC_KEY}


def mechanisms(identifiers: Iterable[str]) -> tuple[Mechanism, ...]:
    """Return what a credential's ``key.algo`` allows; what is not known here is left out."""
    allowed: dict[Mechanism, None] = {}
    for identifier in identifiers:
        if (name := _OF_ANY_HASH.get(identifier)) is not None:
            allowed.update(dict.fromkeys(Mechanism(name, digest) for digest in HASHES))
        allowed.update(
            dict.fromkeys(mechanism for mechanism, of_mechanism in _SIGNATURES.items() if of_mechanism == identifier)
        )
    return tuple(allowed)


def sign_algorithm(mechanism: Mechanism, offered: Iterable[str], preferred: str) -> dict[str, str]:
    """``signAlgo`` and, where needed, ``signAlgoParams``. ``preferred`` as in ``Profile.sign_algorithm``; of the two forms that
    one which the credential offers, if it offers but one."""
    if mechanism.algorithm == "rsa-pss":
        parameters = b64encode(pss_parameters(mechanism.hash)).decode()
        return {"signAlgo": _RSASSA_PSS, "signAlgoParams": parameters}
    of_signature, of_key = _SIGNATURES[mechanism], _KEYS[mechanism.algorithm]
    offered_set = set(offered)
    if (of_signature in offered_set) != (of_key in offered_set):
        return {"signAlgo": of_signature if of_signature in offered_set else of_key}
    return {"signAlgo": of_key if preferred == "key" else of_signature}
