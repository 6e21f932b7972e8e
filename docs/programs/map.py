"""``python -m docs.programs.map``: draw which room or module imports which, for each service, as ``docs/map.svg``.

What imports stands above what it imports. An arrow that others already imply is left out: where A imports B and B imports C,
none is drawn from A to C. A circle cannot be drawn, and is refused by name.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import grimp

FILE = Path(__file__).parents[1] / "map.svg"
PACKAGES = (
    *(f"services.{name}" for name in ("gateway", "templates", "submissions", "rendering", "notifications", "webhooks")),
    "services.rendering.jobs",
    "contracts",
    "contracts.runtime",
)
_LEFT_OUT = frozenset({"__main__", "migrations", "migration_environment"})
"""Programs of their own."""

Imports = Mapping[str, frozenset[str]]
"""What each module imports."""

_BESIDE = 3
_CHARACTER, _HEADING_CHARACTER, _PADDING = 7.0, 10.0, 8.0
_HIGH, _BETWEEN, _ROW, _HEADING, _MARGIN = 22.0, 14.0, 62.0, 34.0, 18.0


class Circle(Exception):
    """Modules import each other in a circle, whose stations the message names."""


def imports_within(package: str) -> Imports:
    """Find what each module or room directly within ``package`` imports of the others."""
    graph = grimp.build_graph("contracts", "services", cache_dir=None)
    children = {child for child in graph.find_children(package) if child.rpartition(".")[2] not in _LEFT_OUT}
    for child in children:
        graph.squash_module(child)
    return {
        child.rpartition(".")[2]: frozenset(
            other.rpartition(".")[2] for other in graph.find_modules_directly_imported_by(child) & (children - {child})
        )
        for child in children
    }


def rows(imports: Imports) -> list[list[str]]:
    """Order modules so that each stands above all that it imports. Raises Circle."""
    heights: dict[str, int] = {}

    def height(module: str, path: tuple[str, ...]) -> int:
        if module in path:
            raise Circle(" -> ".join([*path[path.index(module) :], module]))
        if module not in heights:
            below = [height(other, (*path, module)) for other in sorted(imports[module])]
            heights[module] = max(below, default=-1) + 1
        return heights[module]

    for module in sorted(imports):
        height(module, ())
    return [
        sorted(module for module in imports if heights[module] == row)
        for row in range(max(heights.values(), default=-1), -1, -1)
    ]


def arrows(imports: Imports) -> Iterator[tuple[str, str]]:
    """The imports that no others imply. ``imports`` must be without a circle."""

    def reached(module: str) -> set[str]:
        return {other for direct in imports[module] for other in ({direct} | reached(direct))}

    for module in sorted(imports):
        implied = {other for direct in imports[module] for other in reached(direct)}
        for other in sorted(imports[module] - implied):
            yield module, other


def drawn(packages: Sequence[str] = PACKAGES) -> str:
    """The whole picture (SVG), three packages beside each other. Raises Circle."""
    parts, top, wide = [], _MARGIN, 0.0
    for first in range(0, len(packages), _BESIDE):
        left, high = _MARGIN, 0.0
        for package in packages[first : first + _BESIDE]:
            try:
                panel, width, height = _panel(package, imports_within(package), left, top)
            except Circle as circle:
                raise Circle(f"{package}: {circle}") from circle
            parts += panel
            left, high = left + width + 2 * _MARGIN, max(high, height)
        top, wide = top + high + _MARGIN, max(wide, left)
    head = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {top:.0f}"'
            ' font-family="DejaVu Sans, sans-serif" font-size="11">'
        ),
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0 8 4 0 8z" fill="#68707c"/></marker></defs>',
        f'<rect width="{wide:.0f}" height="{top:.0f}" fill="#fff"/>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _panel(package: str, imports: Imports, left: float, top: float) -> tuple[list[str], float, float]:
    """A package's picture, its width and its height."""
    ordered = rows(imports)
    widths = [sum(map(_width, modules)) + _BETWEEN * (len(modules) - 1) for modules in ordered]
    total_width = max([*widths, len(package) * _HEADING_CHARACTER])
    places: dict[str, tuple[float, float]] = {}
    for number, (modules, width) in enumerate(zip(ordered, widths, strict=True)):
        x = left + (total_width - width) / 2
        for module in modules:
            places[module] = (x + _width(module) / 2, top + _HEADING + number * _ROW)
            x += _width(module) + _BETWEEN
    parts = [
        (
            f'<text x="{left + total_width / 2:.1f}" y="{top + 16:.1f}" font-size="15" font-weight="bold"'
            f' text-anchor="middle">{package}</text>'
        )
    ]
    for module, other in arrows(imports):
        (x, y), (to_x, to_y) = places[module], places[other]
        parts.append(
            f'<path d="M{x:.1f} {y + _HIGH:.1f} L{to_x:.1f} {to_y:.1f}" stroke="#68707c" stroke-width="0.8"'
            f' marker-end="url(#tip)"><title>{module} imports {other}</title></path>'
        )
    for module, (x, y) in sorted(places.items()):
        wide = _width(module)
        parts += [
            (
                f'<rect x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_HIGH:.0f}" rx="4" fill="#e5f1ed"'
                ' stroke="#175c4c"/>'
            ),
            f'<text x="{x:.1f}" y="{y + 15:.1f}" text-anchor="middle">{module}</text>',
        ]
    return parts, total_width, _HEADING + len(ordered) * _ROW


def _width(module: str) -> float:
    return len(module) * _CHARACTER + 2 * _PADDING


def main() -> int:
    """Write the picture; 1 when there is a circle."""
    try:
        FILE.write_text(drawn())
    except Circle as circle:
        print(circle, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
