"""The certificates that an account trusts its provider's chain to end in."""

from collections.abc import Iterable

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificates

from contracts.providers import CertsignSettings
from services.rendering.providers.failures import ProviderFailed


def anchors_of(settings: CertsignSettings) -> list[bytes]:
    """The account's own anchors in DER. Raises ProviderFailed."""
    try:
        return in_der(settings.trust_anchors)
    except ValueError as error:
        raise ProviderFailed("not_configured", "trust_anchors holds no certificate", retryable=False) from error


def in_der(texts: Iterable[str]) -> list[bytes]:
    """The certificates of PEM texts. Raises ValueError."""
    certificates = [certificate for pem in texts for certificate in load_pem_x509_certificates(pem.encode())]
    return [certificate.public_bytes(Encoding.DER) for certificate in certificates]
