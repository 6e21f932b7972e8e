"""The README's first screen: how to try it in one line, what comes of it, and where each kind of user goes on."""

import re

from deploy.services import ROOT

SCREEN = (ROOT / "README.md").read_text().partition("\n## ")[0]
LINES = 24
"""What is seen without scrolling, beside the picture."""


def test_it_is_short() -> None:
    assert SCREEN.count("\n") <= LINES


def test_one_line_tries_it() -> None:
    (block,) = re.findall(r"```sh\n(.*?)\n```", SCREEN, re.DOTALL)
    (line,) = block.splitlines()
    target = line.partition("#")[0].strip().removeprefix("make ")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_a_picture_shows_what_comes_of_it() -> None:
    ((words, path),) = re.findall(r"!\[(.+?)\]\((.+?)\)", SCREEN)
    assert len(words) > 40, "who cannot see it is to know what is there"
    assert (ROOT / path).is_file()


def test_each_of_the_three_kinds_of_users_is_told_where_to_go_on() -> None:
    """That the links lead somewhere is for tests/contract/docs/test_links.py to say."""
    rows = dict(re.findall(r"^\| ((?!You)[^|-]+) \| (.+) \|$", SCREEN, re.MULTILINE))
    assert [who.split()[0] for who in rows] == ["run", "write", "sign,"]
    for where in rows.values():
        assert re.findall(r"\]\(([^)]+)\)", where)
