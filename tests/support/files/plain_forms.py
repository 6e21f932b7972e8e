"""Forms without form fields: pages with lines, boxes and labels, in twelve languages, as three programs make them.

What stands on them was written as a form says it in each language, without looking at the words that detection knows.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape

import pikepdf

from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.paper.transparent import append_sheet, saved
from services.rendering.jobs.pdf.geometry import Rectangle, upright_page
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.layout import Style, layout
from tests.support.files.docx_files import docx, paragraph

WIDTH, HEIGHT = 595.0, 842.0
_BLACK = (0.0, 0.0, 0.0)
_ROOM = 480.0

Expected = tuple[str, str]
"""What a field is to be called, and its type."""


@dataclass(frozen=True)
class Wording:
    """What an agreement says. ``first`` and ``second`` are the parties; ``born`` is the date of birth, ``agree`` stands beside a
    box."""

    title: str
    intro: str
    name: str
    address: str
    born: str
    phone: str
    email: str
    amount: str
    signature: str
    date: str
    agree: str
    first: str
    second: str


WORDINGS = {
    "en": Wording(
        "Rental agreement",
        "The parties agree on what follows. Each page of this paper belongs to it.",
        *("Full name", "Address", "Date of birth", "Telephone", "E-mail", "Monthly rent", "Signature", "Date"),
        *("I have read the house rules", "Landlord", "Tenant"),
    ),
    "de": Wording(
        "Mietvertrag",
        "Die Parteien vereinbaren, was folgt. Jede Seite dieses Papiers gehört dazu.",
        *(
            "Vor- und Nachname",
            "Anschrift",
            "Geburtsdatum",
            "Telefon",
            "E-Mail",
            "Monatsmiete",
            "Unterschrift",
            "Datum",
        ),
        *("Ich habe die Hausordnung gelesen", "Vermieter", "Mieter"),
    ),
    "fr": Wording(
        "Contrat de location",
        "Les parties conviennent de ce qui suit. Chaque page de ce document en fait partie.",
        *(
            "Nom et prénom",
            "Adresse",
            "Date de naissance",
            "Téléphone",
            "Courriel",
            "Montant du loyer",
            "Signature",
            "Date",
        ),
        *("J'ai lu le règlement intérieur", "Bailleur", "Locataire"),
    ),
    "es": Wording(
        "Contrato de arrendamiento",
        "Las partes acuerdan lo que sigue. Cada hoja de este documento forma parte de él.",
        *(
            "Nombre y apellidos",
            "Domicilio",
            "Fecha de nacimiento",
            "Teléfono",
            "Correo electrónico",
            "Importe mensual",
        ),
        *("Firma", "Fecha", "He leído las normas de la casa", "Arrendador", "Arrendatario"),
    ),
    "it": Wording(
        "Contratto di locazione",
        "Le parti convengono quanto segue. Ogni pagina di questo documento ne fa parte.",
        *("Nome e cognome", "Indirizzo", "Data di nascita", "Telefono", "E-mail", "Canone mensile", "Firma", "Data"),
        *("Ho letto il regolamento", "Locatore", "Conduttore"),
    ),
    "pt": Wording(
        "Contrato de arrendamento",
        "As partes acordam o seguinte. Cada página deste documento faz parte dele.",
        *("Nome completo", "Morada", "Data de nascimento", "Telefone", "E-mail", "Renda mensal", "Assinatura", "Data"),
        *("Li o regulamento", "Senhorio", "Inquilino"),
    ),
    "nl": Wording(
        "Huurovereenkomst",
        "Partijen komen overeen wat volgt. Elke bladzijde van dit stuk hoort erbij.",
        *(
            "Voor- en achternaam",
            "Adres",
            "Geboortedatum",
            "Telefoonnummer",
            "E-mailadres",
            "Huurprijs",
            "Handtekening",
        ),
        *("Datum", "Ik heb het huisreglement gelezen", "Verhuurder", "Huurder"),
    ),
    "pl": Wording(
        "Umowa najmu",
        "Strony uzgadniają, co następuje. Każda strona tego dokumentu do niej należy.",
        *(
            "Imię i nazwisko",
            "Adres zamieszkania",
            "Data urodzenia",
            "Telefon",
            "E-mail",
            "Czynsz miesięczny",
            "Podpis",
        ),
        *("Data", "Zapoznałem się z regulaminem", "Wynajmujący", "Najemca"),
    ),
    "cs": Wording(
        "Nájemní smlouva",
        "Strany se dohodly na tom, co následuje. Každá stránka této listiny k ní patří.",
        *("Jméno a příjmení", "Bydliště", "Datum narození", "Telefon", "E-mail", "Měsíční nájemné", "Podpis", "Datum"),
        *("Přečetl jsem si domovní řád", "Pronajímatel", "Nájemce"),
    ),
    "sv": Wording(
        "Hyresavtal",
        "Parterna är överens om följande. Varje sida av detta papper hör till det.",
        *(
            "För- och efternamn",
            "Adress",
            "Födelsedatum",
            "Telefon",
            "E-post",
            "Hyra per månad",
            "Namnteckning",
            "Datum",
        ),
        *("Jag har läst ordningsreglerna", "Hyresvärd", "Hyresgäst"),
    ),
    "da": Wording(
        "Lejekontrakt",
        "Parterne er enige om det følgende. Hver side af dette papir hører til den.",
        *("Fulde navn", "Adresse", "Fødselsdato", "Telefon", "E-mail", "Husleje pr. måned", "Underskrift", "Dato"),
        *("Jeg har læst husordenen", "Udlejer", "Lejer"),
    ),
    "fi": Wording(
        "Vuokrasopimus",
        "Osapuolet sopivat seuraavasta. Jokainen tämän paperin sivu kuuluu siihen.",
        *("Etu- ja sukunimi", "Osoite", "Syntymäaika", "Puhelin", "Sähköposti", "Vuokra kuukaudessa", "Allekirjoitus"),
        *("Päivämäärä", "Olen lukenut järjestyssäännöt", "Vuokranantaja", "Vuokralainen"),
    ),
}


class Paper:
    """Pages that are drawn on. Places are points from the lower left corner."""

    def __init__(self, width: float = WIDTH, height: float = HEIGHT) -> None:
        self._pdf = pikepdf.new()
        self._fonts, self._pictures = FontEmbedder(self._pdf), PictureEmbedder(self._pdf)
        self._page = upright_page(width, height)
        self._canvas = self._new_canvas()

    def _new_canvas(self) -> Canvas:
        return Canvas(self._page, self._fonts, self._pictures)

    def text(self, x: float, y: float, text: str, size: float = 10) -> float:
        """Write a text whose baseline is at about ``y``; where it ends."""
        placed = layout(text, Style(size=size, color=_BLACK, valign="bottom", wrap=False), _ROOM, 1.3 * size)
        self._canvas.text(placed, x, y - 0.27 * size)
        return x + max((line.width for line in placed.lines), default=0.0)

    def line(self, x0: float, y: float, x1: float, width: float = 0.7) -> None:
        """Draw a level line."""
        self._canvas.line(x0, y, x1, y, _BLACK, width)

    def bar(self, x0: float, y: float, x1: float, width: float = 0.7) -> None:
        """Draw a level line as some programs do: as a thin area."""
        self._canvas.fill(Rectangle(x0, y, x1, y + width), _BLACK)

    def box(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a frame with its lower left corner there."""
        self._canvas.frame(Rectangle(x, y, x + width, y + height), _BLACK, 0.7)

    def circle(self, x: float, y: float, size: float) -> None:
        """Draw a circle in a square with its lower left corner there."""
        self._canvas.circle(Rectangle(x, y, x + size, y + size), _BLACK, 0.7)

    def upright(self, x: float, y0: float, y1: float) -> None:
        """Draw an upright line."""
        self._canvas.line(x, y0, x, y1, _BLACK, 0.7)

    def shade(self, x: float, y: float, width: float, height: float, lightness: float) -> None:
        """Paint an area in grey."""
        self._canvas.fill(Rectangle(x, y, x + width, y + height), (lightness, lightness, lightness))

    def end_page(self) -> None:
        """Go on with another page."""
        append_sheet(self._pdf, self._canvas)
        self._canvas = self._new_canvas()

    def pdf(self) -> bytes:
        """All pages as a file."""
        self.end_page()
        self._fonts.finish()
        return saved(self._pdf)


