"""The five styles of a typed signature. Whatever the script of the name, no two of them look alike."""

from typing import NamedTuple

from services.rendering.jobs.text.fonts import SCRIPT_FAMILY, hand_for


class Hand(NamedTuple):
    """A family of fonts, and how its letters are formed: ``slant`` to the right for each unit of height, ``stretch`` in width,
    ``weight`` that is added to each line, in sizes of the font."""

    family: str = SCRIPT_FAMILY
    slant: float = 0.0
    stretch: float = 1.0
    weight: float = 0.0


_STYLES: tuple[tuple[tuple[str, ...], Hand], ...] = (
    ((), Hand()),
    (
        ("MarckScript-Regular", "Dekko-Regular", "Solitreo-Regular", "MaShanZheng-Regular", "NotoNastaliqUrdu-Regular"),
        Hand(slant=0.3),
    ),
    (("Caveat-Regular", "BadScript-Regular", "Amita-Regular", "ZhiMangXing-Regular"), Hand(slant=-0.2, stretch=0.75)),
    (("BadScript-Regular", "Charm-Regular", "NanumPenScript-Regular"), Hand(slant=0.1, weight=0.035)),
    (("Sriracha-Regular", "Kalam-Regular"), Hand(slant=-0.1, stretch=1.4)),
)
"""Of each style the fonts that it is written in, and how the font of the first style is written where there is none of them."""


def hands_for(text: str) -> list[Hand]:
    """Return how the signature is written in each style: in the first of the style's fonts that has all of its letters and that
    no style before is written in, else in the font of the first style, in another form."""
    usual = hand_for(text)
    fonts_in_use = {usual.name if usual else ""}
    hands = []
    for names, otherwise in _STYLES:
        font = next((name for name in names if name not in fonts_in_use and _has_all(name, text)), None)
        fonts_in_use.add(font or "")
        hands.append(Hand(font) if font else otherwise)
    return hands


def _has_all(name: str, text: str) -> bool:
    font = hand_for(text, name)
    return font is not None and font.name == name
