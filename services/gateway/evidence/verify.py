"""Check the evidence of a Countersign submission. Needs Python 3.8 or later and nothing else.

    python3 verify.py evidence.zip                  hashes, chain of events, statements
    python3 verify.py evidence.zip --openssl        and the signatures, with the program openssl
    python3 verify.py evidence.zip --extract DIR    write out the members, and what openssl needs

``evidence.zip`` may also be a folder that it was unpacked into. Without ``--openssl`` the commands that check the signatures
are printed, for a folder made with ``--extract``. ``--root FILE`` names the root certificate (PEM) that you trust, in place of
the one in the evidence: have it from the installation's page /verify, not from whoever gave you the evidence.

Ends with 0 when everything that was checked holds, 1 when something differs, 2 when the evidence cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.p7s"
TYPE = "countersign evidence"
COMPLETIONS = ("complete_form", "api_complete_form")
REOPENED = "reopen_form"
CHUNK = 1 << 20

_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_DIGESTS = ("sha256", "sha384", "sha512")
_BYTE_RANGE = re.compile(rb"/ByteRange\s*\[\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\]")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_TRAIL_EVENTS = re.compile(rb"/CountersignEvents \((\d{1,9}) ([0-9a-f]{64})\)")
_TRAIL_SEALED = re.compile(rb"/CountersignSealed \(([0-9a-f ]*)\)")
_NO_LINE: Dict[str, Any] = {"data": {}, "event_timestamp": None, "event_type": None, "submitter_id": None}
_BASE_32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


# --- the ZIP: stored, not compressed, each byte of it follows from the members ---------------------------------------------

LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_MOMENT = 0x0021 << 16  # 1980-01-01 00:00, the first that a ZIP can say
_PLAIN_FILE = 0o100644 << 16


def local_header(path: str, checksum: int, size: int) -> bytes:
    """Encode what stands before a member's bytes (APPNOTE 4.3.7). ``checksum`` is its CRC-32."""
    name = path.encode("ascii")
    return LOCAL + struct.pack("<HHHIIIIHH", 20, 0, 0, _MOMENT, checksum, size, size, len(name), 0) + name


def central_header(path: str, checksum: int, size: int, offset: int) -> bytes:
    """Encode a member's line of the directory (APPNOTE 4.3.12). ``offset`` is where its local header begins."""
    name = path.encode("ascii")
    fields = (0x0314, 20, 0, 0, _MOMENT, checksum, size, size, len(name), 0, 0, 0, 0, _PLAIN_FILE, offset)
    return CENTRAL + struct.pack("<HHHHIIIIHHHHHII", *fields) + name


def end_of_directory(count: int, size: int, offset: int) -> bytes:
    """Encode the end (APPNOTE 4.3.16) of a directory of ``count`` members and ``size`` bytes that begins at ``offset``."""
    return END + struct.pack("<HHHHIIH", 0, 0, count, count, size, offset, 0)


# --- reading ---------------------------------------------------------------------------------------------------------------


class Unreadable(Exception):
    """The evidence cannot be read at all."""


