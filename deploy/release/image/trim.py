"""Takes out of installed packages what no service uses: run by ``packages.sh`` in the virtual environment of an image.

    python trim.py [folder of packages]

Only the standard library, and Babel where it is installed. What is done to the same packages is the same at each run. Licences,
metadata and `py.typed` stay.
"""

import ctypes
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

S3_AND_CREDENTIALS = frozenset({"s3", "sts", "sso", "sso-oidc", "signin"})
"""Of what Amazon's library can speak, what reaches S3 and gets credentials."""
UNUSED = (
    "phonenumbers/geodata",  # whose a number is
    "phonenumbers/carrierdata",
    "phonenumbers/tzdata",
    "sqlalchemy/testing",
    "alembic/testing",
    # Of Swagger UI the gateway serves its bundle (services/gateway/api/public.py), not what other programs are built of.
    "swagger_ui_bundle/vendor/*/swagger-ui-es-bundle.js",
    "swagger_ui_bundle/vendor/*/swagger-ui-es-bundle-core.js",
    "swagger_ui_bundle/vendor/*/swagger-ui-standalone-preset.js",
    "swagger_ui_bundle/vendor/*/swagger-ui.js",
)
SOURCES = frozenset({".c", ".cc", ".cpp", ".h", ".hpp", ".pyx", ".pxd", ".pxi", ".pyi", ".map", ".a"})
"""What compilers, type checkers and debuggers of browsers read."""
LOCALE_PARTS_UNUSED = frozenset(
    {
        "compact_currency_formats",
        "compact_decimal_formats",
        "compound_unit_patterns",
        "currency_names",
        "currency_names_plural",
        "date_fields",
        "interval_formats",
        "meta_zones",
        "territories",
        "time_zones",
        "unit_display_names",
        "unit_patterns",
        "variants",
    }
)
"""Of what Babel knows of each locale, what nothing here shows: names of countries, currencies, units and time zones."""


def trim(packages: Path) -> None:
    """Remove files that are not used, and shorten those that are more than is used."""
    services = packages / "botocore" / "data"
    gone = [path for path in _children(services) if path.is_dir() and path.name not in S3_AND_CREDENTIALS]
    gone += [path for pattern in UNUSED for path in packages.glob(pattern)]
    gone += [path for path in packages.rglob("tests") if path.is_dir()]
    gone += [path for path in packages.rglob("*") if path.suffix in SOURCES and path.is_file()]
    for path in gone:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    shorten_locales(packages)
    strip(packages)


def shorten_locales(packages: Path) -> None:
    """Write Babel's files of locales again, with nothing in the parts that are not used; it asks for some all the same."""
    for path in _children(packages / "babel" / "locale-data"):
        if path.suffix == ".dat":
            data = pickle.loads(path.read_bytes())  # noqa: S301 - it is a package's own, with the lock's hash
            path.write_bytes(pickle.dumps({key: {} if key in LOCALE_PARTS_UNUSED else data[key] for key in data}, 4))


def strip(packages: Path) -> None:
    """Take what debuggers read out of compiled modules and their libraries. Raises OSError for one that no longer loads."""
    for path in sorted(packages.rglob("*")):
        if ".so" in path.suffixes and path.is_file() and not path.is_symlink():
            subprocess.run(["strip", "--strip-debug", "--enable-deterministic-archives", path], check=True)
    # Those of Debian that some need are not here: what loads is loaded.
    for path in sorted(packages.rglob("*.so")):
        _load(path)


def _load(path: Path) -> None:
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
    except OSError as error:
        if "cannot open shared object file" not in str(error):
            raise


def _children(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.iterdir())) if folder.is_dir() else iter(())


if __name__ == "__main__":
    trim(Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("purelib")))
