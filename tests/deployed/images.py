"""The images of the manifests: ours from their Dockerfile, those of others pulled, or made here where no registry answers."""

import contextlib
import hashlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from contracts.runtime.monitoring.build import version
from deploy.release import make_images
from deploy.release.make_images import Engine, Recipe
from deploy.services import SERVICES
from tests.deployed.engine import FOLDER, EngineFailed, Unable, environment, podman, run

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).parent / "stand_ins"
PYTHON = "docker.io/library/python:3.11-slim-bookworm"
BROKER = "docker.io/library/rabbitmq:3.13"
DATABASE = "docker.io/library/postgres:15"
CURRENT, BEFORE = version(), "before"
"""Tags of our images: of the working tree, as the manifests name it, and of the release before it."""
EPOCH = 1_000_000_000
"""The time of all files in images that are built here."""
AT_ONCE = 3


def image_of(service: str, tag: str = CURRENT) -> str:
    return f"docker.io/countersign/{service}:{tag}"


def full_name(image: str) -> str:
    """The name in podman's storage of an image that a manifest names."""
    return f"docker.io/{image}" if "/" in image else f"docker.io/library/{image}"


def provide() -> None:
    """All images of the try-out overlay, as the working tree describes them; what has not changed is taken from the cache."""
    began = time.monotonic()
    mounts = machine_mounts()
    _provide_base()
    # Alone: the others have its first stages from the cache.
    keep_stage("webhooks", "small", mounts)
    _build_current("webhooks", mounts)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        # What takes longest comes first.
        services = sorted({*SERVICES} - {"webhooks"}, key=lambda service: service != "rendering")
        builds = [threads.submit(_build_current, service, mounts) for service in services]
        builds += [
            threads.submit(_pull_or, stand_in, name, mounts)
            for name, stand_in in ((BROKER, "rabbitmq"), (DATABASE, "postgres"))
        ]
        for each in builds:
            each.result()
    with contextlib.suppress(EngineFailed):  # of a build that was broken off a container is left, which uses its image
        podman("image", "prune", "--force", within=300)
    say(f"all images are there after {time.monotonic() - began:.0f} s")


def _build_current(service: str, mounts: list[str]) -> None:
    keep_stage(service, "packages", mounts)
    build(service, ROOT, CURRENT, mounts, revision())


def keep_stage(service: str, stage: str, mounts: list[str]) -> None:
    """Give a stage that an image only copies from a name, or it would be cleared away after each run, and built anew in the next."""
    recipe = make_images.recipe(service, epoch=EPOCH)
    _build(recipe, image_of(f"{service}-{stage}"), ROOT, mounts, stage=stage)


def build(service: str, context: Path, tag: str, mounts: list[str], commit: str) -> None:
    """One service's image from the Dockerfile in ``context``. In older commits each service has its own."""
    own = f"services/{service}/Dockerfile"
    if (context / own).exists():
        recipe = Recipe(service, own, {"REVISION": commit})
    else:
        recipe = make_images.recipe(service, revision=commit, epoch=_epoch(context))
    _build(recipe, image_of(service, tag), context, mounts)


def build_trial() -> str:
    """The image for trying, of the working tree; its name."""
    mounts = machine_mounts()
    _provide_base()
    keep_stage("trial", "packages", mounts)
    name = image_of("trial")
    _build(make_images.recipe("trial", epoch=EPOCH), name, ROOT, mounts)
    return name


def build_commit(service: str, commit: str) -> None:
    """The service's image as ``commit`` describes it, with the tag ``BEFORE``."""
    with make_images.exported(commit, ROOT) as context:
        build(service, context, BEFORE, machine_mounts(), commit)


def commit_before(root: Path = ROOT) -> str:
    """What the working tree is an upgrade of: the commit of the release before it.

    This is the rule: the commit that ``UPGRADED_FROM`` names; else the newest release in the history (a tag such as ``v0.2.0``)
    whose images are others than those of the working tree; where there is none, the newest commit whose images are.

    Raises ``Unable`` where the history has no such commit, as in a shallow clone.
    """
    if chosen := os.environ.get("UPGRADED_FROM"):
        return _git(root, "rev-parse", "--verify", f"{chosen}^{{commit}}")
    changed = bool(_git(root, "status", "--porcelain", "--", *_MADE_OF))
    for tag in _git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort", "-version:refname").split():
        if _RELEASE.fullmatch(tag) and (changed or _git(root, "diff", "--name-only", tag, "HEAD", "--", *_MADE_OF)):
            return _git(root, "rev-parse", "--verify", f"{tag}^{{commit}}")
    if changed:
        return _git(root, "rev-parse", "HEAD")
    last = _git(root, "log", "--first-parent", "-1", "--format=%H", "HEAD", "--", *_MADE_OF)
    return _git(root, "rev-parse", "--verify", f"{last}^1")


@cache
def revision() -> str:
    """What the images of the working tree are told that they are made of: the last commit, and whether anything differs from it."""
    return _git(ROOT, "rev-parse", "HEAD") + (
        "-changed" if _git(ROOT, "status", "--porcelain", "--", *_MADE_OF) else ""
    )


_MADE_OF = ("contracts", "services", "deploy/locks", "deploy/release/image", ":(exclude)*.md")
"""What images are made of, where it matters to how they run: pages for readers lie among it."""
REVISION = "org.opencontainers.image.revision"
"""The label of an image that says what it was made of."""
_RELEASE = re.compile(r"v\d+\.\d+\.\d+")


