"""The context of a service's methods: settings, database, files, the bus. Everything is made when it is first used."""

from functools import cached_property
from typing import Generic, TypeVar

from contracts.errors import ServiceError
from contracts.rpc.health import Pong
from contracts.runtime import process
from contracts.runtime.bus.client import RpcClient, shared_client
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.together import InTurn
from contracts.runtime.settings import ServiceSettings

S = TypeVar("S", bound=ServiceSettings)


class Context(Generic[S]):
    """``context = Context(Settings)`` in the class body of a service."""

    def __init__(self, settings: type[S]) -> None:
        self._settings_class = settings

    @cached_property
    def settings(self) -> S:
        """From the environment."""
        return self._settings_class.from_environment()

    @cached_property
    def database(self) -> Database:
        """The service's database. A committed write that left work behind wakes the background process."""
        database = Database(self.settings.database_url, pool_size=self.settings.database_pool_size)
        database.on_commit.append(lambda tables: self.bus.hint(self.name, tables))
        return database

    @cached_property
    def in_turn(self) -> InTurn:
        """For what comes several at a time, and is small: in one transaction of the database."""
        return InTurn(self.database)

    @cached_property
    def blobs(self) -> BlobStore:
        return BlobStore.from_url(self.settings.blob_url)

    @cached_property
    def bus(self) -> RpcClient:
        """Calls to other services: ``self.context.bus.call(rpc.GET, GetTemplate(...))``."""
        return shared_client(self.settings.amqp_url)

    @cached_property
    def name(self) -> str:
        """The service's name: settings are in ``services.<name>.settings``."""
        return self._settings_class.__module__.rpartition(".")[0].rpartition(".")[2]

    def prepare(self) -> None:
        """Called once, before anything is served: what is slow belongs here. Does nothing unless a service says otherwise."""

    def pong(self) -> Pong:
        """The answer to ``ping``: does the database answer and take changes, has the background process been seen lately?"""
        try:
            problems = process.problems_of(self.database, self.name)
        except ServiceError as error:
            return Pong(ready=False, problems=[error.message])
        return Pong(ready=not problems, problems=problems)
