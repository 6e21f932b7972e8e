"""The part of rendering's background process that buys and places stamps, to be killed: ``python -m ... FILE``."""

import json
import sys
import threading
from datetime import timedelta
from pathlib import Path

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering.models import DutyStamp
from services.rendering.stamping import orders, stages
from services.rendering.stamping.providing import Providers
from services.rendering.stamping.work import StampWork
from tests.support.rendering.providers.stamp_orders import HERE, checked_here, settings


def main(given: Path) -> None:
    content = json.loads(given.read_text())
    folder = Path(content["folder"])
    database, blobs = Database(content["database"]), BlobStore.from_url(f"file://{folder}/blobs")
    work = StampWork(database, blobs, Providers(settings(folder), HERE), checked_here, orders.tell)
    loop = DueWork(
        "stamp",
        database,
        DutyStamp,
        work.attempt,
        schedule=stages.SCHEDULE,
        lease=timedelta(seconds=content["lease"]),
        concurrency=4,
        lanes=Lanes(DutyStamp.lane, 3),
        on_park=work.parked,
    )
    loop.poll_seconds = 0.05
    threading.Thread(target=loop.run).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
