"""The local CSC provider in this process, and settings that lead to it."""

import functools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contracts.providers import Authorization, CertsignSettings
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault, Faults
from services.rendering.providers.breaker import breaker_of
from services.rendering.providers.certificates.csc import CscProvider

LOOPBACK = "127.0.0.0/8"


@functools.cache
def _keys() -> Path:
    """Making them takes longer than most tests: once per process, then copied."""
    folder = Path(tempfile.mkdtemp(prefix="provider-keys-"))
    Provider(folder).start().close()
    return folder / "certificates"


@contextmanager
def running(folder: Path, *faults: Fault, port: int = 0, dialect: str = "standard") -> Iterator[Provider]:
    """One that serves until the end of the block; what it keeps is in ``folder``. Nobody remembers that it was away."""
    if not (folder / "certificates").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(_keys(), folder / "certificates")
        (folder / "certificates" / "url").unlink()
    provider = Provider(folder, port, faults=Faults(faults, seed=1), dialect=dialect).start()
    breaker_of(provider.url).succeeded()
    try:
        yield provider
    finally:
        provider.close()


def settings(
    provider: Provider, credential: str | None = "seal", version: str = "", **changes: Any
) -> CertsignSettings:
    """``version``: ``v1`` or ``v2``, when it is not to be found out. Logs in by client credentials unless told otherwise."""
    account = provider.signing.account
    way = {"type": "client_credentials", "client_id": account.client_id, "client_secret": account.client_secret}
    authorization = Authorization.model_validate({**way, **changes.pop("authorization", {})})
    return CertsignSettings(
        url=f"{provider.url}/csc/{version}" if version else provider.url,
        credential_id=credential,
        authorization=authorization,
        **changes,
    )


def adapter(
    provider: Provider,
    credential: str | None = "seal",
    version: str = "",
    return_url: str | None = None,
    **changes: Any,
) -> CscProvider:
    return CscProvider(settings(provider, credential, version, **changes), Outbound(LOOPBACK), return_url)
