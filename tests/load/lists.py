"""Lists and searches in PostgreSQL with 1,000,000 submissions beside the same with 1,000, in the same run.

    python -m tests.load lists

Both databases are filled alike (states, templates of very different use, folders, authors, names), and the services' own
queries are asked in turns of both: what is measured is the whole answer of the service, without the bus. Prints the medians
and their ratio for every filter, for ``q`` common, rare and absent, and for what each role may see, and how many rows each
page had (ten rows cost more to present than none). Below the table: what is above it.
``LISTS_ROWS`` in the environment makes the large one smaller, for a quick look.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from contracts.rpc import templates as template_rpc
from contracts.rpc.submissions import api as rpc
from contracts.runtime import migrations
from contracts.runtime.data.database import Database
from contracts.types import Actor, Role
from services.submissions.reading import queries
from services.submissions.site import Site
from services.templates import queries as template_queries
from services.templates.links import LinkMaker
from tests.load.targets import TARGETS, judged
from tests.support.servers.postgres import PrivatePostgres

SMALL, LARGE = 1_000, int(os.environ.get("LISTS_ROWS", "1000000"))
ROUNDS = 31
NOW = datetime(2026, 3, 4, tzinfo=UTC)
SITE = Site("https://sign.example.com", "secret", 86_400, 2_592_000)
LINKS = LinkMaker("https://sign.example.com", "secret", 86_400)
ADMIN = Actor(user_id=1, role=Role.ADMIN, email="admin@example.com")
EDITOR = Actor(user_id=12, role=Role.EDITOR, email="editor@example.com")
NARROW = Actor(user_id=99, role=Role.EDITOR, email="narrow@example.com")
VIEWER = Actor(user_id=2, role=Role.VIEWER, email="viewer@example.com")

# Three years of submissions, the last one made at NOW. Of a thousand: 25 of templates by their use (the first ones are used
# most, random()^3), every tenth one-off; 62 % completed, 28 % pending, 5 % each declined and expired; 8 % archived.
# A term and a state that are both rare have no row in common in the small table, which is then faster than one with a page to
# show: walter is in 200 submissions of either table, from the first to the last, and ten of them are declined.
_FILL = (
    "SELECT setseed(0.5)",
    """INSERT INTO templates SELECT t, 'Agreement ' || t, 'key-' || t,
         CASE WHEN t = :templates THEN 'Rare' WHEN t % 2 = 0 THEN 'Default' ELSE 'Folder ' || t % 40 END,
         t % 3 = 0, CASE WHEN t = :templates THEN 99 ELSE 10 + t % 20 END, :start, :start FROM generate_series(1, :templates) t""",
    """CREATE TEMPORARY TABLE drawn AS SELECT i AS id, 'slug-' || i AS slug,
         CASE WHEN i % 997 = 3 THEN 3 WHEN i % 10 > 0 THEN 1 + floor(:templates * power(random(), 3))::bigint END AS template_id,
         (ARRAY['completed', 'pending', 'declined', 'expired'])[CASE
         WHEN i % (:rows / 10) = 1 THEN 3 WHEN i % (:rows / 200) = 1 THEN 1 WHEN r < .62 THEN 1 WHEN r < .9 THEN 2 WHEN r < .95 THEN 3
         ELSE 4 END] AS status, random() < .08 AS archived, 10 + i % 20 AS author, cast(:start AS timestamptz) + i * cast(:step AS interval) AS at,
         (ARRAY['ann', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace', 'heidi'])[1 + floor(random() * 8)::int]
         || CASE WHEN i % 997 = 3 THEN ' zoltan' WHEN i % 199 = 5 THEN ' quentin' WHEN i = :rows / 2 THEN ' unique-one' ELSE '' END
         || CASE WHEN i % (:rows / 200) = 1 THEN ' walter' ELSE '' END
         || CASE WHEN i < :rows * .3 THEN ' oldfirm' WHEN i > :rows * .7 THEN ' newfirm' ELSE '' END || ' smith' || floor(random() * :rows)::text AS name,
         (1000000 + floor(random() * 8999999))::text AS phone
         FROM (SELECT i, random() AS r FROM generate_series(1, :rows) i) numbers""",
    """INSERT INTO submissions (id, slug, name, source, template_id, created_by_id, signing_order, status, unfinished, expire_at,
         archived_at, completed_at, created_at, updated_at, preferences, details, variables, results, values_version,
         event_sequence, trail_length, trail_hash, trail_at, search)
         SELECT id, slug, 'Contract ' || id, 'api', template_id, author, 'preserved', status, status IN ('pending', 'expired'),
         CASE WHEN id % 4 = 0 THEN at + interval '1100 days' END, CASE WHEN archived THEN at END,
         CASE WHEN status = 'completed' THEN at + interval '2 days' END, at, at, '{}', '{}', '{}',
         CASE WHEN status = 'completed' THEN cast(:results AS jsonb) END, 1, 3, 5, repeat('a', 64), at,
         'contract ' || id || ' ' || name || ' ' || replace(name, ' ', '.') || '@example.com +1555' || phone || ' second' || id || '@example.com'
         FROM drawn""",
    """INSERT INTO submitters (id, submission_id, position, party_uuid, role, email, name, phone, external_id, slug,
         signing_group, viewer, status, field_values, metadata, preferences, visit, completed_at, created_at, updated_at, search)
         SELECT id * 2 + n, id, n, 'party-' || n, 'Party ' || n,
         CASE n WHEN 0 THEN replace(name, ' ', '.') ELSE 'second' || id END || '@example.com', CASE n WHEN 0 THEN name END,
         CASE n WHEN 0 THEN '+1555' || phone END, 'crm-' || id, 'submitter-' || id || '-' || n, n, false,
         CASE WHEN status IN ('completed', 'declined') THEN status ELSE 'pending' END, '{"field": "value"}', '{}', '{}', '{}',
         CASE WHEN status = 'completed' THEN at + random() * interval '4 days' END, at, at,
         CASE n WHEN 0 THEN name || ' ' || replace(name, ' ', '.') || '@example.com +1555' || phone
         ELSE 'second' || id || '@example.com' END FROM drawn, generate_series(0, 1) n ORDER BY id, n""",
    "INSERT INTO snapshots SELECT id, 'Agreement', '[]', '[]', '[]', '{}' FROM drawn",
    "DROP TABLE drawn",
)
_PDF = {"size": 90_000, "media_type": "application/pdf"}
_RESULTS = json.dumps(
    {
        "documents": [{"name": "agreement", "file": {"key": "submissions/1/agreement", "sha256": "a" * 64, **_PDF}}],
        "audit_trail": {"key": "submissions/1/trail", "sha256": "b" * 64, **_PDF},
    }
)
_FILL_TEMPLATES = (
    "INSERT INTO folders (id, name) SELECT f, 'Folder ' || f FROM generate_series(1, 40) f",
    """INSERT INTO templates (id, slug, name, name_lower, external_id, folder_id, shared_link, parties, fields, preferences,
         report, author_id, author, sequence, archived_at, created_at, updated_at)
         SELECT t, 'slug-' || t, name, lower(name), 'key-' || t, CASE WHEN t = :rows THEN 40 ELSE 1 + t % 39 END, t % 3 = 0, '[]',
         '[]', '{}', '[]', CASE WHEN t = :rows THEN 99 ELSE 10 + t % 20 END, cast(:author AS jsonb), 1,
         CASE WHEN t % 12 = 0 THEN now() END, now(), now() FROM (SELECT t, 'Agreement ' || t
         || CASE WHEN t % 997 = 3 THEN ' Zoltan' ELSE '' END AS name FROM generate_series(1, :rows) t) named""",
)


def filled(cluster: PrivatePostgres, service: str, rows: int) -> Database:
    """A database with the service's tables at the first version, filled, and migrated then, as an installation is."""
    url = cluster.new_database()
    migrations.upgrade(service, url, "0002" if service == "submissions" else "0001")
    database = Database(url)
    start = NOW - timedelta(days=1_095)
    values = {"rows": rows, "templates": max(25, rows // 500), "start": start, "results": _RESULTS}
    values |= {"step": timedelta(days=1_095) / rows, "author": '{"id": 1, "email": "a@example.com"}'}
    with database.engine.connect() as connection:
        connection.execute(sa.text("SET statement_timeout = 0"))
        connection.execute(sa.text("SET synchronous_commit = off"))
        for statement in _FILL if service == "submissions" else _FILL_TEMPLATES:
            wanted = sa.text(statement)
            connection.execute(wanted, {name: values[name] for name in wanted.compile().params})
        connection.commit()
    began = time.perf_counter()
    migrations.upgrade(service, url)
    print(f"  {service}: the migration took {time.perf_counter() - began:.1f} s with {rows:,} rows", flush=True)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("SET statement_timeout = 0"))
        connection.execute(sa.text("VACUUM ANALYZE"))
    return database


def submissions(database: Database, rows: int, **query: Any) -> Any:
    values = {"actor": ADMIN, **{name: _sized(value, rows) for name, value in query.items()}}
    return database.read(queries.submissions, rpc.ListSubmissions(**values), SITE, NOW)


def submitters(database: Database, rows: int, **query: Any) -> Any:
    values = {"actor": ADMIN, **{name: _sized(value, rows * 2) for name, value in query.items()}}
    return database.read(queries.submitters, rpc.ListSubmitters(**values), SITE, NOW)


def templates(database: Database, rows: int, **query: Any) -> Any:
    values = {"actor": ADMIN, **{name: _sized(value, rows) for name, value in query.items()}}
    return database.read(template_queries.templates, template_rpc.ListTemplates(**values), LINKS, NOW)


def _sized(value: Any, rows: int) -> Any:
    """A share of the rows as an id: ``after=0.5`` is the middle."""
    return int(value * rows) if isinstance(value, float) else value


_LAST = -1  # the template that is used least
_TERMS: dict[str, str] = {
    "all have": "example.com",
    "1 in 8": "ann",
    "1 in 200": "quentin",
    "1 in 1000": "zoltan",
    "one has": "unique-one",
    "absent": "zzqqxx",
}
SUBMISSIONS: dict[str, dict[str, Any]] = {
    "no filter": {},
    "after the middle": {"after": 0.5},
    "before the middle": {"before": 0.5},
    "status=pending": {"status": "pending"},
    "status=completed": {"status": "completed"},
    "status=declined": {"status": "declined", "after": 0.5},
    "status=expired": {"status": "expired"},
    "status=expired, before the middle": {"status": "expired", "before": 0.5},
    "archived": {"archived": True},
    "not archived": {"archived": False, "after": 0.5},
    "template much used": {"template_id": 1},
    "template little used": {"template_id": _LAST},
    "status + template": {"template_id": 1, "status": "declined", "after": 0.5},
    "status + template + not archived": {"template_id": 1, "status": "declined", "archived": False},
    "folder much used": {"template_folder": "Default"},
    "folder little used": {"template_folder": "Rare"},
    "folder unknown": {"template_folder": "None"},
    "folder little used, before the middle": {"template_folder": "Rare", "before": 0.5},
    "slug": {"slug": "slug-77"},
    **{f"q {name}": {"q": term} for name, term in _TERMS.items()},
    "q all have, before the middle": {"q": "example.com", "before": 0.5},
    "q 1 in 1000, after the middle": {"q": "zoltan", "after": 0.5},
    "q absent, before the middle": {"q": "zzqqxx", "before": 0.5},
    "q all have + status + template": {"q": "example.com", "status": "declined", "template_id": 1},
    "q of 200 + status of 10 of them": {"q": "walter", "status": "declined"},
    "q all have + folder little used": {"q": "example.com", "template_folder": "Rare"},
    "q absent + archived": {"q": "zzqqxx", "archived": True},
    "q of old ones only, after the middle": {"q": "oldfirm", "after": 0.5},
    "q of new ones only": {"q": "newfirm"},
    "q of new ones only + status": {"q": "newfirm", "status": "declined"},
    "q of two characters, common": {"q": "an"},
    "q of two characters, 1 in 1000": {"q": "zo"},
    "q of two characters, absent": {"q": "zq"},
    "editor": {"actor": EDITOR},
    "editor, status + template": {"actor": EDITOR, "template_id": 1, "status": "declined"},
    "editor, q all have": {"actor": EDITOR, "q": "example.com"},
    "editor, q 1 in 1000": {"actor": EDITOR, "q": "zoltan"},
    "editor, q absent": {"actor": EDITOR, "q": "zzqqxx"},
    "viewer": {"actor": VIEWER},
    "viewer, before the middle": {"actor": VIEWER, "before": 0.5},
    "viewer, q 1 in 1000": {"actor": VIEWER, "q": "zoltan"},
    "viewer, folder little used": {"actor": VIEWER, "template_folder": "Rare"},
}
_NOTHING_SHARED: dict[str, dict[str, Any]] = {
    "editor with one template": {"actor": NARROW},
    "editor with one template, after the middle": {"actor": NARROW, "after": 0.5},
    "editor with one template, status": {"actor": NARROW, "status": "pending"},
    "editor with one template, q all have": {"actor": NARROW, "q": "example.com"},
    "editor with one template, q absent": {"actor": NARROW, "q": "zzqqxx"},
    "viewer": {"actor": VIEWER},
    "viewer, q all have": {"actor": VIEWER, "q": "example.com"},
}
SUBMITTERS: dict[str, dict[str, Any]] = {
    "no filter": {},
    "before the middle": {"before": 0.5},
    "submission": {"submission_id": 77},
    "template much used": {"template_id": 1},
    "template little used": {"template_id": _LAST},
    "external_id": {"external_id": "crm-77"},
    "slug": {"slug": "submitter-77-0"},
    "completed after, the last day": {"completed_after": NOW - timedelta(days=1)},
    "completed after, the last year": {"completed_after": NOW - timedelta(days=365)},
    "completed before, the first day": {"completed_before": NOW - timedelta(days=1_094)},
    "completed within a month": {
        "completed_after": NOW - timedelta(days=400),
        "completed_before": NOW - timedelta(days=370),
    },
    **{f"q {name}": {"q": term} for name, term in _TERMS.items()},
    "q all have, before the middle": {"q": "example.com", "before": 0.5},
    "q all have + template little used": {"q": "example.com", "template_id": _LAST},
    "editor": {"actor": EDITOR},
    "editor, q 1 in 1000": {"actor": EDITOR, "q": "zoltan"},
    "viewer": {"actor": VIEWER},
}
_TEMPLATES: dict[str, dict[str, Any]] = {
    "no filter": {},
    "before the middle": {"before": 0.5},
    "archived": {"archived": True},
    "folder": {"folder": "Folder 7", "after": 0.5},
    "folder with one": {"folder": "Folder 40"},
    "folder unknown": {"folder": "None"},
    "external_id": {"external_id": "key-77"},
    "slug": {"slug": "slug-77"},
    "q all have": {"q": "AGREE"},
    "q 1 in 1000": {"q": "zoltan"},
    "q absent": {"q": "zzqqxx"},
    "q absent + folder": {"q": "zzqqxx", "folder": "Folder 7"},
    "editor": {"actor": EDITOR},
    "editor, q 1 in 1000": {"actor": EDITOR, "q": "zoltan"},
    "viewer": {"actor": VIEWER},
    "viewer, q absent": {"actor": VIEWER, "q": "zzqqxx"},
}


def main() -> None:
    above: list[str] = []
    with tempfile.TemporaryDirectory(prefix="countersign-") as name:
        Path(name).chmod(0o755)
        cluster = PrivatePostgres(Path(name) / "postgres", shared_buffers="1GB")
        cluster.start()
        try:
            both = {rows: filled(cluster, "submissions", rows) for rows in (SMALL, LARGE)}
            above += compared("submissions", submissions, SUBMISSIONS, both)
            above += compared("submitters", submitters, SUBMITTERS, both)
            for database in both.values():
                with database.engine.begin() as connection:
                    connection.execute(sa.text("UPDATE templates SET shared = false"))
                    connection.execute(sa.text("ANALYZE templates"))
            above += compared("submissions, no template is shared", submissions, _NOTHING_SHARED, both)
            for database in both.values():
                database.dispose()
            both = {rows: filled(cluster, "templates", rows) for rows in (SMALL, LARGE)}
            above += compared("templates", templates, _TEMPLATES, both)
            for database in both.values():
                database.dispose()
        finally:
            cluster.stop()
    print(f"  above the target: {'; '.join(above) or 'none'}")


def compared(
    title: str, ask: Callable[..., Any], cases: dict[str, dict[str, Any]], both: dict[int, Database]
) -> list[str]:
    """Prints a line per case; those above the target."""
    print(f"\n  {title:44} {f'{SMALL:,}':>12} {f'{LARGE:,}':>12}   ratio of medians (rows of the page)")
    above = []
    for name, query in cases.items():
        asks = {rows: partial(ask, database, rows, **sized(query, rows)) for rows, database in both.items()}
        shown = {rows: len(once().data) for rows, once in asks.items()}
        seconds: dict[int, list[float]] = {rows: [] for rows in asks}
        for number in range(ROUNDS):
            for rows in list(asks) if number % 2 else list(reversed(asks)):
                began = time.perf_counter()
                asks[rows]()
                seconds[rows].append(time.perf_counter() - began)
        small, large = (statistics.median(figures) * 1000 for figures in seconds.values())
        ratio = large / small
        judged("lists", ratio)
        reached = TARGETS["lists"].is_reached_by(ratio)
        counts = ", ".join(str(count) for count in shown.values())
        print(
            f"  {name:44} {small:9.2f} ms {large:9.2f} ms   {ratio:6.2f}{'  ' if reached else ' !'}  ({counts})",
            flush=True,
        )
        if not reached:
            above.append(f"{title}: {name} ({ratio:.1f})")
    return above


def sized(query: dict[str, Any], rows: int) -> dict[str, Any]:
    """With the template that is used least of those that a table of this size has."""
    return {**query, "template_id": max(25, rows // 500)} if query.get("template_id") == _LAST else query


if __name__ == "__main__":
    main()
