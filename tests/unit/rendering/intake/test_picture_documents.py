"""A picture sent as a document becomes a page that looks like it, upright, and takes nothing else along."""

import io
import re
import struct
import zlib
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageCms

from contracts.types import PageSize
from services.rendering.children import tasks
from services.rendering.jobs.intake import picture_documents
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures import data as picture_data
from services.rendering.jobs.pictures.jpeg_data import bare_jpeg
from services.rendering.jobs.pictures.kind import picture_kind
from services.rendering.protocol import messages
from services.rendering.protocol.messages import Prepared
from tests.support.files import pdf_files
from tests.support.files.picture_files import BLUE, GREEN, RED, SIZE, WHITE, heic, marked, picture


def take(data: bytes, *, most_bytes: int = 2**24) -> tuple[Prepared, bytes]:
    limits = messages.Limits(most_bytes, 3)
    prepared = tasks.prepare_pdf(messages.PreparePdf(data, "photo", limits, remove_tags=True, flatten=False))
    return prepared, prepared.file


def notices(result: Prepared) -> dict[str, str]:
    return {notice.code: notice.message for notice in result.report}


def drawn(data: bytes, page: int = 0) -> Image.Image:
    """The page, 320 pixels wide."""
    with pdfium.PdfDocument(data) as document:
        opened = document[page]
        image: Image.Image = opened.render(scale=320 / opened.get_width()).to_pil().convert("RGB")
        opened.close()
    return image


def corners(image: Image.Image) -> list[tuple[int, ...]]:
    """Top left, top right, bottom left, bottom right, each channel rounded to 0, 128 or 255."""
    right, bottom = image.width - 10, image.height - 10
    found = [image.getpixel(point) for point in ((10, 10), (right, 10), (10, bottom), (right, bottom))]
    return [tuple(min(255, round(value / 128) * 128) for value in pixel) for pixel in found if isinstance(pixel, tuple)]


def stored_picture(data: bytes) -> tuple[pikepdf.Pdf, Any]:
    pdf = pikepdf.open(io.BytesIO(data))
    return pdf, pdf.pages[0].obj.Resources.XObject.Picture


COLOURED = [RED, GREEN, BLUE, WHITE]
JPEG_KEPT, ANEW = "taken over without being encoded anew", "encoded anew"


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_a_picture_stands_upright_whichever_way_the_camera_was_held(form: str, orientation: int) -> None:
    result, file = take(picture(form, orientation))
    assert result.pages == [PageSize(width=595.0, height=446.25)]
    assert corners(drawn(file)) == COLOURED


@pytest.mark.parametrize(
    ("size", "page"),
    [
        ((400, 300), (595.0, 446.25)),
        ((300, 400), (595.0, 793.333)),
        ((300, 600), (421.0, 842.0)),
        ((1190, 1684), (595.0, 842.0)),
        ((10, 10), (595.0, 595.0)),
    ],
)
def test_the_page_is_the_picture_scaled_to_fit_a4(size: tuple[int, int], page: tuple[float, float]) -> None:
    result, _ = take(picture("PNG", image=marked(size)))
    assert [(one.width, one.height) for one in result.pages] == [page]


def test_heic_of_a_telephone() -> None:
    result, file = take(heic())
    assert result.pages == [PageSize(width=595.0, height=446.25)]
    assert corners(drawn(file)) == COLOURED
    assert "HEIC picture of 64 x 48 pixels" in notices(result)["picture_converted"]
    assert b"Nowhere" not in file


@pytest.mark.parametrize(
    "data",
    [picture("JPEG", 6), picture("JPEG", progressive=True), picture("JPEG", image=marked().convert("L"))],
    ids=["turned", "progressive", "grey"],
)
def test_the_data_of_a_jpeg_stay_as_they_are_and_nothing_else_of_it_does(data: bytes) -> None:
    behind = data + b"SECOND PICTURE"
    result, file = take(behind)
    assert JPEG_KEPT in notices(result)["picture_converted"]
    pdf, stored = stored_picture(file)
    with pdf:
        kept = stored.read_raw_bytes()
        assert stored.Filter == "/DCTDecode"
    scan = data[data.rindex(b"\xff\xda") :]
    assert kept.endswith(scan)
    assert [word for word in (b"Exif", b"Secret Camera", b"SECOND") if word in file] == []
    with Image.open(io.BytesIO(kept)) as again, Image.open(io.BytesIO(data)) as before:
        assert again.tobytes() == before.tobytes()


def test_comments_and_further_pictures_of_a_jpeg_are_left_out() -> None:
    data = picture("JPEG", comment=b"for nobody") + picture("JPEG")
    bare = bare_jpeg(data)
    assert bare is not None
    assert b"for nobody" not in bare.data
    assert bare.data.count(b"\xff\xd8") == bare.data.count(b"\xff\xd9") == 1


