"""``python -m deploy.accept_differences URL [ID...]``: have submissions sealed although they are not what was signed.

For an admin, after a restore of the submissions database: what was signed anew differs from the statements of the completions
that were lost with it. The admin's API key is in the environment, as API_KEY. Without ids it lists the submissions whose
sealing was stopped, with what differs, and changes nothing. With ids it shows the same of them, asks once, and accepts it for
each: the trail of each names the admin and each difference.

The status is 0 when all that were named are being sealed again, 1 when any is not, 2 when the installation did not answer.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

import requests

STOPPED = "What is to be sealed is not what was signed: "
_PAGE = 100
_SECONDS = 60


class Installation:
    """The API of a running suite, called with an admin's key."""

    def __init__(self, url: str, key: str) -> None:
        self._url = f"{url.rstrip('/')}/api"
        self._session = requests.Session()
        self._session.headers["X-Auth-Token"] = key

    def get(self, path: str, **query: Any) -> Any:
        """Raises requests.RequestException."""
        answer = self._session.get(f"{self._url}{path}", params=query, timeout=_SECONDS)
        answer.raise_for_status()
        return answer.json()

    def stopped(self) -> Iterator[dict[str, Any]]:
        """Every submission whose sealing was stopped because something differs."""
        query: dict[str, Any] = {"limit": _PAGE}
        while True:
            page = self.get("/submissions", **query)
            for one in page["data"]:
                if one["sealing_status"] == "failed" and is_stopped(whole := self.get(f"/submissions/{one['id']}")):
                    yield whole
            if not page["data"] or page["pagination"]["next"] is None:
                return
            query["after"] = page["pagination"]["next"]

    def accept(self, number: int) -> str | None:
        """Have one sealed as it is; why that was refused."""
        body = {"accept_differences": True}
        answer = self._session.post(f"{self._url}/submissions/{number}/seal", json=body, timeout=_SECONDS)
        return None if answer.ok else str(answer.json()["error"])


def is_stopped(submission: dict[str, Any]) -> bool:
    """Tell whether the sealing of a submission was stopped because something differs from what was signed."""
    return submission["sealing_status"] == "failed" and str(submission["sealing_error"]).startswith(STOPPED)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.accept_differences", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument("url", help="where the installation is, such as https://sign.example.com")
    parser.add_argument("ids", nargs="*", type=int, metavar="ID")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    chosen = parser.parse_args(arguments)
    if not (key := os.environ.get("API_KEY")):
        parser.error("API_KEY is not set: the key of the admin who answers for it")
    try:
        return _run(Installation(chosen.url, key), chosen.ids, ask=not chosen.yes)
    except requests.RequestException as error:
        print(f"Not done: {error}", file=sys.stderr)
        return 2


def _run(installation: Installation, ids: list[int], *, ask: bool) -> int:
    who = installation.get("/user")
    if not ids:
        for one in installation.stopped():
            _show(one)
        return 0
    found = [installation.get(f"/submissions/{number}") for number in dict.fromkeys(ids)]
    for one in found:
        _show(one)
    wanted = [int(one["id"]) for one in found if is_stopped(one)]
    refused = len(found) - len(wanted)
    if wanted and ask:
        print(f"The trail of each of these {len(wanted)} will say that {who['email']} has accepted it. yes or no?")
        if sys.stdin.readline().strip() != "yes":
            print("Nothing was accepted.")
            return 1
    for number in wanted:
        if (reason := installation.accept(number)) is not None:
            print(f"{number}: {reason}", file=sys.stderr)
            refused += 1
    print(f"{len(found) - refused} are being sealed as they are, on the word of {who['email']}; {refused} are not.")
    return 1 if refused else 0


def _show(submission: dict[str, Any]) -> None:
    error = submission["sealing_error"] if is_stopped(submission) else None
    differences = str(error).removeprefix(STOPPED).split("; ") if error else ["there is nothing that differs"]
    print(f"{submission['id']}  {_printable(submission['name'] or '')}".rstrip())
    for one in differences:
        print(f"    {_printable(one)}")


def _printable(text: str) -> str:
    """What somebody has written into the database says nothing to the terminal, and looks like no other line."""
    return "".join(character if character.isprintable() else "?" for character in text)


if __name__ == "__main__":
    sys.exit(main())
