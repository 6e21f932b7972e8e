"""Material for tests of batches: the roles of a lease, with their fields."""

from contracts.types import FieldDefinition
from services.gateway.api.requests.batches.columns import Roles
from tests.support.material.submissions import field

FIELDS = [
    field("Tenant", "Rent", "number"),
    field("Tenant", "City"),
    field("Landlord", "City"),
    field("Landlord", "Rooms", "multiple", options=["kitchen", "hall", "attic; large"]),
    field("Landlord", "No. of keys"),
]


def roles(*names: str, fields: list[FieldDefinition] | None = None) -> Roles:
    """The roles of a template that has these fields."""
    chosen = FIELDS if fields is None else fields
    return Roles(list(names), {name: [(one.name or "", one) for one in chosen if one.role == name] for name in names})


LEASE, ALONE = roles("Tenant", "Landlord"), roles("Tenant")
