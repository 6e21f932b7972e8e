"""``countersign COMMAND``: one door to what the suite's operators run, and those who integrate with it. Each command hands over
to the module that does it.

Nothing is imported before it is needed, so that help, a mistake in the command line and a version come at once, and so that who
has not installed the services' packages may use the commands that do without them.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from deploy.services import SERVICES

_NEEDED = ("connexion", "nameko", "weasyprint")
"""One package of each of the gateway, the workers and rendering: who has these has what all services need."""


_LONGEST_KEY_DAYS = 3650


@dataclass(frozen=True)
class Command:
    """``run`` gets what follows the command's name, and returns the exit status. ``usage`` is what may follow. ``alone``: it
    does without the services' packages, or says itself what it needs them for."""

    usage: str
    help: str
    run: Callable[[list[str]], int]
    alone: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the command line names. 2 is for what makes no sense, as with all of them."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="countersign",
        usage="countersign COMMAND ...",
        description="Run Countersign and look after it, or work with an installation from elsewhere.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="say which version this is")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    chosen = parser.parse_args(words[:1])
    if chosen.version:
        return _version()
    if chosen.command is None:
        parser.error(f"name a command: {', '.join(COMMANDS)}")
    command = COMMANDS[chosen.command]
    if not command.alone and not _has_services():
        return 2
    try:
        return command.run(words[1:])
    except KeyboardInterrupt:
        return 130
    except PermissionError as error:
        print(f"countersign: this user may not do that: {error}", file=sys.stderr)
        return 1


def _has_services() -> bool:
    """Return whether the services' packages are installed; where they are not, say how to install them."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"countersign: {', '.join(missing)} is missing: it was installed without its services. Install it as"
            " countersign[all], such as pipx install '.[all]'.",
            file=sys.stderr,
        )
    return not missing


def _epilog() -> str:
    words = {f"{name} {command.usage}".strip(): command.help for name, command in COMMANDS.items()}
    width = max(map(len, words))
    lines = [f"  {usage:{width}}  {text}" for usage, text in words.items()]
    return "\n".join(
        [
            "commands:",
            *lines,
            "",
            "Settings come from the environment. Where there are none, they are those of the suite that `up` keeps in",
            "VAR_DIR (./var). listen, send and evidence ask any installation by HTTP: --url and --key-file, or",
            "COUNTERSIGN_URL and COUNTERSIGN_API_KEY. countersign COMMAND --help says more.",
        ]
    )


def _version() -> int:
    try:
        from contracts.runtime.monitoring import build
    except ImportError:  # installed without its services
        print(f"countersign {metadata.version('countersign')}")
        return 0
    revision = build.revision()
    print(f"countersign {build.version()}" + ("" if revision == build.UNKNOWN else f" ({revision})"))
    return 0


# --- a suite on this machine


def _up(arguments: list[str]) -> int:
    parser = _parser("up", "Run the suite in the foreground until Ctrl-C. What it keeps is in VAR_DIR (./var).")
    parser.parse_args(arguments)
    if not os.environ.get("VAR_DIR") and not _may_be_used(Path("var")):
        return 2
    os.environ["VAR_DIR"] = os.environ.get("VAR_DIR") or str(Path("var").absolute())
    if not (os.environ.get("AMQP_URL") or os.environ.get("AMQP_URL_FILE")) and not _has_broker():
        return 1
    from deploy import suite

    return suite.main()


def _demo(arguments: list[str]) -> int:
    parser = _parser("demo", "Walk two agreements from template to sealed PDF, in VAR_DIR (./var/demo), then stop.")
    parser.parse_args(arguments)
    os.environ["VAR_DIR"] = os.environ.get("VAR_DIR") or str(Path("var/demo").absolute())
    if not _has_broker():
        return 1
    from deploy import demo

    return demo.main()


def _may_be_used(folder: Path) -> bool:
    """Return whether a suite is kept in this folder, or nothing is: called in the root of a system, it would be the
    system's own."""
    if not folder.exists() or (folder / "secrets").is_dir() or {path.name for path in folder.iterdir()} <= {"demo"}:
        return True
    print(
        f"countersign: {folder.absolute()} holds something else than a suite: name a folder as VAR_DIR.",
        file=sys.stderr,
    )
    return False


