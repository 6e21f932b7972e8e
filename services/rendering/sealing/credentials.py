"""A provider's credential and settings as rows keep them."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from contracts.providers import CertsignSettings
from services.rendering.protocol import Mechanism
from services.rendering.providers.certsign import Credential


def keepable(credential: Credential) -> dict[str, Any]:
    """The credential as JSON, without what is secret of it."""
    return {
        "id": credential.id,
        "chain": [b64encode(one).decode() for one in credential.chain],
        "mechanisms": [asdict(mechanism) for mechanism in credential.mechanisms],
        "bound": credential.bound,
        "most_at_once": credential.most_at_once,
    }


def kept_credential(known: Mapping[str, Any]) -> Credential:
    """The credential that a row keeps under ``credential``."""
    data = dict(known["credential"])
    chain = tuple(b64decode(one) for one in data.pop("chain"))
    mechanisms = tuple(Mechanism(**one) for one in data.pop("mechanisms"))
    return Credential(chain=chain, mechanisms=mechanisms, **data)


def mark_of(settings: CertsignSettings, secret: str) -> str:
    """Names settings without telling anything of them."""
    text = settings.model_dump_json().encode()
    return hmac.new(secret.encode(), b"certsign settings " + text, "sha256").hexdigest()
