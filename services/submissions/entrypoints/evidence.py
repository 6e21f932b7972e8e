"""Calls about what proves an agreement: evidence, sealed files, receipts."""

from contracts.rpc.submissions import api, receipts
from contracts.runtime.worker import handles
from services.submissions.entrypoints.base import Entrypoints, refuse_impossible_ids
from services.submissions.evidence import bundle, statements
from services.submissions.storage.access import require_writer


class Evidence(Entrypoints):
    """Calls of API users, and of anybody who checks a file or a receipt."""

    @handles(api.EVIDENCE)
    def evidence(self, query: api.GetEvidence) -> api.Evidence:
        require_writer(query.actor)
        refuse_impossible_ids(query, id="Submission")
        return self.context.database.look_up(bundle.of, query)

    @handles(receipts.SEALED_FILE)
    def sealed_file(self, query: receipts.FindSealed) -> receipts.FoundSealed:
        return self.context.database.look_up(bundle.sealed_file, query)

    @handles(receipts.RECEIPT)
    def receipt(self, query: receipts.FindReceipt) -> receipts.FoundReceipt:
        return self.context.database.look_up(statements.find, query)
