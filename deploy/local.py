"""What `make` runs on a bare machine: installs what is missing, then hands over to the suite. Only the standard library.

    python3 deploy/local.py up | demo | check | test [pytest arguments] | test-deployed [pytest arguments] | test-again
                            | lint | install

A new machine has nothing but Debian or Ubuntu (docs/install.md: which ones), Python 3.11 or later, make and git. The system's
packages are installed as root (or with sudo where it asks for no password); the Python packages go into `.venv` from a
lock with hashes. A second call finds all that in place and costs a fraction of a second.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
LOCKS = ROOT / "deploy" / "locks"
NODE_LOCKS = {
    ENVIRONMENT / "published-clients": ROOT / "tests" / "support" / "clients" / "published_clients",
    ENVIRONMENT / "mcp-client": ROOT / "tests" / "support" / "clients" / "mcp_client",
    ENVIRONMENT / "libpdf": ROOT / "tests" / "load" / "rendering" / "libpdf",
    ENVIRONMENT / "axe": ROOT / "tests" / "support" / "judges" / "pages" / "axe",
    ENVIRONMENT / "csp-evaluator": ROOT / "tests" / "support" / "judges" / "pages" / "csp_evaluator",
    ENVIRONMENT / "openapi-linters": ROOT / "tests" / "support" / "judges" / "interfaces" / "openapi",
    ENVIRONMENT / "uplot": ROOT / "docs" / "programs" / "dashboard" / "uplot",
}
"""Where packages of npm go, and the folder of their lock."""

PYTHON_LOCKS_APART = {
    ENVIRONMENT / "network-policies": LOCKS / "network-policies.txt",
    ENVIRONMENT / "kubectls": LOCKS / "kubectls.txt",
}
"""Where Python packages go that want other versions of others than the rest, and their lock."""

COMMAND = f"""#!{(ENVIRONMENT / "bin").resolve() / "python"}
import sys
from pathlib import Path

here = Path(__file__).absolute()
folders = (path.parent.parent.parent for path in (here, here.resolve()))
sys.path.insert(0, str(next(folder for folder in folders if (folder / "deploy" / "command").is_dir())))

from deploy.command.main import main

sys.exit(main())
"""
"""The program ``.venv/bin/countersign``."""

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
BUSY_WORKERS = max(1, min(8, 2 * PROCESSORS, MEMORY // 2_000_000_000))
"""Half of the time a test waits for something: two workers for each processor keep it at work. One takes up to 2 GB, with the
suite, the broker and the browser that it has started."""
PATIENT_WORKERS = 2
"""Besides them, for the groups of tests that hardly need a processor."""
FEW_FAILURES = 3
"""So many of all tests may fail for a reason that lies in what ran beside them."""

RUN_PACKAGES = [
    "rabbitmq-server",
    "tzdata",  # the account's time zone; Python brings none
    "libpango-1.0-0",  # WeasyPrint lays out with it
    "libpangoft2-1.0-0",
    "libharfbuzz-subset0",
    "libreoffice-writer",  # lays out DOCX
    "poppler-utils",  # the demo lets pdfsig check what was sealed
    "fonts-liberation",  # metric-compatible with Times, Helvetica and Courier
    "fonts-crosextra-caladea",  # as wide as Word's Cambria
    "fonts-crosextra-carlito",  # as wide as Word's Calibri
    "fonts-noto-core",
    "fonts-noto-cjk",
    "fonts-symbola",  # symbols and emoji as outlines
    "fonts-unifont",  # emoji that are younger
]
NAMES_ELSEWHERE = {"jammy": {"libharfbuzz-subset0": "libharfbuzz0b"}}
"""By the code name of a release: packages whose files it has in another one."""
TEST_PACKAGES = [
    "postgresql",
    "qpdf",
    "softhsm2",  # a PKCS#11 token of its own for the seal's key
    "gnutls-bin",  # the commands of docs/seal-key.md
    "chromium",
    "firefox-esr",
    "webkit2gtk-driver",  # WebKit, which draws on xvfb
    "xvfb",
    "zbar-tools",  # reads QR codes off the pages
    "hunspell",  # reads refusals, the interface and the docs for words that are none
    "hunspell-en-gb",
    "curl",  # the README's calls
    "sqlite3",  # copies a database as the RUNBOOK says
    "unzip",  # a stranger opens the evidence with it
    "prometheus",  # it and its promtool judge alerts and dashboard
    "libmail-dkim-perl",  # judges the signatures of mails
    "libpdfbox2-java",  # judges PDF/A-1b
    "libjaxb-api-java",  # which it needs
    "default-jre-headless",
    "php-cli",  # these run the programs of docs/receiving.md
    "ruby",
    "golang-go",
    "mono-mcs",  # C#: 25 MB with what runs it
    "mono-runtime",
    "libmono-system-runtime-serialization4.0-cil",  # its JSON, 1 MB
    "jq",  # and that of a shell
    "libseccomp2",  # knows the numbers of calls on every machine
    "libatomic1",
    "make",
    "git",
]  # Playwright drives Chromium with a node of its own
LIGHT_BROWSER = "chromium-headless-shell"
"""Chromium without what is around its pages: a test that draws them needs a third of the processor's time. Where it cannot be
had, Chromium itself will do."""
CONTAINER_PACKAGES = [
    "podman",  # builds the images, too
    "runc",
    "netavark",  # podman's network of the pods
    "iptables",  # which it makes with this
    "iproute2",
    "catatonit",  # what holds a pod's namespaces
    "debootstrap",  # the base image where none can be pulled
]


def main(arguments: list[str]) -> int:
    """Run one of the commands in the module's docstring; the exit code is that of what was run."""
    command, *rest = arguments or ["help"]
    if command == "install":
        install(testing=bool(rest))
        return 0
    if command in ("up", "demo"):
        install(testing=False)
        return become(["-m", "deploy.suite" if command == "up" else "deploy.demo", *rest])
    if command == "lint":
        install(testing=True)
        return lint()
    if command == "test":
        install(testing=True)
        # Some 400 processes are started from the same sources: compiled once, a run takes a tenth less.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        arguments = rest or side_by_side(BUSY_WORKERS + PATIENT_WORKERS)
        return (lint() if rest else lint_and_compile()) or become(["-m", "pytest", *arguments])
    if command == "test-again":
        return test_again()
    if command == "check":
        install(testing=True)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        return check(rest)
    if command == "test-deployed":
        install(testing=True)
        install_debian_packages(CONTAINER_PACKAGES)
        # -s: what is being built or started is shown while it takes its time.
        arguments = ["-m", "pytest", "tests/deployed", "-s", "-v", "--timeout", "1800", *rest]
        return become(arguments, through=ROOT / "tests" / "deployed" / "own_root.py")
    print(__doc__, file=sys.stderr)
    return 2


