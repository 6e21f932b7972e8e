"""`make up`: the whole suite on one machine, in the foreground, until Ctrl-C or SIGTERM.

A private RabbitMQ node, one `serve` process per service, one shared `background` process, the gateway. Everything it keeps is
in VAR_DIR. It obeys PORT, VAR_DIR, BASE_URL, ADMIN_EMAIL, ADMIN_API_KEY, AMQP_URL, <SERVICE>_DATABASE_URL, BLOB_URL, SMTP_URL,
ALLOWED_PRIVATE_NETWORKS and every setting of the services (see their READMEs); with PROVIDERS_TO_TRY=no the providers of
certificates and stamps are left out that are there to be tried.
"""

import contextlib
import dataclasses
import importlib
import ipaddress
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from contracts.runtime.settings import FILE, SecretFileFaults, secret_setting
from deploy.make_secrets import broker_users
from deploy.processes.forked import ForkServerFailed, ForkServers
from deploy.processes.logged import LoggedProcess
from deploy.rabbitmq import BrokerFailed, PrivateBroker, free_port, too_old
from deploy.services import DEFINITIONS, ROOT, SERVICES, WORKERS

PROVIDER, STAMP_ISSUER = "provider", "stamp-issuer"
"""What is there to be tried beside the services: a provider of remote certificates, and one of duty stamps. Their folders in
VAR_DIR have the same names."""
ADMIN_KEY_FILE = "admin-api-key"
"""In VAR_DIR: the key of the first admin."""
PROVIDER_MAILBOX = "provider.jsonl"
"""In the folder of mails: the one-time codes of the provider that runs beside the services; ``/dev/mail`` shows them."""
_LOOPBACK = "127.0.0.1"
"""Where they are."""
READY_WITHIN = 180.0
"""Seconds. It takes 10 to 20; three suites that start side by side on two slow processors take ten times as long."""
STOP_WITHIN = 9.0
QUICK_DEATH = 5.0
QUICK_DEATHS_ALLOWED = 5


class SuiteFailed(Exception):
    """The suite did not come up or could not be kept up; the message names the process and the end of its log."""


