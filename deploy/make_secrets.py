"""Fresh secrets for trying the suite out with containers. Only the standard library; nothing is stored but what you redirect.

    python3 deploy/make_secrets.py compose > deploy/.env
    python3 deploy/make_secrets.py kubernetes | kubectl -n countersign apply -f -

Make them once: the databases and the broker keep the passwords that they were started with. `deploy/RUNBOOK.md` lists what an
installation for real work needs in its secrets.
"""

import json
import secrets
import sys

SERVICES = ("gateway", "templates", "submissions", "rendering", "notifications", "webhooks")


def main(arguments: list[str]) -> int:
    kinds = {"compose": compose, "kubernetes": kubernetes}
    if len(arguments) != 1 or arguments[0] not in kinds:
        print(__doc__, file=sys.stderr)
        return 2
    print(kinds[arguments[0]](), end="")
    return 0


def compose() -> str:
    """The lines of an environment file."""
    names = ("RABBITMQ_PASSWORD", "POSTGRES_PASSWORD", "LINK_SECRET", "KEY_ENCRYPTION_SECRET", "ADMIN_API_KEY")
    return "".join(f"{name}={secrets.token_hex(24)}\n" for name in names)


def kubernetes() -> str:
    """Secrets for `overlays/try-out`, as a List in JSON."""
    broker, database = secrets.token_hex(24), secrets.token_hex(24)
    values: dict[str, dict[str, str]] = {
        "countersign-rabbitmq": {"RABBITMQ_DEFAULT_USER": "countersign", "RABBITMQ_DEFAULT_PASS": broker},
        "countersign-postgres": {"POSTGRES_USER": "countersign", "POSTGRES_PASSWORD": database},
        "countersign": {
            "AMQP_URL": f"amqp://countersign:{broker}@rabbitmq:5672/%2F",
            "LINK_SECRET": secrets.token_hex(24),
        },
    }
    for service in SERVICES:
        url = f"postgresql://countersign:{database}@postgres/{service}"
        values[f"countersign-{service}"] = {f"{service.upper()}_DATABASE_URL": url}
    values["countersign-gateway"] |= {
        "KEY_ENCRYPTION_SECRET": secrets.token_hex(24),
        "ADMIN_EMAIL": "admin@example.com",
        "ADMIN_API_KEY": secrets.token_hex(24),
    }
    items = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
        for name, data in values.items()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
