"""What is taken out of the images' packages is not missed: Babel's locales, without what nothing shows, say the same."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import babel
import pytest

from deploy.release.image import trim
from deploy.services import ROOT

SAY = """
import json, sys, datetime
from babel import localedata, Locale
from contracts.fields import paper
from contracts.languages import formatting, saying
from contracts.languages.choosing import known_locale
from types import SimpleNamespace

when = datetime.datetime(2027, 3, 5, 16, 7, 9, tzinfo=datetime.UTC)
said = {"from": localedata._dirname}
for name in sorted(localedata.locale_identifiers()):  # what Babel says of three depends on which it has read before
    locale = Locale.parse(name)
    language = saying.Language(name, locale)
    account = SimpleNamespace(locale=name)
    said[name] = [
        str(known_locale(name)),
        formatting.moment(when, locale, "Europe/Berlin"),
        formatting.listed(["Ann", "Bob", "Cy"], language),
        paper.printed_time(when, "Asia/Jakarta", name),
        [paper._month(when, full, name) for full in (True, False)],
        [paper.number_text(number, "xof", account) for number in ("1234567.5", "-3")],
        [paper.number_text("1234567.5", currency, account) for currency in ("eur", "idr", "jpy")],
        [str(locale.plural_form(count)) for count in (0, 1, 2, 3, 5, 11, 21, 100)],
        str(locale.text_direction),
        formatting.name_of(name.replace("_", "-")),
    ]
print(json.dumps(said))
"""
"""Prints, for every locale, what is shown in it: dates, months, amounts, lists, plurals, names."""


def said(packages: Path) -> dict[str, object]:
    """What is shown with the Babel in a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", SAY], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    assert Path(str(found.pop("from"))).is_relative_to(packages)
    return found


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the locked Babel, shortened as in an image."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(Path(babel.__file__).parent, folder / "babel")
    trim.shorten_locales(folder)
    return folder


def test_every_locale_says_the_same(packages: Path) -> None:
    whole = said(Path(babel.__file__).parents[1])
    assert len(whole) > 1000
    assert said(packages) == whole


def test_locales_take_a_fifth_of_the_room(packages: Path) -> None:
    def size(folder: Path) -> int:
        return sum(file.stat().st_size for file in (folder / "babel" / "locale-data").iterdir())

    assert size(packages) < 0.2 * size(Path(babel.__file__).parents[1])


def test_a_part_that_is_shown_would_be_missed(packages: Path, tmp_path: Path) -> None:
    shutil.copytree(packages / "babel", tmp_path / "babel")
    file = tmp_path / "babel" / "locale-data" / "de.dat"
    data = pickle.loads(file.read_bytes())
    data["months"]["format"]["wide"][3] = "Lenz"
    file.write_bytes(pickle.dumps(data))
    changed = said(tmp_path)
    whole = said(packages)
    assert {name for name in whole if changed[name] != whole[name]} >= {"de", "de_LU"}


def test_the_same_packages_give_the_same_files(packages: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(babel.__file__).parent, tmp_path / "babel")
    trim.shorten_locales(tmp_path)
    for file in (tmp_path / "babel" / "locale-data").iterdir():
        assert file.read_bytes() == (packages / "babel" / "locale-data" / file.name).read_bytes()


def test_only_what_is_not_run_goes(tmp_path: Path) -> None:
    kept = ["botocore/data/s3/service-2.json.gz", "one/core.py", "one/py.typed", "one-1.0.dist-info/LICENSE",
            "swagger_ui_bundle/vendor/swagger-ui-4/swagger-ui-bundle.js"]  # fmt: skip
    gone = ["botocore/data/ec2/service-2.json.gz", "one/core.pyx", "one/core.pyi", "one/tests/test_core.py",
            "phonenumbers/geodata/data0.py", "swagger_ui_bundle/vendor/swagger-ui-4/swagger-ui-bundle.js.map"]  # fmt: skip
    for name in [*kept, *gone]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    trim.trim(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == set(kept)
