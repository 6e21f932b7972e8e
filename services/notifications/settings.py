"""Settings of the notifications service, from the environment."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from contracts.runtime.http.outbound import Outbound, OutboundRefused
from contracts.runtime.settings import ServiceSettings
from services.notifications import addresses
from services.notifications.channels import dkim_keys
from services.notifications.channels.dkim_keys import DkimKey
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
    dkim_keys: str = Field(
        "",
        description="DKIM keys that mails are signed with, as selector:file, several separated by commas; each file is a"
        " private key in PEM, RSA or Ed25519. Unset: mails are not signed, a relay may do that",
    )
    dkim_domain: str | None = Field(
        None, description="Domain that DKIM signatures are for; unset: that of the sender's address"
    )
    smtp_timeout: float = Field(30.0, gt=0, description="Seconds to wait for each answer of the mail server")
    smtp_attempt_seconds: float = Field(120.0, gt=0, description="Seconds that sending one mail may take in all")

    sent_dir: Path | None = Field(
        None,
        description="Folder where background notes what was sent until the database knows: nothing is sent again after a crash;"
        " unset: VAR_DIR/sent, and without VAR_DIR it is known in memory alone",
    )

    sms_url: str | None = Field(
        None,
        description="Where text messages are posted to: a provider's URL, in the form that SMS_FORMAT says. Unset: with"
        " SMTP_URL there is no SMS; without it they are kept and shown on the local mail page",
    )
    sms_format: Literal["json", "twilio"] = Field(
        "json",
        description='"json": a JSON object with "id", "to", "from" and "text"; "twilio": Twilio\'s Messages resource',
    )
    sms_user: str | None = Field(None, description="User of HTTP basic authentication, such as Twilio's account SID")
    sms_token: SecretStr | None = Field(
        None, description="Password of SMS_USER; without SMS_USER it is sent as a bearer token"
    )
    sms_from: str = Field("", description="Number or name that text messages come from, or Twilio's messaging service")
    sms_concurrency: int = Field(4, ge=1, description="Messages to phones sent at once")
    sms_retry_seconds: str = Field(
        "5,30,120,600,1800,3600,10800,21600",
        description="Waits after the first, second, ... failed attempt, comma-separated seconds; then an SMS has failed",
    )
    sms_resend_seconds: float = Field(
        60.0, ge=0, description="An invitation by SMS goes to the same number at most once in this many seconds"
    )

    @field_validator("sms_url", "sms_user", "sms_token", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("sms_url")
    @classmethod
    def _web_address(cls, url: str | None) -> str | None:
        if url is not None:
            try:
                Outbound().check_form(url)
            except OutboundRefused as refused:
                raise ValueError(refused.reason) from None
        return url

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

    @field_validator("dkim_keys")
    @classmethod
    def _named_keys(cls, keys: str) -> str:
        dkim_keys.parsed(keys)
        return keys

    @field_validator("mail_retry_seconds", "sms_retry_seconds")
    @classmethod
    def _waits(cls, waits: str) -> str:
        if not all(float(wait) > 0 for wait in waits.split(",")):
            raise ValueError("every wait must be above 0")
        return waits

    @model_validator(mode="after")
    def _twilio_needs_more(self) -> Self:
        if self.sms_url and self.sms_format == "twilio" and not (self.sms_user and self.sms_token and self.sms_from):
            raise ValueError("SMS_FORMAT=twilio needs SMS_USER, SMS_TOKEN and SMS_FROM")
        return self

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
    def dkim(self) -> list[DkimKey]:
        """The keys that mails are signed with. Raises BadKey."""
        own = addresses.for_wire(self.sender).rpartition("@")[2]
        return dkim_keys.load(self.dkim_keys, (self.dkim_domain or "").strip() or own)

    @property
    def mail_folder(self) -> Path:
        """Return the folder where mails are kept when there is no mail server."""
        return (self.var_dir or Path()) / "mail"

    @property
    def sent_folder(self) -> Path | None:
        """Return the folder where what was sent is noted; None when there is no place for it."""
        return self.sent_dir or (self.var_dir / "sent" if self.var_dir is not None else None)

    @property
    def keeps_sms(self) -> bool:
        """Text messages are kept and shown here instead of being sent."""
        return self.sms_url is None and self.smtp_url is None

    @property
    def sms_schedule(self) -> list[timedelta]:
        return [timedelta(seconds=float(wait)) for wait in self.sms_retry_seconds.split(",")]

    @property
    def schedule(self) -> list[timedelta]:
        return [timedelta(seconds=float(wait)) for wait in self.mail_retry_seconds.split(",")]