class Zip:
    """The members of a ZIP. Raises Unreadable unless the file is, byte for byte, the ZIP of its members."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._places: Dict[str, Tuple[int, int]] = {}
        try:
            self._read(path.stat().st_size)
        except (struct.error, UnicodeError) as error:
            raise Unreadable(f"the ZIP is damaged: {error}") from error

    def _read(self, size: int) -> None:
        length = len(end_of_directory(0, 0, 0))
        end = self._at(size - length, length) if size >= length else b""
        if end[:4] != END:
            raise Unreadable("this is not a ZIP file, or something was added to its end")
        _, _, _, count, directory, offset, _ = struct.unpack("<HHHHIIH", end[4:])
        if end != end_of_directory(count, directory, offset) or offset + directory + length != size:
            raise Unreadable("the end of the ZIP was changed")
        listing, at, place = self._at(offset, directory), 0, 0
        for number in range(1, count + 1):
            checksum, content_size = struct.unpack("<II", listing[at + 16 : at + 24])
            (letters,) = struct.unpack("<H", listing[at + 28 : at + 30])
            name = listing[at + 46 : at + 46 + letters].decode("ascii")
            line, head = central_header(name, checksum, content_size, place), local_header(name, checksum, content_size)
            if listing[at : at + len(line)] != line or self._at(place, len(head)) != head:
                raise Unreadable(f"the ZIP was changed at its entry {number}")
            if not _PATH.fullmatch(name) or name in self._places:
                raise Unreadable(f"the ZIP has a file called {name!r}")
            self._places[name] = (place + len(head), content_size)
            if self._checksum(name) != checksum:
                raise Unreadable(f"{name} was changed: its checksum in the ZIP differs")
            at, place = at + len(line), place + len(head) + content_size
        if at != directory or place != offset:
            raise Unreadable("the ZIP holds more than its directory says")

    def _at(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)

    def _checksum(self, name: str) -> int:
        crc = 0
        for chunk in self.chunks(name):
            crc = zlib.crc32(chunk, crc)
        return crc

    def names(self) -> List[str]:
        return list(self._places)

    def chunks(self, name: str) -> Iterator[bytes]:
        start, remaining = self._places[name]
        while remaining > 0:
            chunk = self._at(start, min(CHUNK, remaining))
            if not chunk:
                raise Unreadable("the ZIP was cut off")
            start, remaining = start + len(chunk), remaining - len(chunk)
            yield chunk


class Folder:
    """The same of a folder that a ZIP was unpacked into."""

    def __init__(self, path: Path) -> None:
        self._root = path

    def names(self) -> List[str]:
        return [path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if path.is_file()]

    def chunks(self, name: str) -> Iterator[bytes]:
        with (self._root / name).open("rb") as file:
            yield from iter(lambda: file.read(CHUNK), b"")


Evidence = Union[Zip, Folder]


def read_member(evidence: Evidence, name: str) -> bytes:
    """Read a member."""
    return b"".join(evidence.chunks(name))


# --- checking --------------------------------------------------------------------------------------------------------------


class Report:
    """Prints what holds and what does not."""

    def __init__(self) -> None:
        self.differs = 0

    def holds(self, text: str) -> None:
        print(f"ok     {text}")

    def wrong(self, text: str) -> None:
        self.differs += 1
        print(f"WRONG  {text}")

    def note(self, text: str) -> None:
        print(f"note   {text}")


def check(evidence: Evidence, report: Report) -> Optional[Dict[str, Any]]:
    """Check everything that needs no cryptography but SHA-256. Returns the manifest, None when it cannot be read."""
    try:
        manifest = _manifest(read_member(evidence, MANIFEST))
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        report.wrong(f"{MANIFEST} cannot be read: {type(error).__name__} {error}")
        return None
    if _members(evidence, manifest, report):
        lines = _chain(evidence, manifest, report)
        _trail(evidence, manifest, lines, report)
        _documents(manifest, lines, report)
        _statements(evidence, manifest, lines, report)
    return manifest


def _json(data: bytes) -> Any:
    def once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a key appears twice")
        return members

    return json.loads(data.decode("utf-8"), object_pairs_hook=once)


def _manifest(data: bytes) -> Dict[str, Any]:
    manifest: Dict[str, Any] = _json(data)
    if manifest["type"] != TYPE or manifest["version"] != 1:
        raise ValueError("it is of another kind or version")
    members_named = [manifest["audit_trail"], manifest["events"]["path"], *manifest["revocation"]]
    members_named += [manifest[key] for key in ("certificates", "root") if manifest[key]]
    members_named += [document[key] for document in manifest["documents"] for key in ("original", "shown", "sealed")]
    members_named += [document["certificates"] for document in manifest["documents"] if document.get("certificates")]
    statements = [statement for party in manifest["parties"] for statement in party["statements"]]
    members_named += [statement[key] for statement in statements for key in ("statement", "signature")]
    missing = [name for name in members_named if name not in manifest["members"]]
    if missing:
        raise ValueError(f"it has no hash of {missing[0]}")
    seconds(manifest["sealed_at"])
    return manifest


def _members(evidence: Evidence, manifest: Dict[str, Any], report: Report) -> bool:
    """Say whether each file is there, and as the manifest has it."""
    members, before = manifest["members"], report.differs
    present = set(evidence.names())
    for name in sorted(present - set(members) - {MANIFEST, SIGNATURE}):
        if not _is_extracted(evidence, manifest, name):
            report.wrong(f"{name} is not in the manifest")
    for name in sorted({*members, SIGNATURE} - present):
        report.wrong(f"{name} is missing")
    for name in sorted(present & set(members)):
        digest, size = hashlib.sha256(), 0
        for chunk in evidence.chunks(name):
            digest.update(chunk)
            size += len(chunk)
        if (members[name]["sha256"], members[name]["size"]) != (digest.hexdigest(), size):
            report.wrong(f"{name} was changed: its SHA-256 is {digest.hexdigest()}")
    if report.differs == before:
        report.holds(f"all {len(members)} files are as the manifest has them")
    return report.differs == before


def _is_extracted(evidence: Evidence, manifest: Dict[str, Any], name: str) -> bool:
    """Tell if this is what ``extract`` has written beside a sealed file: its seal, or the bytes that the seal covers."""
    of, _, kind = name.rpartition(".")
    if not isinstance(evidence, Folder) or of not in sealed(manifest) or kind not in ("p7s", "signed"):
        return False
    try:
        seal, covered, _ = seal_of(read_member(evidence, of), _seal_certificate(evidence, manifest, of))
    except (OSError, ValueError):
        return False
    return read_member(evidence, name) == (seal if kind == "p7s" else covered)


def _chain(evidence: Evidence, manifest: Dict[str, Any], report: Report) -> List[Dict[str, Any]]:
    """Return the lines of the trail, each with its hash."""
    declared, lines, previous = manifest["events"], [], ""
    *texts, rest = read_member(evidence, declared["path"]).split(b"\n")
    if rest:
        report.wrong(f"{declared['path']} ends within a line")
    for number, text in enumerate(texts, 1):
        previous = hashlib.sha256(previous.encode() + text).hexdigest()
        line = _NO_LINE
        try:
            entry = _json(text)
            if sorted(entry) != sorted(_NO_LINE) or not isinstance(entry["data"], dict):
                raise ValueError("it is not a line of a trail")
            line = entry
        except (TypeError, ValueError) as error:
            report.wrong(f"line {number} of {declared['path']} cannot be read: {error}")
        lines.append(dict(line, hash=previous))
    if len(lines) == declared["lines"] and previous == declared["head"]:
        report.holds(f"the chain of {len(lines)} events holds; the hash of the last one is {previous}")
    else:
        expected = f"{declared['lines']} lines and the last hash {declared['head']}"
        report.wrong(
            f"the chain of events does not hold: {len(lines)} lines and the last hash {previous}, not {expected}"
        )
    return lines


def _trail(evidence: Evidence, manifest: Dict[str, Any], lines: List[Dict[str, Any]], report: Report) -> None:
    """Compare the lines and the sealed documents with what the sealed trail says of them."""
    data, name = read_member(evidence, manifest["audit_trail"]), manifest["audit_trail"]
    events, files = _TRAIL_EVENTS.findall(data), _TRAIL_SEALED.findall(data)
    if not events and not files:
        report.note(f"{name} is of a version that says so only in print: compare the hashes at its end")
        return
    here = {manifest["members"][document["sealed"]]["sha256"] for document in manifest["documents"]}
    number = int(events[0][0]) if len(events) == 1 else 0
    if not 1 <= number <= len(lines) or lines[number - 1]["hash"] != events[0][1].decode("ascii"):
        report.wrong(f"{name} was made of other events than those in {manifest['events']['path']}")
    elif len(files) != 1 or set(files[0].decode("ascii").split()) != here:
        report.wrong(f"{name} is of other sealed documents than those that are here")
    else:
        report.holds(f"{name} was made of the first {number} of these events, and is of these sealed documents")


def _documents(manifest: Dict[str, Any], lines: List[Dict[str, Any]], report: Report) -> None:
    """Compare the documents that are here with those that each completion names."""
    before = report.differs
    for number, line in enumerate(lines, 1):
        signed = line["data"].get("documents") if line["event_type"] in COMPLETIONS else None
        digests = list(signed.values()) if isinstance(signed, dict) else signed
        for document in manifest["documents"] if digests is not None else ():
            if manifest["members"][document["shown"]]["sha256"] not in (digests or ()):
                report.wrong(f"the completion in line {number} is not of {document['shown']}")
    if report.differs == before:
        report.holds("the completions are of the documents that are here")


def _statements(evidence: Evidence, manifest: Dict[str, Any], lines: List[Dict[str, Any]], report: Report) -> None:
    """Compare each statement with the lines."""
    done = {line["submitter_id"] for line in lines if line["event_type"] in COMPLETIONS}
    parties = {party["submitter"]: party["statements"] for party in manifest["parties"]}
    for submitter in sorted(done - set(parties)):
        report.wrong(f"party {submitter} completed, and the manifest does not have it")
    for submitter in sorted(set(parties) - done):
        report.wrong(f"no line says that party {submitter} completed")
    accepted = [number for number, line in enumerate(lines, 1) if line["event_type"] == "accept_differences"]
    by_name = f" (an admin accepted differences by name: line {accepted[-1]})" if accepted else ""
    for submitter, statements in sorted(parties.items()):
        if not statements:
            report.note(f"party {submitter} completed with a version that made no statements")
        numbers = [_line_of(read_member(evidence, files["statement"])) for files in statements]
        again = max((number for number, line in enumerate(lines, 1) if _reopens(line, submitter)), default=0)
        standing = [number for number in numbers if number == 0 or number > again]
        if len(standing) > 1 or len(set(numbers)) < len(numbers):
            report.wrong(f"there are {len(statements)} different statements on party {submitter}{by_name}")
        if len(standing) < len(numbers):
            report.note(f"party {submitter} completed once more: what they had signed was changed (line {again})")
        for files in statements:
            name, data = files["statement"], read_member(evidence, files["statement"])
            faults = _faults(data, manifest, submitter, lines)
            if faults:
                report.wrong(f"{name} differs: {'; '.join(faults)}{by_name}")
            else:
                report.holds(f"{name} says what the events say; its receipt is {receipt(data)}")


def _reopens(line: Dict[str, Any], submitter: int) -> bool:
    """Tell if this party had to complete once more from this line on."""
    return bool(line["event_type"] == REOPENED and line["submitter_id"] == submitter)


def _line_of(data: bytes) -> int:
    """Return the number of the line that a statement is about, 0 when it cannot be read."""
    try:
        return int(_json(data)["line"]["number"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return 0


def _faults(data: bytes, manifest: Dict[str, Any], submitter: int, lines: List[Dict[str, Any]]) -> List[str]:
    """Name what a statement says otherwise than the lines."""
    try:
        statement = _json(data)
        about = {"submission": manifest["submission"], "submitter": submitter}
        faults = [f"it is about another {key}" for key in about if statement[key] != about[key]]
        for point in ("line", "head"):
            number = statement[point]["number"]
            if not 1 <= number <= len(lines) or lines[number - 1]["hash"] != statement[point]["hash"]:
                faults.append(f"line {number} has another hash")
        if faults:
            return faults
        line = lines[statement["line"]["number"] - 1]
        if line["event_type"] not in COMPLETIONS or line["submitter_id"] != submitter:
            faults.append("the line is not the completion")
        if line["event_timestamp"] != statement["completed_at"]:
            faults.append("the completion was at another time")
        for key, name in (("shown", "what was shown"), ("values", "the values"), ("documents", "the documents")):
            recorded, stated = line["data"].get(key), statement[key]
            if isinstance(recorded, list) and isinstance(stated, dict):  # lines of some versions have no names
                recorded, stated = sorted(recorded), sorted(stated.values())
            if recorded != stated:
                faults.append(f"{name}: another digest")
        faults += [
            f"{document['shown']} is another document"
            for document in manifest["documents"]
            if statement["documents"].get(document["uuid"]) != manifest["members"][document["shown"]]["sha256"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"it cannot be read: {type(error).__name__} {error}"]
    return faults


def receipt(statement: bytes) -> str:
    """Return the receipt of a statement: the first 100 bits of its SHA-256 in Crockford's base 32."""
    bits = int.from_bytes(hashlib.sha256(statement).digest(), "big") >> 156
    letters = "".join(_BASE_32[bits >> 5 * place & 31] for place in reversed(range(20)))
    return "-".join(letters[start : start + 4] for start in range(0, 20, 4))


