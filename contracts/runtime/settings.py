"""Settings come from the environment and nowhere else; a service subclasses this and adds its own.

``python -m services.<name> check`` prints the effective settings. Secrets have no default and are never printed. Each may be in
a file instead, which ``<NAME>_FILE`` names, as Docker and Kubernetes mount them.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Self, get_args

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.rotation import Secret

WEB_PORTS = "80,443,8080,8443"
_HIGHEST_PORT = 65_535


def at_least(characters: int) -> AfterValidator:
    """Refuse a shorter secret, blanks at its ends not counted: who can guess it needs nothing else of us."""

    def check(secret: SecretStr) -> SecretStr:
        if len(secret.get_secret_value().strip()) < characters:
            raise ValueError(f"must have at least {characters} characters; this makes a good one: openssl rand -hex 32")
        return secret

    return AfterValidator(check)


def with_others(secret: SecretStr, following: SecretStr | None, previous: SecretStr | None) -> SecretStr:
    """Return a secret whose value is a ``rotation.Secret`` where others are accepted beside it."""
    if following is None and previous is None:
        return secret
    others = {"following": following, "previous": previous}
    values = {name: other.get_secret_value() for name, other in others.items() if other is not None}
    return SecretStr(Secret(secret.get_secret_value(), **values))


FILE = "_FILE"
_WITH_PASSWORD = frozenset({"amqp_url", "database_url", "sms_url"})
"""Settings that are no secrets as a whole, but have a password in them."""


class SecretFileFaults(Exception):
    """Secrets that cannot be had from their files: ``faults`` says of each ``<VARIABLE>: <words>``."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)


