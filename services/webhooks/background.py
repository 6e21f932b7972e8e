"""The background process of this service: it delivers what is due."""

from datetime import timedelta

import sqlalchemy as sa

from contracts.runtime.bus.client import shared_client
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import TURNS_APART, DueWork, Every, Loop
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.webhooks import commands, domain
from services.webhooks.deliver import Deliverer, prepare
from services.webhooks.gaps import Gaps, problems
from services.webhooks.models import Delivery, Webhook
from services.webhooks.settings import Settings

log = observe.logger(__name__)


__all__ = ["loops", "problems"]


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[Loop]:
    """A few deliveries at a time per webhook, about different subjects: a dead receiver holds up nobody else, and order is
    kept."""
    deliverer = Deliverer(settings)
    return [
        DueWork(
            "deliver",
            database,
            Delivery,
            deliverer.attempt,
            schedule=domain.SCHEDULE,
            lease=timedelta(seconds=settings.webhook_total_timeout * 4),
            concurrency=settings.webhook_concurrency,
            lanes=Lanes(
                Delivery.webhook_id,
                settings.webhook_concurrency_per_receiver,
                failing=sa.select(Webhook.id, Webhook.failing_since).where(Webhook.failing_since.is_not(None)),
            ),
            apart=TURNS_APART,
            on_park=commands.record_exhaustion,
            on_claimed=prepare,
            on_written=lambda session, deliveries: commands.follow_up(session, deliveries, now()),
        ),
        Gaps(database, shared_client(settings.amqp_url), settings.link_secret.get_secret_value()),
        Every("close idle connections", timedelta(seconds=15), deliverer.close_idle),
        Every("release forgotten deliveries", timedelta(minutes=1), lambda: _release(database)),
    ]


def _release(database: Database) -> None:
    if database.read(commands.forgotten_deliveries) and (released := database.write(commands.release_forgotten, now())):
        log.warning("deliveries.released", deliveries=released)
