"""Duty stamps of a submission are ordered: what the provider sells is asked for, places are found on the sealed files."""

from datetime import timedelta

from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.providers import DutystampOrder, StampOffer, StampPosition
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.children.renderer import Renderer
from services.rendering.models import StampedSeal
from services.rendering.providers.duty_stamps.dutystamp import Box
from services.rendering.providers.failures import ProviderFailed
from services.rendering.rules.stamps import files_to_stamp
from services.rendering.sealing.parts import read
from services.rendering.settings import Settings
from services.rendering.stamping import accounts, orders, seals
from services.rendering.stamping.orders import PlannedStamp
from services.rendering.stamping.providing import Providers

log = observe.logger(__name__)

_LONGEST_AWAY = timedelta(seconds=30)


class StampOrderWork:
    """What the background process does with a due StampedSeal."""

    def __init__(
        self, settings: Settings, blobs: BlobStore, renderer: Renderer, database: Database, providers: Providers
    ) -> None:
        self._blobs, self._renderer, self._database, self._providers = blobs, renderer, database, providers
        self._installation = accounts.installation(settings.link_secret.get_secret_value())

    def attempt(self, row: StampedSeal) -> Outcome:
        """One attempt. It orders nothing twice: a stamp is one of its submission, file and number."""
        try:
            return self._order(row)
        except ProviderFailed as failed:
            if not failed.retryable:
                return Park(failed.message, record=_tell)
            return Retry(failed.message, after=failed.retry_after or _LONGEST_AWAY, record=_tell)
        except JobRefused as refused:
            return Park(refused.reason, record=_tell)
        except (Busy, JobNotPossible, JobFailed) as error:
            return Retry(str(error))
        except ServiceError as error:
            return Retry(error.message)

    def _order(self, row: StampedSeal) -> Outcome:
        job = self._database.read(seals.seal_job, row.id)
        if job is None or job.request is None or row.order is None or row.parts is None:
            return Done()
        order = DutystampOrder.model_validate(row.order)
        account = self._providers.account(order.settings)
        offer = self._providers.of(order.settings).describe()
        stamps = self._planned(SealRequest.model_validate(job.request), row, offer)

        def record(session: Session, due: StampedSeal) -> None:
            if due.order is None:
                return  # erased meanwhile
            orders.place_order(
                session,
                order,
                account,
                binds=offer.binds,
                seal_id=due.seal_id,
                submission_id=due.submission_id,
                stamps=stamps,
                installation=self._installation,
                now=now(),
                request_id=due.request_id,
            )
            seals.tell(session, due, now())
            orders.wake_seal_job(session, due.seal_id, now())

        return Done(record=record)

    def _planned(self, request: SealRequest, row: StampedSeal, offer: StampOffer) -> list[PlannedStamp]:
        assert row.parts is not None
        parts = {part.document: part for part in map(read, row.parts["files"])}
        stamps = []
        for file in files_to_stamp(request):
            source = parts[file.document].file
            placed = self._renderer.place_stamps(self._blobs.get(source), file, (offer.width, offer.height))
            for number, (wish, place) in enumerate(zip(file.wishes, placed, strict=True)):
                left, bottom, right, top = place.visible
                position = StampPosition(
                    document_index=file.document_index or 0,
                    page=place.page,
                    x=left,
                    y=bottom,
                    code_document=wish.code_document,
                )
                stamps.append(
                    PlannedStamp(
                        target=file.target,
                        document_index=file.document_index,
                        number=number,
                        source=source,
                        box=Box(place.page, *place.box),
                        position=position,
                        width=right - left,
                        height=top - bottom,
                    )
                )
        return stamps


def _tell(session: Session, row: StampedSeal) -> None:
    seals.tell(session, row, now())
