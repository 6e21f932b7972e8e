"""What is aimed at, one row per target, and what came out in this run: the table at the end of `make load`.

A benchmark says ``judged(name, figure)`` in the line where the figure stands.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A figure is to be ``limit`` at most, or at least. ``why`` it is missed, as far as that is known."""

    what: str
    limit: float
    at_least: bool = False
    why: str = ""

    @property
    def aim(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.limit:g}"

    def is_reached_by(self, figure: float) -> bool:
        return figure >= self.limit if self.at_least else figure <= self.limit


_SPREAD = "rows, messages and events cost it, over hundreds of functions: docs/scale.md"
_CALL = "the call to the service; Flask with that call in is as quick: docs/scale.md"
_SHARED = "database, broker and load need processors of their own, beside those of the replicas"

TARGETS = {
    "processor": Target("processor time of an agreement, of the same work in one process", 4, why=_SPREAD),
    "rate": Target("agreements a second with 50 signers, of what the processors would give", 0.9, at_least=True),
    "p99": Target(
        "p99 of all calls with 50 signers, of p50 with 2", 6, why="50 signers share these processors: docs/scale.md"
    ),
    "left": Target("to seal, publish, mail and deliver 5 s after 50 signers", 0),
    "postgresql": Target(
        "processor time of an agreement on SQLite, of that on PostgreSQL",
        0.8,
        at_least=True,
        why="the server takes its part",
    ),
    "replicas": Target(
        "agreements a second of two replicas on twice the processors, of one", 1.8, at_least=True, why=_SHARED
    ),
    "completion": Target("last signature to completed, of the same work in one process", 2, why=_SPREAD),
    "late": Target("milliseconds that an event loop is late while two are sealed", 25),
    "get": Target(
        "GET of a template, requests a second, of bare Flask that answers from memory", 0.8, at_least=True, why=_CALL
    ),
    "list": Target("a list of submissions, of bare Flask that answers from memory", 0.6, at_least=True, why=_CALL),
    "post": Target("POST of a submission, of bare Flask that answers from memory", 0.2, at_least=True, why=_CALL),
    "call": Target("any of them, of bare Flask that asks the same service", 0.5, at_least=True),
    "seal": Target(
        "fill and seal 10 pages, of @libpdf/core", 0.4, why="values are laid out and drawn in Python: docs/scale.md"
    ),
    "seal 500": Target("fill and seal 500 pages, of @libpdf/core", 0.9),
    "pyhanko": Target("fill and seal 10 pages, of pyHanko as documented", 0.06),
    "intake": Target("intake of 100 pages, of qpdf --check and one pass of pdfium", 2),
    "certsign": Target("fifty signatures of a slow provider, of its calls and sealing", 1.5),
    "certsign processor": Target("processor time of a provider's seal, of one of our own", 1.2),
    "stamps": Target("p99 of a seal beside slow stamps, of one alone", 1.2),
    "docx": Target("DOCX to PDF, second document, of a cold soffice", 0.3),
    "html": Target("HTML to PDF, of a cold Chromium", 0.3),
    "find tags": Target("finding the tags of 100 pages, of pdftotext", 1),
    "remove tags": Target("removing the tags of 100 pages, of pdfium", 0.3),
    "merging": Target("ten files of ten pages merged, of qpdf", 1),
    "rpc": Target("p50 of a call over the bus, of a bare pika echo service", 2.5),
    "expiry": Target("seconds until 10,000 submissions have expired", 30),
    "lists": Target("a filter or search with 1,000,000 submissions, of 1,000", 3),
    "start": Target("seconds until the second start of make up is ready", 6),
    "memory": Target(
        "megabytes of the idle suite with its broker",
        500,
        why="Python counts references in what copies share: docs/scale.md",
    ),
    "idle": Target(
        "percent of a processor that the idle suite takes", 1, why="one look a second for each database, and the broker"
    ),
}

_measured: dict[str, float] = {}


def judged(name: str, figure: float) -> str:
    """Note a figure for the table; of several the worst counts. Returns its target and whether that is reached."""
    target = TARGETS[name]
    worst = min if target.at_least else max
    _measured[name] = worst(_measured.get(name, figure), figure)
    return f"target {target.aim}: {'reached' if target.is_reached_by(figure) else 'MISSED'}"


def table() -> list[str]:
    """Return the lines of the table: a line for each target that was measured in this run."""
    width = max(len(target.what) for target in TARGETS.values())
    lines = [f"  {'what':<{width}} {'measured':>9}   target"]
    for name, target in TARGETS.items():
        if name in _measured:
            reached = target.is_reached_by(_measured[name])
            missed = "" if reached else f"  MISSED{f' ({target.why})' if target.why else ''}"
            lines.append(f"  {target.what:<{width}} {_measured[name]:>9.2f}   {target.aim}{missed}")
    left = len(TARGETS) - len(lines) + 1
    return [*lines, f"  {left} were not measured in this run"] if left else lines
