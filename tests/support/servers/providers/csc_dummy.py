"""``certomancer-csc-dummy``: a CSC service (version 1.0.4.0) that somebody else wrote, with certificates of certomancer. It asks
for no login, PIN or code, and signs only what was authorised (SCAL 2)."""

import asyncio
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from certomancer import registry
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from csc_dummy.csc_dummy_server import CSCWithCertomancer, DummyServiceParams

RSA, EC = "provider/signer", "provider/ecsigner"

_CONFIG = """
external-url-prefix: "http://127.0.0.1:1"
keysets:
  ks:
    path-prefix: keys
    keys:
      root: {path: root.pem}
      interm: {path: interm.pem}
      signer: {path: signer.pem}
      ecsigner: {path: ecsigner.pem}
      tsa: {path: tsa.pem}
pki-architectures:
  provider:
    keyset: ks
    entity-defaults: {country-name: ID, organization-name: "Simulated Trust Provider"}
    entities:
      root: {common-name: "Simulated Root"}
      interm: {common-name: "Simulated Issuing CA"}
      signer: {organization-name: Acme, common-name: "Acme Remote Seal"}
      ecsigner: {organization-name: Acme, common-name: "Acme Remote Seal EC"}
      tsa: {common-name: "Simulated TSA"}
    certs:
      root:
        subject: root
        issuer: root
        validity: {valid-from: "2020-01-01T00:00:00+0000", valid-to: "2060-01-01T00:00:00+0000"}
        profiles: [{id: simple-ca, params: {crl-repo: root}}]
      interm:
        issuer: root
        validity: {valid-from: "2020-01-01T00:00:00+0000", valid-to: "2050-01-01T00:00:00+0000"}
        profiles: [{id: simple-ca, params: {crl-repo: interm, max-path-len: 0}}]
      signer:
        issuer: interm
        validity: {valid-from: "2024-01-01T00:00:00+0000", valid-to: "2040-01-01T00:00:00+0000"}
        profiles: [digsig-commitment]
      ecsigner:
        issuer: interm
        validity: {valid-from: "2024-01-01T00:00:00+0000", valid-to: "2040-01-01T00:00:00+0000"}
        profiles: [digsig-commitment]
      tsa:
        issuer: root
        validity: {valid-from: "2024-01-01T00:00:00+0000", valid-to: "2040-01-01T00:00:00+0000"}
        extensions:
          - {id: key_usage, critical: true, smart-value: {schema: key-usage, params: [digital_signature]}}
          - {id: extended_key_usage, critical: true, value: [time_stamping]}
    services:
      crl-repo:
        root: {for-issuer: root, simulated-update-schedule: "P90D"}
        interm: {for-issuer: interm, simulated-update-schedule: "P30D"}
      time-stamping: {tsa: {signing-cert: tsa}}
"""


@dataclass
class Dummy:
    """A running one. ``calls``: paths and bodies, in their order."""

    url: str
    root: bytes
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def operations(self) -> list[str]:
        return [path.partition("/csc/v1/")[2] for path, _ in self.calls]


@contextmanager
def csc_dummy(folder: Path) -> Iterator[Dummy]:
    """Run one in a thread until the end of the block; its keys are in ``folder``."""
    keys = folder / "keys"
    keys.mkdir(parents=True)
    for name in ("root", "interm", "ecsigner", "tsa"):
        (keys / f"{name}.pem").write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
    (keys / "signer.pem").write_bytes(_pem(rsa.generate_private_key(65537, 2048)))
    config = registry.CertomancerConfig(
        yaml.safe_load(_CONFIG), key_search_dir=str(folder), config_search_dir=str(folder)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was written for an older aiohttp
        service = CSCWithCertomancer(config, service_params=DummyServiceParams(multisign=3, default_tsa="provider/tsa"))
    root: bytes = config.get_pki_arch(registry.ArchLabel("provider")).get_cert(registry.CertLabel("root")).dump()
    dummy = Dummy("", root)

    @web.middleware
    async def record(request: web.Request, handler: Any) -> web.StreamResponse:
        dummy.calls.append((request.path, await request.json()))
        answer: web.StreamResponse = await handler(request)
        return answer

    service.app.middlewares.append(record)
    service.register_routes()
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(service.app)

    async def start() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port: int = runner.addresses[0][1]
        return port

    port = loop.run_until_complete(start())
    dummy.url = f"http://127.0.0.1:{port}"
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield dummy
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(120)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(120)
        loop.close()


def _pem(key: Any) -> bytes:
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem
