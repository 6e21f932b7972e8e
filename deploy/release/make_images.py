"""Builds the images from a commit: six for production and the one for trying, with what is in each and how it came about.

    python3 -m deploy.release.make_images [--commit HEAD] [--tag VERSION] [--sign KEY.pem] [IMAGE ...]

It needs git, docker or podman, and no other package of Python. An image is called `<prefix>/<service>:<tag>`. Beside it come,
in `dist/images`, its bill of materials (`<image>.cdx.json`) and its provenance (`<image>.provenance.json`; with `--sign` also
signed, as `<image>.provenance.dsse.json`); `docs/install.md` says how they are checked.

What is built is the commit, not what lies in the checkout: its files with the modes of a checkout, and the time of the commit,
or `SOURCE_DATE_EPOCH` (seconds), as the time of everything. On the same base, from the same packages of Debian, the same commit
gives the same image. Nothing is taken from a cache: a layer from there may have another time, and Podman 4.3 takes one with the
revision of another commit.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from deploy.release import attest
from deploy.services import ROOT, SERVICES

TRIAL = "trial"
IMAGES = (*SERVICES, TRIAL)
BASE = "docker.io/library/python:3.11-slim-bookworm"
FOLDER = Path("dist") / "images"
INVENTORY = Path(__file__).parent / "image" / "inventory.py"
ENGINES = ("podman", "docker")
_EPOCH = "SOURCE_DATE_EPOCH"
_BUILDER = "urn:countersign:make-images"


class NotBuilt(Exception):
    """An image could not be built or described; the message says why."""


@dataclass(frozen=True)
class Engine:
    """What builds and runs images. The flags are those of a machine: what its builds must see, or may not use."""

    program: str
    build_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ("--network", "none")
    environment: Mapping[str, str] | None = None
    within: float | None = None

    def run(self, *arguments: str | Path) -> str:
        """Return what the program printed. Raises ``NotBuilt`` with the end of its words."""
        command = [self.program, *map(str, arguments)]
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, check=False, timeout=self.within
            )
        except FileNotFoundError as error:
            raise NotBuilt(f"{self.program} is not installed") from error
        except subprocess.TimeoutExpired as error:
            raise NotBuilt(f"{' '.join(command)} took more than {self.within:.0f} s") from error
        if done.returncode:
            output = f"{done.stdout[-3000:]}{done.stderr[-3000:]}".strip()
            raise NotBuilt(f"{' '.join(command)}: exit code {done.returncode}\n{output}")
        return done.stdout

    def build(self, recipe: "Recipe", context: Path, name: str, *, cached: bool = False, stage: str = "") -> None:
        """Build an image, or what it is at a stage of its Dockerfile, from a folder with the project's files, and name it."""
        arguments = {**recipe.arguments, **({_EPOCH: str(recipe.epoch)} if recipe.epoch is not None else {})}
        flags = [
            *self.build_flags,
            *(() if cached else ("--no-cache",)),
            "--file",
            context / recipe.dockerfile,
            "--tag",
            name,
        ]
        flags += ["--target", stage] if stage else []
        for key, value in arguments.items():
            flags += ["--build-arg", f"{key}={value}"]
        if self.program == "docker":
            # Without an attestation of its own: with one, the image would be an index that has another digest at each build.
            rewritten = () if recipe.epoch is None else ("--output", f"type=docker,name={name},rewrite-timestamp=true")
            self.run("buildx", "build", "--provenance=false", *rewritten, *flags, context)
        else:
            self.run("build", *(() if recipe.epoch is None else ("--timestamp", str(recipe.epoch))), *flags, context)

    def inspect(self, name: str) -> attest.Image:
        """Return the digests of an image."""
        (image,) = json.loads(self.run("image", "inspect", name))
        configuration = image["Id"].removeprefix("sha256:")
        manifest = image.get("Digest") or (image.get("Descriptor") or {}).get("digest") or configuration
        return attest.Image(name, manifest.removeprefix("sha256:"), configuration)

    def pinned(self, base: str, *, pull: bool) -> tuple[str, str]:
        """Return the base image by its digest, and that in hexadecimal."""
        if pull:
            self.run("pull", "--quiet", base)
        (image,) = json.loads(self.run("image", "inspect", base))
        name = by_digest(base, image.get("RepoDigests") or [])
        return name, name.rpartition("@sha256:")[2]

    def inventory(self, name: str) -> dict[str, object]:
        """Return what is found in an image (``image/inventory.py``, run inside it)."""
        program = INVENTORY.read_text(encoding="utf-8")
        output = self.run("run", "--rm", *self.run_flags, "--entrypoint", "python", name, "-c", program)
        content: dict[str, object] = json.loads(output)
        return content

    def version(self) -> str:
        """Return the program's name and version."""
        return self.run("--version").strip()


