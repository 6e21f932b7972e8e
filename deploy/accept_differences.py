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
            for summary in page["data"]:
                if summary["sealing_status"] == "failed" and is_stopped(
                    submission := self.get(f"/submissions/{summary['id']}")
                ):
                    yield submission
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


def main(arguments: list[str] | None = None, *, program: str = "python -m deploy.accept_differences") -> int:
    parser = argparse.ArgumentParser(prog=program, description=(__doc__ or "").partition("\n\n")[2])
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
    user = installation.get("/user")
    if not ids:
        for submission in installation.stopped():
            _show(submission)
        return 0
    submissions = [installation.get(f"/submissions/{number}") for number in dict.fromkeys(ids)]
    for submission in submissions:
        _show(submission)
    stopped_ids = [int(submission["id"]) for submission in submissions if is_stopped(submission)]
    refused = len(submissions) - len(stopped_ids)
    if stopped_ids and ask:
        print(
            f"The trail of each of these {len(stopped_ids)} will say that {user['email']} has accepted it. yes or no?"
        )
        if sys.stdin.readline().strip() != "yes":
            print("Nothing was accepted.")
            return 1
    for number in stopped_ids:
        if (reason := installation.accept(number)) is not None:
            print(f"{number}: {reason}", file=sys.stderr)
            refused += 1
    print(
        f"{len(submissions) - refused} are being sealed as they are, on the word of {user['email']}; {refused} are not."
    )
    return 1 if refused else 0


def _show(submission: dict[str, Any]) -> None:
    error = submission["sealing_error"] if is_stopped(submission) else None
    differences = str(error).removeprefix(STOPPED).split("; ") if error else ["there is nothing that differs"]
    print(f"{submission['id']}  {_printable(submission['name'] or '')}".rstrip())
    for difference in differences:
        print(f"    {_printable(difference)}")


def _printable(text: str) -> str:
    """Cover what would speak to the terminal or look like another line: somebody has written it into the database."""
    return "".join(character if character.isprintable() else "?" for character in text)


if __name__ == "__main__":
    sys.exit(main())
