"""Documents that come in: prepared by rendering, brought together, filled with variables."""
