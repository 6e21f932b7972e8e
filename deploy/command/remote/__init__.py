"""The commands of ``countersign`` for people who integrate: they ask an installation by HTTP, as any program does, and know
nothing else of it. They need no package but requests, so that they run on any machine (``pipx install .``)."""