@dataclasses.dataclass
class Program:
    """One process of the suite and how often it died right after its start."""

    name: str
    arguments: list[str]
    health_port: int
    process: LoggedProcess | None = None
    started: float = 0.0
    quick_deaths: int = 0
    wanted: bool = True
    to_be_tried: bool = False
    """Whether nothing else needs it: it is started last, and given up alone."""

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Suite:
    """Starts, watches and stops the processes. ``environment`` overrides what the settings below say.

    Their logs come through pipes, as in containers, and are kept in ``VAR_DIR/log``.
    """

    shared_user = False
    """Whether all services use one user of the private broker, the operator's, instead of one each."""

    log_pause = 0.0
    """For tests: seconds that a log's reader sleeps after each read, at most."""

    def __init__(
        self,
        var_dir: Path,
        *,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        one_worker: bool = False,
        with_providers: bool = False,
        start_process: Callable[..., LoggedProcess] = LoggedProcess,
    ) -> None:
        """``one_worker``: all services but the gateway are served by one process instead of one each, which starts and idles
        at less cost. ``with_providers``: a provider of remote certificates and one of duty stamps run beside them, to be tried;
        the latter unless RENDERING_STAMP_FOLDER says that there is another. ``start_process``: as LoggedProcess, which
        starts each anew; ForkServers.start makes copies."""
        self.var_dir = var_dir.resolve()
        self.var_dir.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.one_worker, self.with_providers = one_worker, with_providers
        self._start_process = start_process
        self.settings = dict(environment or {})
        self.base_url = self.settings.get("BASE_URL") or f"http://localhost:{self.port}"
        self.broker: PrivateBroker | None = None
        self._secrets = Secrets(self.var_dir / "secrets")
        self.api_key, self.api_key_is_new = self._admin_api_key()
        self._ports_of_providers = {name: self._provider_port(name) for name in self._names_of_providers()}
        names = (*self._names(), *self._ports_of_providers)
        self.programs = {name: self._program(name) for name in names}
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start everything and wait until it is ready; SuiteFailed with the reason otherwise."""
        self._launch_broker()
        self._migrate()
        for program in [program for program in self.programs.values() if not program.to_be_tried]:
            self.start_program(program.name)
        self.wait_until_ready()

    def start_providers(self) -> None:
        """Start the providers that run beside the services, which wait for none of them; when ``start`` is over, so that what
        nobody may want to try makes nobody wait."""
        for name in self._ports_of_providers:
            self.start_program(name)

    def stop(self) -> None:
        """SIGTERM to all, SIGKILL to what is left after 9 s, the broker last."""
        self._stopping.set()
        running = [program for program in self.programs.values() if program.running]
        for program in running:
            program.wanted = False
            assert program.process is not None
            program.process.terminate()
        deadline = time.monotonic() + STOP_WITHIN
        for program in running:
            assert program.process is not None
            try:
                program.process.wait(max(0.05, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                program.process.kill()
                program.process.wait()
        if self.broker:
            self.broker.stop()

    def start_program(self, name: str) -> None:
        program = self.programs[name]
        program.wanted = True
        program.process = self._start_process(
            [sys.executable, *program.arguments],
            self.var_dir / "log" / f"{name}.log",
            cwd=ROOT,
            env=self.environment(program),
            new_session=True,
            pause=self.log_pause,
        )
        program.started = time.monotonic()

    def kill_program(self, name: str, number: int = signal.SIGKILL) -> None:
        """End one process, as a crash would; it stays down until ``start_program``."""
        program = self.programs[name]
        program.wanted = False
        assert program.process is not None
        program.process.send_signal(number)
        program.process.wait()

    def watch(self) -> None:
        """Start again whatever dies, until ``stop``; SuiteFailed when one dies at each start."""
        while not self._stopping.wait(0.5):
            for program in self.programs.values():
                if program.wanted and not program.running:
                    self._revive(program)

    def wait_until_ready(self, within: float = READY_WITHIN) -> None:
        deadline = time.monotonic() + within
        answer = ""
        while time.monotonic() < deadline:
            dead = [program for program in self.programs.values() if program.wanted and not program.running]
            if dead:
                raise SuiteFailed(f"{dead[0].name} ended while starting.\n{self.log_tail(dead[0].name)}")
            ready, answer = self._ask_ready()
            if ready:
                return
            time.sleep(0.1)
        raise SuiteFailed(f"not ready after {within:.0f} s: {answer}\nLogs are in {self.var_dir / 'log'}")

    def log_tail(self, name: str, size: int = 3000) -> str:
        return (self.var_dir / "log" / f"{name}.log").read_text(errors="replace")[-size:]

    def environment(self, program: Program) -> dict[str, str]:
        """Return what a process of the suite sees: settings and secrets, the caller's own settings first."""
        values = {
            "PORT": str(self.port),
            "VAR_DIR": str(self.var_dir),
            "BASE_URL": self.base_url,
            **self._amqp_urls(),
            **settings_of_var_dir(self.var_dir),
            **self._settings_of_providers(),
            "SMTP_URL": "",
            "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8,::1/128",
            "ADMIN_EMAIL": "admin@example.com",
            "CERTIFICATE_DIR": str(self.var_dir / "secrets" / "certificates"),
            "LINK_SECRET": self._secrets.get("link-secret"),
            "KEY_ENCRYPTION_SECRET": self._secrets.get("key-encryption-secret"),
        }
        fixed = {
            "ADMIN_API_KEY": self.api_key,
            "HEALTH_PORT": str(program.health_port),
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT),
        }
        made = {**values, **{key: value for key, value in self.settings.items() if value}, **fixed}
        return {**{key: value for key, value in os.environ.items() if key.removesuffix(FILE) not in made}, **made}

    def _names(self) -> tuple[str, ...]:
        workers = ("worker",) if self.one_worker else WORKERS
        return (*workers, "background", "gateway")

    def _names_of_providers(self) -> tuple[str, ...]:
        if not self.with_providers:
            return ()
        return (PROVIDER,) if self.settings.get("RENDERING_STAMP_FOLDER") else (PROVIDER, STAMP_ISSUER)

    def _program(self, name: str) -> Program:
        if name in self._ports_of_providers:
            return self._provider_program(name)
        if name == "background":
            arguments = ["-m", "contracts.runtime.main", "background", *SERVICES]
        elif name == "worker":
            arguments = ["-m", "contracts.runtime.main", "serve", *WORKERS]
        else:
            arguments = ["-m", f"services.{name}", "serve"]
        return Program(name, arguments, free_port())

    def _provider_program(self, name: str) -> Program:
        port = self._ports_of_providers[name]
        module = "deploy.providers.csc" if name == PROVIDER else "deploy.providers.stamp_issuer"
        arguments = ["-m", module, "--folder", str(self.var_dir / name), "--port", str(port)]
        if name == PROVIDER:
            arguments += ["--mailbox", str(self.var_dir / "mail" / PROVIDER_MAILBOX)]
        return Program(name, arguments, port, wanted=False, to_be_tried=True)

    def provider_urls(self) -> dict[str, str]:
        """Return where the providers are that run beside the services, by name."""
        return {name: f"http://127.0.0.1:{port}" for name, port in self._ports_of_providers.items()}

    def providers_out_of_reach(self) -> str | None:
        """Return why no service may call the providers that run beside them, None where they may: ALLOWED_PRIVATE_NETWORKS,
        when it is set, is all that may be called besides public addresses."""
        networks = self.settings.get("ALLOWED_PRIVATE_NETWORKS")
        if not self._ports_of_providers or not networks:
            return None
        parts = [part.strip() for part in networks.split(",") if part.strip()]
        if any(_is_in(_LOOPBACK, part) for part in parts):
            return None
        return f"ALLOWED_PRIVATE_NETWORKS is {networks}, and has to have {_LOOPBACK} as well"

    def _settings_of_providers(self) -> dict[str, str]:
        """Return what the services must know of them: pages link to them, and a sign adapter shares its folder with
        rendering."""
        urls = self.provider_urls()
        found = {"LOCAL_PROVIDER_URL": urls.get(PROVIDER, ""), "LOCAL_STAMP_ISSUER_URL": urls.get(STAMP_ISSUER, "")}
        if STAMP_ISSUER in urls:
            found["RENDERING_STAMP_FOLDER"] = str(self.var_dir / STAMP_ISSUER / "shared")
        return found

    def certsign_settings(self) -> dict[str, Any]:
        """Return what ``PUT /account`` takes as ``certsign`` for the provider that runs beside the services."""
        return self._written_by(PROVIDER, "certsign.json")

    def dutystamp_settings(self) -> dict[str, Any]:
        """Return what ``PUT /account`` takes as ``dutystamp`` for the stamp issuer that runs beside the services."""
        return self._written_by(STAMP_ISSUER, "dutystamp.json")

    def _written_by(self, name: str, file: str) -> dict[str, Any]:
        """Return what a provider has written once it can be called."""
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and self.programs[name].wanted:
            with contextlib.suppress(FileNotFoundError, ValueError):
                found: dict[str, Any] = json.loads((self.var_dir / name / file).read_text())
                return found
            time.sleep(0.1)
        raise SuiteFailed(f"{name} did not start.\n{self.log_tail(name)}")

    def _provider_port(self, name: str) -> int:
        """The same one at each start: certificates and the account's settings name it."""
        path = self.var_dir / name / "port"
        if path.exists():
            return int(path.read_text())
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        port = free_port()
        write_secret(path, str(port))
        return port

    def _launch_broker(self) -> None:
        for folder in ("log", "databases", "blobs"):
            (self.var_dir / folder).mkdir(mode=0o700, exist_ok=True)
        if self.settings.get("AMQP_URL"):
            return
        operator, services = self._broker_passwords()
        definitions = (broker_users(operator, services), self._definitions())
        self.broker = PrivateBroker(self.var_dir / "rabbitmq", operator, definitions)
        try:
            self.broker.launch()
        except OSError as error:
            raise SuiteFailed(f"The private RabbitMQ node did not start: {error}") from error

    def _broker_passwords(self) -> tuple[str, dict[str, str]]:
        """The operator's, and that of each service's own user."""
        services = {service: self._secrets.get(f"rabbitmq-password-{service}") for service in SERVICES}
        return self._secrets.get("rabbitmq-password"), services

    def _definitions(self) -> dict[str, Any]:
        """Return what the broker is to know besides its users."""
        if self.settings.get("EVENT_RETRY_SECONDS"):
            from deploy import broker_roles  # which takes a while: it imports the services

            return broker_roles.definitions(retry_seconds=self.settings["EVENT_RETRY_SECONDS"])
        recorded: dict[str, Any] = json.loads(DEFINITIONS.read_text())
        return recorded

    def _amqp_urls(self) -> dict[str, str]:
        """Each service has a user of its own, unless the caller has a broker for all of them."""
        if self.broker is None:
            return {"AMQP_URL": self.settings["AMQP_URL"]}
        if self.shared_user:
            return {"AMQP_URL": self.broker.amqp_url}
        _, services = self._broker_passwords()
        urls = {
            f"{service.upper()}_AMQP_URL": self.broker.url_of(f"countersign-{service}", password)
            for service, password in services.items()
        }
        return {"AMQP_URL": self.broker.amqp_url, **urls}

    def _migrate(self) -> None:
        """Bring databases and queues to this version: the databases while the broker is still starting."""
        log = self.var_dir / "log" / "migrate.log"
        log.unlink(missing_ok=True)
        migration = self._start_process(
            [sys.executable, "-m", "contracts.runtime.main", "migrate", *SERVICES],
            log,
            cwd=ROOT,
            env=self.environment(self.programs["gateway"]),
        )
        try:
            if self.broker:
                self.broker.wait_until_ready()
        except BrokerFailed as error:
            migration.kill()
            raise SuiteFailed(f"The private RabbitMQ node did not start: {error}") from error
        finally:
            status = migration.wait()
        if status:
            raise SuiteFailed(f"A database could not be migrated.\n{self.log_tail('migrate')}")

    def _revive(self, program: Program) -> None:
        assert program.process is not None
        alive = time.monotonic() - program.started
        program.quick_deaths = program.quick_deaths + 1 if alive < QUICK_DEATH else 0
        if program.quick_deaths >= QUICK_DEATHS_ALLOWED and program.to_be_tried:
            program.wanted = False
            print(
                f"{program.name} dies at each start, and is left alone.\n{self.log_tail(program.name)}", file=sys.stderr
            )
            return
        if program.quick_deaths >= QUICK_DEATHS_ALLOWED:
            raise SuiteFailed(f"{program.name} dies at each start.\n{self.log_tail(program.name)}")
        print(f"{program.name} ended with {program.process.returncode}; starting it again", file=sys.stderr, flush=True)
        self.start_program(program.name)

    def _ask_ready(self) -> tuple[bool, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return True, answer.read().decode()
        except urllib.error.HTTPError as error:
            return False, error.read().decode(errors="replace")
        except OSError as error:
            return False, str(error)

    def _admin_api_key(self) -> tuple[str, bool]:
        if self.settings.get("ADMIN_API_KEY"):
            return self.settings["ADMIN_API_KEY"], False
        path = self.var_dir / ADMIN_KEY_FILE
        if path.exists():
            return path.read_text().strip(), False
        return write_secret(path, secrets.token_urlsafe(32)), True


class Secrets:
    """Secrets made on first use and kept in ``folder``, readable by nobody else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, name: str) -> str:
        path = self.folder / name
        if path.exists():
            return path.read_text().strip()
        return write_secret(path, secrets.token_urlsafe(32))


def write_secret(path: Path, value: str) -> str:
    """Write ``value`` to ``path`` so that it is whole or not there, mode 600."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(value + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    return value


def _is_in(address: str, network: str) -> bool:
    """False for what is no network: the services say so when they start."""
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def settings_of_var_dir(var_dir: Path) -> dict[str, str]:
    """Return where databases and files are when nobody says anything else."""
    folder = var_dir / "databases"
    databases = {f"{service.upper()}_DATABASE_URL": f"sqlite:///{folder / service}.sqlite" for service in SERVICES}
    return {"BLOB_URL": f"file://{var_dir / 'blobs'}", **databases}


def settings_from_environment() -> dict[str, str]:
    """The caller's settings: whatever of the environment a service would read. Raises SecretFileFaults."""
    return settings_in(os.environ)


def settings_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The same of another environment. What is in files is read here: the suite makes the secrets that it is not given, and a
    service refuses those that it is given twice."""
    found = {key: value for key, value in environment.items() if key.isupper() and value}
    for key in [key for key in found if key.endswith(FILE)]:
        name = key.removesuffix(FILE)
        if name in _all_secrets():
            found[name] = secret_setting(name, found) or ""
            del found[key]
    return found


@cache
def _all_secrets() -> frozenset[str]:
    """The settings of all services that hold a secret, with the own AMQP_URL that each may have."""
    classes = [importlib.import_module(f"services.{service}.settings").Settings for service in SERVICES]
    own = {f"{service.upper()}_AMQP_URL" for service in SERVICES}
    return frozenset(own.union(*(settings.secrets().values() for settings in classes)))


def is_kept_in(var_dir: Path) -> bool:
    """Has a suite been started in this folder?"""
    return (var_dir / "secrets" / "link-secret").exists()


def environment_in(var_dir: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the services of the suite in this folder see, which runs or ran last, without starting anything. The
    caller's own settings come first. There must be one (``is_kept_in``)."""
    suite = Suite(var_dir, port=int(environment.get("PORT") or 8000), environment=environment)
    if not suite.settings.get("AMQP_URL"):
        folder = suite.var_dir / "rabbitmq"
        suite.broker = PrivateBroker(folder, suite._broker_passwords()[0])
        suite.broker.port = PrivateBroker.port_of(folder) or suite.broker.port
    return {**suite.environment(suite.programs["gateway"]), "HEALTH_PORT": "0"}


def main() -> int:
    var_dir = Path(os.environ.get("VAR_DIR") or ROOT / "var")
    port = int(os.environ.get("PORT") or 8000)
    try:
        settings = settings_from_environment()
    except SecretFileFaults as fault:
        print(f"Countersign was not started: {fault}", file=sys.stderr)
        return 1
    if not settings.get("AMQP_URL") and (reason := too_old()) is not None:
        print(f"Countersign was not started: {reason}", file=sys.stderr)
        return 1
    with_providers = os.environ.get("PROVIDERS_TO_TRY") != "no"
    servers = ForkServers.of_this_process()
    suite = Suite(var_dir, port=port, environment=settings, with_providers=with_providers, start_process=servers.start)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        servers.begin()
        suite.start()
        suite.start_providers()
        announce(suite, time.monotonic() - began)
        suite.watch()
    except KeyboardInterrupt:
        print("stopping", file=sys.stderr, flush=True)
    except (SuiteFailed, ForkServerFailed) as error:
        print(f"Countersign could not be kept running: {error}", file=sys.stderr)
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):  # pressed twice, the broker would be left behind
            signal.signal(number, signal.SIG_IGN)
        suite.stop()
        servers.close()
    return 0


