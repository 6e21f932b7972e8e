"""The gateway's settings, from its environment."""

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from contracts.runtime.settings import ServiceSettings, at_least, with_others
from contracts.types import Account
from services.gateway import formats
from services.gateway.identity.provider import ProviderSettings

MEGABYTE = 1024 * 1024


class Settings(ServiceSettings):
    database_url: str = Field(validation_alias="GATEWAY_DATABASE_URL", description="users, keys and account settings")
    key_encryption_secret: Annotated[SecretStr, at_least(32)] = Field(
        description="encrypts the API keys and makes the hashes by which they are found; at least 32 characters"
    )
    key_encryption_secret_next: Annotated[SecretStr, at_least(32)] | None = Field(
        default=None, description="the KEY_ENCRYPTION_SECRET that comes next: what was made under it is read"
    )
    key_encryption_secret_previous: Annotated[SecretStr, at_least(32)] | None = Field(
        default=None, description="the KEY_ENCRYPTION_SECRET of before: what was made under it is read, and taken over"
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port to listen on")
    admin_email: str | None = Field(default=None, description="e-mail address of the first admin, made when missing")
    admin_api_key: Annotated[SecretStr, at_least(20)] | None = Field(
        default=None, description="API key of the first admin; at least 20 characters"
    )

    max_file_size: int = Field(default=25 * MEGABYTE, gt=0, description="bytes of one file")
    max_request_size: int = Field(default=100 * MEGABYTE, gt=0, description="bytes of one request")
    max_batch_size: int = Field(default=20 * MEGABYTE, gt=0, description="bytes of a file with the rows of a batch")
    max_bodies_in_flight: int = Field(
        default=400 * MEGABYTE, gt=0, description="bytes of request bodies in memory at once; above it clients get 503"
    )
    max_documents: int = Field(default=30, ge=1, description="documents of a template or submission")
    max_submitters: int = Field(default=50, ge=1, description="submitters of a submission")
    max_fields: int = Field(default=2000, ge=1, description="fields of a document")
    max_connections: int = Field(default=1000, ge=1, description="HTTP connections at once; above it clients get 503")
    header_timeout: float = Field(
        default=20.0, gt=0, description="seconds that the head of a request may take; then the connection is closed"
    )
    body_timeout: float = Field(
        default=30.0, gt=0, description="seconds that a client may be silent while it sends a body"
    )
    fetch_timeout: float = Field(
        default=10.0, gt=0, description="seconds to fetch a file from a URL that a caller gave"
    )
    heavy_calls_per_user: int = Field(
        default=3, ge=1, description="calls of one user at once that work on documents; others wait, then get 503"
    )
    event_streams_per_user: int = Field(
        default=5, ge=1, description="streams of events that one user may have open at once"
    )
    event_stream_seconds: float = Field(
        default=300.0, gt=0, description="seconds after which a stream of events ends; its client opens another"
    )
    page_threads: int = Field(default=16, ge=1, description="threads for the signing page and file links")
    fetch_threads: int = Field(default=16, ge=1, description="threads that fetch files from URLs that callers gave")
    work_threads: int = Field(default=8, ge=1, description="threads for large bodies, files, passwords, the database")

    trace_sampling_by_callers: bool = Field(
        default=False,
        description="whether the traceparent of a caller says if their request is recorded, where traces are on; otherwise "
        "OTEL_TRACES_SAMPLER alone does",
    )
    trusted_proxies: str = Field(
        default="127.0.0.1/32,::1/128", description="comma-separated CIDRs of proxies whose X-Forwarded-For is believed"
    )
    cors_origins: str = Field(
        default="",
        description="origins of other sites whose scripts may call the API, by blanks; empty: none",
    )
    frame_ancestors: str = Field(
        default="",
        description="sites that may frame signing pages (sources of CSP), where the account says nothing; empty: none",
    )
    pages_as_modules: bool = Field(
        default=False,
        description="serve the scripts and style sheets of pages one by one as they are written: to debug them",
    )
    smtp_url: SecretStr | None = Field(
        default=None, description="as for notifications; when empty, mails are kept; see /dev/mail"
    )
    sms_url: SecretStr | None = Field(
        default=None,
        description="as for notifications; when empty, send_sms is refused with SMTP_URL, and shown at /dev/mail without",
    )
    local_provider_url: str = Field(
        default="", description="page of a provider of remote certificates to be tried here; linked at /dev/mail"
    )
    local_stamp_issuer_url: str = Field(
        default="", description="page of a provider of duty stamps to be tried here; linked at /dev/mail"
    )

    identity_provider_url: str | None = Field(
        default=None, description="issuer of the OpenID Connect provider that verification fields are proved at"
    )
    identity_provider_client_id: str | None = Field(default=None, description="what we are called there")
    identity_provider_client_secret: SecretStr | None = Field(
        default=None, description="our secret there; none: a public client, protected by PKCE alone"
    )
    identity_provider_name: str = Field(default="", description="what signers know it by; empty: its host")
    identity_provider_scopes: str = Field(default="openid profile email", description="scopes that are asked for")
    identity_provider_acr_aes: str = Field(
        default="",
        description="acr values, by blanks, one of which must hold for fields with the method aes; empty: any",
    )
    identity_provider_acr_qes: str = Field(
        default="", description="the same for the method qes; empty: fields with it are refused"
    )
    identity_provider_any_email: bool = Field(
        default=False, description="accept another verified e-mail address than the one that the signer was invited at"
    )

    account_name: str = Field(
        default="Countersign", min_length=1, description="name of the account, in mails and on pages"
    )
    account_time_zone: str = Field(default="UTC", description="IANA name of the account's time zone")
    account_locale: str = Field(default="en-US", description="language and region of dates and numbers")
    account_completed_notification_email: bool = Field(
        default=True, description="mail the sender when all have completed"
    )
    account_completed_notification_email_attach_audit: bool = Field(
        default=True, description="with the audit trail attached to it"
    )
    account_completed_notification_email_attach_documents: bool = Field(
        default=True, description="with the documents attached to it"
    )
    account_documents_copy_email: bool = Field(default=True, description="mail each signer a copy of the documents")
    account_documents_copy_email_attach_audit: bool = Field(
        default=True, description="with the audit trail attached to it"
    )
    account_documents_copy_email_attach_documents: bool = Field(
        default=True, description="with the documents attached to it"
    )
    account_phone_otp_webhook_url: str | None = Field(
        default=None, description="where one-time codes for phones are posted to"
    )
    account_phone_otp_webhook_token: SecretStr | None = Field(
        default=None, description="bearer token that is sent along to it"
    )
    account_with_signature_id: bool = Field(
        default=False, description="print an id beside each signature, and the document's at the foot of each page"
    )
    account_with_file_links: bool = Field(
        default=False,
        description="names of attached files on paper lead to the files, not to the page of the submission",
    )
    account_with_certification: bool = Field(
        default=False,
        description="seals certify what they seal: readers call them broken after any change but a further signature",
    )
    account_bcc_emails: str = Field(default="", description="addresses that get a copy of every completion mail")

    @field_validator(
        "key_encryption_secret_next",
        "key_encryption_secret_previous",
        "admin_email",
        "smtp_url",
        "sms_url",
        "identity_provider_url",
        "identity_provider_client_id",
        "identity_provider_client_secret",
        "account_phone_otp_webhook_url",
        "account_phone_otp_webhook_token",
        mode="before",
    )
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("identity_provider_scopes")
    @classmethod
    def _with_openid(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("must contain openid")
        return value

    @model_validator(mode="after")
    def _accept_other_key_secrets(self) -> Self:
        following, previous = self.key_encryption_secret_next, self.key_encryption_secret_previous
        self.__dict__["key_encryption_secret"] = with_others(self.key_encryption_secret, following, previous)
        return self

    @model_validator(mode="after")
    def _whole_identity_provider(self) -> Self:
        url = self.identity_provider_url
        if url is None:
            return self
        if self.identity_provider_client_id is None:
            raise ValueError("IDENTITY_PROVIDER_URL needs IDENTITY_PROVIDER_CLIENT_ID")
        parts = urlsplit(url)
        if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
            raise ValueError("IDENTITY_PROVIDER_URL must be the issuer, such as https://login.example.com/realm")
        # Tokens that travel in the clear prove nothing; where signers' pages do, all is being tried out.
        if parts.scheme != "https" and not (parts.scheme == "http" and self.base_url.startswith("http://")):
            raise ValueError("IDENTITY_PROVIDER_URL must be an https address")
        return self

    @property
    def identity_provider(self) -> ProviderSettings | None:
        """The provider that verification fields are proved at, None where there is none."""
        url, client_id, secret = (
            self.identity_provider_url,
            self.identity_provider_client_id,
            self.identity_provider_client_secret,
        )
        if url is None or client_id is None:
            return None
        return ProviderSettings(
            issuer=url,
            client_id=client_id,
            secret=secret.get_secret_value() if secret is not None else None,
            name=self.identity_provider_name.strip() or urlsplit(url).hostname or url,
            scopes=self.identity_provider_scopes,
            acr_values={
                "aes": self.identity_provider_acr_aes.split(),
                "qes": self.identity_provider_acr_qes.split(),
            },
            any_email=self.identity_provider_any_email,
        )

    @field_validator("cors_origins")
    @classmethod
    def _known_origins(cls, value: str) -> str:
        return " ".join(formats.parse_origins(value))

    @property
    def cors_origin_list(self) -> list[str]:
        """Each of ``cors_origins``."""
        return self.cors_origins.split()

    @field_validator("account_time_zone")
    @classmethod
    def _known_time_zone(cls, value: str) -> str:
        if not formats.is_time_zone(value):
            raise ValueError("must be an IANA name of a time zone, such as Europe/Vienna")
        return value

    @field_validator("account_locale")
    @classmethod
    def _known_locale(cls, value: str) -> str:
        return formats.parse_locale(value)

    @field_validator("account_bcc_emails")
    @classmethod
    def _addresses(cls, value: str) -> str:
        if not formats.is_email_list(value):
            raise ValueError("must be e-mail addresses separated by commas")
        return value

    def account_defaults(self) -> Account:
        """The account settings of an installation where nobody has changed any."""
        return Account(
            name=self.account_name,
            time_zone=self.account_time_zone,
            locale=self.account_locale,
            completed_notification_email_enabled=self.account_completed_notification_email,
            completed_notification_email_attach_audit=self.account_completed_notification_email_attach_audit,
            completed_notification_email_attach_documents=self.account_completed_notification_email_attach_documents,
            documents_copy_email_enabled=self.account_documents_copy_email,
            documents_copy_email_attach_audit=self.account_documents_copy_email_attach_audit,
            documents_copy_email_attach_documents=self.account_documents_copy_email_attach_documents,
            with_signature_id=self.account_with_signature_id,
            with_file_links=self.account_with_file_links,
            with_certification=self.account_with_certification,
            bcc_emails=self.account_bcc_emails,
            frame_ancestors=[source for source in self.frame_ancestors.split() if source != "'none'"],
            sms_available=self.sms_url is not None or self.smtp_url is None,
            phone_codes_available=self.account_phone_otp_webhook_url is not None,
            identity_checks_available=self.identity_provider is not None,
            identity_checks_qes_available=bool(self.identity_provider_acr_qes.split()),
        )