@dataclass(frozen=True)
class Recipe:
    """What an image is built of: its Dockerfile, its arguments and the time of its files (None: when they were written)."""

    what: str
    dockerfile: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    epoch: int | None = None

    @property
    def lock(self) -> str:
        return f"deploy/locks/{'all' if self.what == TRIAL else self.what}.txt"


def recipe(what: str, *, revision: str = "", base: str = "", epoch: int | None = None) -> Recipe:
    """Return how one of ``IMAGES`` is built."""
    arguments = {} if what == TRIAL else {"SERVICE": what}
    arguments |= {"REVISION": revision} if revision else {}
    arguments |= {"PYTHON": base} if base else {}
    dockerfile = "deploy/trial.Dockerfile" if what == TRIAL else "services/Dockerfile"
    return Recipe(what, dockerfile, arguments, epoch)


def by_digest(base: str, names: Sequence[str]) -> str:
    """Return the name of an image by its digest: by the one that ``base`` ends with, else by that of its repository among those
    that it is ``names`` by here, which may be of others, too. Raises ``NotBuilt``."""
    name, _, digest = base.partition("@")
    repository = name if ":" not in name.rpartition("/")[2] else name.rpartition(":")[0]
    if not digest:
        if not names:
            raise NotBuilt(f"{base} has no digest here: pull it from a registry")
        names_of_repository = [known_name for known_name in names if known_name.startswith(f"{repository}@")]
        digest = (names_of_repository or names)[0].rpartition("@")[2]
    return f"{repository}@{digest}"


@contextmanager
def exported(commit: str, root: Path = ROOT) -> Iterator[Path]:
    """Have a folder with the files of a commit, with the modes of a checkout: from others, another image would come."""
    with tempfile.TemporaryDirectory(prefix="countersign-images-") as folder:
        command = ["git", "-c", "tar.umask=0022", "archive", commit]
        archive = subprocess.run(command, cwd=root, capture_output=True, check=False)
        if archive.returncode:
            raise NotBuilt(f"git archive {commit}: {archive.stderr.decode(errors='replace').strip()}")
        subprocess.run(["tar", "--extract", "--preserve-permissions", "-C", folder], input=archive.stdout, check=True)
        Path(folder).chmod(0o755)
        yield Path(folder)


