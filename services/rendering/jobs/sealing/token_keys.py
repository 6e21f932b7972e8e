"""The operator's own seal key in a PKCS#11 token (a hardware security module, a smart card): it never leaves the token, which
signs what it is given. To the rest of the service it is a private key as any other."""

import hashlib
import threading
from pathlib import Path
from typing import Any, NoReturn

import pkcs11
from asn1crypto.algos import DigestInfo
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from pkcs11.exceptions import PinIncorrect, PinLocked, PKCS11Error, UserAlreadyLoggedIn
from pkcs11.util.ec import encode_ecdsa_signature

from services.rendering.jobs.sealing.certificates import (
    KeyUnavailable,
    SealIdentity,
    UnusableCertificate,
    ordered,
    refuse_short,
)

_LOCKED = pkcs11.TokenFlag.USER_PIN_LOCKED
_FINAL_TRY = pkcs11.TokenFlag.USER_PIN_FINAL_TRY
_PROBE = b"Is this key that of the certificate?"


class Token:
    """A session with a token, opened when it is needed, and anew when it was lost. Thread-safe: one signature at a time."""

    def __init__(self, module: Path, label: str, key: str, pin: str) -> None:
        self._module, self._label, self._key_label, self._pin = module, label, key, pin
        self._lock = threading.Lock()
        self._key: Any = None

    def open(self) -> None:
        """Log in and find the key, unless that was done. Raises UnusableCertificate, PKCS11Error."""
        with self._lock:
            self._open()

    def sign(self, data: bytes, mechanism: pkcs11.Mechanism) -> bytes:
        """Raises KeyUnavailable. After a fault it is tried once more with a new session: a token that was restarted knows
        nothing of the old one, and a signature that got lost is nobody's."""
        with self._lock:
            try:
                return self._sign(data, mechanism)
            except (PKCS11Error, UnusableCertificate):
                self._key = None
            try:
                return self._sign(data, mechanism)
            except (PKCS11Error, UnusableCertificate) as error:
                self._key = None
                raise KeyUnavailable(f"the token {self._label} does not sign: {_words(error)}") from error

    def _sign(self, data: bytes, mechanism: pkcs11.Mechanism) -> bytes:
        signature: bytes = self._open().sign(data, mechanism=mechanism)
        return signature

    def _open(self) -> Any:
        if self._key is None:
            tokens = list(pkcs11.lib(str(self._module)).get_tokens(token_label=self._label))
            if len(tokens) != 1:
                count = "no token" if not tokens else "several tokens"
                raise UnusableCertificate(f"SIGNING_PKCS11_MODULE {self._module} has {count} named {self._label}")
            if (problem := login_problem(tokens[0].flags)) is not None:
                raise UnusableCertificate(f"SIGNING_PKCS11_TOKEN {self._label}: {problem}")
            session = self._session(tokens[0])
            attributes = {
                pkcs11.Attribute.CLASS: pkcs11.ObjectClass.PRIVATE_KEY,
                pkcs11.Attribute.LABEL: self._key_label,
            }
            keys = list(session.get_objects(attributes))
            if len(keys) != 1:
                count = "no private key" if not keys else "several private keys"
                raise UnusableCertificate(
                    f"SIGNING_PKCS11_KEY: the token {self._label} has {count} named {self._key_label}"
                )
            self._key = keys[0]
        return self._key

    def _session(self, token: Any) -> Any:
        try:
            return token.open(user_pin=self._pin)
        except UserAlreadyLoggedIn:  # a process is logged in or not, with all its sessions
            return token.open()


def login_problem(flags: pkcs11.TokenFlag) -> str | None:
    """Return why the PIN must not be tried. A service that is started again and again would lock the token with a wrong one."""
    if flags & _LOCKED:
        return "its PIN is locked"
    if flags & _FINAL_TRY:
        return "one more wrong PIN locks it: log in once by other means with the right one"
    return None


