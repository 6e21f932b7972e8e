"""Names that people give: kept, cleaned or refused; and what a file is called when it is saved."""

import pytest

from contracts.fields.rules import LONGEST_NAME
from contracts.formats import folders
from contracts.problems import Problems
from services.templates.rules import names
from services.templates.rules.roles import own_uuid


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ("Leases", "Leases"),
        (" Leases / 2026 ", "Leases / 2026"),
        ("Leases //  / 2026", "Leases // / 2026"),
        ("Leases /  / 2026", "Leases / 2026"),
        ("A/B", "A/B"),
        ("", folders.DEFAULT),
        (" / ", folders.DEFAULT),
        (None, folders.DEFAULT),
    ],
)
def test_a_folder_may_be_in_a_folder(given: str | None, folder: str) -> None:
    assert folders.normalised(given) == folder


@pytest.mark.parametrize(
    ("name", "within"),
    [("A", True), ("A / B", True), ("A / B / C", True), ("AB", False), ("a", False), ("B / A", False), ("C", True)],
)
def test_a_folder_is_within_itself_and_those_around_it(name: str, within: bool) -> None:
    assert folders.is_within(name, ["A", "C"]) is within
    assert not folders.is_within(name, [])


def test_a_title_may_be_as_long_as_a_name() -> None:
    problems = Problems()
    longest = "x" * LONGEST_NAME
    assert names.title(f" {longest}\n", "name", problems) == longest
    assert names.title("Lease\u202e 2026", "name", problems) == "Lease 2026"
    assert problems.entries == []
    assert names.title(f"{longest}x", "name", problems) == longest
    assert [problem["field"] for problem in problems.entries] == ["name"]


@pytest.mark.parametrize(
    ("document", "saved"),
    [
        ("Lease 2026", "Lease 2026.pdf"),
        ("../../etc/passwd", "_.._etc_passwd.pdf"),
        ("C:\\Lease", "C__Lease.pdf"),
        (".hidden", "hidden.pdf"),
        ('a"b<c>d|e?f*g:h', "a_b_c_d_e_f_g_h.pdf"),
        ("x" * 200, "x" * 200 + ".pdf"),
        ("x" * 201, "x" * 200 + ".pdf"),
    ],
)
def test_a_file_is_called_as_its_document_and_never_a_path(document: str, saved: str) -> None:
    assert names.file_name(document) == saved


def test_searches_do_not_mind_case() -> None:
    assert names.searchable("Straße LEASE") == names.searchable("STRASSE lease") != names.searchable("Street lease")


def test_a_uuid_that_is_none_is_refused_and_another_stands_for_it() -> None:
    problems = Problems()
    assert own_uuid("5F0C3C0E00004000800000000000000A", "uuid", problems) == "5f0c3c0e-0000-4000-8000-00000000000a"
    assert problems.entries == []
    first, second = (own_uuid("seven", "fields[0].uuid", problems) for _ in range(2))
    assert problems.entries == [{"field": "fields[0].uuid", "reason": "must be a UUID"}] * 2
    assert len({first, second}) == 2, "so that it is not also told to repeat another"
