"""Settings of the submissions service, from the environment."""

import re

from pydantic import Field, field_validator

from contracts.runtime.settings import ServiceSettings


class Settings(ServiceSettings):
    database_url: str = Field(
        validation_alias="SUBMISSIONS_DATABASE_URL", description="SQLAlchemy URL of this service's database"
    )
    file_link_ttl: int = Field(
        86_400,
        ge=60,
        description="Seconds that a link to a file lives which an API answer gives; at most a quarter longer",
    )
    mailed_link_ttl: int = Field(
        2_592_000,
        ge=60,
        description="Seconds that a link to a result lives which a mail holds because the file is too big",
    )
    max_submitters: int = Field(50, ge=1, description="Submitters of one submission")
    max_fields: int = Field(2_000, ge=1, description="Fields of one submission")
    max_values_bytes: int = Field(1_000_000, ge=1_000, description="Values and metadata of one submission, as JSON")
    max_file_size: int = Field(26_214_400, ge=1_000, description="One file that a value is made of")
    max_attachments: int = Field(300, ge=1, description="Files that the parties of one submission put into fields")
    shared_link_starts_per_visitor: int = Field(
        60, ge=1, description="Submissions that one address (IPv6: one /64) may begin at one shared link in an hour"
    )
    shared_link_starts: int = Field(
        2_000, ge=1, description="Submissions that all visitors together may begin at one shared link in an hour"
    )
    phone_codes_per_day: int = Field(2_000, ge=1, description="One-time codes that go to telephones in a day")
    phone_codes_per_country: str = Field(
        "1000",
        description="Of these to one country; after a comma countries with a cap of their own, such as 100,+49=1000,+882=0",
    )
    batch_rows_per_minute: int = Field(
        600, ge=1, le=6_000, description="Rows of one batch that become submissions in a minute, at most"
    )
    batches_kept_days: float = Field(
        30.0, gt=0, le=3_650, description="Days for which a batch is kept once it has ended; its submissions stay"
    )
    expiry_sweep_seconds: float = Field(
        5.0, gt=0, description="Time between two looks for submissions that have expired"
    )
    archive_earlier_documents: bool = Field(
        False,
        description="Have documents that were sealed before PADES_LEVEL=B-LTA was set get archive time-stamps, too",
    )
    sealing_reminder_seconds: float = Field(
        60.0, gt=0, description="Age of an unanswered sealing order after which it is sent again; doubles each time"
    )

    @field_validator("phone_codes_per_country")
    @classmethod
    def _caps(cls, text: str) -> str:
        if not re.fullmatch(r"[0-9]{1,9}(,\+[1-9][0-9]{0,2}=[0-9]{1,9})*", "".join(text.split()), re.ASCII):
            raise ValueError("must be a number, and after it calling codes with theirs, such as 100,+49=1000,+882=0")
        return text

    def phone_codes_to(self, calling_code: str) -> int:
        """One-time codes that go to telephones of this country in a day; 0: none ever."""
        everywhere, *countries = "".join(self.phone_codes_per_country.split()).split(",")
        return int(dict(pair.split("=") for pair in countries).get(calling_code, everywhere))
