"""The work of the gateway's background process besides the runtime's own loops: it removes uploads that nobody took over,
pictures of the account that nothing shows any more, answers that nobody asks for again and sessions of operators, tells the
other services who the admins are, and asks how the account's providers are."""

from datetime import timedelta

from contracts.runtime.bus.client import shared_client
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork, Every
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.gateway.accounts import account_pictures, commands, operators, provider_checks, queries
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.api.requests import repeats
from services.gateway.prepared.sending import Prepared
from services.gateway.settings import Settings

log = observe.logger(__name__)

INCOMING_KEPT = timedelta(hours=24)
"""Far above any time-out: what a service still works on is never removed under its hands."""


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    def sweep() -> None:
        if removed := blobs.sweep(without_leaps(INCOMING_KEPT) - INCOMING_KEPT):
            log.info("incoming.swept", files=removed)

    def forget() -> None:
        if keys := database.write(repeats.forget_old_keys, repeats.oldest_kept()):
            log.info("repeats.forgotten", keys=keys)

    def forget_operators() -> None:
        database.write(operators.forget, now())

    def tell_admins() -> None:
        if database.read(queries.admins_untold):
            database.write(commands.tell_admins, now())

    def take_over() -> None:
        if keys.takes_over and (count := database.write(commands.take_over, keys)):
            log.info("keys.taken_over", count=count)

    keys = KeyRing(settings.key_encryption_secret.get_secret_value())
    prepared = Prepared(database, keys, lambda rpc, request: shared_client(settings.amqp_url).call(rpc, request))
    sweep_pictures = account_pictures.Sweep(database, blobs, account_pictures.ask_submissions(settings.amqp_url))

    return [
        Every("sweep-incoming", timedelta(hours=1), sweep),
        Every("sweep-account-pictures", account_pictures.PAUSE, sweep_pictures),
        Every("check-providers", timedelta(hours=1), provider_checks.check_all(settings, database, keys)),
        Every("forget-repeats", timedelta(hours=1), forget),
        Every("forget-prepared", timedelta(hours=1), prepared.forget),
        Every("send-confirmed", timedelta(minutes=1), prepared.resume),
        Every("forget-operators", timedelta(hours=1), forget_operators),
        Every("take-over-keys", timedelta(minutes=10), take_over),
        # Compared with what was told last: nothing that changes a user must think of it, and an upgrade tells by itself.
        Every("tell-admins", timedelta(seconds=10), tell_admins),
        Every("tell-admins-again", timedelta(hours=1), lambda: database.write(commands.tell_admins_again)),
    ]