def seconds(text: str) -> int:
    """Return a time of the manifest, which is in UTC, as Unix seconds."""
    return int(datetime.strptime(f"{text[:19]}+0000", "%Y-%m-%dT%H:%M:%S%z").timestamp())


# --- signatures ------------------------------------------------------------------------------------------------------------


def sealed(manifest: Dict[str, Any]) -> List[str]:
    """Name the members that bear a seal."""
    return [manifest["audit_trail"], *(document["sealed"] for document in manifest["documents"])]


def signatures(manifest: Dict[str, Any]) -> List[Tuple[str, str]]:
    """List what is signed: the file of each signature and of what it signs, in a folder that ``extract`` made."""
    statements = [statement for party in manifest["parties"] for statement in party["statements"]]
    return [
        (SIGNATURE, MANIFEST),
        *((statement["signature"], statement["statement"]) for statement in statements),
        *((f"{name}.p7s", f"{name}.signed") for name in sealed(manifest)),
    ]


def command(
    manifest: Dict[str, Any], signature: str, content: str, root: Optional[Path], program: str = "openssl"
) -> List[str]:
    """Return the command that checks a signature. Of a provider's seal only the certificate is said, not who vouches for it."""
    provided = _provided(manifest, content.rpartition(".")[0])
    if provided:
        trusted = ["-CAfile", provided, "-partial_chain"]
    elif root or manifest["root"]:
        trusted = ["-CAfile", str(root or manifest["root"])]
    else:
        trusted = ["-CAfile", manifest["certificates"], "-partial_chain"]
    # Certificates end; those of the seals were in force then. The manifest says nothing about a time.
    when = ["-no_check_time"] if content == MANIFEST else ["-attime", str(seconds(manifest["sealed_at"]))]
    arguments = [program, "cms", "-verify", "-binary", "-inform", "DER", "-in", signature, "-content", content]
    return [*arguments, *trusted, "-purpose", "any", *when, "-out", os.devnull]


