"""Makes docs/sealed.png, the picture in the README, from what `make demo` left in var/demo/results.

make demo && .venv/bin/python -m docs.programs.make_picture        (needs chromium and poppler-utils)
"""

import base64
import html
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "var" / "demo" / "results"
TARGET = ROOT / "docs" / "sealed.png"

PAGE = """<!doctype html><meta charset=utf-8><style>
 body {{ margin: 0; background: #e9edf2; font: 15px/1.5 'Liberation Sans', sans-serif; color: #1b2130;
        width: 1600px; height: 860px; overflow: hidden; position: relative }}
 img {{ position: absolute; height: 800px; top: 30px; box-shadow: 0 2px 3px #0002, 0 12px 32px #0002; background: white }}
 pre {{ position: absolute; left: 1010px; top: 150px; width: 470px; margin: 0; padding: 22px 24px;
       background: #14202e; color: #d7e3ee; font: 12.5px/1.65 'Liberation Mono', monospace; border-radius: 6px;
       white-space: pre-wrap; box-shadow: 0 12px 32px #0004 }}
 pre b {{ color: #7fe0a8; font-weight: normal }} pre i {{ color: #8fa5ba; font-style: normal }}
</style>
<img style="left:36px" src="data:image/png;base64,{agreement}">
<img style="left:560px;height:760px;top:60px" src="data:image/png;base64,{trail}">
<pre>{checked}</pre>"""


def main() -> None:
    agreement, trail = RESULTS / "Non-disclosure agreement.pdf", RESULTS / "audit-trail.pdf"
    page = PAGE.format(
        agreement=picture(agreement), trail=picture(trail), checked=checked(agreement) + "\n\n" + checked(trail)
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page)
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
             f"--user-data-dir={folder}/profile", "--window-size=1600,860", f"--screenshot={TARGET}", str(source)],
            check=True, capture_output=True,
        )  # fmt: skip


def picture(pdf: Path) -> str:
    """Its first page as a base64 PNG."""
    done = subprocess.run(
        ["pdftoppm", "-png", "-r", "110", "-f", "1", "-l", "1", str(pdf)], check=True, capture_output=True
    )
    return base64.b64encode(done.stdout).decode()


def checked(pdf: Path) -> str:
    """Return what pdfsig prints about it, as HTML."""
    done = subprocess.run(["pdfsig", pdf.name], check=True, capture_output=True, text=True, cwd=pdf.parent)
    keys = (
        "Signer Certificate Common Name",
        "Signing Time",
        "Signature Type",
        "Total document",
        "Signature Validation",
    )
    lines = [line.strip(" -") for line in done.stdout.splitlines() if any(key in line for key in keys)]
    body = "\n".join(html.escape(line) for line in lines)
    for good in ("Signature is Valid.", "Total document signed"):
        body = body.replace(good, f"<b>{good}</b>")
    return f"<i>$ pdfsig {html.escape(pdf.name)}</i>\n{body}"


if __name__ == "__main__":
    main()
