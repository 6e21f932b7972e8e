"""Calls of API users about submissions and submitters that are there."""

from contracts.fields.boxes import FieldBoxes
from contracts.rpc.submissions import api as rpc
from contracts.rpc.submissions import erasures as erasures_rpc
from contracts.rpc.submissions import people as people_rpc
from contracts.rpc.templates import GetFieldBoxes
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from contracts.types import Page, Removed, Submission, SubmissionDocuments, SubmissionEvent, Submitter
from services.submissions.commands import branding_pictures, providers, submissions, submitters
from services.submissions.commands.signing import returning
from services.submissions.creating import fitting
from services.submissions.entrypoints.base import Entrypoints, refuse_impossible_ids
from services.submissions.planning.preparing import adopted
from services.submissions.reading import erasures, people, queries
from services.submissions.storage.access import require_writer
from services.submissions.views.documents import Documents, field_boxes


class Api(Entrypoints):
    """Calls of API users."""

    @handles(rpc.GET)
    def get(self, query: rpc.GetSubmission) -> Submission:
        refuse_impossible_ids(query, id="Submission")
        if "combined_document_url" in query.include:
            self._documents.combined(query)
        return self._look_up(queries.submission, query)

    @handles(rpc.LIST)
    def list(self, query: rpc.ListSubmissions) -> Page[Submission]:
        read = self._look_up if queries.is_quick(query) else self._read
        return read(queries.submissions, query)

    @handles(rpc.LIST_EVENTS)
    def list_events(self, query: rpc.ListEvents) -> Page[SubmissionEvent]:
        refuse_impossible_ids(query, id="Submission")
        return self.context.database.look_up(queries.events, query)

    @handles(rpc.UPDATE)
    def update(self, command: rpc.UpdateSubmission) -> Submission:
        refuse_impossible_ids(command, id="Submission")
        return self._write(submissions.update, command)

    @handles(rpc.REMOVE)
    def remove(self, command: rpc.RemoveSubmission) -> Removed:
        refuse_impossible_ids(command, id="Submission")
        return self._write(submissions.remove, command)

    @handles(erasures_rpc.ERASURE)
    def erasure(self, query: erasures_rpc.GetErasure) -> erasures_rpc.ErasureState:
        refuse_impossible_ids(query, id="Erasure")
        return self._look_up(erasures.state, query)

    @handles(erasures_rpc.ERASURE_RECEIPT)
    def erasure_receipt(self, query: erasures_rpc.GetErasure) -> erasures_rpc.SignedErasure:
        refuse_impossible_ids(query, id="Erasure")
        return self._look_up(erasures.receipt, query)

    @handles(people_rpc.FIND_PERSON)
    def find_person(self, query: people_rpc.FindPerson) -> people_rpc.FoundPerson:
        return self.context.database.read(people.find, query)

    @handles(people_rpc.PERSON)
    def person(self, query: people_rpc.DescribePerson) -> people_rpc.PersonInSubmissions:
        return self._read(people.describe, query)

    @handles(rpc.DOCUMENTS)
    def documents(self, query: rpc.GetDocuments) -> SubmissionDocuments:
        refuse_impossible_ids(query, id="Submission")
        return self._documents.of(query)

    @handles(rpc.FIELD_BOXES)
    def field_boxes(self, request: GetFieldBoxes) -> FieldBoxes:
        return self.context.database.look_up(field_boxes, request)

    @handles(rpc.RETRY_SEAL)
    def retry_seal(self, command: rpc.RetrySeal) -> Submission:
        refuse_impossible_ids(command, id="Submission")
        return self._write(submissions.retry_seal, command)

    @handles(rpc.SEND_CORRECTED)
    def send_corrected(self, command: rpc.SendCorrected) -> Submission:
        refuse_impossible_ids(command, id="Submission")
        return self._write(returning.send_again, command)

    @handles(rpc.RETRY_CERTSIGN)
    def retry_certsign(self, command: rpc.RetryCertsign) -> Submission:
        refuse_impossible_ids(command, id="Submission")
        return self._write(providers.retry_certsign, command)

    @handles(rpc.RETRY_DUTYSTAMP)
    def retry_dutystamp(self, command: rpc.RetryDutystamp) -> Submission:
        refuse_impossible_ids(command, id="Submission")
        return self._write(providers.retry_dutystamp, command)

    @handles(rpc.PICTURES_IN_USE)
    def pictures_in_use(self, query: rpc.AccountPictures) -> rpc.AccountPictures:
        return rpc.AccountPictures(keys=self.context.database.read(branding_pictures.in_use, query.keys))

    @handles(rpc.GET_SUBMITTER)
    def get_submitter(self, query: rpc.GetSubmitter) -> Submitter:
        refuse_impossible_ids(query, id="Submitter")
        return self._look_up(queries.submitter, query)

    @handles(rpc.LIST_SUBMITTERS)
    def list_submitters(self, query: rpc.ListSubmitters) -> Page[Submitter]:
        return self._read(queries.submitters, query)

    @handles(rpc.UPDATE_SUBMITTER)
    def update_submitter(self, command: rpc.UpdateSubmitter) -> Submitter:
        require_writer(command.actor)
        refuse_impossible_ids(command, id="Submitter")
        if (done := self._remembered(rpc.UPDATE_SUBMITTER, command)) is not None:
            return done
        present = self.context.database.look_up(queries.own_fields, command.actor, command.id)
        change = submitters.plan_change(command, *present)
        question = self.context.database.look_up(fitting.of_change, command, change, now())
        self._refuse_misfits(question, change.texts)
        with self._files() as files:
            prepared = self._preparer.prepare(files, [*change.overrides.sources, *change.branding.sources])
            return self._write(submitters.update, command, change, adopted(files, prepared), self.context.settings)

    @property
    def _documents(self) -> Documents:
        return Documents(self.context.bus, self.context.database, self._site)
