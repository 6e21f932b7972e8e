"""Settings of the templates service, from the environment."""

from pydantic import Field

from contracts.runtime.settings import ServiceSettings
from services.templates.rules.domain import Limits


class Settings(ServiceSettings):
    database_url: str = Field(
        validation_alias="TEMPLATES_DATABASE_URL", description="SQLAlchemy URL of this service's database"
    )
    file_link_ttl: int = Field(
        86_400,
        gt=0,
        description="Seconds that a link to a file in an API answer is good for; at most a quarter longer",
    )
    max_documents: int = Field(30, gt=0, description="Documents a template may have")
    max_fields: int = Field(2_000, gt=0, description="Fields a template may have")
    prepare_concurrency: int = Field(3, gt=0, description="Documents of one request that rendering prepares at once")
    prepare_seconds: float = Field(
        80.0, gt=0, description="Seconds that preparing all documents of one request may take"
    )

    def limits(self) -> Limits:
        return Limits(documents=self.max_documents, fields=self.max_fields)
