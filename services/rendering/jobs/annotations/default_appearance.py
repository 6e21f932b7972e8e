"""How the text of a form field or of a free text annotation looks, as its ``/DA`` string says (ISO 32000-2, 12.7.4.3)."""

from services.rendering.jobs.text.layout import BLACK, Color

_LARGEST = 144.0


def default_appearance(text: str) -> tuple[str, float, Color]:
    """Family, size (0: automatic) and colour of a ``/DA`` string such as ``/Helv 10 Tf 0 g``."""
    words = text.split()
    family, size, color = "Helvetica", 0.0, BLACK
    for index, word in enumerate(words):
        numbers = [_number(word) for word in words[max(index - 3, 0) : index]]
        if word == "Tf" and index >= 2:
            name = words[index - 2].lower()
            family = "Times" if "ti" in name[:3] else "Courier" if "cour" in name else "Helvetica"
            size = min(max(numbers[-1], 0.0), _LARGEST)
        elif word == "g" and numbers:
            color = (numbers[-1],) * 3
        elif word == "rg" and len(numbers) == 3:
            color = (numbers[0], numbers[1], numbers[2])
    return family, size, color


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return 0.0
