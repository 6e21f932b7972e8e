"""What these commands share of the command line: where the installation is, the key, and how an end is told."""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deploy.command.remote.installation import LOCAL, Installation, Misused, Refused, plain

DONE, NOT_SO, MISUSED, REFUSED, AWAY = 0, 1, 2, 3, 4
"""Statuses that the commands end with (docs/command.md)."""

URL, KEY, KEY_FILE = "COUNTERSIGN_URL", "COUNTERSIGN_API_KEY", "COUNTERSIGN_API_KEY_FILE"
"""Variables of the environment; options come before them."""


def parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser with the options that all of these commands have."""
    command_parser = argparse.ArgumentParser(prog=f"countersign {command}", description=description, allow_abbrev=False)
    group = command_parser.add_argument_group("the installation")
    group.add_argument("--url", help=f"where it is, such as https://sign.example.com ({URL})")
    key = group.add_mutually_exclusive_group()
    key.add_argument("--key-file", type=Path, metavar="FILE", help=f"a file with the API key ({KEY_FILE})")
    key.add_argument("--key", help=f"the API key ({KEY}); others on this machine may see it in the list of processes")
    command_parser.add_argument("--json", action="store_true", help="answer in JSON, for scripts")
    return command_parser


def installation_of(chosen: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Installation:
    """The installation of the command line, or else of the environment. Raises Misused where something is missing."""
    url = chosen.url or environment.get(URL)
    if not url:
        raise Misused(f"name the installation with --url or {URL}")
    installation = Installation(url, _key_of(chosen, environment))
    parts = urlsplit(installation.url)
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        print(f"countersign: the way to {installation.url} is not encrypted, the key travels open.", file=sys.stderr)
    return installation


def _key_of(chosen: argparse.Namespace, environment: Mapping[str, str]) -> str:
    """The key. It is in no message of an error."""
    key, file = chosen.key, chosen.key_file
    if key is None and file is None:
        key = environment.get(KEY) or None
        file = Path(environment[KEY_FILE]) if key is None and environment.get(KEY_FILE) else None
    if file is not None:
        try:
            key = file.read_text()
        except (OSError, UnicodeError) as error:
            raise Misused(f"the file of the key, {file}, cannot be read: {_words(error)}") from None
    key = (key or "").strip()
    if not key:
        raise Misused(f"name a file with the API key: --key-file or {KEY_FILE}, or set {KEY}")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Misused("the API key has characters that no key has")
    return key


def _words(error: Exception) -> str:
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else "it is no text"


def tell(error: Exception, *, as_json: bool) -> int:
    """Say on the standard error what went wrong, and return the status that stands for it."""
    if isinstance(error, Refused):
        status = REFUSED
        content: dict[str, Any] = {"status": error.status, "code": error.code, "details": error.details}
    else:
        status, content = (MISUSED if isinstance(error, Misused | OSError) else AWAY), {}
    sentence = plain(str(error))
    if as_json:
        print(json.dumps({"error": sentence, **content}), file=sys.stderr)
        return status
    print(f"countersign: {sentence}", file=sys.stderr)
    for detail in content.get("details", []):
        field, reason = str(detail.get("field") or ""), str(detail.get("reason") or "")
        if field and field != "request":  # which stands for the request as a whole
            told_of = field if str(error) in (reason, f"{field} {reason}") else f"{field}: {reason}"
            print(f"  {plain(told_of)}", file=sys.stderr)
    return status
