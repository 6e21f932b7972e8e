"""docs/languages.md lists the languages that there are."""

from docs.programs import make_languages


def test_the_table_is_that_of_the_files() -> None:
    page = make_languages.PAGE.read_text()
    assert make_languages.with_table(page) == page, "python -m docs.programs.make_languages"