def _has_broker() -> bool:
    from deploy.local import RUN_PACKAGES
    from deploy.rabbitmq import BINARIES

    if (BINARIES / "rabbitmq-server").exists():
        return True
    print(
        "countersign: RabbitMQ is not installed here. Set AMQP_URL to a broker of yours, or, on Debian and as root:\n"
        f"  apt-get install --no-install-recommends {' '.join(RUN_PACKAGES)}",
        file=sys.stderr,
    )
    return False


# --- the services' own commands


def _of_services(command: str) -> Callable[[list[str]], int]:
    """``migrate`` and ``check``, of all services or of those that are named."""

    def run(arguments: list[str]) -> int:
        parser = _parser(command, COMMANDS[command].help)
        parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(SERVICES)}; all by default")
        names = _services(parser, parser.parse_args(arguments).services)
        _use_settings()
        from contracts.runtime import main as runtime

        runtime.run(*names, arguments=[command])
        return 0

    return run


def _retry(arguments: list[str]) -> int:
    parser = _parser("retry", COMMANDS["retry"].help + ". Without any argument it lists what was given up, and why.")
    parser.add_argument("service", nargs="?", choices=SERVICES, metavar="SERVICE", help=f"of {', '.join(SERVICES)}")
    parser.add_argument("work", nargs="?", metavar="WORK", help="a kind of work, as it is listed")
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="only these rows of it")
    chosen = parser.parse_args(arguments)
    _use_settings()
    from contracts.runtime.operations import retrying

    if chosen.service:
        return retrying.retry(chosen.service, [chosen.work, *chosen.numbers] if chosen.work else [])
    worst = 0
    for name in SERVICES:
        print(f"{name}:", flush=True)
        worst = max(worst, retrying.retry(name, []))
    return worst


def _stuck(arguments: list[str]) -> int:
    parser = _parser(
        "stuck", COMMANDS["stuck"].help + ". Status 0: nothing is stuck; 1: something is; 3: not all was seen."
    )
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(SERVICES)}; all by default")
    parser.add_argument("--json", action="store_true", help="for programs")
    chosen = parser.parse_args(arguments)
    names = _services(parser, chosen.services)
    _use_settings(quietly=chosen.json)
    from deploy.command import stuck

    return stuck.look(names, as_json=chosen.json)


def _storage(arguments: list[str]) -> int:
    parser = _parser("storage", COMMANDS["storage"].help + ". Status 0: all was counted; 3: not all could be.")
    parser.add_argument("--json", action="store_true", help="for programs")
    as_json = parser.parse_args(arguments).json
    _use_settings(quietly=as_json)
    from deploy.command import storage

    return storage.look(as_json=as_json)


def _parked(arguments: list[str]) -> int:
    if arguments:
        _use_settings()
    from contracts.runtime.operations import parked

    return parked.main(arguments, program="countersign parked")


def _doctor(arguments: list[str]) -> int:
    parser = _parser("doctor", COMMANDS["doctor"].help + ". Nothing is sent to anybody, and nothing stays behind.")
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(SERVICES)}; all by default")
    names = _services(parser, parser.parse_args(arguments).services)
    _use_settings()
    from deploy.command import doctor

    return doctor.look(names)


# --- what is done to an installation as a whole


def _backup(arguments: list[str]) -> int:
    from deploy import backup

    return backup.main(arguments, program="countersign backup")


def _restore(arguments: list[str]) -> int:
    from deploy import restore

    return restore.main(arguments, program="countersign restore")


def _move(arguments: list[str]) -> int:
    if not {"-h", "--help"} & {*arguments}:
        _use_settings()
    from deploy.moving import program

    return program.main(arguments, program="countersign move")


def _reconcile(arguments: list[str]) -> int:
    from deploy import reconcile

    return reconcile.main(arguments, program="countersign reconcile")


def _accept_differences(arguments: list[str]) -> int:
    from deploy import accept_differences

    return accept_differences.main(arguments, program="countersign accept-differences")


def _keys(arguments: list[str]) -> int:
    parser = _parser("keys", COMMANDS["keys"].help + ". Without an address it lists the admins.")
    parser.add_argument("email", nargs="?", metavar="EMAIL", help="the admin's address; their old key is dead at once")
    parser.add_argument("--test", action="store_true", help="a key for test mode beside the others, which stay")
    parser.add_argument("--operator", action="store_true", help="a key for the page /ops, beside their other keys")
    parser.add_argument("--name", default="Operator", metavar="NAME", help="whose or what for, in the log of /ops")
    parser.add_argument("--days", type=int, default=365, metavar="N", help="for how long it is good (365)")
    chosen = parser.parse_args(arguments)
    if chosen.operator and (
        chosen.email is None or not 0 < chosen.days <= _LONGEST_KEY_DAYS or not chosen.name.strip()
    ):
        parser.error(f"--operator needs the EMAIL of an admin, a NAME, and 1 to {_LONGEST_KEY_DAYS} days")
    if chosen.operator and chosen.test:
        parser.error("a key is for test mode or for /ops, not for both")
    _use_settings()
    from deploy.command import keys

    if chosen.email is None:
        return keys.list_admins()
    if chosen.operator:
        return keys.give_operator(chosen.email, chosen.name.strip()[:100], chosen.days)
    return keys.make_test_key(chosen.email) if chosen.test else keys.renew(chosen.email)


