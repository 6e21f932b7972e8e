"""CycloneDX's own schema looks at bills of materials: a JSON list of them comes in, one of faults (or null) goes out.

A process of its own: its jsonschema knows all formats, that of the gateway's tests only those of the gateway's image.
"""

import json
import sys
from functools import cache

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from jsonschema import _format

# Bills have most of their addresses in common, and the grammar takes 10 ms of a processor for each.
_format._rfc3987_is_valid_syntax = cache(_format._rfc3987_is_valid_syntax)


def main() -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    faults = (validator.validate_str(bill) for bill in json.load(sys.stdin))
    json.dump([fault and str(fault) for fault in faults], sys.stdout)


if __name__ == "__main__":
    main()