def install(*, testing: bool) -> None:
    """Debian packages, virtual environment, locked Python packages; whatever is there already is left alone."""
    if sys.version_info < (3, 11):
        raise SystemExit(f"Countersign needs Python 3.11 or later; this is {sys.version.split()[0]}.")
    install_debian_packages(RUN_PACKAGES + (TEST_PACKAGES if testing else []))
    if testing:
        with contextlib.suppress(SystemExit):
            install_debian_packages([LIGHT_BROWSER])
    if testing and not (shutil.which("node") and shutil.which("npm")):  # node from elsewhere excludes Debian's npm
        install_debian_packages(["nodejs", "npm"])
    install_python_packages(LOCKS / ("test.txt" if testing else "all.txt"))
    write_command()
    if testing:
        for folder, lock in PYTHON_LOCKS_APART.items():
            install_python_packages_apart(folder, lock)
        for environment, lock in NODE_LOCKS.items():
            install_node_packages(environment, lock)


def install_debian_packages(packages: list[str]) -> None:
    """Those that are not there already. On another system they are named, for what they hold has to come from elsewhere."""
    if not shutil.which("dpkg-query"):
        say(
            f"This is neither Debian nor Ubuntu. What these packages hold has to be there already: {' '.join(packages)}"
        )
        return
    names = NAMES_ELSEWHERE.get(platform.freedesktop_os_release().get("VERSION_CODENAME", ""), {})
    missing = [name for package in packages if not is_installed(name := names.get(package, package))]
    if not missing:
        return
    prefix = privilege()
    if prefix is None:
        raise SystemExit(
            "These Debian packages are missing, and only root can install them:\n"
            f"  apt-get install --no-install-recommends {' '.join(missing)}\n"
            "Run that once as root, then the same make command again as yourself."
        )
    say(f"Installing Debian packages (some 450 MB the first time): {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = [*prefix, "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    with services_not_started(prefix):
        run([*apt, "update"], environment)
        run([*apt, "install", "-y", "--no-install-recommends", *missing], environment)


def is_installed(package: str) -> bool:
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True, check=False
    )
    return query.stdout == "installed"


