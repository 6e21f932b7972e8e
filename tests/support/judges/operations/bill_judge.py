"""CycloneDX's own schema looks at bills of materials: a JSON list of them comes in, one of faults (or null) goes out.

A process of its own: its jsonschema knows all formats, that of the gateway's tests only those of the gateway's image.
"""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main() -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    faults = (validator.validate_str(bill) for bill in json.load(sys.stdin))
    json.dump([fault and str(fault) for fault in faults], sys.stdout)


if __name__ == "__main__":
    main()
