"""The service's signatures: sealed documents, statements, evidence, time-stamps."""
