"""Which version of the suite runs here, and which commit it was built of. The version stands in ``pyproject.toml`` alone."""

import os
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from prometheus_client import Gauge

UNKNOWN = "unknown"
PROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"
"""In a checkout and in an image; a package that was installed has what stood there among its metadata."""

BUILD_INFO = Gauge(
    "countersign_build_info", "Always 1; its labels say what runs here", ["version", "revision", "service"]
)


@cache
def version() -> str:
    """The version of the suite, such as ``0.1.0``."""
    try:
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        return str(project["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        pass
    try:
        return metadata.version("countersign")
    except metadata.PackageNotFoundError:
        return UNKNOWN


def revision() -> str:
    """The commit that an image was built of: its build sets COUNTERSIGN_REVISION (``services/Dockerfile``)."""
    return os.environ.get("COUNTERSIGN_REVISION", "").strip() or UNKNOWN


def tell(services: Iterable[str]) -> None:
    """Set ``countersign_build_info`` for each service that this process runs."""
    for service in services:
        BUILD_INFO.labels(version(), revision(), service).set(1)