def _verify(arguments: list[str]) -> int:
    parser = _parser("verify", COMMANDS["verify"].help + ". Status 0: all that was checked holds; 1: it does not.")
    parser.add_argument("file", type=Path, metavar="FILE", help="a PDF; the ZIP of evidence, or its unpacked folder")
    parser.add_argument("--root", type=Path, metavar="FILE", help="trust this root certificate (PEM) and no other")
    chosen = parser.parse_args(arguments)
    from deploy.command.remote import evidence

    try:
        if evidence.is_evidence(chosen.file):
            return evidence.check(chosen.file, chosen.root)
    except OSError as error:
        print(f"{chosen.file} could not be checked: {error}", file=sys.stderr)
        return 2
    if not _has_services():
        return 2
    _use_settings(quietly=True)
    from deploy.command import verify

    return verify.look_at(chosen.file, chosen.root)


# --- what asks an installation by HTTP, from any machine


def _listen(arguments: list[str]) -> int:
    from deploy.command.remote import listen

    return listen.main(arguments)


def _send(arguments: list[str]) -> int:
    from deploy.command.remote import send

    return send.main(arguments)


def _evidence(arguments: list[str]) -> int:
    from deploy.command.remote import evidence

    return evidence.main(arguments)


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"countersign {command}", description=description)


def _services(parser: argparse.ArgumentParser, names: list[str]) -> list[str]:
    """The named services, or all; what is none ends the program."""
    if unknown := [name for name in names if name not in SERVICES]:
        parser.error(f"{', '.join(unknown)} is no service: there are {', '.join(SERVICES)}")
    return names or list(SERVICES)


def _use_settings(*, quietly: bool = False) -> None:
    from deploy.command import environment

    if (folder := environment.complete(os.environ)) is not None and not quietly:
        print(f"The settings are those of the suite in {folder}.", file=sys.stderr, flush=True)


COMMANDS = {
    "up": Command("", "run the suite on this machine", _up),
    "demo": Command("", "see two agreements signed and sealed", _demo),
    "doctor": Command("[SERVICE...]", "say what is wrong with an installation, and what to do", _doctor),
    "check": Command(
        "[SERVICE...]", "print the settings, and try everything that a service depends on", _of_services("check")
    ),
    "migrate": Command("[SERVICE...]", "bring databases and queues to this version", _of_services("migrate")),
    "keys": Command("[--test|--operator] [EMAIL]", "give an admin a new API key, or one for test mode or /ops", _keys),
    "stuck": Command("[--json] [SERVICE...]", "say which work does not go on, and why", _stuck),
    "retry": Command("[SERVICE [WORK [NUMBER...]]]", "have work that was given up tried again", _retry),
    "storage": Command("[--json]", "say which files take how much room, by folder and age", _storage),
    "parked": Command("list | requeue QUEUE | drop QUEUE", "see to events that were given up", _parked),
    "backup": Command("DIR", "copy databases and files while the suite runs", _backup),
    "restore": Command("DIR", "put a backup back while it is stopped", _restore),
    "move": Command(
        "(SERVICE... | --all) --to URL", "take databases to PostgreSQL or SQLite while it is stopped", _move
    ),
    "reconcile": Command("", "compare the services with each other and the files", _reconcile),
    "accept-differences": Command(
        "URL [ID...]", "seal what is not what was signed, after a restore", _accept_differences
    ),
    "verify": Command("FILE", "check a sealed PDF, or evidence", _verify, alone=True),
    "listen": Command("--forward URL", "forward events to a program, as webhooks bring them", _listen, alone=True),
    "send": Command("FILE|ID --to 'NAME <MAIL>'", "send a document, or a template, to be signed", _send, alone=True),
    "evidence": Command("ID", "fetch the evidence of a submission, and check it", _evidence, alone=True),
}
