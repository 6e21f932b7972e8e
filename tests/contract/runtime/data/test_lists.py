"""Lists and searches: exactly what the filters say, whichever way the rows are found, and by an index on a large table."""

import itertools
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.rpc.submissions import api as rpc
from contracts.runtime import migrations
from contracts.runtime.data import search
from contracts.runtime.data.database import Database
from contracts.runtime.data.lists import finding, terms
from contracts.runtime.data.lists import page as paging
from contracts.types import Actor, Role
from services.submissions.models import SnapshotRow, SubmissionRow, SubmitterRow, TemplateRow
from services.submissions.reading import lists, queries
from services.submissions.rules.parties.addresses import searchable
from tests.load import lists as benchmark
from tests.support.material.submissions import NOW, SITE
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services import processes
from tests.support.services.migrated import migrated

ADMIN = Actor(user_id=1, role=Role.ADMIN, email="admin@example.com")
EDITOR = Actor(user_id=2, role=Role.EDITOR, email="editor@example.com")
VIEWER = Actor(user_id=4, role=Role.VIEWER, email="viewer@example.com")
DAY = timedelta(days=1)
FILE = {"key": "submissions/1/trail", "sha256": "a" * 64, "size": 1, "media_type": "application/pdf"}
ROWS = 60
SPREAD = 20_480
"""The ids are so far apart, so that they lie in several of the search index's blocks, and every second one where it takes samples."""
NAMES = (
    "Ann O'Hara",
    'Bob "the" Builder',
    "Łukasz Żółć",
    "ΣΟΦΙΑ Παπα",
    "100%_sure \\o/",
    "山田太郎",
    "x",
    "NEAR(a b) AND c*",
)
TERMS = (
    *(
        "ann",
        "ANN O'",
        "o'h",
        '"the"',
        "łukasz",
        "ŻÓŁĆ",
        "σοφια",
        "ΣΟΦ",
        "100%",
        "%_s",
        "_",
        "%",
        "\\",
        "\\o/",
        "山田太",
        "田",
    ),
    *("x", "near(", " AND ", "c*", 'b" b', "zzqq", "0%_sure", "@example.com", "e.c", "--", "' OR 1=1", " ", ""),
)


def template(number: int) -> dict[str, Any]:
    folder = ("Default", "Default", "Sales", "Empty of others")[number % 4]
    return {
        "id": number,
        "name": f"Template {number}",
        "folder_name": folder,
        "shared": number % 3 == 0,
        "author_id": 1 + number % 3,
        "created_at": NOW,
        "updated_at": NOW,
    }


def submission(number: int) -> dict[str, Any]:
    status = ("completed", "pending", "pending", "declined", "expired", "pending")[number % 6]
    return {
        "id": number * SPREAD,
        "slug": f"slug-{number}",
        "source": "api",
        "template_id": None if number % 7 == 0 else 1 + number % 6,
        "created_by_id": 1 + number % 3,
        "order": "preserved",
        "status": status,
        "unfinished": status == "pending" and number % 4 != 1,
        "expire_at": None if number % 5 == 0 else NOW + DAY * (number % 3 - 1),
        "archived_at": NOW if number % 8 == 3 else None,
        "created_at": NOW,
        "updated_at": NOW,
        **{name: {} for name in ("preferences", "details", "variables")},
        "results": {"documents": [], "audit_trail": FILE} if status == "completed" else None,
        **dict.fromkeys(("values_version", "event_sequence", "trail_length"), 0),
        "trail_hash": "",
        "trail_at": NOW,
        "search": searchable(NAMES[number % len(NAMES)], f"signer{number}@example.com"),
    }


