"""Which PostgreSQL server the tests take."""

from pathlib import Path

import pytest

from tests.support.servers.postgres import found_binaries

PROGRAMS = ("initdb", "pg_ctl", "postgres", "pg_dump")


def test_the_setting_says_which_server_is_tested(tmp_path: Path) -> None:
    for program in PROGRAMS:
        (tmp_path / program).touch()
    assert found_binaries(str(tmp_path)) == tmp_path
    assert found_binaries(None) == found_binaries("")
    assert found_binaries(None).parent.parent == Path("/usr/lib/postgresql")


@pytest.mark.parametrize("missing", PROGRAMS)
def test_a_folder_without_a_server_is_refused_rather_than_another_server_tested(tmp_path: Path, missing: str) -> None:
    for program in {*PROGRAMS} - {missing}:
        (tmp_path / program).touch()
    with pytest.raises(ValueError, match=f"^POSTGRES_BINARIES is {tmp_path}, and there is no {missing}$"):
        found_binaries(str(tmp_path))
