"""Calls of a signature that is drawn on a telephone: of the form that asks for it, and of the telephone."""

from contracts.rpc.submissions.signing import form, phone
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from services.submissions.commands.signing import phone_drawings
from services.submissions.entrypoints.base import Entrypoints
from services.submissions.planning.preparing import adopted


class Phone(Entrypoints):
    """Calls about drawings."""

    @handles(phone.START_PHONE_DRAWING)
    def start_phone_drawing(self, command: phone.StartPhoneDrawing) -> phone.PhoneDrawing:
        return self._write(phone_drawings.start, command)

    @handles(phone.PHONE_DRAWING)
    def phone_drawing(self, query: phone.FindPhoneDrawing) -> phone.PhoneDrawing:
        return self._look_up(phone_drawings.look, query)

    @handles(phone.CANCEL_PHONE_DRAWING)
    def cancel_phone_drawing(self, command: phone.CancelPhoneDrawing) -> form.Done:
        return self._write(phone_drawings.cancel, command)

    @handles(phone.PHONE_PAGE)
    def phone_page(self, query: phone.FindPhonePage) -> phone.PhonePage:
        return self.context.database.look_up(phone_drawings.page, query, now())

    @handles(phone.CONNECT_PHONE)
    def connect_phone(self, command: phone.ConnectPhone) -> phone.PhonePage:
        return self.context.database.write(phone_drawings.connect, command, now())

    @handles(phone.DELIVER_PHONE_DRAWING)
    def deliver_phone_drawing(self, command: phone.DeliverPhoneDrawing) -> phone.PhonePage:
        if (done := self.context.database.look_up(phone_drawings.delivered, command)) is not None:
            return done
        with self._files() as files:
            files.receive(command.file)
            party, kind = self.context.database.look_up(phone_drawings.check, command, now())
            prepared = self._preparer.prepare_upload(files, command.file, command.filename, party, kind)
            (drawing,) = adopted(files, [prepared])
            return self.context.database.write(phone_drawings.deliver, command, drawing, self.context.settings, now())