def announce(suite: Suite, seconds: float) -> None:
    """Say once what a newcomer needs: where it runs, the key, a first call."""
    print(f"Countersign is ready after {seconds:.1f} s: {suite.base_url} (API docs at /docs)")
    if not suite.settings.get("SMTP_URL"):
        mailbox = "" if suite.base_url.startswith("https:") else f" and shown at http://localhost:{suite.port}/dev/mail"
        print(f"Mails are kept in {suite.var_dir / 'mail'}{mailbox}")
    urls = suite.provider_urls()
    if PROVIDER in urls:
        print(f"To be tried: a provider of remote certificates at {urls[PROVIDER]} (docs/certsign.md)")
    if STAMP_ISSUER in urls:
        print(f"             and one of duty stamps at {urls[STAMP_ISSUER]} (docs/dutystamp.md)")
    if (reason := suite.providers_out_of_reach()) is not None:
        print(f"             They cannot be called as things are: {reason}")
    if suite.api_key_is_new:
        print(
            f"API key of the first admin, printed this once (kept in {suite.var_dir / ADMIN_KEY_FILE}): {suite.api_key}"
        )
    kept = suite.var_dir / ADMIN_KEY_FILE
    where = "$ADMIN_API_KEY" if suite.settings.get("ADMIN_API_KEY") else f"$(cat {kept})"
    header = json.dumps(f"X-Auth-Token: {where}")
    print(f"Try: curl -H {header} {suite.base_url}/api/user")
    print("Ctrl-C stops it.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
