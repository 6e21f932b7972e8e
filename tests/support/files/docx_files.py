"""DOCX files for tests, written by hand: every part says what the test wants and nothing else."""

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_NAMESPACES = (
    f'xmlns:w="{WORD}" xmlns:r="{_OFFICE}/relationships" xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:o="urn:schemas-microsoft-com:office:office"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
_STYLES = (
    '<w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="{font}" w:hAnsi="{font}" w:cs="{font}"/>'
    '<w:sz w:val="{half}"/></w:rPr></w:rPrDefault></w:docDefaults>'
    '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Middle"><w:name w:val="Middle"/><w:basedOn w:val="Normal"/>'
    '<w:pPr><w:jc w:val="center"/></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Inner"><w:name w:val="Inner"/><w:basedOn w:val="Middle"/></w:style>'
)
_SECTION = (
    '<w:sectPr>{references}<w:pgSz w:w="11906" w:h="16838"/>'
    '<w:pgMar w:top="1440" w:right="1134" w:bottom="1440" w:left="1134" w:header="709" w:footer="709" w:gutter="0"/></w:sectPr>'
)


def run(text: str, properties: str = "") -> str:
    """``properties``: what stands inside ``w:rPr``."""
    inside = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{inside}<w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def paragraph(*runs: str, properties: str = "") -> str:
    """Plain strings become runs; what begins with ``<`` is XML already."""
    inside = f"<w:pPr>{properties}</w:pPr>" if properties else ""
    return f"<w:p>{inside}{''.join(one if one.startswith('<') else run(one) for one in runs)}</w:p>"


def table(*rows: list[str]) -> str:
    """Cells are paragraphs, or texts of one."""
    lines = "".join(f"<w:tr>{''.join(_cell(cell) for cell in row)}</w:tr>" for row in rows)
    grid = "".join('<w:gridCol w:w="3000"/>' for _ in rows[0])
    return f'<w:tbl><w:tblPr><w:tblW w:w="9000" w:type="dxa"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{lines}</w:tbl>'


def text_box(*paragraphs: str) -> str:
    """A run with a text box in it, as Word of old writes it."""
    return (
        '<w:r><w:pict><v:shape id="box" style="width:200pt;height:60pt" type="#t"><v:textbox><w:txbxContent>'
        f"{''.join(paragraphs)}</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
    )


def docx(
    *body: str,
    header: str = "",
    footer: str = "",
    footnotes: Mapping[int, str] | None = None,
    font: str = "Liberation Serif",
    size: float = 12,
    parts: Mapping[str, bytes] | None = None,
    relationships: str = "",
    main_type: str = f"{_TYPE}.document.main+xml",
) -> bytes:
    """A Word document on A4. ``relationships`` and ``parts`` are added as they stand."""
    files: dict[str, str] = {}
    own = [("styles", "styles.xml"), *([("footnotes", "footnotes.xml")] if footnotes else [])]
    references = ""
    for kind, content in (("header", header), ("footer", footer)):
        if content:
            own.append((kind, f"{kind}.xml"))
            references += f'<w:{kind}Reference w:type="default" r:id="own{len(own)}"/>'
            files[f"word/{kind}.xml"] = _part("hdr" if kind == "header" else "ftr", content)
    files["word/styles.xml"] = _part("styles", _STYLES.format(font=font, half=round(size * 2)))
    if footnotes:
        notes = "".join(f'<w:footnote w:id="{number}">{content}</w:footnote>' for number, content in footnotes.items())
        files["word/footnotes.xml"] = _part("footnotes", notes)
    section = _SECTION.format(references=references)
    files["word/document.xml"] = _part("document", f"<w:body>{''.join(body)}{section}</w:body>")
    links = "".join(
        f'<Relationship Id="own{number}" Type="{_OFFICE}/relationships/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(own, 1)
    )
    files["word/_rels/document.xml.rels"] = _relationships(links + relationships)
    files["_rels/.rels"] = _relationships(
        f'<Relationship Id="main" Type="{_OFFICE}/relationships/officeDocument" Target="word/document.xml"/>'
    )
    files["[Content_Types].xml"] = _content_types(main_type, own)
    return zipped({**{name: text.encode() for name, text in files.items()}, **(parts or {})})


def relationship(kind: str, target: str, *, id_: str = "more", external: bool = False) -> str:
    mode = ' TargetMode="External"' if external else ""
    return f'<Relationship Id="{id_}" Type="{_OFFICE}/relationships/{kind}" Target={quoteattr(target)}{mode}/>'


def zipped(parts: Mapping[str, bytes]) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return output.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _cell(content: str) -> str:
    inside = content if content.startswith(("<w:p>", "<w:tbl>")) else paragraph(content)
    return f'<w:tc><w:tcPr><w:tcW w:w="3000" w:type="dxa"/></w:tcPr>{inside}</w:tc>'


def _part(name: str, content: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:{name} {_NAMESPACES}>{content}</w:{name}>'


def _relationships(content: str) -> str:
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{content}</Relationships>'
    )


def _content_types(main: str, own: list[tuple[str, str]]) -> str:
    overrides = "".join(
        f'<Override PartName="/word/{target}" ContentType="{_TYPE}.{kind}+xml"/>' for kind, target in own
    )
    return (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/>{overrides}</Types>'
    )
