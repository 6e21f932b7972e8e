"""Which services there are, and where the project keeps what they are run with."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS = ("templates", "submissions", "rendering", "notifications", "webhooks")
SERVICES = (*WORKERS, "gateway")
DEFINITIONS = ROOT / "deploy/kubernetes/components/broker-and-database/definitions.json"
"""What RabbitMQ is to know; ``deploy/broker_roles.py`` records it."""