class _Kept:
    """What a key cannot do that stays where it is. The interface of cryptography's private keys asks for it, and it is
    refused for good: nothing is left to be written."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _memo: Any) -> Any:
        return self

    def private_numbers(self) -> NoReturn:
        raise NotImplementedError("the key does not leave its token")

    def private_bytes(self, *_arguments: Any) -> NoReturn:
        raise NotImplementedError("the key does not leave its token")

    def decrypt(self, *_arguments: Any) -> NoReturn:
        raise NotImplementedError("the key signs only")

    def exchange(self, *_arguments: Any) -> NoReturn:
        raise NotImplementedError("the key signs only")


class TokenRsaKey(_Kept, rsa.RSAPrivateKey):
    """Signs with PKCS #1 v1.5 and SHA-256."""

    def __init__(self, token: Token, public_key: rsa.RSAPublicKey) -> None:
        self._token, self._public_key = token, public_key

    @property
    def key_size(self) -> int:
        return self._public_key.key_size

    def public_key(self) -> rsa.RSAPublicKey:
        return self._public_key

    def sign(self, data: Any, _padding: Any, _algorithm: Any) -> bytes:
        digest = DigestInfo({"digest_algorithm": {"algorithm": "sha256"}, "digest": hashlib.sha256(data).digest()})
        return self._token.sign(digest.dump(), pkcs11.Mechanism.RSA_PKCS)


class TokenEcKey(_Kept, ec.EllipticCurvePrivateKey):
    """Signs with ECDSA and SHA-256."""

    def __init__(self, token: Token, public_key: ec.EllipticCurvePublicKey) -> None:
        self._token, self._public_key = token, public_key

    @property
    def curve(self) -> ec.EllipticCurve:
        return self._public_key.curve

    @property
    def key_size(self) -> int:
        return self._public_key.key_size

    def public_key(self) -> ec.EllipticCurvePublicKey:
        return self._public_key

    def sign(self, data: Any, _algorithm: Any) -> bytes:
        signature = self._token.sign(hashlib.sha256(data).digest(), pkcs11.Mechanism.ECDSA)
        encoded: bytes = encode_ecdsa_signature(signature)
        return encoded


def load_pkcs11(module: Path, token: str, key: str, pin: str, chain: Path) -> SealIdentity:
    """The operator's key in a token, with the certificates in ``chain`` (PEM, the signer's first). Raises UnusableCertificate
    with a plain reason; a wrong PIN is tried once."""
    certificates = _read_chain(chain)
    public_key = certificates[0].public_key()
    opened = Token(module, token, key, pin)
    private_key: TokenRsaKey | TokenEcKey
    if isinstance(public_key, rsa.RSAPublicKey):
        refuse_short(public_key, chain)
        private_key = TokenRsaKey(opened, public_key)
    elif isinstance(public_key, ec.EllipticCurvePublicKey):
        private_key = TokenEcKey(opened, public_key)
    else:
        raise UnusableCertificate(f"{chain}: only RSA and elliptic curve keys can seal")
    try:
        opened.open()
        _prove(private_key)
    except (PinIncorrect, PinLocked) as error:
        raise UnusableCertificate(
            f"SIGNING_PKCS11_PIN is not that of the token {token} ({_words(error)}): set it right before the next start, which"
            " tries it again"
        ) from error
    except (PKCS11Error, KeyUnavailable) as error:
        raise UnusableCertificate(f"the token {token} cannot be used: {_words(error)}") from error
    except InvalidSignature as error:
        raise UnusableCertificate(
            f"SIGNING_PKCS11_KEY {key} is not the key of the first certificate in {chain}"
        ) from error
    return SealIdentity(private_key, ordered(certificates[0], certificates[1:]))


def _prove(key: TokenRsaKey | TokenEcKey) -> None:
    """Raises InvalidSignature when the certificate is that of another key."""
    if isinstance(key, TokenRsaKey):
        key.public_key().verify(key.sign(_PROBE, None, None), _PROBE, padding.PKCS1v15(), hashes.SHA256())
    else:
        key.public_key().verify(key.sign(_PROBE, None), _PROBE, ec.ECDSA(hashes.SHA256()))


def _read_chain(path: Path) -> list[x509.Certificate]:
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise UnusableCertificate(f"SIGNING_PKCS11_CHAIN_FILE {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnusableCertificate(f"SIGNING_PKCS11_CHAIN_FILE {path} holds no certificate in PEM") from error
    return certificates


def _words(error: Exception) -> str:
    """Of the package's errors the name says it, and not all have a text."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
