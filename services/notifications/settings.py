"""Settings of the notifications service, from the environment."""

from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from contracts.runtime.settings import ServiceSettings
from services.notifications import addresses
from services.notifications.channels.server import Server


class Settings(ServiceSettings):
    database_url: str = Field(
        validation_alias="NOTIFICATIONS_DATABASE_URL", description="SQLAlchemy URL of this service's database"
    )
    smtp_url: SecretStr | None = Field(
        None,
        description="Mail server, as smtp://user:password@host:587 (STARTTLS when offered; ?starttls=never|required) or"
        " smtps://...; ?verify=never takes any certificate. Unset: mails are kept in VAR_DIR/mail",
    )
    mail_from: str | None = Field(
        None,
        description="Sender's address of every mail; unset: the login of SMTP_URL, else no-reply@ the host of BASE_URL",
    )
    mail_concurrency: int = Field(2, ge=1, description="Mails sent at once, each over a connection of its own")
    mail_retry_seconds: str = Field(
        "10,30,60,120,300,600,1800,3600,7200,14400,28800,43200,86400",
        description="Waits after the first, second, ... failed attempt, comma-separated seconds; then a mail has failed",
    )
    mail_resend_seconds: float = Field(
        60.0, ge=0, description="An invitation is sent again to the same address at most once in this many seconds"
    )
    mail_attachment_bytes: int = Field(
        10_000_000,
        ge=0,
        description="Files are attached while all of them together are not larger; else they are linked",
    )
    smtp_timeout: float = Field(30.0, gt=0, description="Seconds to wait for each answer of the mail server")
    smtp_attempt_seconds: float = Field(120.0, gt=0, description="Seconds that sending one mail may take in all")

    @field_validator("smtp_url")
    @classmethod
    def _known_form(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None or not url.get_secret_value().strip():
            return None
        Server.from_url(url.get_secret_value())
        return url

    @field_validator("mail_from")
    @classmethod
    def _an_address(cls, address: str | None) -> str | None:
        if not (address or "").strip():
            return None
        if not addresses.valid(str(address).strip()):
            raise ValueError("must be an e-mail address")
        return str(address).strip()

    @field_validator("mail_retry_seconds")
    @classmethod
    def _waits(cls, waits: str) -> str:
        if not all(float(wait) > 0 for wait in waits.split(",")):
            raise ValueError("every wait must be above 0")
        return waits

    @model_validator(mode="after")
    def _somewhere_to_go(self) -> Self:
        if self.smtp_url is None and self.var_dir is None:
            raise ValueError("SMTP_URL is required, or VAR_DIR, where mails are kept when there is no mail server")
        return self

    @property
    def server(self) -> Server | None:
        """The mail server, None when mails are kept in a folder."""
        return None if self.smtp_url is None else Server.from_url(self.smtp_url.get_secret_value())

    @property
    def sender(self) -> str:
        """The address that mails come from."""
        login = self.server.user if self.server else None
        if self.mail_from or (login and addresses.valid(login)):
            return self.mail_from or str(login)
        return f"no-reply@{urlsplit(self.base_url).hostname or 'localhost'}"

    @property
    def mail_folder(self) -> Path:
        """Where mails are kept when there is no mail server."""
        return (self.var_dir or Path()) / "mail"

    @property
    def schedule(self) -> list[timedelta]:
        return [timedelta(seconds=float(wait)) for wait in self.mail_retry_seconds.split(",")]
