"""Child processes that open strangers' files: their walls, their tasks, and the pool that runs them."""
