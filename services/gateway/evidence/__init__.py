"""The evidence of a submission as a ZIP (docs/evidence.md): its members, its bytes, and the program that checks it."""
