"""CSV as spreadsheets and programs write it."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ServiceError
from services.gateway.api.requests.batches import tables
from services.gateway.api.requests.batches.tables import LARGEST_CELL, MOST_COLUMNS, Table, read_table

SAME = Table(["email", "name"], 1, [(2, ["bob@example.com", "Bób; Ray"]), (3, ["eve@example.com", "Eve, Lin"])])

DIALECTS = {
    "commas": 'email,name\nbob@example.com,Bób; Ray\neve@example.com,"Eve, Lin"\n',
    "semicolons": 'email;name\r\nbob@example.com;"Bób; Ray"\r\neve@example.com;Eve, Lin\r\n',
    "tabs": "email\tname\nbob@example.com\tBób; Ray\neve@example.com\tEve, Lin",
    "all quoted": '"email","name"\r\n"bob@example.com","Bób; Ray"\r\n"eve@example.com","Eve, Lin"\r\n',
    "lines of old Macs": 'email;name\rbob@example.com;"Bób; Ray"\reve@example.com;Eve, Lin\r',
    "named separator": 'sep=;\r\nemail;name\r\nbob@example.com;"Bób; Ray"\r\neve@example.com;Eve, Lin\r\n',
    "named bar": "sep=|\nemail|name\nbob@example.com|Bób; Ray\neve@example.com|Eve, Lin\n",
    "blanks around names": ' email , name \nbob@example.com,Bób; Ray\neve@example.com,"Eve, Lin"\n',
}


def refused(data: bytes, most: int = 10) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        read_table(data, most)
    return caught.value


@pytest.mark.parametrize("text", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_dialect_says_the_same(text: str, coding: str) -> None:
    assert read_table(text.encode(coding), 10) == SAME


def test_a_cell_may_have_lines_quotation_marks_and_blanks() -> None:
    table = read_table(b'a,b\r\n"one\r\ntwo","say ""x"""\r\n  x ,\r\n', 10)
    assert table.rows == [(2, ["one\r\ntwo", 'say "x"']), (3, ["  x ", ""])]


def test_rows_are_numbered_as_a_spreadsheet_does() -> None:
    table = read_table(b'\n,\na,b\n"x\ny",1\n\n , \nz,2\n', 10)
    assert (table.header_row, [number for number, _ in table.rows]) == (3, [4, 7])


def test_missing_cells_are_blank_and_further_ones_are_kept() -> None:
    assert read_table(b"a,b\nx\nx,y,z\n", 10).rows == [(2, ["x", ""]), (3, ["x", "y", "z"])]


def test_a_single_column_needs_no_delimiter() -> None:
    assert read_table(b"email\nbob@example.com\n", 10).rows == [(2, ["bob@example.com"])]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (b'"values.Street, number";email', ["values.Street, number", "email"]),
        (b'email,"a;b;c"', ["email", "a;b;c"]),
        (b"values.a;b,email,name", ["values.a;b", "email", "name"]),
    ],
)
def test_the_delimiter_is_the_most_frequent_one_outside_of_quotation_marks(header: bytes, names: list[str]) -> None:
    assert read_table(header + b"\nx\n", 10).header == names


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'a,b\n"x,1\n', "row 2 (line 2): a quotation mark is not closed"),
        (b'a,b\n"x"y,1\n', "row 2 (line 2): a quotation mark within a value must be doubled"),
        (
            b'a,b\nx,1\n"' + b"x" * (LARGEST_CELL + 1) + b'",1\n',
            f"row 3 (line 3): a value is longer than {LARGEST_CELL:,}",
        ),
        (b"a\nx\nBj\xf6rn\n", "line 3 is not UTF-8"),
        (b"\xff\xfea", "it begins with the mark of UTF-16"),
        (b"a\nx\x00\n", "it contains NUL characters"),
        (b"PK\x03\x04 and so on", "it is a spreadsheet"),
        (b"\xd0\xcf\x11\xe0 and so on", "it is a spreadsheet"),
    ],
)
def test_what_is_no_csv_is_refused_with_its_place(data: bytes, words: str) -> None:
    error = refused(data)
    assert (error.code, words in error.message) == ("bad_request", True), error.message


@pytest.mark.parametrize("data", [b"", b"\n\n", b"a,b\n", b"a,b\n,\n\n"])
def test_a_file_without_rows_is_refused(data: bytes) -> None:
    assert refused(data).details == [{"field": "rows", "reason": "is empty"}]


def test_there_may_be_so_many_rows_and_columns_and_no_more() -> None:
    assert len(read_table(b"a\n" + b"x\n" * 3, 3).rows) == 3
    error = refused(b"a\n" + b"x\n" * 4, 3)
    assert (error.code, error.message) == ("invalid", "The file must not have more than 3 rows.")
    wide = ",".join("x" * MOST_COLUMNS).encode()
    assert len(read_table(wide + b"\n" + wide, 3).header) == MOST_COLUMNS
    assert "more than 1,000 columns" in refused(wide + b",x\nx\n").message
    assert "more than 1,000 columns" in refused(b"a\nx" + b"," * MOST_COLUMNS + b"\n").message


def test_there_may_be_so_many_values_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 4)
    assert len(read_table(b"a,b,c\nx,x,\nx,,x\n", 10).rows) == 2
    assert refused(b"a,b,c\nx,x,\nx,x,x\n").code == "too_large"


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


@given(
    st.lists(st.lists(_TEXT, min_size=3, max_size=3).filter(lambda row: any(cell.strip() for cell in row)), min_size=1),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_pythons_writer_writes_is_read_as_it_was(rows: list[list[str]], comma: str, end: str, coding: str) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=comma, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([["a", "b", "c"], *rows])
    table = read_table(out.getvalue().encode(coding), 1_000)
    assert [cells for _, cells in table.rows] == rows