def with_first_frame(data: bytes, marker: int) -> bytes:
    at = data.index(b"\xff\xc0")
    return data[: at + 1] + bytes([marker]) + data[at + 2 :]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8no marker",
        picture("JPEG")[:-2],
        picture("JPEG")[:300],
        with_first_frame(picture("JPEG"), 0xC9),
        picture("JPEG").replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c"),
    ],
    ids=["nothing", "start", "empty", "no marker", "no end", "cut off", "arithmetic", "12 bits"],
)
def test_what_a_pdf_cannot_hold_is_not_taken_for_a_jpeg(data: bytes) -> None:
    assert bare_jpeg(data) is None


def test_inks_of_a_jpeg_look_as_they_did() -> None:
    result, file = take(picture("JPEG", image=marked().convert("CMYK")))
    assert JPEG_KEPT in notices(result)["picture_converted"]
    red, green, blue, white = corners(drawn(file))
    assert white == WHITE
    assert (red[0], blue[2]) == (255, 128)  # as far as inks can be told
    assert green[0] == 0


PNGS: dict[str, tuple[Image.Image, dict[str, Any], bool]] = {
    "RGB": (marked(), {}, True),
    "grey": (marked().convert("L"), {}, True),
    "black and white": (marked().convert("1", dither=Image.Dither.NONE), {}, True),
    "palette": (marked().convert("P"), {}, True),
    "palette of four": (marked().quantize(4), {}, True),
    "transparent colour": (marked(), {"transparency": WHITE}, False),
    "16 bits": (marked().convert("L").convert("I").point(lambda value: value * 257).convert("I;16"), {}, False),
}


@pytest.mark.parametrize("name", PNGS)
def test_png_of_every_kind(name: str) -> None:
    image, options, kept = PNGS[name]
    result, file = take(picture("PNG", image=image, **options))
    assert (JPEG_KEPT in notices(result)["picture_converted"]) is kept
    expected = image.convert("RGB") if image.mode != "I;16" else marked().convert("L").convert("RGB")
    assert corners(drawn(file)) == corners(expected.resize((320, 240), Image.Resampling.NEAREST))
    if kept:
        pdf, stored = stored_picture(file)
        with pdf:
            assert stored.read_raw_bytes() in picture("PNG", image=image, **options)


def test_an_interlaced_png_is_encoded_anew() -> None:
    data = interlaced_png()
    with Image.open(io.BytesIO(data)) as image:
        assert image.info.get("interlace") == 1
    result, file = take(data)
    assert "encoded anew without loss" in notices(result)["picture_converted"]
    assert drawn(file).getpixel((160, 160)) == (0, 128, 255)