def submitter(number: int) -> dict[str, Any]:
    of = submission(1 + (number - 1) // 2)
    done = of["status"] == "completed"
    return {
        "id": number * SPREAD,
        "submission_id": of["id"],
        "position": number % 2,
        "party_uuid": "party",
        "role": "Party",
        "external_id": f"crm-{number % 9}",
        "slug": f"submitter-{number}",
        "group": 0,
        "viewer": False,
        "status": "completed" if done else "pending",
        **{name: {} for name in ("values", "metadata_", "preferences", "visit")},
        "completed_at": NOW - DAY * (number * 7 % 31) if done else None,
        "created_at": NOW,
        "updated_at": NOW,
        "search": searchable(NAMES[number % len(NAMES)], f"party{number}@example.com"),
    }


TEMPLATES = [template(number) for number in range(1, 7)]
SUBMISSIONS = [submission(number) for number in range(1, ROWS + 1)]
SUBMITTERS = [submitter(number) for number in range(1, 2 * ROWS + 1)]


def fill(database: Database) -> None:
    def insert(session: Any) -> None:
        for model, rows in ((TemplateRow, TEMPLATES), (SubmissionRow, SUBMISSIONS), (SubmitterRow, SUBMITTERS)):
            session.execute(sa.insert(model), rows)
        made: dict[str, Any] = {"documents": [], "fields": [], "parties": [], "account": {}}
        session.execute(sa.insert(SnapshotRow), [{"submission_id": row["id"], **made} for row in SUBMISSIONS])

    database.write(insert)


def listed_in(url: str) -> Iterator[Database]:
    """The indexes are made anew for what is there already: it must be found, too."""
    migrated("submissions", url)
    database = Database(url)
    fill(database)
    database.dispose()  # SQLite's connections remember the schema
    migrations.downgrade("submissions", url, "0002")
    migrations.upgrade("submissions", url)
    yield database
    database.dispose()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    yield from listed_in(database_url)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def unchanged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """For tests that only read: making it takes longer than they do."""
    if request.param == "sqlite":
        yield from listed_in(f"sqlite:///{tmp_path_factory.mktemp('lists')}/test.sqlite")
    else:
        yield from listed_in(request.getfixturevalue("postgres").new_database())


@pytest.fixture(
    params=[(2_000, 0.01, 500), (3, 0.0, 500), (3, 10.0, 500), (1, 10.0, 3)],
    ids=["window", "common", "rare", "common farther on"],
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way the rows are found: all within the window, along the ids, by the index at once or part after part."""
    window, common, many = request.param
    monkeypatch.setattr(finding, "MANY", many)
    monkeypatch.setattr(finding, "SCATTERED", window)
    monkeypatch.setattr(finding, "WIDE", 2 * window)
    monkeypatch.setattr(finding, "WINDOW", window)
    monkeypatch.setattr(finding, "COMMON", common)
    monkeypatch.setattr(lists, "COMPLETION_GROUP", 16 * SPREAD)


def template_of(row: dict[str, Any]) -> dict[str, Any] | None:
    return TEMPLATES[row["template_id"] - 1] if row["template_id"] else None


def visible(row: dict[str, Any], actor: Actor) -> bool:
    of = template_of(row)
    if actor.role is Role.ADMIN:
        return True
    if actor.role is Role.VIEWER:
        return bool(of and of["shared"])
    return actor.user_id in (of and of["author_id"], row["created_by_id"])


def status_of(row: dict[str, Any]) -> str:
    over = row["expire_at"] is not None and row["expire_at"] <= NOW
    return "expired" if row["status"] == "pending" and row["unfinished"] and over else row["status"]


def fits(row: dict[str, Any], actor: Actor, wanted: dict[str, Any]) -> bool:
    """What the filters of GET /submissions mean, said once more."""
    of = template_of(row)
    return (
        visible(row, actor)
        and wanted.get("template_id") in (None, row["template_id"])
        and wanted.get("template_folder") in (None, of and of["folder_name"])
        and wanted.get("archived") in (None, row["archived_at"] is not None)
        and wanted.get("status") in (None, status_of(row))
        and wanted.get("slug") in (None, row["slug"])
        and searchable((wanted.get("q") or "").strip()) in row["search"]
    )


def page_of(ids: list[int], limit: int, after: int | None, before: int | None) -> list[int]:
    """Return the ids of the page."""
    if before is not None and after is None:
        return [one for one in ids if one < before][-limit:]
    return [one for one in ids if (after is None or one > after) and (before is None or one < before)][:limit]


CURSORS: tuple[dict[str, int], ...] = (
    {},
    {"after": 17 * SPREAD},
    {"before": 41 * SPREAD},
    {"after": 5 * SPREAD, "before": 33 * SPREAD},
    {"before": 2 * SPREAD},
)
FILTERS: list[dict[str, Any]] = [
    {},
    {"template_id": 3},
    {"template_folder": "Default"},
    {"template_folder": "Empty of others"},
    {"template_folder": "Nobody's"},
    {"archived": True},
    {"archived": False},
    *({"status": status} for status in ("pending", "completed", "declined", "expired")),
    {"status": "pending", "template_id": 2, "archived": False},
    {"status": "expired", "template_folder": "Sales"},
    {"slug": "slug-9"},
]


def some_of(number: int) -> tuple[dict[str, int], ...]:
    """The first page and one of the others in turn: for what is one more condition beside those that are tried with all of them."""
    return CURSORS[0], CURSORS[1 + number % (len(CURSORS) - 1)]


def assert_listed(
    database: Database, actor: Actor, wanted: dict[str, Any], pages: Sequence[dict[str, int]] = CURSORS
) -> None:
    expected = [row["id"] for row in SUBMISSIONS if fits(row, actor, wanted)]
    for cursors in pages:
        query = rpc.ListSubmissions(actor=actor, limit=4, **wanted, **cursors)
        page = database.read(queries.submissions, query, SITE, NOW)
        ids = page_of(expected, 4, cursors.get("after"), cursors.get("before"))
        assert [one.id for one in page.data] == ids, (actor.role, wanted, cursors)
        assert page.pagination.next == (ids[-1] if ids else None), (actor.role, wanted, cursors)


@pytest.mark.usefixtures("way")
def test_submissions_are_those_that_the_filters_mean(unchanged: Database) -> None:
    for wanted in FILTERS:
        assert_listed(unchanged, ADMIN, wanted)
    for number, (wanted, actor) in enumerate(itertools.product(FILTERS, (EDITOR, VIEWER))):
        assert_listed(unchanged, actor, wanted, some_of(number // 2 + number))


@pytest.mark.usefixtures("way")
def test_searches_find_every_part_of_the_text_and_nothing_else(unchanged: Database) -> None:
    for term in ("ann", "x", "zzqq", "@example.com"):  # common, rare, absent, in all
        assert_listed(unchanged, ADMIN, {"q": term})
    for number, term in enumerate(TERMS):
        assert_listed(unchanged, ADMIN, {"q": term}, some_of(number))
    for number, (wanted, term) in enumerate(itertools.product(FILTERS, ("ann", "example", "zzqq"))):
        assert_listed(unchanged, EDITOR, {"q": term, **wanted}, some_of(number))


@pytest.mark.usefixtures("way")
def test_submitters_are_those_that_the_filters_mean(unchanged: Database) -> None:
    by_id = {row["id"]: row for row in SUBMISSIONS}

    def fits_one(row: dict[str, Any], actor: Actor, wanted: dict[str, Any]) -> bool:
        of, at = by_id[row["submission_id"]], row["completed_at"]
        return (
            visible(of, actor)
            and wanted.get("submission_id") in (None, of["id"])
            and wanted.get("template_id") in (None, of["template_id"])
            and wanted.get("external_id") in (None, row["external_id"])
            and wanted.get("slug") in (None, row["slug"])
            and ("completed_after" not in wanted or (at is not None and at >= wanted["completed_after"]))
            and ("completed_before" not in wanted or (at is not None and at <= wanted["completed_before"]))
            and searchable((wanted.get("q") or "").strip()) in row["search"]
        )

    filters: list[dict[str, Any]] = [
        *({}, {"submission_id": 6 * SPREAD}, {"template_id": 3}, {"external_id": "crm-4"}, {"slug": "submitter-9"}),
        {"completed_after": NOW - DAY * 9},
        {"completed_before": NOW - DAY * 9},
        {"completed_after": NOW - DAY * 14, "completed_before": NOW - DAY * 7, "template_id": 1},
        *({"q": term} for term in ("ann", "σοφια", "x", "zzqq", "")),
        {"q": "example", "external_id": "crm-4"},
        {"q": "łukasz", "completed_after": NOW - DAY * 20},
    ]
    asked = [(ADMIN, wanted, CURSORS) for wanted in filters]
    for number, (wanted, actor) in enumerate(itertools.product(filters, (EDITOR, VIEWER))):
        asked.append((actor, wanted, some_of(number // 2 + number)))
    asked += [(ADMIN, {"q": term}, some_of(number)) for number, term in enumerate(TERMS)]
    for actor, wanted, pages in asked:
        expected = [row["id"] for row in SUBMITTERS if fits_one(row, actor, wanted)]
        for cursors in pages:
            query = rpc.ListSubmitters(actor=actor, limit=4, **wanted, **cursors)
            page = unchanged.read(queries.submitters, query, SITE, NOW)
            ids = page_of(expected, 4, cursors.get("after"), cursors.get("before"))
            assert [one.id for one in page.data] == ids, (actor.role, wanted, cursors)
            assert page.pagination.next == (ids[-1] if ids else None), (actor.role, wanted, cursors)


def test_a_page_has_at_most_a_hundred_rows(unchanged: Database) -> None:
    for cursors, first in (({}, 1), ({"before": 110 * SPREAD}, 10), ({"after": 5 * SPREAD}, 6)):
        query = rpc.ListSubmitters(actor=ADMIN, limit=10**9, **cursors)
        page = unchanged.read(queries.submitters, query, SITE, NOW)
        assert [each.id for each in page.data] == [number * SPREAD for number in range(first, first + 100)]
        assert page.pagination.next == (first + 99) * SPREAD


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**30, -1, -(10**30)])
def test_numbers_that_no_id_can_be(unchanged: Database, number: int) -> None:
    def ids(**query: int) -> list[int]:
        page = unchanged.read(queries.submissions, rpc.ListSubmissions(actor=ADMIN, limit=100, **query), SITE, NOW)
        return [each.id for each in page.data]

    whole = [row["id"] for row in SUBMISSIONS]
    assert ids(template_id=number) == []
    assert (ids(after=number), ids(before=number)) == (([], whole) if number > 0 else (whole, []))


def test_what_the_sweep_marks_in_the_middle_of_a_list_is_in_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_in = finding.first_ids
    over = [row["id"] for row in SUBMISSIONS if row["status"] == "pending" and status_of(row) == "expired"]
    assert over
    marked = sa.update(SubmissionRow).where(SubmissionRow.id.in_(over)).values(status="expired")

    def first_ids(session: Any, *of: Any) -> list[int]:
        found = found_in(session, *of)
        database.write(lambda other: other.execute(marked))
        return found

    monkeypatch.setattr(paging, "first_ids", first_ids)
    query = rpc.ListSubmissions(actor=ADMIN, status="expired", limit=100)
    page = database.read(queries.submissions, query, SITE, NOW)
    assert [one.id for one in page.data] == [row["id"] for row in SUBMISSIONS if status_of(row) == "expired"]


# ---------------------------------------------------------------- PostgreSQL: by an index, on a table with enough rows

SCANNED = re.compile(r"Seq Scan on (submissions|submitters)\b")


@pytest.fixture(scope="module")
def large(postgres: PrivatePostgres) -> Iterator[Database]:
    database = benchmark.filled(postgres, "submissions", 20_000)
    yield database
    database.dispose()


def plans(database: Database, ask: Any, **query: Any) -> list[str]:
    """How PostgreSQL finds the rows: the plan of every statement that the list makes."""
    asked: list[tuple[str, Any]] = []

    def remember(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", remember)
    try:
        ask(database, 20_000, **query)
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", remember)
    with database.engine.connect() as connection:
        return [
            "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
            for statement, parameters in asked
            if statement.startswith(("SELECT", "WITH"))
        ]


@pytest.mark.parametrize(
    ("ask", "name", "query"),
    [
        *((benchmark.submissions, *case) for case in benchmark.SUBMISSIONS.items()),
        *((benchmark.submitters, *case) for case in benchmark.SUBMITTERS.items()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_index_finds_the_rows(large: Database, ask: Any, name: str, query: dict[str, Any]) -> None:
    found = plans(large, ask, **benchmark.sized(query, 20_000))
    assert found
    assert not [plan for plan in found if SCANNED.search(plan)]


@pytest.mark.parametrize(
    ("ask", "table"), [(benchmark.submissions, "submissions"), (benchmark.submitters, "submitters")]
)
def test_a_rare_term_is_looked_up_in_the_search_index(large: Database, ask: Any, table: str) -> None:
    for term in ("zzqqxx", "unique-one", "zq", "~", "~*~"):
        assert any(f"ix_{table}_search_parts" in plan for plan in plans(large, ask, q=term))
    assert not any("_parts" in plan for plan in plans(large, ask, q="example.com"))


@pytest.mark.parametrize(
    ("term", "postgresql", "sqlite"),
    [
        ("ann", True, True),
        ("an", True, False),
        ("山", True, False),
        ("---", True, True),
        ("山田太", True, True),
        ("", False, False),
    ],
)
def test_which_terms_the_index_knows(term: str, postgresql: bool, sqlite: bool) -> None:
    assert (terms.indexed("postgresql", term), terms.indexed("sqlite", term)) == (postgresql, sqlite)


# ---------------------------------------------------------------- the index follows the text


def test_the_index_follows_every_change_whoever_makes_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "WINDOW", 1)
    monkeypatch.setattr(finding, "COMMON", 10.0)

    def found(term: str) -> list[int]:
        page = database.read(queries.submissions, rpc.ListSubmissions(actor=ADMIN, q=term), SITE, NOW)
        return [one.id for one in page.data]

    def run(statement: str) -> None:
        database.write(lambda session: session.execute(sa.text(statement)))

    assert found("renamed thing") == []
    run(f"UPDATE submissions SET search = 'renamed thing' WHERE id IN ({4 * SPREAD}, {50 * SPREAD})")
    assert found("renamed thing") == [4 * SPREAD, 50 * SPREAD]
    assert 4 * SPREAD not in found("signer4@")
    run(f"UPDATE submissions SET search = 'other' WHERE id = {4 * SPREAD}")
    assert found("renamed thing") == [50 * SPREAD]
    run(f"DELETE FROM snapshots WHERE submission_id = {50 * SPREAD}")
    run(f"DELETE FROM submitters WHERE submission_id = {50 * SPREAD}")
    run(f"DELETE FROM submissions WHERE id = {50 * SPREAD}")
    assert found("renamed thing") == []
    if database.sqlite:
        for table in ("submissions", "submitters"):
            fts = f"{table}_search_trigrams"
            run(f"INSERT INTO {fts}({fts}, rank) VALUES ('integrity-check', 1)")


# ---------------------------------------------------------------- migrations on PostgreSQL


def test_what_an_interrupted_migration_left_is_made_anew(database: Database, database_url: str) -> None:
    migrations.downgrade("submissions", database_url, "0002")
    left = "CREATE INDEX ix_submissions_active ON submissions (id) WHERE archived_at IS NULL"
    database.write(lambda session: session.execute(sa.text(left)))
    migrations.upgrade("submissions", database_url)
    assert migrations.differences("submissions", database_url) == []
    assert_listed(database, ADMIN, {"q": "ann"})


def test_the_owner_of_a_database_may_make_the_index_and_others_are_told(
    postgres: PrivatePostgres, tmp_path: Path
) -> None:
    url = sa.make_url(postgres.new_database())
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        for statement in (
            "CREATE ROLE stranger LOGIN",
            "CREATE ROLE owner LOGIN",
            f"REVOKE CREATE ON DATABASE {url.database} FROM PUBLIC",
            "GRANT ALL ON SCHEMA public TO stranger",
        ):
            connection.execute(sa.text(statement))
        stranger = url.set(username="stranger").render_as_string(hide_password=False)
        with pytest.raises(search.NoTrigrams, match=r"CREATE EXTENSION pg_trgm.*permission denied"):
            migrations.upgrade("submissions", stranger)
        settings = processes.environment("submissions", "amqp://nobody.invalid", stranger, tmp_path)
        migrated = processes.run("submissions", "migrate", settings)
        assert migrated.returncode == 1
        assert "Traceback" not in migrated.stderr
        assert "submissions: the PostgreSQL extension pg_trgm is missing" in migrated.stderr
        assert (
            "search index: the PostgreSQL extension pg_trgm" in processes.run("submissions", "check", settings).stdout
        )
        assert "0002" in str(migrations.pending("submissions", stranger))
        connection.execute(sa.text("REASSIGN OWNED BY stranger TO owner"))
        connection.execute(sa.text(f"ALTER DATABASE {url.database} OWNER TO owner"))
    admin.dispose()
    owner = url.set(username="owner").render_as_string(hide_password=False)
    migrations.check_trigrams("submissions", owner)
    migrations.upgrade("submissions", owner)
    assert migrations.differences("submissions", owner) == []


def test_two_migrations_at_once(database_url: str) -> None:
    """Whoever waits must not hold a snapshot that CREATE INDEX CONCURRENTLY waits for."""
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: migrations.upgrade("submissions", database_url), range(3)))
    assert migrations.differences("submissions", database_url) == []
