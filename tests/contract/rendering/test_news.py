"""The moments at which news are told: each later than the one before, whatever the clocks of those who tell them say."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import sqlalchemy as sa

from contracts.events import CERTSIGN_CHANGED, DUTYSTAMP_CHANGED
from contracts.runtime.data.database import Database
from services.rendering.models import News
from services.rendering.storage import news
from tests.support.rendering.seal_jobs import NOW, count, database

__all__ = ["database"]

HOUR = timedelta(hours=1)


def told(database: Database, now: datetime, submission_id: int = 7) -> datetime:
    return database.write(news.moment, CERTSIGN_CHANGED, submission_id, now)


def test_a_clock_that_is_right_is_told(database: Database) -> None:
    assert [told(database, NOW), told(database, NOW + HOUR)] == [NOW, NOW + HOUR]


def test_a_clock_that_was_put_back_goes_on_from_the_news_before(database: Database) -> None:
    ahead = told(database, NOW + HOUR)
    later = [told(database, NOW), told(database, NOW), told(database, NOW + 2 * HOUR)]
    assert ahead < later[0] < later[1] < later[2] == NOW + 2 * HOUR
    assert later[1] - ahead < timedelta(seconds=1)


def test_other_submissions_and_kinds_have_moments_of_their_own(database: Database) -> None:
    told(database, NOW + HOUR)
    assert told(database, NOW, submission_id=8) == NOW
    assert database.write(news.moment, DUTYSTAMP_CHANGED, 7, NOW) == NOW


def test_several_at_once_tell_different_moments(database: Database) -> None:
    with ThreadPoolExecutor(4) as threads:
        moments = list(threads.map(lambda _: told(database, NOW), range(8)))
    assert len(set(moments)) == 8


def test_they_go_with_their_submission_or_in_time(database: Database) -> None:
    told(database, NOW)
    told(database, NOW - news.KEPT, submission_id=8)
    database.write(news.forget, NOW + HOUR)
    assert database.read(lambda session: session.scalars(sa.select(News.submission_id)).all()) == [7]
    database.write(news.erase, 7)
    assert count(database, News) == 0