def interlaced_png() -> bytes:
    """One pixel, which is the first pass of seven."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 1)
    pixels = zlib.compress(b"\0\x00\x80\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize("form", ["PNG", "WEBP", "TIFF"])
def test_what_is_transparent_shows_paper(form: str) -> None:
    image = marked().convert("RGBA")
    image.putalpha(Image.new("L", SIZE, 255))
    image.paste((0, 0, 0, 0), (32, 0, 64, 48))
    options = {"lossless": True} if form == "WEBP" else {}
    _, file = take(picture(form, image=image, **options))
    assert corners(drawn(file)) == [RED, WHITE, BLUE, WHITE]


def test_a_picture_that_lost_something_already_is_not_blown_up() -> None:
    lossy, lossless = take(picture("WEBP"))[0], take(picture("WEBP", lossless=True))[0]
    assert "JPEG of quality 90" in notices(lossy)["picture_converted"]
    assert "without loss" in notices(lossless)["picture_converted"]


def test_a_large_photo_without_loss_becomes_a_jpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_data, "_LARGEST_PACKED", 100)
    assert "JPEG of quality 90" in notices(take(picture("TIFF"))[0])["picture_converted"]


def test_the_colours_of_a_wide_gamut_stay() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for data in (picture("JPEG", icc_profile=profile), picture("WEBP", icc_profile=profile)):
        pdf, stored = stored_picture(take(data)[1])
        with pdf:
            assert stored.ColorSpace[0] == "/ICCBased"
            assert stored.ColorSpace[1].read_bytes() == profile
    for wrong in (b"x" * 200, profile[:-4], profile.replace(b"RGB ", b"CMYK", 1)):
        pdf, stored = stored_picture(take(picture("JPEG", icc_profile=wrong))[1])
        with pdf:
            assert stored.ColorSpace == "/DeviceRGB"


def test_each_page_of_a_tiff_is_a_page() -> None:
    scan = marked((60, 80)).convert("1", dither=Image.Dither.NONE)
    data = picture("TIFF", image=scan, save_all=True, append_images=[marked()])
    result, file = take(data)
    assert [round(page.height) for page in result.pages] == [793, 446]
    assert corners(drawn(file, 1)) == COLOURED
    assert "The 2 pictures of the TIFF file became a page each" in notices(result)["picture_converted"]


@pytest.mark.parametrize("bits", ["1", "L", "P", "RGB", "RGBA"])
def test_bitmaps(bits: str) -> None:
    image = marked().convert(bits, dither=Image.Dither.NONE if bits == "1" else None)
    result, file = take(picture("BMP", image=image))
    assert "without loss" in notices(result)["picture_converted"]
    with pikepdf.open(io.BytesIO(file)) as pdf:
        assert pdf.pages[0].obj.Resources.XObject.Picture.Width == SIZE[0]
    if bits in ("P", "RGB", "RGBA"):
        assert corners(drawn(file)) == COLOURED


def test_of_a_picture_that_moves_the_first_frame_counts() -> None:
    result, file = take(picture("GIF", save_all=True, append_images=[marked().rotate(90)]))
    assert corners(drawn(file)) == COLOURED
    assert "the first of its 2 frames" in notices(result)["picture_frames_dropped"]


def test_kinds_are_told_by_content() -> None:
    kinds = {form: picture_kind(picture(form)) for form in ("JPEG", "PNG", "WEBP", "AVIF", "TIFF", "GIF", "BMP", "ICO")}
    assert kinds == {
        "JPEG": "JPEG",
        "PNG": "PNG",
        "WEBP": "WebP",
        "TIFF": "TIFF",
        "GIF": "GIF",
        "BMP": "BMP",
        "AVIF": "AVIF",
        "ICO": None,
    }
    assert picture_kind(heic()) == "HEIC"
    assert picture_kind(b"\0\0\0\x20ftypisom" + bytes(20)) is None, "a film"
    assert picture_kind(b"BMW is no bitmap, and this is no picture") is None
    assert picture_kind(b"<svg xmlns='http://www.w3.org/2000/svg'/>") is None
    assert picture_kind(pdf_files.document()) is None


def bomb(form: str, size: tuple[int, int] = (8_000, 6_000)) -> bytes:
    out = io.BytesIO()
    Image.new("1", size).save(out, form, **({"compression": "group4"} if form == "TIFF" else {}))
    return out.getvalue()


REFUSED: dict[str, tuple[bytes, str]] = {
    "PNG of 48 million pixels": (bomb("PNG"), "more than 40 million pixels"),
    "TIFF of 48 million pixels": (bomb("TIFF"), "more than 40 million pixels"),
    "cut off JPEG": (picture("JPEG")[:600], "The JPEG picture is damaged."),
    "cut off PNG": (picture("PNG")[:200], "The PNG picture is damaged."),
    "cut off WebP": (picture("WEBP")[:100], "The WebP picture is damaged."),
    "cut off HEIC": (heic()[:700], "The HEIC picture is damaged."),
    "only the beginning of HEIC": (b"\0\0\0\x18ftypheic" + bytes(12), "The HEIC picture is damaged."),
    "cut off AVIF": (picture("AVIF")[:400], "The AVIF picture is damaged."),
    "only the beginning of AVIF": (b"\0\0\0\x1cftypavif" + bytes(16), "The AVIF picture is damaged."),
    "cut off BMP": (picture("BMP")[:900], "The BMP picture is damaged."),
    "BMP of 48 million pixels": (bomb("BMP"), "more than 40 million pixels"),
    "BMP that says so": (picture("BMP")[:18] + b"\xff\xff\xff\x7f" * 2 + picture("BMP")[26:], "million pixels"),
    "only the beginning of PNG": (b"\x89PNG\r\n\x1a\n", "The PNG picture is damaged."),
    "cut off GIF": (b"GIF89a" + bytes(100), "The GIF picture is damaged."),
    "a thread": (picture("PNG", image=Image.new("L", (1, 500))), "The picture is too long and narrow to be a page."),
    "too many pages": (
        picture("TIFF", save_all=True, append_images=[marked()] * 3),
        "The TIFF has 4 pages; at most 3 are allowed.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_why(case: str) -> None:
    data, sentence = REFUSED[case]
    with pytest.raises(Refused, match=re.escape(sentence)):
        take(data)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = picture("PNG")
    with pytest.raises(Refused, match="The file is larger than 0 MB"):
        take(data, most_bytes=len(data) - 1)
    monkeypatch.setattr(tasks, "_AROUND_A_PICTURE", 0)
    with pytest.raises(Refused, match="As a PDF the PNG file is larger than 0 MB"):
        take(data, most_bytes=len(data))
    monkeypatch.setattr(picture_documents, "MOST_DATA", 5_000)
    with pytest.raises(Refused, match="The pages of the TIFF expand to more than 0 MB"):
        take(picture("TIFF", image=marked().convert("L"), save_all=True, append_images=[marked().convert("L")]))
    monkeypatch.setattr(picture_documents, "_MOST_PIXELS_OF", {"WebP": 1_000})
    with pytest.raises(Refused, match="The WebP picture has more than 0 million pixels"):
        take(picture("WEBP"))