@contextmanager
def paper(into: list[bytes]) -> Iterator[Paper]:
    """Draw on a page; the file goes into the list."""
    page = Paper()
    yield page
    into.append(page.pdf())


def expected(wording: Wording) -> list[Expected]:
    """Return what is to be found on each of the agreements."""
    return [
        (wording.name, "text"),
        (wording.address, "text"),
        (wording.born, "date"),
        (wording.phone, "phone"),
        (wording.email, "text"),
        (wording.amount, "number"),
        (wording.agree, "checkbox"),
        (wording.signature, "signature"),
        (wording.signature, "signature"),
        (wording.date, "date"),
        (wording.date, "date"),
    ]


def drawn_agreement(wording: Wording) -> bytes:
    """The agreement by a program that draws lines and frames."""
    page = Paper()
    page.text(60, 770, wording.title, 18)
    page.line(60, 762, 535)
    page.text(60, 735, wording.intro)
    for number, label in enumerate((wording.name, wording.address)):
        end = page.text(60, 700 - 26 * number, f"{label}:")
        page.line(end + 6, 698 - 26 * number, 520)
    end = page.text(60, 648, f"{wording.born}:")
    page.bar(end + 6, 646, 290)
    end = page.text(310, 648, wording.phone)
    page.bar(end + 6, 646, 520)
    page.text(60, 606, wording.email)
    page.box(60, 582, 220, 20)
    page.text(310, 606, wording.amount)
    page.box(310, 582, 210, 20)
    page.box(60, 540, 10, 10)
    page.text(76, 541, wording.agree)
    for x, party in ((60, wording.first), (320, wording.second)):
        page.text(x, 480, party, 11)
        page.line(x, 430, x + 200)
        page.text(x, 419, wording.signature, 8)
        page.line(x, 380, x + 120)
        page.text(x, 369, wording.date, 8)
    page.line(60, 60, 535, 0.4)
    page.text(60, 48, f"{wording.title} 1/1", 7)
    return page.pdf()