def provide_before(commit: str) -> None:
    """The images of all services as ``commit`` describes them. Those that say that they were made of it are there already."""
    began = time.monotonic()
    said = podman(
        "images", "--format", f'{{{{.Repository}}}}:{{{{.Tag}}}} {{{{index .Labels "{REVISION}"}}}}'
    ).splitlines()
    missing = [service for service in SERVICES if f"{image_of(service, BEFORE)} {commit}" not in said]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        # What takes longest comes first.
        services = sorted(missing, key=lambda service: service != "rendering")
        for each in [threads.submit(build_commit, service, commit) for service in services]:
            each.result()
    say(f"the images of {commit[:12]} are there after {time.monotonic() - began:.0f} s")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unable(
            f"no earlier version is found (in a shallow clone, git fetch --unshallow --tags): {done.stderr.strip()}"
        )
    return done.stdout.strip()


def has(commit: str, path: str) -> bool:
    """Whether there is such a file in the commit."""
    found = subprocess.run(["git", "cat-file", "-e", f"{commit}:{path}"], cwd=ROOT, capture_output=True, check=False)
    return found.returncode == 0


def build_options(mounts: list[str]) -> list[str]:
    """What builds need here: the machine's own network, which a proxy may need, and no namespaces."""
    options = ["--isolation=chroot", "--network=host", "--pull-never"]
    return options + [f"--volume={mount}" for mount in mounts]


def _build(recipe: Recipe, name: str, context: Path, mounts: list[str], *, stage: str = "") -> None:
    began = time.monotonic()
    engine = Engine("podman", ("--layers", *build_options(mounts)), environment=environment(), within=1200)
    engine.build(recipe, context, name, cached=True, stage=stage)
    say(f"built {name} in {time.monotonic() - began:.0f} s")


def _epoch(context: Path) -> int | None:
    """The same time for all, so that layers are taken from the cache; none where a commit's Dockerfile knows of no such time:
    its compiled files are good only as long as their sources have the time that they had."""
    return EPOCH if "SOURCE_DATE_EPOCH" in (context / "services" / "Dockerfile").read_text() else None


def machine_mounts() -> list[str]:
    """How this machine reaches its packages (pip's and apt's configuration with what it names, certificates), read-only."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    mounted = {certificates} if certificates.exists() else set()
    said = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    values: dict[str, list[str]] = {}
    for line in said.splitlines():
        name, _, value = line.partition("=")
        values.setdefault(name.rpartition(".")[2], []).extend(value.strip("'\"").replace("\\n", " ").split())
    lines = [f"{name} = {' '.join(dict.fromkeys(value))}\n" for name, value in sorted(values.items())]
    pip_configuration = FOLDER / "pip.conf"
    pip_configuration.write_text("[global]\n" + "".join(lines))
    for value in itertools.chain(*values.values()):
        # The folder above one of an index: its pages may point beside it.
        path = Path(urlsplit(value).path).parent if value.startswith("file://") else Path(value)
        if path.is_absolute() and path.exists():
            mounted.add(path)
    apt = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Check-")
    apt_configuration = FOLDER / "apt.conf"
    apt_configuration.write_text("".join(f"{line}\n" for line in apt.splitlines() if line.startswith(wanted)))
    return [
        *(f"{path}:{path}:ro" for path in sorted(mounted)),
        f"{pip_configuration}:/etc/pip.conf:ro",
        f"{apt_configuration}:/etc/apt/apt.conf.d/99machine:ro",
    ]


def _provide_base() -> None:
    if _is_there(PYTHON) or _pulled(PYTHON):
        return
    say(f"{PYTHON} cannot be pulled here: Debian bookworm with its Python 3.11 stands in for it")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="countersign-base-", dir=FOLDER) as folder:
        packages = "ca-certificates,python3,python3-venv,python3-pip"
        mirror = [uri] if (uri := _debian_mirror()) else []
        run("debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", folder, *mirror, within=600)
        root = Path(folder)
        (root / "usr/bin/python").symlink_to("python3")
        (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink()
        for downloaded in [*root.glob("var/cache/apt/archives/*.deb"), *root.glob("var/lib/apt/lists/*_*")]:
            downloaded.unlink()
        archive = FOLDER / "base.tar"
        run("tar", "--create", "--file", archive, "--directory", folder,
            "--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", ".")  # fmt: skip
        podman("import", archive, PYTHON)
        archive.unlink()
    say(f"made in {time.monotonic() - began:.0f} s")


def _debian_mirror() -> str:
    """Where this machine has its Debian packages from; empty where it is no Debian."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Codename: bookworm"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    return said.partition("\n")[0].strip()


def _pull_or(stand_in: str, name: str, mounts: list[str]) -> None:
    """The image from its registry, else built from ``stand_ins``, again when what it is built from has changed."""
    folder = STAND_INS / stand_in
    made_of = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.iterdir()))).hexdigest()
    stamp = FOLDER / f"stand-in-{stand_in}"
    if _is_there(name) and (not stamp.exists() or stamp.read_text() == made_of):
        return
    if not stamp.exists() and _pulled(name):
        return
    say(f"{name} cannot be pulled here: Debian's package stands in for it")
    _build(Recipe(stand_in, "Dockerfile"), name, folder, mounts)
    stamp.write_text(made_of)


def _is_there(name: str) -> bool:
    return bool(podman("images", "--quiet", name).strip())


def _pulled(name: str) -> bool:
    try:
        podman("pull", "--quiet", name, within=300)
    except EngineFailed:
        return False
    return True


def say(message: str) -> None:
    print(f"deployed: {message}", file=sys.stderr, flush=True)
