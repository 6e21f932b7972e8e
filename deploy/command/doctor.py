"""``countersign doctor``: what is wrong with an installation, each in one sentence with what to do.

It tries what ``check`` tries (``contracts/runtime/operations/checking.py``) of every service, and looks besides at what no
service can see alone: settings that do not go together, programs that a backup needs, the certificate that people meet at
BASE_URL.
"""

import shutil
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import sqlalchemy as sa

from contracts.runtime import process
from contracts.runtime.monitoring import observe
from contracts.runtime.operations import checking
from contracts.runtime.settings import ServiceSettings
from services.gateway.settings import Settings as GatewaySettings

TLS_SOON_DAYS = 14
_SECONDS = 10.0
_DAY = 86_400

NEEDS = {
    "schema": "database",
    "search index": "database",
    "clock of the database": "database",
    "writing to the database": "schema",
    "start": "schema",
    "receipts of deletions": "schema",
    "queues": "broker",
    "clock of the broker": "broker",
}
"""Trials that say nothing new when another one has failed."""


@dataclass(frozen=True)
class Finding:
    """``wrong`` or worth a look: ``words`` about what, and what to do where the words do not say it."""

    wrong: bool
    about: str
    words: str
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """One sentence, or two: what it is, and what to do."""
        remedy = f" {self.remedy[0].upper()}{self.remedy[1:]}." if self.remedy else ""
        return f"{self.about}: {self.words.rstrip('.')}.{remedy}"


def look(names: Sequence[str]) -> int:
    """Print what is found about these services, the same of several once; 1 when anything is wrong."""
    observe.setup("doctor", "CRITICAL")
    about: dict[Finding, list[str]] = {}
    for name, finding in findings(names):
        about.setdefault(finding, []).append(name)
    for finding, services in sorted(about.items(), key=lambda item: not item[0].wrong):
        whose = "all services" if len(services) == len(names) > 1 else ", ".join(services)
        print(f"{'wrong   ' if finding.wrong else 'warning '} {whose}: {finding.sentence}", flush=True)
    wrong = sum(finding.wrong for finding in about)
    warnings = len(about) - wrong
    if not about:
        print(f"Nothing is wrong with {', '.join(names)}.")
    else:
        print(f"{wrong} wrong, {warnings} worth a look. `countersign check` shows the settings and all that was tried.")
    return 1 if wrong else 0


def findings(names: Sequence[str]) -> Iterator[tuple[str, Finding]]:
    """Yield what is not as it should be, each with the service that it is about."""
    read: dict[str, ServiceSettings] = {}
    for name in names:
        settings = process.settings_or_faults(name)
        if isinstance(settings, ServiceSettings):
            if _is_database(settings.database_url):
                read[name] = settings
            else:
                words = "it names no database of a kind that is known: sqlite:////path or postgresql://..."
                yield name, Finding(True, f"{name.upper()}_DATABASE_URL", words)
            continue
        for fault in settings:
            yield name, _of_settings(*fault.split(": ", 1))
    yield from _together(read)
    for name, settings in read.items():
        yield from ((name, finding) for finding in _findings_of_trials(name, settings))


def _of_settings(setting: str, words: str) -> Finding:
    words = "it is not set" if words == "is required" else words
    if not setting:  # of several that do not go together, which the words name
        return Finding(True, "settings", words)
    return Finding(True, setting, words, "see contracts/README.md, or that of the service, for what it must be")


def _findings_of_trials(name: str, settings: ServiceSettings) -> Iterator[Finding]:
    failed: set[str] = set()
    trials = checking.trials(name, settings)
    if isinstance(settings, GatewaySettings):
        trials.append(checking.Trial("the certificate at BASE_URL", lambda: _certificate_at(settings.base_url)))
    for trial in trials:
        if NEEDS.get(trial.name) in failed:
            failed.add(trial.name)
            continue
        good, words = checking.attempted(trial)
        if not good:
            failed.add(trial.name)
            yield Finding(True, trial.name, words, trial.remedy)
        elif words.startswith("ok, but "):
            yield Finding(False, trial.name, words.removeprefix("ok, but "), trial.remedy)


def _together(read: Mapping[str, ServiceSettings]) -> Iterator[tuple[str, Finding]]:
    """Yield what is wrong between settings that are each right."""
    databases: dict[str, list[str]] = {}
    for name, settings in read.items():
        databases.setdefault(_place(settings.database_url), []).append(name)
    for sharing in databases.values():
        if len(sharing) > 1:
            remedy = "give each a database of its own: their tables have the same names"
            for name in sharing:
                yield name, Finding(True, "databases", f"{', '.join(sharing)} are set to one database", remedy)
    for name, settings in read.items():
        if _is_postgresql(settings) and shutil.which("pg_dump") is None:
            remedy = "install postgresql-client of the server's version where you make backups"
            yield name, Finding(False, "pg_dump", "it is not on PATH here, and a backup needs it", remedy)
        if isinstance(settings, GatewaySettings):
            yield from ((name, finding) for finding in _of_gateway(settings))


def _of_gateway(settings: GatewaySettings) -> Iterator[Finding]:
    if bool(settings.admin_email) != bool(settings.admin_api_key):
        setting, missing = (
            ("ADMIN_EMAIL", "ADMIN_API_KEY") if settings.admin_email else ("ADMIN_API_KEY", "ADMIN_EMAIL")
        )
        yield Finding(
            False, setting, f"it is set without {missing}, so that no first admin is made", "set both or neither"
        )
    is_default = settings.trusted_proxies == GatewaySettings.model_fields["trusted_proxies"].default
    if settings.base_url.startswith("https:") and is_default and settings.host not in ("127.0.0.1", "::1", "localhost"):
        words = "BASE_URL is https, so a proxy is in front, and only one on this machine is believed where a call comes from"
        yield Finding(
            False, "TRUSTED_PROXIES", words, "name the networks of your proxies, or the audit trail names the proxy"
        )


def _certificate_at(base_url: str) -> str:
    """Find out how long the certificate is in force that people meet. Who asks from inside may not reach it, which is no
    fault."""
    parts = urlsplit(base_url)
    if parts.scheme != "https" or not parts.hostname:
        return ""
    context = ssl.create_default_context()
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), timeout=_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=parts.hostname) as secured,
        ):
            certificate = secured.getpeercert()
    except ssl.SSLCertVerificationError as error:
        raise checking.Fault(f"{error.verify_message}: renew it, with its chain") from error
    except OSError as error:
        return f"but {base_url} is not reached from here ({error}), so that nobody knows when its certificate ends"
    days = int((ssl.cert_time_to_seconds(str((certificate or {})["notAfter"])) - time.time()) // _DAY)
    return f"but it ends in {days} days: renew it" if days < TLS_SOON_DAYS else f"{days} days"


def _is_database(url: str) -> bool:
    try:
        return sa.make_url(url).get_backend_name() in ("sqlite", "postgresql")
    except sa.exc.ArgumentError:
        return False


def _is_postgresql(settings: ServiceSettings) -> bool:
    return sa.make_url(settings.database_url).get_backend_name() == "postgresql"


def _place(database_url: str) -> str:
    """Server, name and options (a schema) of a database, whoever logs in and by whichever driver."""
    url = sa.make_url(database_url)
    return f"{url.get_backend_name()}://{url.host}:{url.port}/{url.database} {url.query.get('options', '')}"