def describe(
    engine: Engine,
    image_recipe: Recipe,
    name: str,
    context: Path,
    built: attest.Built,
    folder: Path,
    key: Path | None = None,
) -> list[Path]:
    """Write what is in a built image and how it came about into ``folder``; return the files."""
    project = tomllib.loads((context / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    created = datetime.fromtimestamp(image_recipe.epoch or 0, UTC)
    bill = attest.bill(
        f"countersign-{image_recipe.what}", project["version"], built.commit, created, engine.inventory(name)
    )
    files = {f"{image_recipe.what}.cdx.json": attest.written(bill)}
    (bill_name,) = files
    statement = attest.written(attest.provenance(engine.inspect(name), built, files[bill_name], bill_name))
    files[f"{image_recipe.what}.provenance.json"] = statement
    if key is not None:
        files[f"{image_recipe.what}.provenance.dsse.json"] = attest.written(attest.envelope(statement, key))
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return [folder / file for file in files]


def make(engine: Engine, what: str, chosen: argparse.Namespace, context: Path, commit: str) -> None:
    """Build one image and describe it."""
    began = datetime.now(UTC)
    base, digest = engine.pinned(chosen.base, pull=not chosen.no_pull)
    image_recipe = recipe(what, revision=commit, base=base, epoch=epoch_of(commit))
    name = f"{chosen.prefix}/{what}:{chosen.tag or version(context)}"
    engine.build(image_recipe, context, name)
    built = attest.Built(
        what=what,
        commit=commit,
        source=chosen.source or origin(),
        arguments={**image_recipe.arguments, _EPOCH: str(image_recipe.epoch)},
        base=base,
        base_digest=digest,
        files=attest.hashes(context, [image_recipe.dockerfile, image_recipe.lock, "deploy/release/image"]),
        builder=chosen.builder,
        engine=engine.version(),
        began=began,
        ended=datetime.now(UTC),
        invocation=str(uuid.uuid4()),
    )
    files = describe(engine, image_recipe, name, context, built, chosen.output, chosen.sign)
    image = engine.inspect(name)
    print(f"{name}\n  id sha256:{image.configuration}\n  manifest sha256:{image.manifest}")
    print("".join(f"  {file}\n" for file in files), end="", flush=True)


def epoch_of(commit: str) -> int:
    """Return the time of a commit, or what ``SOURCE_DATE_EPOCH`` says. Raises ``NotBuilt``."""
    seconds = os.environ.get(_EPOCH) or git("show", "--no-patch", "--format=%ct", commit)
    if not seconds.isdecimal():
        raise NotBuilt(f"{_EPOCH} must be a whole number of seconds")
    return int(seconds)


def version(root: Path) -> str:
    """Return the version that the project's files say they are of."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def origin() -> str:
    """Return where the clone has its commits from, without what somebody logs in with; empty where it is from nowhere."""
    remote = subprocess.run(
        ["git", "remote", "get-url", "origin"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    parts = urlsplit(remote.stdout.strip())
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.scheme else ""


def git(*arguments: str) -> str:
    """Return what git says of this clone. Raises ``NotBuilt``."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NotBuilt("git is not installed") from error
    if done.returncode:
        raise NotBuilt(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python3 -m deploy.release.make_images", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("images", nargs="*", metavar="IMAGE", help=f"of {', '.join(IMAGES)}; all by default")
    parser.add_argument("--commit", default="HEAD", help="what is built (HEAD)")
    parser.add_argument("--engine", choices=ENGINES, help="the first of these that is installed by default")
    parser.add_argument("--prefix", default="countersign", help="what the images' names begin with (countersign)")
    parser.add_argument("--tag", help="how their names end (the version)")
    parser.add_argument(
        "--base", default=BASE, metavar="IMAGE", help=f"Python's image; may end with @sha256:... ({BASE})"
    )
    parser.add_argument("--no-pull", action="store_true", help="take the base image as it is here")
    parser.add_argument(
        "--build-option", action="append", default=[], metavar="OPTION",
        help="what this machine's builds need, such as --build-option=--network=host",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, default=FOLDER, metavar="DIR", help=f"for what describes them ({FOLDER})"
    )
    parser.add_argument(
        "--sign", type=Path, metavar="KEY", help="a private key (PEM, ECDSA or RSA) that signs the provenance"
    )
    parser.add_argument(
        "--builder", default=_BUILDER, metavar="URI", help=f"who builds, in the provenance ({_BUILDER})"
    )
    parser.add_argument(
        "--source", metavar="URI", help="where the commits are had from, in the provenance (git's origin)"
    )
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.images if name not in IMAGES]:
        parser.error(f"{', '.join(unknown)} is no image: there are {', '.join(IMAGES)}")
    program = chosen.engine or next((name for name in ENGINES if shutil.which(name)), "")
    if not program:
        parser.error(f"neither of {', '.join(ENGINES)} is installed")
    try:
        commit = git("rev-parse", "--verify", f"{chosen.commit}^{{commit}}")
        if chosen.commit == "HEAD" and git("status", "--porcelain"):
            print("What is not committed is not built.", file=sys.stderr)
        with exported(commit) as context:
            for what in chosen.images or IMAGES:
                make(Engine(program, build_flags=tuple(chosen.build_option)), what, chosen, context, commit)
    except (NotBuilt, attest.NotSigned) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
