"""``python -m tests.support.services.specimens serve | background | migrate | check | retry``: as ``python -m services.<name>``."""

import services
from contracts.runtime.main import run

services.__path__.extend(__import__("tests.support.services.specimens", fromlist=["__path__"]).__path__)
run("specimen")
