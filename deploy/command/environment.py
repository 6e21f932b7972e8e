"""Where the settings of ``countersign`` come from."""

from collections.abc import MutableMapping
from pathlib import Path

from contracts.runtime.settings import FILE
from deploy import suite
from deploy.services import SERVICES

REQUIRED = ("LINK_SECRET", "AMQP_URL", "BLOB_URL", *(f"{service.upper()}_DATABASE_URL" for service in SERVICES))
"""Some of the settings without which no service starts."""


def complete(environment: MutableMapping[str, str]) -> Path | None:
    """Put the settings of the suite that ``up`` keeps in VAR_DIR into the environment, and return the folder.

    None, and nothing is changed, where there is no such suite, or the environment is that of a deployment: LINK_SECRET is in
    it, or others of REQUIRED are and VAR_DIR is not. Its own settings come first.
    """
    folder = Path(environment.get("VAR_DIR") or "var").resolve()
    set_here = [name for name in REQUIRED if environment.get(name) or environment.get(f"{name}{FILE}")]
    deployed = bool(set_here)
    if "LINK_SECRET" in set_here or (deployed and not environment.get("VAR_DIR")) or not suite.is_kept_in(folder):
        return None
    own_settings = suite.settings_in(environment)
    for key in [key for key in environment if key.endswith(FILE) and key.removesuffix(FILE) in own_settings]:
        del environment[key]
    environment.update(suite.environment_in(folder, own_settings))
    return folder
