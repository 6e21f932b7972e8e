"""The part of rendering's background process that asks certsign providers, beside others of its kind: ``python -m ... FILE``."""

import json
import sys
from datetime import timedelta
from pathlib import Path

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from services.rendering.models import CertsignJob
from services.rendering.providers.opening import Providers
from services.rendering.sealing.remote import certsign_work
from services.rendering.sealing.remote.certsign_work import CertsignWork
from services.rendering.signatures.workshop import Workshop
from tests.support.rendering.seal_jobs import settings


def main(given: Path) -> None:
    content = json.loads(given.read_text())
    own = settings(Path(content["keys"]))
    database, blobs = Database(content["database"]), BlobStore.from_url(f"file://{content['blobs']}")
    work = CertsignWork(own, blobs, Workshop(own).open(), database, Providers(Outbound("127.0.0.0/8")).open, busy=2)
    loop = DueWork(
        "sign at providers",
        database,
        CertsignJob,
        work.attempt,
        schedule=work.schedule,
        lease=timedelta(minutes=5),
        concurrency=4,
        on_park=certsign_work.give_up,
        on_claimed=work.claimed,
        synced_claims=True,
    )
    loop.poll_seconds = 0.05
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    loop.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
