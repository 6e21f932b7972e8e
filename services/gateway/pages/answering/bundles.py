"""One script and one style sheet for each page, made of the modules in ``static/`` when the gateway starts.

On a slow phone each file costs a round trip, and what is imported is asked for only when what imports it is there. No package
on PyPI bundles ES modules, so this does, for the few forms of ``import`` and ``export`` that our modules have; any other is
refused when the gateway starts. rjsmin and rcssmin take out comments and blanks.
"""

import posixpath
import re
from base64 import b64encode
from collections.abc import Mapping

import rcssmin
import rjsmin

_IMPORT = re.compile(r'^import (?:\{(?P<names>[^}]*)\} from )?"(?P<path>\.{1,2}/[^"]+)";[^\S\n]*$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?P<what>(?:async function\*?|function\*?|class|const) (?P<name>[\w$]+)|const \{(?P<names>[^}]*)\} =)",
    re.MULTILINE,
)
_MODULE_SYNTAX = re.compile(r"^\s*(?:import|export)\b|\bimport\s*\(|\bimport\.meta\b", re.MULTILINE)
_SHEET = re.compile(r'^@import "(?P<path>[^"]+)";\n', re.MULTILINE)
_PICTURE = re.compile(r'url\("(?P<path>[^":#]+\.svg)"\)')


class CannotBundle(Exception):
    """A module is written in a way that cannot be put into one file with others."""


def script(modules: Mapping[str, str], entry: str, *, classic: bool = False) -> str:
    """Return the module ``entry`` with everything that it imports, as one script. ``modules``: their text by path. ``classic``:
    it is no module for the page that loads it, and must leave no names there.

    A module becomes a function that is called once and returns what it exports, in the order in which a browser runs them. The
    entry, which nothing imports, is a block, because it may await.
    """
    order: list[str] = []
    _visit(modules, entry, (), order)
    numbers = {path: f"$m{number}" for number, path in enumerate(order)}
    exported = {path: _exported(modules[path]) for path in order}
    parts = [_module(path, modules[path], numbers, exported, is_entry=path == entry) for path in order]
    whole = "".join(parts)
    minified = rjsmin.jsmin(f'(() => {{\n"use strict";\n{whole}}})();\n' if classic else whole)
    assert isinstance(minified, str)
    return minified


def style_sheet(files: Mapping[str, str], entry: str) -> str:
    """Return the style sheet ``entry`` with the sheets that it imports and the pictures that they show. ``files``: the
    text of each by its path."""

    def whole(path: str) -> str:
        text = _SHEET.sub(lambda match: whole(_resolved(path, match["path"])), files[path])
        return _PICTURE.sub(lambda match: f'url("{_data_url(files[_resolved(path, match["path"])])}")', text)

    minified = rcssmin.cssmin(whole(entry))
    assert isinstance(minified, str)
    return minified


def _visit(modules: Mapping[str, str], path: str, above: tuple[str, ...], order: list[str]) -> None:
    if path in above:
        raise CannotBundle(
            f"{path} imports itself, by way of {' and '.join(above[above.index(path) + 1 :]) or 'nothing'}"
        )
    if path in order:
        return
    if path not in modules:
        raise CannotBundle(f"{above[-1]} imports {path}, which is not there" if above else f"{path} is not there")
    for match in _IMPORT.finditer(modules[path]):
        _visit(modules, _resolved(path, match["path"]), (*above, path), order)
    order.append(path)


def _module(
    path: str, text: str, numbers: Mapping[str, str], exported: Mapping[str, list[str]], *, is_entry: bool
) -> str:
    def imports(match: re.Match[str]) -> str:
        if match["names"] is None:
            return ""
        source = _resolved(path, match["path"])
        for name in _names(match["names"], " as ", 0):
            if name not in exported[source]:
                raise CannotBundle(f"{path} imports {name}, which {source} does not export")
        return f"const {{{match['names'].replace(' as ', ': ')}}} = {numbers[source]};"

    body = _EXPORT.sub(lambda match: match["what"], _IMPORT.sub(imports, text))
    if strange := _MODULE_SYNTAX.search(_without_comments(body)):
        raise CannotBundle(f"{path}: `{strange.group().strip()}` is written in a way that is not known here")
    if is_entry:
        return f"{{\n{body}\n}}\n"
    return f"const {numbers[path]} = (() => {{\n{body}\nreturn {{{', '.join(exported[path])}}};\n}})();\n"


def _exported(text: str) -> list[str]:
    names_of_exports = (_names(match["name"] or match["names"], ":", -1) for match in _EXPORT.finditer(text))
    return [name for names in names_of_exports for name in names]


def _names(listed: str, divider: str, which: int) -> list[str]:
    """Read ``a, b as c`` or ``a, b: c``."""
    return [name.split(divider)[which].strip() for name in listed.split(",") if name.strip()]


def _without_comments(text: str) -> str:
    return re.sub(r"^\s*(?://.*|/\*[\s\S]*?\*/)", "", text, flags=re.MULTILINE)


def _resolved(path: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), address))


def _data_url(picture: str) -> str:
    return f"data:image/svg+xml;base64,{b64encode(picture.encode()).decode()}"
