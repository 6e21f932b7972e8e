"""What a child with LibreOffice in it can be asked to do: a DOCX in, a PDF out.

LibreOffice is loaded into the process (LibreOfficeKit, its C interface) and stays: the first document pays for the start,
the next ones only for themselves. It is two million lines that read what strangers wrote: the walls of ``confinement`` stand
before this module is loaded.

The child has a folder of its own (``TMPDIR``), where LibreOffice keeps its throw-away profile and the files come and go; the
parent removes it.
"""

import ctypes
import errno
import os
import resource
import shutil
import signal
from pathlib import Path
from typing import Any

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol import messages
from services.rendering.protocol.messages import OneFile

LIBRARY = "libmergedlo.so"

_LARGEST_FILE = 200 * 2**20
_ROOM = 16 * 2**20
_LOAD_OPTIONS = b"Batch=true,Language=en-US,MacroSecurityLevel=3"
_SAVE_OPTIONS = (
    b'{"ExportFormFields":{"type":"boolean","value":"false"},'
    b'"ExportBookmarks":{"type":"boolean","value":"false"},'
    b'"ReduceImageResolution":{"type":"boolean","value":"false"},'
    b'"Quality":{"type":"long","value":"92"}}'
)
_DESTROY, _DOCUMENT_SAVE_AS = 1, 2
_KIT_ERROR, _KIT_LOAD = 3, 4
"""Places in the tables of LibreOfficeKit.h, which only ever grow at their end."""


@messages.CONVERT.done_by
def convert(request: OneFile) -> OneFile:
    """Lay a DOCX out as the pages of a PDF."""
    source, target = _folder / "document.docx", _folder / "document.pdf"
    try:
        source.write_bytes(request.data)
        _save(source, target)
        return OneFile(target.read_bytes())
    except Refused as refused:
        # LibreOffice does not say why it cannot write.
        if shutil.disk_usage(_folder).free < _ROOM:
            raise OSError(errno.ENOSPC, "no room for the files of a conversion") from refused
        raise
    finally:
        source.unlink(missing_ok=True)
        target.unlink(missing_ok=True)


def is_spent() -> bool:
    """Return whether a document brought fonts along. LibreOffice keeps them until it ends, and by whatever name they came they
    would draw the next document, which is somebody else's: a 9 where it says 1. Where it puts them is up to the font's name."""
    try:
        return next(_folder.rglob("*.ttf"), None) is not None
    except OSError:
        return True


def _save(source: Path, target: Path) -> None:
    document = _method(_kit, _KIT_LOAD, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(
        _kit, source.as_uri().encode(), _LOAD_OPTIONS
    )
    if not document:
        raise Refused("The DOCX cannot be opened: it is damaged or no Word document.")
    try:
        save = _method(document, _DOCUMENT_SAVE_AS, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)
        if not save(document, target.as_uri().encode(), b"pdf", _SAVE_OPTIONS) or not target.exists():
            raise Refused("The DOCX cannot be laid out as pages.")
    finally:
        _method(document, _DESTROY, None)(document)


def _method(instance: int, place: int, result: Any, *arguments: Any) -> Any:
    """A function from the table that the instance's first word points to."""
    table = ctypes.cast(instance, ctypes.POINTER(ctypes.c_void_p))[0]
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[place]
    return ctypes.CFUNCTYPE(result, ctypes.c_void_p, *arguments)(address)


def _be_quiet() -> None:
    """It tells the terminal about every oddity of a document."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _start(folder: Path, programs: Path) -> int:
    """LibreOffice, ready: the address of its LibreOfficeKit."""
    hook = ctypes.CDLL(str(programs / LIBRARY)).libreofficekit_hook_2
    hook.restype, hook.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
    kit = hook(str(programs).encode(), (folder / "profile").as_uri().encode())
    if not kit:
        raise RuntimeError("LibreOffice does not start")
    for number in (signal.SIGXCPU, signal.SIGALRM):  # It has handlers of its own for what must end the process.
        signal.signal(number, signal.SIG_DFL)
    return int(kit)


_folder = Path(os.environ["TMPDIR"])
_programs = Path(os.environ["OFFICE_DIR"])
os.environ["FONTCONFIG_FILE"] = str(Path(__file__).with_name("office_fonts.conf"))
resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
_be_quiet()
_kit = _start(_folder, _programs)
