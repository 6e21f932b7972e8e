"""What the entrypoints share: a use case with its surroundings, and the files of one request."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar, TypeVarTuple

from pydantic import BaseModel
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, not_found
from contracts.rpc import Rpc
from contracts.runtime.clock import now
from contracts.runtime.data.files.staging import StagedFiles
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.worker import Context
from services.submissions.creating import fitting
from services.submissions.creating.single import Creator
from services.submissions.planning.first_pages import FirstPages
from services.submissions.planning.preparing import PREFIX, Preparer
from services.submissions.reading import queries
from services.submissions.settings import Settings
from services.submissions.site import Site

LARGEST_ID = 2**63 - 1

R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")
UseCase = Callable[[Session, *Arguments, Site, datetime], R]
"""What to do in one transaction; where the outside finds the suite, and the moment, come after its own arguments."""


class Entrypoints:
    """Base of the entrypoints."""

    context: Context[Settings]
    first_pages = FirstPages()

    @property
    def _site(self) -> Site:
        return Site.configured(self.context.settings)

    def _write(self, use_case: UseCase[*Arguments, R], *arguments: *Arguments) -> R:
        site, moment = self._site, now()
        return self.context.database.write(lambda session: use_case(session, *arguments, site, moment))

    def _look_up(self, query: UseCase[*Arguments, R], *arguments: *Arguments) -> R:
        site, moment = self._site, now()
        return self.context.database.look_up(lambda session: query(session, *arguments, site, moment))

    def _read(self, query: UseCase[*Arguments, R], *arguments: *Arguments) -> R:
        site, moment = self._site, now()
        return self.context.database.read(lambda session: query(session, *arguments, site, moment))

    def _remembered(self, call: Rpc[Any, R], command: BaseModel) -> R | None:
        """The first answer to a request that comes again: what is looked at beforehand may look different by now."""
        return self.context.database.look_up(queries.remembered, call, command)

    def _once(self, call: Rpc[Any, R], command: BaseModel, make: Callable[[], R]) -> R:
        """The first answer to a request that comes again, else that of ``make``.

        One request may be under way twice: the broker gave it to a new process, and its caller repeats it. The files of the
        second are gone as soon as the first has taken them over.
        """
        if (done := self._remembered(call, command)) is not None:
            return done
        try:
            return make()
        except ServiceError as error:
            if error.code != "not_found" or (done := self._remembered(call, command)) is None:
                raise
            return done

    @property
    def _creator(self) -> Creator:
        context = self.context
        return Creator(context.bus, context.blobs, context.settings, self.first_pages)

    def _refuse_misfits(self, question: fitting.Question, texts: Sequence[tuple[str, str]] = ()) -> None:
        fitting.refuse(self.context.bus, question, texts)

    def _files(self) -> StagedFiles:
        return StagedFiles(self.context.blobs, PREFIX)

    @property
    def _preparer(self) -> Preparer:
        settings = self.context.settings
        return Preparer(self.context.bus, Outbound.configured(settings), settings.max_file_size)


def refuse_impossible_ids(request: Any, **nouns: str) -> None:
    """An id that no database can hold is an id of nothing. Raises ServiceError("not_found") with its noun."""
    for field, noun in nouns.items():
        if not 0 < getattr(request, field) <= LARGEST_ID:
            raise not_found(noun)
