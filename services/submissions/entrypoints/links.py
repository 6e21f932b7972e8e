"""Calls of visitors of shared links ``/d/<slug of a template>``."""

from contracts.rpc import templates
from contracts.rpc.submissions import links
from contracts.rpc.submissions.signing import codes
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from services.submissions.commands import shared_links
from services.submissions.creating import fitting
from services.submissions.entrypoints.base import Entrypoints
from services.submissions.planning import creation
from services.submissions.planning.preparing import adopted


class Links(Entrypoints):
    """Calls of visitors."""

    @handles(links.START_FROM_LINK)
    def start_from_link(self, command: links.StartFromLink) -> links.LinkStarted:
        template = self._shared(command)
        party, contact = shared_links.party_of(template), shared_links.contact_of(command, template)
        shared_links.require_code(command, shared_links.link_challenge(template, contact), self._site, now())
        creating = shared_links.request_of_visitor(command, template, party, contact)
        plan = creation.plan_submission(creating, template, self.context.settings, now())
        self._refuse_misfits(fitting.of_plan(plan, template, command.account, now()), plan.texts)
        with self._files() as files:
            prepared = adopted(files, self._preparer.prepare(files, plan.sources))
            settings = self.context.settings
            return self._write(shared_links.start, command, creating, template, plan, prepared, settings)

    @handles(links.SEND_LINK_CODE)
    def send_link_code(self, command: links.SendLinkCode) -> codes.CodeSent:
        template = self._shared(command)
        shared_links.party_of(template)
        return self._write(shared_links.send_code, command, template)

    @handles(links.CHECK_LINK_CODE)
    def check_link_code(self, command: links.CheckLinkCode) -> codes.PassedCode:
        judged, passed = self._write(shared_links.check_code, command, self._shared(command))
        return judged.passed(passed)

    def _shared(self, visit: links.LinkVisit) -> templates.TemplateSnapshot:
        return self.context.bus.call(templates.SHARED, templates.GetSharedLink(slug=visit.slug))
