"""What works on files, put together from the settings: children, key, certificates, time-stamps."""

import math
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives import hashes
from prometheus_client import Gauge

from contracts.runtime.clock import now
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.monitoring import observe
from services.rendering.children import confinement
from services.rendering.children.pool import ChildPool
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import certificates
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.protocol.messages import Mechanism, Signatory
from services.rendering.settings import Settings
from services.rendering.signatures.archiving import Archiver
from services.rendering.signatures.sealer import ProviderSealer, Sealer
from services.rendering.signatures.signatories import ProviderIdentity
from services.rendering.signatures.time_stamping import TimeStamping

log = observe.logger(__name__)

EXPIRES = Gauge("rendering_certificate_expires_seconds", "Seconds until the first certificate of the seal expires")
EXPIRES.set(math.nan)  # until it has been looked at: 0 would be an alarm
_WARN_BEFORE_DAYS = 60
_OFFICE_IDLE = 600.0
"""Seconds that LibreOffice (240 MB) is kept when there is nothing to do."""

_CHECKED_FOR = timedelta(minutes=1)
_KNOWN_SEALERS = 20
"""Certificates of providers of which it is remembered who proves that they were not revoked."""


class Workshop:
    """One per process. ``open`` starts the children and loads the key; until then nothing is running. ``warm``: children that
    are kept when there is nothing to do."""

    def __init__(self, settings: Settings, *, warm: int = 1) -> None:
        self._settings, self._warm = settings, warm
        self._lock = threading.Lock()
        self._children_started = False
        self._sealers_lock = threading.Lock()
        self._signatories: dict[tuple[Any, ...], tuple[datetime, Signatory]] = {}
        self._looking: dict[tuple[Any, ...], threading.Lock] = {}
        self._provider_sealers: dict[tuple[str, Mechanism], ProviderSealer] = {}

    def open(self) -> "Workshop":
        """Idempotent, and safe when called from several threads at once. Raises UnusableCertificate."""
        with self._lock:
            if not self._children_started:
                self._forget_root_key()
                self.watch_certificate()
                leaf = self.identity.chain[0]
                fingerprint = leaf.fingerprint(hashes.SHA256()).hex()
                log.info(
                    "certificate.ready", name=self.identity.name, sha256=fingerprint, until=self.identity.expires_at
                )
                self._start_children()
        return self

    def start_children(self) -> None:
        """Start them without the key, for what needs none. Idempotent."""
        with self._lock:
            self._start_children()

    def _start_children(self) -> None:
        if not self._children_started:
            if lacking := confinement.lacking():
                log.warning("children.not_held_back", lacking=lacking)
            self._pool.start()
            if self._office is not None:
                self._office.start()
            self._children_started = True

    def close(self) -> None:
        if self._children_started:
            self._pool.close()
            if self._office is not None:
                self._office.close()

    def _forget_root_key(self) -> None:
        """Of a chain that an earlier version made. Not when it is only looked at (``check``): that version may go on."""
        directory = self._settings.certificates
        if directory is None:
            return
        try:
            if certificates.forget_root_key(directory, now()):
                log.warning("certificate.root_key_forgotten", folder=str(directory))
        except OSError as error:
            log.warning("certificate.root_key_kept", folder=str(directory), reason=str(error))

    @cached_property
    def identity(self) -> SealIdentity:
        """The key, checked once and held open."""
        settings = self._settings
        if settings.signing_pkcs12_file is not None:
            password = settings.signing_pkcs12_password
            return certificates.load_pkcs12(
                settings.signing_pkcs12_file, password.get_secret_value() if password is not None else None
            )
        if settings.signing_pkcs11_module:
            return self._identity_in_token()
        names = certificates.Names(
            settings.signing_common_name, settings.signing_organization, settings.signing_country
        )
        directory = settings.certificates
        assert directory is not None, "the settings see to it"
        return certificates.load_or_make(directory, names, settings.signing_key_type, now())

    def _identity_in_token(self) -> SealIdentity:
        from services.rendering.jobs.sealing import token_keys  # only here: it loads a library of C

        settings = self._settings
        pin = settings.signing_pkcs11_pin
        assert settings.signing_pkcs11_module, "the settings see to it"
        assert settings.signing_pkcs11_chain_file
        assert settings.signing_pkcs11_token
        assert settings.signing_pkcs11_key
        assert pin
        return token_keys.load_pkcs11(
            settings.signing_pkcs11_module,
            settings.signing_pkcs11_token,
            settings.signing_pkcs11_key,
            pin.get_secret_value(),
            settings.signing_pkcs11_chain_file,
        )

    @cached_property
    def anchors(self) -> list[bytes]:
        """Return what ``verify`` trusts (DER): the root of our own seal and the operator's list."""
        return [self.identity.encoded[-1], *certificates.read_anchors(self._settings.trust_anchors_dir)]

    @property
    def provider_anchors(self) -> list[bytes]:
        """Return what the chains of providers may end in (DER), besides what an account says; read anew each time."""
        settings = self._settings
        return [
            *certificates.read_anchors(settings.certsign_trust_dir),
            *certificates.read_anchors(settings.trust_anchors_dir),
        ]

    def signatory(
        self, chain: Sequence[bytes], mechanisms: Sequence[Mechanism], anchors: Sequence[bytes], moment: datetime
    ) -> Signatory:
        """Return who signs with this chain of a provider, which has to end in one of the anchors. What a child has found is
        good for a minute: many submissions ask at once, and one of them looks. Raises JobRefused, and what else children raise.
        """
        key = (tuple(chain), tuple(mechanisms), tuple(anchors))
        with self._sealers_lock:
            turn = self._looking.setdefault(key, threading.Lock())
            if len(self._looking) > _KNOWN_SEALERS:
                self._looking = {key: turn}  # who looks with another one looks beside somebody else, at the worst
        with turn:
            with self._sealers_lock:
                checked_before = self._signatories.get(key)
            if (
                checked_before is not None
                and abs(moment - checked_before[0]) < _CHECKED_FOR
                and moment < checked_before[1].valid_to
            ):
                return checked_before[1]
            signatory = self.renderer.check_chain(chain, mechanisms, anchors, moment)
            with self._sealers_lock:
                self._signatories = {
                    **dict(list(self._signatories.items())[-_KNOWN_SEALERS:]),
                    key: (moment, signatory),
                }
            return signatory

    @cached_property
    def renderer(self) -> Renderer:
        settings = self._settings
        return Renderer(
            self._pool, self._office, most_bytes=settings.rendering_file_mb * 2**20, most_pages=settings.rendering_pages
        )

    @cached_property
    def sealer(self) -> Sealer:
        settings = self._settings
        stamping = self.time_stamping(settings.tsa_urls, self.identity)
        return Sealer(self.identity, self.renderer, stamping, settings.signing_reason)

    def provider_sealer(self, identity: ProviderIdentity) -> ProviderSealer:
        """The same one for each seal with these certificates: it remembers what was found out about them."""
        with self._sealers_lock:
            key = (identity.sha256, identity.signatory.mechanism)
            if (sealer := self._provider_sealers.get(key)) is None:
                stamping = self.time_stamping(self._settings.tsa_urls, identity)
                sealer = ProviderSealer(identity, self.renderer, stamping, self._settings.signing_reason)
                self._provider_sealers = {**dict(list(self._provider_sealers.items())[-_KNOWN_SEALERS:]), key: sealer}
            return sealer

    @cached_property
    def archiver(self) -> Archiver | None:
        """None where there is no authority that gives time-stamps."""
        settings = self._settings
        if not settings.tsa_urls:
            return None
        return Archiver(self.renderer, self.time_stamping(settings.tsa_urls, self.identity), self.identity)

    def time_stamping(self, urls: list[str], identity: SealIdentity | ProviderIdentity) -> TimeStamping:
        """Time-stamps of these authorities, which the operator named, for seals of this key."""
        settings = self._settings
        to_authorities = Outbound.to_operators_own(settings)
        return TimeStamping(urls, settings.tsa_timeout, identity, self.renderer, self.outbound, to_authorities)

    @cached_property
    def outbound(self) -> Outbound:
        return Outbound.configured(self._settings)

    @cached_property
    def _pool(self) -> ChildPool:
        settings = self._settings
        return ChildPool(
            size=settings.rendering_children,
            share=settings.children_per_caller,
            warm=min(self._warm, settings.rendering_children),
            memory=settings.rendering_child_memory_mb * 2**20,
            jobs_per_child=settings.rendering_jobs_per_child,
        )

    @cached_property
    def _office(self) -> ChildPool | None:
        """Children with LibreOffice in them: the first one starts with the first DOCX, which takes a second more."""
        settings = self._settings
        if not (settings.rendering_office_dir / "libmergedlo.so").exists():
            return None
        return ChildPool(
            size=settings.rendering_office_children,
            warm=0,
            memory=settings.rendering_office_memory_mb * 2**20,
            jobs_per_child=settings.rendering_office_jobs_per_child,
            idle=_OFFICE_IDLE,
            tasks="services.rendering.children.office",
            environment={"OFFICE_DIR": str(settings.rendering_office_dir)},
        )

    def watch_certificate(self) -> None:
        """At start and once a day. A certificate that cannot be used, or not much longer, is logged; see the metric too."""
        moment = now()
        left = self.identity.expires_at - moment
        EXPIRES.set(left.total_seconds())
        if (problem := self.identity.problem(moment)) is not None:
            log.error("certificate.unusable", reason=problem)
        elif left.days < _WARN_BEFORE_DAYS:
            log.warning("certificate.expires", at=self.identity.expires_at.isoformat(), days=left.days)
