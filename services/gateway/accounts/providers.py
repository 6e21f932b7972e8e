"""The account's providers: of remote certificates (``certsign``) and of duty stamps (``dutystamp``), specification 4.7, 4.8.

Their settings hold secrets. They are kept encrypted under KEY_ENCRYPTION_SECRET, shown to nobody, and given to the service that
calls the provider sealed under LINK_SECRET (contracts.evidence.sealed_text).
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from pydantic import BaseModel, ValidationError

from contracts.errors import invalid
from contracts.evidence.sealed_text import seal
from contracts.formats.model_faults import reason_of
from contracts.problems import Problems
from contracts.providers import (
    CERTSIGN,
    DUTYSTAMP,
    CertsignOrder,
    CertsignSettings,
    DutystampOrder,
    DutystampSettings,
    StampPosition,
)
from contracts.rpc.submissions.api import CertsignWish
from contracts.runtime.http.outbound import Outbound, OutboundRefused
from services.gateway.accounts.api_keys.keys import KeyRing

NAMES = (CERTSIGN, DUTYSTAMP)

S = TypeVar("S", bound=BaseModel)

_REQUIRED_BY_AUTHORIZATION = {
    "basic": ("user", "password"),
    "api_key": ("key",),
    "client_credentials": ("client_id", "client_secret"),
    "authorization_code": ("client_id", "client_secret"),
    "mtls": ("certificate", "private_key"),
}


@dataclass(frozen=True)
class Kind(Generic[S]):
    """One of the two settings. ``addresses``: where its secrets are sent; when one of them changes, the secrets are dropped, so
    that nobody has them sent somewhere else by changing an address. ``required``: what each provider cannot do without."""

    name: str
    model: type[S]
    addresses: tuple[str, ...]
    secrets: tuple[str, ...]
    required: Mapping[str, tuple[str, ...]]


_AUTHORIZATION = "authorization"
_SECRETS_OF_AUTHORIZATION = ("password", "key", "client_secret", "private_key", "pin", "totp")

KINDS: dict[str, Kind[Any]] = {
    CERTSIGN: Kind(
        CERTSIGN,
        CertsignSettings,
        addresses=("url",),
        secrets=("secret", *(f"{_AUTHORIZATION}.{name}" for name in _SECRETS_OF_AUTHORIZATION)),
        required={"csc": ("url",), "worker": ("url", "secret")},
    ),
    DUTYSTAMP: Kind(
        DUTYSTAMP,
        DutystampSettings,
        addresses=("url", "backend_url", "stamp_url", "adapter_url"),
        secrets=("secret", "password"),
        required={
            "peruri": ("backend_url", "stamp_url", "adapter_url", "user", "password"),
            "worker": ("url", "secret"),
        },
    ),
}


@dataclass(frozen=True)
class Providers:
    """The account's settings of both; None: there is none."""

    certsign: CertsignSettings | None = None
    dutystamp: DutystampSettings | None = None


def read(stored: Mapping[str, Any], keys: KeyRing) -> Providers:
    """Those in the account's stored settings."""
    return Providers(**{name: _opened(KINDS[name], stored.get(name), keys) for name in NAMES})


def sealed_for_storage(name: str, settings: BaseModel | None, keys: KeyRing) -> str | None:
    """As they are stored."""
    if settings is None:
        return None
    return base64.b64encode(keys.seal_answer(settings.model_dump_json().encode(), name)).decode()


def apply_change(name: str, current: BaseModel | None, change: dict[str, Any], outbound: Outbound) -> BaseModel:
    """Return the settings as PUT /account changes them: what is not given stays, null is the default. Secrets stay only while
    all addresses and the provider stay. Raises ServiceError naming each field that is wrong."""
    kind = KINDS[name]
    merged = _merged(kind, current, change)
    problems = Problems()
    try:
        settings: BaseModel = kind.model.model_validate(merged)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            path = ".".join(str(step) for step in fault["loc"])
            reason = reason_of(fault)
            problems.add(f"{name}.{path}", reason)
        problems.refuse()
        raise
    _check(kind, settings, outbound, problems)
    problems.refuse()
    return settings


def shown(name: str, settings: BaseModel) -> dict[str, Any]:
    """As GET /account shows them: of secrets only whether there are any."""
    plain = settings.model_dump(mode="json")
    for path in KINDS[name].secrets:
        place, key = _place(plain, path)
        place[f"has_{key}"] = place.pop(key, None) is not None
    return plain


def fingerprint(stored: str | None) -> str | None:
    """Tell stored settings apart from those before them."""
    return hashlib.sha256(stored.encode()).hexdigest()[:32] if stored else None


def trust_anchors(configured: Providers) -> list[str]:
    """PEM certificates that the account trusts for signatures of its providers, also while these are switched off: what they
    signed before is looked at later."""
    return [
        anchor
        for settings in (configured.certsign, configured.dutystamp)
        if settings
        for anchor in settings.trust_anchors
    ]


def certsign_wish(settings: CertsignSettings | None, enabled: bool | None, secret: str) -> CertsignWish:
    """For a new submission that says ``enabled`` itself. ``secret`` is LINK_SECRET."""
    if settings is None:
        return CertsignWish(enabled=enabled)
    return CertsignWish(enabled=enabled, by_default=settings.enabled, order=certsign_order(settings, secret))


def certsign_order(settings: CertsignSettings, secret: str) -> CertsignOrder:
    return CertsignOrder(
        settings=sealed_for_sending(settings, secret), provider=provider_name(settings), mode=settings.mode
    )


def dutystamp_order(
    settings: DutystampSettings | None, wish: dict[str, Any], secret: str, path: str = ""
) -> DutystampOrder | None:
    """Return what a new submission's ``dutystamp`` asks for, which is at ``path`` of the request. Raises ServiceError when
    nobody can do it."""
    if not wish.get("enabled"):
        return None
    if settings is None:
        raise invalid("dutystamp is not configured", f"{path}dutystamp.enabled", "is not configured")
    if not settings.enabled:
        reason = "is switched off in the account"
        raise invalid(f"dutystamp {reason}", f"{path}dutystamp.enabled", reason)
    targets = {"targets": wish["targets"]} if wish.get("targets") else {}
    return DutystampOrder(
        settings=sealed_for_sending(settings, secret),
        provider=provider_name(settings),
        code_document=wish.get("code_document") or wish.get("document_type") or settings.code_document,
        on_failure=settings.on_failure,
        wait_seconds=settings.wait_minutes * 60,
        positions=[StampPosition(**_without_none(position)) for position in wish.get("positions") or []],
        **targets,
    )


def sealed_for_sending(settings: CertsignSettings | DutystampSettings, secret: str) -> str:
    """Only the service that calls the provider opens it."""
    purpose = CERTSIGN if isinstance(settings, CertsignSettings) else DUTYSTAMP
    return seal(secret, purpose, settings.model_dump_json())


def provider_name(settings: CertsignSettings | DutystampSettings) -> str:
    """Return what people call the provider: the host of its address."""
    address = settings.url or getattr(settings, "backend_url", None) or ""
    return urlsplit(address).hostname or settings.provider


def _opened(kind: Kind[S], stored: str | None, keys: KeyRing) -> S | None:
    if stored is None:
        return None
    return kind.model.model_validate_json(keys.open_answer(base64.b64decode(stored), kind.name))


def _merged(kind: Kind[Any], current: BaseModel | None, change: dict[str, Any]) -> dict[str, Any]:
    before = current.model_dump(mode="json") if current else {}
    change = {key: value.strip() if key in kind.addresses and value else value for key, value in change.items()}
    stays = all(change[key] == before.get(key) for key in (*kind.addresses, "provider") if key in change)
    if not stays:
        for path in kind.secrets:
            place, key = _place(before, path)
            place.pop(key, None)
    nested = change.get(_AUTHORIZATION)
    if nested and nested.get("type", before.get(_AUTHORIZATION, {}).get("type")) == before.get(_AUTHORIZATION, {}).get(
        "type"
    ):
        change = {**change, _AUTHORIZATION: _without_none({**before.get(_AUTHORIZATION, {}), **nested})}
    elif nested:
        change = {**change, _AUTHORIZATION: _without_none(nested)}
    return _without_none({**before, **change})


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    """Drop what is null: it is left to its default."""
    return {key: value for key, value in values.items() if value is not None}


def _place(values: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return where in ``values`` the path leads: the object, and the key in it."""
    *outer, key = path.split(".")
    for step in outer:
        values = values.setdefault(step, {})
    return values, key


def _check(kind: Kind[Any], settings: Any, outbound: Outbound, problems: Problems) -> None:
    for name in kind.required[settings.provider]:
        if not getattr(settings, name):
            problems.add(f"{kind.name}.{name}", "is required")
    for name in kind.addresses:
        if url := getattr(settings, name):
            try:
                outbound.check(url)
            except OutboundRefused as refused:
                problems.add(f"{kind.name}.{name}", refused.reason)
    for index, text in enumerate(settings.trust_anchors):
        if not _is_certificate(text):
            problems.add(f"{kind.name}.trust_anchors[{index}]", "must be a certificate in PEM")
    if isinstance(settings, CertsignSettings):
        _check_certsign(settings, problems)


def _check_certsign(settings: CertsignSettings, problems: Problems) -> None:
    authorization = settings.authorization
    for name in _REQUIRED_BY_AUTHORIZATION.get(authorization.type, ()):
        if not getattr(authorization, name):
            problems.add(f"certsign.{_AUTHORIZATION}.{name}", "is required")
    if authorization.certificate and not _is_certificate(authorization.certificate):
        problems.add(f"certsign.{_AUTHORIZATION}.certificate", "must be a certificate in PEM")


def _is_certificate(text: str) -> bool:
    try:
        return bool(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        return False
