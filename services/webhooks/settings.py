"""Settings of the webhooks service, from the environment."""

from pydantic import Field

from contracts.runtime.settings import ServiceSettings


class Settings(ServiceSettings):
    database_url: str = Field(
        validation_alias="WEBHOOKS_DATABASE_URL", description="SQLAlchemy URL of this service's database"
    )
    webhook_connect_timeout: float = Field(5.0, description="Seconds to connect to a receiver")
    webhook_total_timeout: float = Field(15.0, description="Seconds for a whole delivery attempt")
    webhook_concurrency: int = Field(64, ge=1, description="Deliveries under way at once, to all receivers")
    webhook_concurrency_per_receiver: int = Field(
        8, ge=1, description="Deliveries under way at once to one receiver, about different submissions and templates"
    )
    webhook_give_up_after_hours: float = Field(
        120.0, description="Hours of nothing but failure after which a webhook is disabled and the admins are told"
    )
    webhook_attempts_kept: int = Field(20, description="Attempts kept per delivery, the newest")

    @property
    def events_at_once(self) -> int:
        """Most of them wait to be logged together, and take no more than one does; each transaction takes as much as all."""
        return 4 * super().events_at_once
