"""Batches: a file of rows, each of which becomes a submission of its own, in the background and at a pace (docs/bulk.md).

A row is made in the transaction that notes that it was: whatever is killed when, none is made twice and none is lost.
"""
