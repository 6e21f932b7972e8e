"""Settings of the rendering service, from the environment."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from contracts.runtime.settings import ServiceSettings


class Settings(ServiceSettings):
    database_url: str = Field(
        validation_alias="RENDERING_DATABASE_URL", description="SQLAlchemy URL of this service's database"
    )
    rendering_children: int = Field(
        2, ge=1, le=64, description="Child processes at work at once, per process; one is kept when idle"
    )
    rendering_children_per_caller: int | None = Field(
        None,
        ge=1,
        description="Those of them for one API user whose jobs are not known to be quick; all but one when unset",
    )
    rendering_child_memory_mb: int = Field(1024, ge=512, description="Address space of a child, in MB")
    rendering_jobs_per_child: int = Field(200, ge=1, description="Jobs after which a child is replaced")
    rendering_without_walls: Literal["allow", "refuse"] = Field(
        "allow",
        description="Whether the service starts where the kernel cannot hold its children back wholly, as without Landlock",
    )
    rendering_lease_seconds: float = Field(
        60.0,
        gt=0,
        description="Seconds after which another process makes the seal of one that is not heard of any more",
    )
    rendering_office_dir: Path = Field(
        Path("/usr/lib/libreoffice/program"),
        description="LibreOffice's programs; where they are missing, DOCX is refused",
    )
    rendering_office_children: int = Field(
        1, ge=1, le=16, description="Children with LibreOffice at work at once, per process; none is kept when idle"
    )
    rendering_office_memory_mb: int = Field(
        1536, ge=1024, description="Address space of a child with LibreOffice, in MB"
    )
    rendering_office_jobs_per_child: int = Field(50, ge=1, description="DOCX files after which LibreOffice starts anew")
    rendering_file_mb: int = Field(25, ge=1, le=200, description="Largest document that is accepted, in MB")
    rendering_pages: int = Field(1000, ge=1, le=5000, description="Most pages of a document")
    rendering_results_kept_days: float = Field(
        30.0, gt=0, description="Days that page pictures and laid-out HTML are kept to be given again"
    )
    rendering_stamp_folder: Path | None = Field(
        None,
        description="Folder that sign adapters of duty stamps share with this service; accounts name folders in it only",
    )
    rendering_stamps_at_once: int = Field(
        8, ge=1, le=64, description="Duty stamps under way at once, per process; seals do not wait for them"
    )
    rendering_stamps_per_adapter: int = Field(
        1, ge=1, le=16, description="Those of them that one sign adapter, or worker, is given at once"
    )
    certificate_dir: Path | None = Field(
        None,
        description="Folder of the seal's key and certificates, made on first start; VAR_DIR/certificates when unset",
    )
    certificate_new_chain: bool = Field(
        False, description="Make a new key and root although documents were sealed already and CERTIFICATE_DIR is empty"
    )
    signing_key_type: Literal["rsa-3072", "ec-p256"] = Field("rsa-3072", description="Kind of the key that is made")
    signing_common_name: str = Field("Countersign Seal", description="Name in the certificate that is made")
    signing_organization: str = Field("Countersign", description="Organisation in the certificate that is made")
    signing_country: str | None = Field(None, description="Two-letter country in the certificate that is made")
    signing_pkcs12_file: Path | None = Field(None, description="The operator's own key and chain, instead of made ones")
    signing_pkcs12_password: SecretStr | None = Field(None, description="Password of SIGNING_PKCS12_FILE")
    signing_pkcs11_module: Path | None = Field(
        None, description="PKCS#11 module (.so) of a token that holds the operator's own key, instead of a file"
    )
    signing_pkcs11_token: str | None = Field(None, description="Label of the token")
    signing_pkcs11_key: str | None = Field(None, description="Label of the private key in it")
    signing_pkcs11_pin: SecretStr | None = Field(None, description="The token's user PIN")
    signing_pkcs11_chain_file: Path | None = Field(
        None, description="Certificates (PEM) of the key in the token: its own first, then its issuers"
    )
    signing_reason: str = Field("Sealed with Countersign", description="Reason stated in the seal")
    tsa_url: SecretStr | None = Field(
        None, description="Time-stamping authority (RFC 3161); a second URL after a comma; login in the URL"
    )
    tsa_timeout: float = Field(10.0, gt=0, description="Seconds for a time-stamp")
    tsa_attempts: int = Field(3, ge=1, description="Attempts of a seal with a failing authority before it goes without")
    certsign_trust_dir: Path | None = Field(
        None, description="Folder of certificates (PEM, DER) that a certsign provider's chain may end in"
    )
    certsign_at_once: int = Field(
        16, ge=1, le=200, description="Submissions that one process has under way at certsign providers at once"
    )
    certsign_retry_hours: float = Field(
        24.0, gt=0, description="Hours for which a certsign provider that does not answer is asked again"
    )
    pades_level: Literal["B-LT", "B-LTA"] = Field(
        "B-LT", description="Highest level that seals are made for; B-LTA adds archive time-stamps, and needs TSA_URL"
    )
    archive_renewal_days: float = Field(
        90.0, gt=0, description="Days before an archive time-stamp runs out in which it is renewed, at the latest"
    )
    trust_anchors_dir: Path | None = Field(
        None, description="Folder of certificates (PEM, DER) that verify trusts besides the seal's own root"
    )

    @field_validator("signing_country")
    @classmethod
    def _two_letters(cls, country: str | None) -> str | None:
        if not country:
            return None
        if len(country) != 2 or not country.isalpha():
            raise ValueError("must be two letters, such as DE")
        return country.upper()

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if not self.has_own_key and self.certificates is None:
            raise ValueError(
                "nothing to seal with: set CERTIFICATE_DIR (a folder that is kept and backed up; key and certificates are"
                " made there on first start), SIGNING_PKCS12_FILE with SIGNING_PKCS12_PASSWORD, or SIGNING_PKCS11_MODULE"
            )
        return self

    @model_validator(mode="after")
    def _has_one_key(self) -> Self:
        names = ("module", "token", "key", "chain_file", "pin")
        missing = [f"SIGNING_PKCS11_{name.upper()}" for name in names if not getattr(self, f"signing_pkcs11_{name}")]
        # A PIN alone, as a password alone, is a secret that nothing uses.
        if missing and any(getattr(self, f"signing_pkcs11_{name}") for name in names[:-1]):
            raise ValueError(f"the seal's key in a token needs {', '.join(missing)}, too")
        if not missing and self.signing_pkcs12_file is not None:
            raise ValueError("set either SIGNING_PKCS12_FILE or SIGNING_PKCS11_MODULE: there is one key to seal with")
        return self

    @model_validator(mode="after")
    def _has_an_authority(self) -> Self:
        if self.pades_level == "B-LTA" and not self.tsa_urls:
            raise ValueError("PADES_LEVEL=B-LTA needs a time-stamping authority: set TSA_URL")
        return self

    @property
    def has_own_key(self) -> bool:
        """Return whether the seal's key is the operator's own."""
        return self.signing_pkcs12_file is not None or bool(self.signing_pkcs11_module)

    @property
    def children_per_caller(self) -> int:
        """Of the children of one process."""
        most = self.rendering_children
        return min(most, self.rendering_children_per_caller or max(1, most - 1))

    @property
    def certificates(self) -> Path | None:
        """Return where the made certificates are."""
        if self.certificate_dir is not None:
            return self.certificate_dir
        return self.var_dir / "certificates" if self.var_dir is not None else None

    @property
    def tsa_urls(self) -> list[str]:
        text = self.tsa_url.get_secret_value() if self.tsa_url is not None else ""
        return [url.strip() for url in text.split(",") if url.strip()]