def laid_out_agreement(wording: Wording) -> str:
    """The agreement as HTML: blanks are spans with a lower border, a table has empty cells."""

    def blank(label: str, width: int) -> str:
        return f'<p>{escape(label)}: <span class="blank" style="width:{width}px"></span></p>'

    def signed(party: str) -> str:
        return (
            f'<div class="party"><p><b>{escape(party)}</b></p><div class="line"></div>'
            f"<small>{escape(wording.signature)}</small>"
            f'<div class="line"></div><small>{escape(wording.date)}</small></div>'
        )

    rows = "".join(
        f"<tr><td>{escape(label)}</td><td></td></tr>" for label in (wording.phone, wording.email, wording.amount)
    )
    return (
        "<style>body{font:11pt 'Liberation Sans',sans-serif}.blank{display:inline-block;border-bottom:1px solid;height:16px}"
        "table{border-collapse:collapse;width:100%}td{border:1px solid;padding:5px}td:first-child{width:40%}"
        ".party{display:inline-block;width:45%;margin-right:4%}.line{border-bottom:1px solid;height:44px}"
        "h1{border-bottom:2px solid;font-size:18pt}a{text-decoration:underline}</style>"
        f"<h1>{escape(wording.title)}</h1><p>{escape(wording.intro)} <a href='https://example.com'>example.com</a></p>"
        f"{blank(wording.name, 380)}{blank(wording.address, 380)}{blank(wording.born, 160)}<table>{rows}</table>"
        f"<p>☐ {escape(wording.agree)}</p>{signed(wording.first)}{signed(wording.second)}"
    )


def typed_agreement(wording: Wording) -> bytes:
    """The agreement as a Word document: underscores, dotted tab leaders, and a table whose cells have labels."""

    def leader(kind: str, *stops: int) -> str:
        return (
            "<w:tabs>"
            + "".join(f'<w:tab w:val="left" w:leader="{kind}" w:pos="{stop}"/>' for stop in stops)
            + "</w:tabs>"
        )

    tab = "<w:r><w:tab/></w:r>"
    cells = "".join(
        f'<w:tc><w:tcPr><w:tcW w:w="3000" w:type="dxa"/></w:tcPr>{paragraph(label)}{paragraph("")}</w:tc>'
        for label in (wording.phone, wording.email, wording.amount)
    )
    borders = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:color="000000"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    grid = '<w:gridCol w:w="3000"/>' * 3
    table = (
        f'<w:tbl><w:tblPr><w:tblW w:w="9000" w:type="dxa"/><w:tblBorders>{borders}</w:tblBorders></w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid><w:tr>{cells}</w:tr></w:tbl>"
    )
    underline = "_" * 24
    return docx(
        paragraph(wording.title),
        paragraph(wording.intro),
        paragraph(f"{wording.name}: {'_' * 40}"),
        paragraph(f"{wording.address}:", tab, properties=leader("dot", 9000)),
        paragraph(f"{wording.born}: ___/___/______"),
        table,
        paragraph(f"[  ] {wording.agree}"),
        paragraph(""),
        *(
            paragraph(text)
            for party in (wording.first, wording.second)
            for text in (party, "", underline, wording.signature, "", underline, wording.date, "")
        ),
    )


def document(pages: int, page: bytes) -> bytes:
    """A file of so many copies of a one-page one."""
    with pikepdf.open(io.BytesIO(page)) as source, pikepdf.new() as pdf:
        for _ in range(pages):
            pdf.pages.extend(source.pages)
        return saved(pdf)