def extract(evidence: Evidence, manifest: Dict[str, Any], folder: Path, report: Report) -> None:
    """Write the members, and of each sealed file the seal (``.p7s``) and the bytes that it covers (``.signed``)."""
    for name in evidence.names():
        if not _PATH.fullmatch(name):
            raise Unreadable(f"there is a file called {name!r}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("wb") as file:
            for chunk in evidence.chunks(name):
                file.write(chunk)
    for name in sealed(manifest):
        try:
            seal, covered, later = seal_of(read_member(evidence, name), _seal_certificate(evidence, manifest, name))
        except ValueError as error:
            report.wrong(f"{name}: {error}")
            continue
        if later:
            report.holds(
                f"{name}: behind the seal others signed, {later} in all (duty stamps, time-stamps), each for all before it"
            )
        (folder / f"{name}.p7s").write_bytes(seal)
        (folder / f"{name}.signed").write_bytes(covered)


def seal_of(data: bytes, certificate: bytes) -> Tuple[bytes, bytes, int]:
    """Return the seal of a PDF (CMS in DER), the bytes that it covers, all but its own place up to where it ends, and how many
    signatures follow it.

    The seal is the last signature with this certificate (DER) in it, or the last one. What follows, such as a duty stamp, is
    only looked at for whether it is for these bytes: who made it is not said. Raises ValueError when there is no such
    signature, or something stands behind the last one.
    """
    signatures = []
    for match in _BYTE_RANGE.finditer(data):
        start, before, again, rest = map(int, match.groups())
        end = again + rest
        if start == 0 and before < again and end <= len(data):
            try:
                signatures.append((end, _signature_in(data[before:again]), data[:before] + data[again:end]))
            except ValueError:
                if end == len(data):
                    raise
    signatures.sort(key=lambda signature_entry: signature_entry[0])
    if not signatures or signatures[-1][0] != len(data):
        raise ValueError("it has no signature that covers the whole file")
    number = next(
        (number for number in reversed(range(len(signatures))) if certificate in signatures[number][1]),
        len(signatures) - 1,
    )
    for _, signature, covered in signatures[number + 1 :]:
        if not any(hashlib.new(name, covered).digest() in signature for name in _DIGESTS):
            raise ValueError("a signature behind its seal is for other content")
    return signatures[number][1], signatures[number][2], len(signatures) - number - 1


def _signature_in(place: bytes) -> bytes:
    """Return the CMS in what a signature leaves out. Raises ValueError when that is anything else."""
    if place[:1] != b"<" or place[-1:] != b">":
        raise ValueError("what its signature leaves out is not the signature")
    container = bytes.fromhex(place[1:-1].decode("ascii"))
    size = _size_of(container)
    if any(container[size:]):
        raise ValueError("something stands behind the signature in its place")
    return container[:size]


def _provided(manifest: Dict[str, Any], name: str) -> Optional[str]:
    """Name the member with the chain of the seal of a document that a provider signed."""
    return next(
        (document.get("certificates") for document in manifest["documents"] if document["sealed"] == name), None
    )


def _seal_certificate(evidence: Evidence, manifest: Dict[str, Any], name: str) -> bytes:
    """Return the certificate that a member is sealed with (DER), nothing where there is none."""
    chain = _provided(manifest, name) or manifest["certificates"]
    return next(iter(_certificates(read_member(evidence, chain))), b"")


def _certificates(pem: bytes) -> List[bytes]:
    """Return certificates in DER."""
    return [base64.b64decode(b"".join(certificate.split())) for certificate in _CERTIFICATE.findall(pem)]


def _size_of(der: bytes) -> int:
    if der[:1] != b"\x30" or len(der) < 6:
        raise ValueError("its signature is not valid")
    if der[1] < 0x80:
        return 2 + der[1]
    count = der[1] & 0x7F
    return 2 + count + int.from_bytes(der[2 : 2 + count], "big")


def check_signatures(
    evidence: Evidence, manifest: Dict[str, Any], root: Optional[Path], program: str, report: Report
) -> None:
    """Have openssl check each signature."""
    with tempfile.TemporaryDirectory() as name:
        before = report.differs
        extract(evidence, manifest, Path(name), report)
        for signature, content in signatures(manifest) if report.differs == before else ():
            arguments = command(manifest, signature, content, root, program)
            try:
                ended = subprocess.run(
                    arguments, cwd=name, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
                )
            except OSError as error:
                report.wrong(f"{program} cannot be run: {error}")
                return
            if ended.returncode == 0:
                report.holds(f"openssl: the signature {signature} holds")
            else:
                output = ended.stdout.decode("utf-8", "replace").strip().splitlines()
                report.wrong(f"openssl refuses the signature {signature}: {output[-1] if output else ended.returncode}")


def main() -> int:
    """Check what the command line names."""
    head, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("evidence", nargs="?", type=Path, default=Path(__file__).resolve().parent, help="ZIP or folder")
    parser.add_argument("--openssl", nargs="?", const="openssl", metavar="PROGRAM", help="check the signatures with it")
    parser.add_argument("--root", type=Path, metavar="FILE", help="the root certificate (PEM) that you trust")
    parser.add_argument("--extract", type=Path, metavar="DIR", help="write the members and the seals there")
    options = parser.parse_args()
    root = options.root.resolve() if options.root else None
    report = Report()
    try:
        evidence: Evidence = Folder(options.evidence) if options.evidence.is_dir() else Zip(options.evidence)
        manifest = check(evidence, report)
        if manifest is not None and not report.differs:
            if options.extract:
                extract(evidence, manifest, options.extract, report)
            if options.openssl:
                check_signatures(evidence, manifest, root, options.openssl, report)
            else:
                _say_how(manifest, root)
            _say_whose(evidence, manifest, root)
    except (Unreadable, OSError) as error:
        print(f"WRONG  {error}")
        return 2
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        print(f"WRONG  this is not evidence as it is made: {type(error).__name__} {error}")
        return 2
    print("Something differs." if report.differs else "Everything that was checked holds.")
    return 1 if report.differs else 0


def _say_how(manifest: Dict[str, Any], root: Optional[Path]) -> None:
    print("note   the signatures were not checked. --openssl does, or these commands in a folder made with --extract:")
    for signature, content in signatures(manifest):
        print("       " + " ".join(map(shlex.quote, command(manifest, signature, content, root))))


def _say_whose(evidence: Evidence, manifest: Dict[str, Any], root: Optional[Path]) -> None:
    """Name the root that decides whose signatures these are, and providers' certificates, which it does not vouch for."""
    name = str(root or manifest["root"] or manifest["certificates"])
    for provided in sorted(
        {document["certificates"] for document in manifest["documents"] if document.get("certificates")}
    ):
        for certificate in _certificates(read_member(evidence, provided))[:1]:
            digest = hashlib.sha256(certificate).hexdigest()
            print(f"note   a provider sealed; SHA-256 of its certificate in {provided}: {digest}")
    for certificate in _certificates(root.read_bytes() if root else read_member(evidence, name)):
        digest = hashlib.sha256(certificate).hexdigest()
        print(f"note   SHA-256 of the certificate in {name}: {digest}")


if __name__ == "__main__":
    sys.exit(main())
