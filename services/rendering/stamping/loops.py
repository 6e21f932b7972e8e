"""The loops of the background process that buy, place and compare."""

from collections.abc import Callable
from datetime import timedelta

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork, Every
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from services.rendering.models import DutyStamp
from services.rendering.settings import Settings
from services.rendering.stamping import stages
from services.rendering.stamping.orders import OnChange
from services.rendering.stamping.providing import Providers
from services.rendering.stamping.reconciliation import Reconciliation
from services.rendering.stamping.work import Check, StampWork

LEASE = timedelta(minutes=10)
"""Above what an attempt takes at most: a login, a purchase, two placings and the look at what came back."""


def loops(
    settings: Settings,
    database: Database,
    blobs: BlobStore,
    outbound: Outbound,
    check: Check,
    on_change: OnChange,
    anchors: Callable[[], list[bytes]],
) -> list[DueWork | Every]:
    """Stamps have lanes and threads of their own: a slow provider delays no seal and no other provider."""
    providers = Providers(settings, outbound)
    work = StampWork(database, blobs, providers, check, on_change, anchors)
    books = Reconciliation(database, blobs, providers)
    return [
        DueWork(
            "stamp",
            database,
            DutyStamp,
            work.attempt,
            schedule=stages.SCHEDULE,
            lease=LEASE,
            concurrency=settings.rendering_stamps_at_once,
            lanes=Lanes(DutyStamp.lane, settings.rendering_stamps_per_adapter),
            on_park=work.parked,
        ),
        Every("compare stamps", timedelta(days=1), books.compare_all),
        Every("watch balances of stamps", timedelta(minutes=30), books.watch_balances),
    ]