def secret_setting(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return what the environment says of the setting ``name``, which holds a secret: its value, or what is in the file that
    ``<name>_FILE`` names, without the end of its last line. None where neither says anything. Raises SecretFileFaults when both
    do, or the file cannot be read."""
    value, path = environment.get(name), environment.get(f"{name}{FILE}")
    if not path:
        return value
    if value:
        raise SecretFileFaults(f"{name}: it is set, and {name}{FILE} as well: set one of both")
    try:
        return Path(path).read_text("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise SecretFileFaults(f"{name}{FILE}: {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SecretFileFaults(f"{name}{FILE}: {path} is not a text in UTF-8") from error


def is_secret(annotation: Any) -> bool:
    """Is it ``SecretStr``, or a union or ``Annotated`` with it?"""
    return annotation is SecretStr or any(is_secret(part) for part in get_args(annotation))


class ServiceSettings(BaseSettings):
    """The settings that every service needs. A subclass adds ``database_url`` with its own ``<SERVICE>_DATABASE_URL``::

    class Settings(ServiceSettings):
        database_url: str = Field(validation_alias="TEMPLATES_DATABASE_URL", description="...")
    """

    model_config = SettingsConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    amqp_url: str = Field(
        description="RabbitMQ, as amqp://user:password@host:port/vhost; <SERVICE>_AMQP_URL comes first, where services share "
        "an environment"
    )
    blob_url: str = Field(description="where files are kept: file:///absolute/path or s3://bucket/prefix")
    base_url: str = Field(description="how the outside reaches the gateway, without a slash at the end")
    link_secret: Annotated[SecretStr, at_least(32)] = Field(
        description="signs links to files; the same for every service; at least 32 characters"
    )
    link_secret_next: Annotated[SecretStr, at_least(32)] | None = Field(
        default=None, description="the LINK_SECRET that comes next: it is accepted, and signs nothing yet"
    )
    link_secret_previous: Annotated[SecretStr, at_least(32)] | None = Field(
        default=None, description="the LINK_SECRET of before: it is still accepted"
    )
    database_url: str = Field(description="the service's own database: sqlite:////path or postgresql://...")
    var_dir: Path | None = Field(default=None, description="folder for local state, where a service needs one")
    health_port: int = Field(default=0, description="port of /healthz, /readyz and /metrics of this process; 0: none")
    health_host: str = Field(default="127.0.0.1", description="address that /healthz, /readyz and /metrics listen on")
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR")
    allowed_private_networks: str = Field(
        default="",
        description="comma-separated CIDRs of private networks that may be called by HTTP all the same, on any port",
    )
    outbound_ports: str = Field(
        default=WEB_PORTS, description="comma-separated ports that may be called by HTTP outside of those networks"
    )
    max_workers: int = Field(default=10, ge=1, description="calls and events that one worker process handles at once")
    database_pool_size: int = Field(default=10, ge=1, description="database connections per process")
    event_retry_seconds: str = Field(
        default="1,5,30,120,600,1800",
        description="waits between the tries of an event handler, comma-separated seconds",
    )
    events_kept_hours: float = Field(
        default=168.0,
        gt=0,
        le=1440,
        description="how long events that were told are kept, for services that missed one, hours",
    )
    events_check_seconds: float = Field(
        default=5.0,
        gt=0,
        description="how often a service asks the owners of events whether it missed one; what was told later than that ago is "
        "still on its way",
    )
    poll_seconds: float = Field(
        default=1.0, gt=0, description="how often background work looks for rows without being woken"
    )
    drain_seconds: float = Field(default=25.0, gt=0, description="how long work under way may go on after SIGTERM")

    @field_validator("link_secret_next", "link_secret_previous", mode="before")
    @classmethod
    def _none_when_empty(cls, value: Any) -> Any:
        return None if value == "" else value

    @model_validator(mode="after")
    def _accept_others(self) -> Self:
        """Whoever asks for the secret gets those that are accepted with it."""
        self.__dict__["link_secret"] = with_others(self.link_secret, self.link_secret_next, self.link_secret_previous)
        return self

    @field_validator("base_url")
    @classmethod
    def _without_slash(cls, url: str) -> str:
        return url.rstrip("/")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return level.upper()

    @field_validator("allowed_private_networks")
    @classmethod
    def _networks(cls, networks: str) -> str:
        for network in filter(None, networks.split(",")):
            ip_network(network.strip())
        return networks

    @field_validator("outbound_ports")
    @classmethod
    def _ports(cls, ports: str) -> str:
        if not all(port.strip().isdecimal() and 0 < int(port) <= _HIGHEST_PORT for port in ports.split(",")):
            raise ValueError("must be numbers of ports, such as 80,443")
        return ports

    @field_validator("event_retry_seconds")
    @classmethod
    def _steps(cls, steps: str) -> str:
        if not all(float(step) > 0 for step in steps.split(",")):
            raise ValueError("every wait must be above 0")
        return steps

    @property
    def retry_ladder(self) -> tuple[float, ...]:
        """Seconds to wait after the first, second, ... failed try of an event handler."""
        return tuple(float(step) for step in self.event_retry_seconds.split(","))

    @property
    def events_at_once(self) -> int:
        """Events that one worker process handles at once: calls have as many places besides."""
        return max(1, self.max_workers // 2)

    @classmethod
    def from_environment(cls) -> Self:
        """The settings of this process. Raises SecretFileFaults, or pydantic's ValidationError naming what is wrong."""
        service = cls.__module__.rpartition(".")[0].rpartition(".")[2]
        own_url = f"{service.upper()}_AMQP_URL"
        from_files: dict[str, Any] = {}
        faults: list[str] = []
        for key, name in [*cls.secrets().items(), ("amqp_url", own_url)]:
            try:
                if name == own_url or os.environ.get(f"{name}{FILE}"):
                    from_files[key] = secret_setting(name) or from_files.get(key)
            except SecretFileFaults as fault:
                faults += fault.faults
        if faults:
            raise SecretFileFaults(*faults)
        return cls(**{key: value for key, value in from_files.items() if value})

    @classmethod
    def secrets(cls) -> dict[str, str]:
        """Return the environment variables of the settings that hold a secret, by how the class is given them: each may be in
        a file."""
        found = {}
        for name, field in cls.model_fields.items():
            if is_secret(field.annotation) or name in _WITH_PASSWORD:
                key = str(field.validation_alias or name)
                found[key] = key.upper()
        return found