def privilege() -> list[str] | None:
    """The command prefix that makes us root, empty when we are, None when we cannot be."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n", "--preserve-env=DEBIAN_FRONTEND"]
    return None


@contextlib.contextmanager
def services_not_started(prefix: list[str]) -> Iterator[None]:
    """Debian starts a service when it installs one. We bring our own private broker and database: theirs stay down."""
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        subprocess.run(
            [*prefix, "tee", str(policy)], input=b"#!/bin/sh\nexit 101\n", stdout=subprocess.DEVNULL, check=True
        )
        subprocess.run([*prefix, "chmod", "755", str(policy)], check=True)
    try:
        yield
    finally:
        if ours:
            subprocess.run([*prefix, "rm", "-f", str(policy)], check=True)


def install_python_packages(lock: Path) -> None:
    stamp = ENVIRONMENT / f"countersign-{lock.stem}"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    say(f"Installing Python packages from deploy/locks/{lock.name} into .venv")
    if not (ENVIRONMENT / "bin" / "python").exists():
        creation = subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=False)
        if creation.returncode:
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            raise SystemExit("Python cannot make a virtual environment here: install the Debian package python3-venv.")
    # The lock is complete and hashed: pip need not resolve anything.
    run([str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check",
         "--no-deps", "--require-hashes", "-r", str(lock)], dict(os.environ))  # fmt: skip
    stamp.write_text(digest)
    if lock.stem == "test":
        (ENVIRONMENT / "countersign-all").write_text(hashlib.sha256((LOCKS / "all.txt").read_bytes()).hexdigest())


def install_python_packages_apart(folder: Path, lock: Path) -> None:
    """Into a folder that programs name in PYTHONPATH, with exact versions and hashes."""
    stamp = folder / "countersign-installed"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    say(f"Installing Python packages from deploy/locks/{lock.name} into {folder.relative_to(ROOT)}")
    shutil.rmtree(folder, ignore_errors=True)
    run([str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
         "--only-binary=:all:", "--require-hashes", "--target", str(folder), "-r", str(lock)], dict(os.environ))  # fmt: skip
    stamp.write_text(digest)


def write_command() -> None:
    """Put ``countersign`` beside the environment's Python. It is that of the checkout through which it is called."""
    path = ENVIRONMENT / "bin" / "countersign"
    if not path.exists() or path.read_text() != COMMAND:
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(COMMAND)
        temporary.chmod(0o755)
        temporary.replace(path)


def install_node_packages(environment: Path, lock: Path) -> None:
    """The npm packages that tests and benchmarks run: exact versions with hashes, and no script of theirs is run."""
    stamp = environment / "countersign-installed"
    digest = hashlib.sha256((lock / "package-lock.json").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    say(f"Installing the npm packages of {lock.relative_to(ROOT)} into {environment.relative_to(ROOT)}")
    environment.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock / name, environment / name)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"],
        dict(os.environ), folder=environment)  # fmt: skip
    stamp.write_text(digest)


def lint() -> int:
    """Ruff, mypy and the import rules, side by side; the exit code is that of the first one of them that finds something."""
    tools = ENVIRONMENT / "bin"
    checks = [
        [str(tools / "ruff"), "check", "--quiet", "."],
        [str(tools / "ruff"), "format", "--check", "--quiet", "."],
        [str(tools / "mypy"), "--no-error-summary"],
        [str(tools / "lint-imports"), "--no-cache"],
    ]
    for check in checks:
        say("lint: " + " ".join([Path(check[0]).name, *check[1:]]))
    running = [
        subprocess.Popen(check, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for check in checks
    ]
    with ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda process: process.communicate()[0], running))
    for process, output in zip(running, outputs, strict=True):
        if process.returncode:
            print(output, file=sys.stderr)
    return next((process.returncode for process in running if process.returncode), 0)


def lint_and_compile() -> int:
    """Lint, while a processor that it leaves idle collects the tests, which compiles them and whatever they import. Else all
    workers begin with that at once in a new clone, each for itself. What is wrong with a test, the tests' own run says."""
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pytest", "--collect-only", "--quiet", "--quiet"]
    collecting = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        faults = lint()
        if faults:
            collecting.terminate()
        return faults
    finally:
        collecting.wait()


def check(arguments: list[str]) -> int:
    """Lint, and beside it the tests that start no broker, database server, browser or service. The exit code is that of
    lint, else of the tests."""
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pytest", "-q", "--pure", "tests/unit", "tests/contract"]
    with ThreadPoolExecutor() as pool:
        faults = pool.submit(lint)
        tested = subprocess.run([*command, *side_by_side(PROCESSORS), *arguments], cwd=ROOT, check=False)
        return faults.result() or tested.returncode


def test_again() -> int:
    """Run the tests that failed in the last run once more, one after the other and with nothing beside them, if they are few.
    One that passes now is a defect all the same, of the test or of what it found: it is named for whoever looks into it."""
    record = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    failed = list(json.loads(record.read_text())) if record.exists() else []
    if not 0 < len(failed) <= FEW_FAILURES:
        return 1
    say("These failed among all others, and are run once more, alone. Whatever comes of it, look into them:")
    for test in failed:
        say(f"  {test}")
    return become(["-m", "pytest", *failed])


def side_by_side(workers: int) -> list[str]:
    """Pytest's arguments for many tests: each worker has its own broker and databases, and takes one group after the other (see
    tests/conftest.py), the longest first."""
    return ["--numprocesses", str(workers), "--dist", "loadscope", "--no-loadscope-reorder"] if PROCESSORS > 1 else []


def become(arguments: list[str], through: Path | None = None) -> int:
    """Replace this process by the environment's Python, so that signals reach what matters; ``through`` is a program that
    becomes the command that it is given."""
    command = [*([str(through)] if through else []), str(ENVIRONMENT / "bin" / "python"), *arguments]
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execv(command[0], command)


def run(command: list[str], environment: dict[str, str], folder: Path | None = None) -> None:
    """Quietly; what it printed is shown when it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        print(done.stdout.decode(errors="replace")[-5000:], file=sys.stderr)
        raise SystemExit(f"This failed with exit code {done.returncode}: {' '.join(command)}")


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
