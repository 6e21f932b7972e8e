"""Formulas: values of fields that are computed from others, and conditions as expressions (docs/formulas.md). Pure.

One grammar for ``formula``, ``condition`` and ``required_if``. The server parses; the browser gets the tree and reckons by the
same rules (``pages/static/form/values/formulas.js``), on the same cases (``tests/support/formulas/cases.json``).
"""
