"""Fresh secrets for trying the suite out with containers. Only the standard library; nothing is stored but what you redirect.

    python3 deploy/make_secrets.py compose > deploy/.env
    python3 deploy/make_secrets.py kubernetes | kubectl -n countersign create -f -

Make them once; `create` refuses a second time. What only the broker and the database must agree about with the services, the
passwords of each service's own user and role, may be made again (`deploy/RUNBOOK.md`, "A user for each service"):

    python3 deploy/make_secrets.py compose-roles >> deploy/.env
    python3 deploy/make_secrets.py kubernetes-roles | kubectl -n countersign apply -f -

`deploy/RUNBOOK.md` lists what an installation for real work needs in its secrets.
"""

import base64
import hashlib
import json
import secrets
import sys
from collections.abc import Mapping

SERVICES = ("gateway", "templates", "submissions", "rendering", "notifications", "webhooks")
OPERATOR = "countersign"
"""The broker's user who may do everything, and the database's superuser: for people, no service has it."""


def main(arguments: list[str]) -> int:
    kinds = {
        "compose": compose,
        "compose-roles": compose_roles,
        "kubernetes": kubernetes,
        "kubernetes-roles": kubernetes_roles,
    }
    if len(arguments) != 1 or arguments[0] not in kinds:
        print(__doc__, file=sys.stderr)
        return 2
    print(kinds[arguments[0]](), end="")
    return 0


def compose() -> str:
    """The lines of an environment file."""
    names = ("POSTGRES_PASSWORD", "LINK_SECRET", "KEY_ENCRYPTION_SECRET", "ADMIN_API_KEY")
    return "".join(f"{name}={secrets.token_hex(24)}\n" for name in names) + compose_roles()


def compose_roles() -> str:
    """Those lines that concern a service's own user and role."""
    operator, broker, database = secrets.token_hex(24), _passwords(), _passwords()
    lines = [f"RABBITMQ_PASSWORD={operator}\n"]
    lines += [f"{service.upper()}_RABBITMQ_PASSWORD={broker[service]}\n" for service in SERVICES]
    lines += [f"{service.upper()}_POSTGRES_PASSWORD={database[service]}\n" for service in SERVICES]
    users = json.dumps(broker_users(operator, broker), separators=(",", ":"))
    return "".join(lines) + f"RABBITMQ_USERS='{users}'\n"


def kubernetes() -> str:
    """Secrets for `overlays/try-out`."""
    values = _roles()
    values["countersign"] = {"LINK_SECRET": secrets.token_hex(24)}
    values["countersign-postgres"] |= {"POSTGRES_USER": OPERATOR, "POSTGRES_PASSWORD": secrets.token_hex(24)}
    values["countersign-gateway"] |= {
        "KEY_ENCRYPTION_SECRET": secrets.token_hex(24),
        "ADMIN_EMAIL": "admin@example.com",
        "ADMIN_API_KEY": secrets.token_hex(24),
    }
    return _secrets(values)


def kubernetes_roles() -> str:
    """Return what of these secrets concerns a service's own user and role; `apply` leaves the rest of them as it is."""
    return _secrets(_roles())


def broker_users(operator: str, services: Mapping[str, str]) -> dict[str, object]:
    """Definitions that RabbitMQ imports: its users, with these passwords."""
    passwords = {OPERATOR: operator} | {f"countersign-{name}": password for name, password in services.items()}
    return {
        "users": [
            {
                "name": name,
                "password_hash": _password_hash(password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "administrator" if name == OPERATOR else "",
            }
            for name, password in passwords.items()
        ]
    }


def _password_hash(password: str) -> str:
    """As RabbitMQ keeps it: four random bytes, and the SHA-256 of these and the password."""
    salt = secrets.token_bytes(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def _passwords() -> dict[str, str]:
    return {service: secrets.token_hex(24) for service in SERVICES}


def _roles() -> dict[str, dict[str, str]]:
    """By secret and key."""
    operator, broker, database = secrets.token_hex(24), _passwords(), _passwords()
    values = {
        "countersign-rabbitmq": {
            "users.json": json.dumps(broker_users(operator, broker)),
            "OPERATOR_AMQP_URL": f"amqp://{OPERATOR}:{operator}@rabbitmq:5672/%2F",
        },
        "countersign-postgres": {f"{name.upper()}_POSTGRES_PASSWORD": database[name] for name in SERVICES},
    }
    for service in SERVICES:
        values[f"countersign-{service}"] = {
            "AMQP_URL": f"amqp://countersign-{service}:{broker[service]}@rabbitmq:5672/%2F",
            f"{service.upper()}_DATABASE_URL": f"postgresql://{service}:{database[service]}@postgres/{service}",
        }
    return values


def _secrets(values: Mapping[str, Mapping[str, str]]) -> str:
    """A List in JSON."""
    items = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
        for name, data in values.items()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
