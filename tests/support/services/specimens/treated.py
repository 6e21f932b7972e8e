"""What a process does that chaos treats: it commits four times, or says what time it is.

python -m tests.support.services.specimens.treated commits FILE | clock
"""

import sys
import time

import sqlalchemy as sa

from contracts.runtime.data.database import Database


def commit(file: str) -> None:
    database = Database(f"sqlite:///{file}")
    database.write(lambda session: session.execute(sa.text("CREATE TABLE notes (number INTEGER)")))
    for _ in range(3):
        database.write(lambda session: session.execute(sa.text("INSERT INTO notes VALUES (1)")))


if __name__ == "__main__":
    if sys.argv[1] == "commits":
        commit(sys.argv[2])
    else:
        print(time.time(), time.time_ns())
