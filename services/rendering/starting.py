"""What must be so before a process of this service starts."""

from contracts.errors import CannotStart
from contracts.runtime.data.database import Database
from services.rendering import queries
from services.rendering.children import confinement
from services.rendering.jobs.sealing.certificates import FILE
from services.rendering.settings import Settings


def check(settings: Settings, database: Database) -> None:
    """Raises CannotStart."""
    _check_walls(settings)
    _check_key(settings, database)


def _check_walls(settings: Settings) -> None:
    """Refuse to start, where the operator wants strangers' files opened only by children that the kernel holds back wholly."""
    if settings.rendering_without_walls == "refuse" and (lacking := confinement.lacking()):
        raise CannotStart(
            f"RENDERING_WITHOUT_WALLS is refuse, and {'; '.join(lacking)}. Start it on a machine that has these walls, or set"
            " RENDERING_WITHOUT_WALLS=allow."
        )


def _check_key(settings: Settings, database: Database) -> None:
    """The key that sealed documents is still there. A new key would be made silently otherwise, with a root that nobody trusts.

    The database is asked first: whoever sealed meanwhile has made the key before.
    """
    directory = settings.certificates
    if settings.has_own_key or settings.certificate_new_chain or directory is None:
        return
    if not database.read(queries.has_sealed) or (directory / FILE).exists():
        return
    raise CannotStart(
        f"CERTIFICATE_DIR ({directory}) has no {FILE}, but documents were sealed already: either it is not the folder that was"
        " used, or its key is lost. Set CERTIFICATE_DIR to the right folder or restore it from the backup. If the key is lost"
        " for good, start once with CERTIFICATE_NEW_CHAIN=true: then a new key and a new root are made. What was sealed before"
        " stays valid; keep the old root.crt in TRUST_ANCHORS_DIR if you have it."
    )
