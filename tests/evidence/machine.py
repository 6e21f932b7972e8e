"""Two signers, a sender, another editor and a viewer call whatever they like in any order, on a running suite.

The machine keeps its own books of what each signer had before their eyes and sent, and of what arrived at which address. What it
judges by is what its clients saw, what the mail server and the telephones got, what poppler reads on the sealed paper, and what
``stranger`` computes; never our database.
"""

import dataclasses
import json
import re
import sys
import uuid
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import requests
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.evidence import stranger
from tests.evidence.world import ROLES, Message, World
from tests.support.services.suite import wait_until

WHO = st.integers(0, 1)
PLACE = st.integers(0, 5)
"""Which of the pages that a signer has open, the oldest first; the links that were replaced. Small, so that it often means one."""

SHOWN = ["read-only value", "values", "title", "heading", "name", "email", "make read-only", "read-only text"]
"""Changes of what is on the page of somebody."""

ENDS = [
    (order, first, attack)
    for order, first in (("random", 1), ("preserved", 0), ("random", 0))
    for attack in ("value", "name", None)
]
"""In which order they sign, who signs first of those who have not when all is to come to an end, and how the database is attacked
then. Taken in turn and not drawn, so that the short form has them all."""

SECRET = re.compile(r"M\d{6}M")
"""What stands behind a mask."""

GONE = {"error": "This link is no longer valid.", "code": "not_found"}
_LATE = re.compile(r"(send|bounce)_(?!2fa)|complete_submission|fail_sealing|expire_submission")
"""Lines that come when the thing has happened, whoever calls meanwhile."""

_OF_THE_MOMENT = frozenset(
    [
        "template",
        "updated_at",
        "sent_at",
        "status",
        "sealing_status",
        "sealing_error",
        "pades_level",
        "completed_at",
        "documents",
        "audit_log_url",
        "id",
        "hash",
    ]
)


@dataclasses.dataclass
class Page:
    """A signing form as one browser has it open."""

    who: int
    slug: str
    session: requests.Session
    form: dict[str, Any]
    typed: dict[str, Any] = dataclasses.field(default_factory=dict)
    signed: dict[str, Any] | None = None
    documents: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def token(self) -> str:
        return str(self.form["shown"])

    def fields(self) -> list[dict[str, Any]]:
        """The fields that this signer fills in."""
        return [
            field
            for field in self.form["fields"]
            if field["mine"] and not field["readonly"] and field["type"] != "heading"
        ]

    def answers(self) -> dict[str, Any]:
        """All that the page sends in the end: also what was not touched, as it stands there. Of a page that was signed, what was
        taken."""
        if self.signed is not None:
            return self.signed
        return {field["uuid"]: self.typed.get(field["uuid"], field["value"]) for field in self.fields()}

    def shows(self) -> dict[str, str]:
        """What a sealed paper must say when this page was signed, by field uuid: what the page shows, and what was typed."""
        shown = {field["uuid"]: field["display"] or "" for field in self.form["fields"]}
        answers = {uuid: "" if value is None else str(value) for uuid, value in self.answers().items()}
        return shown | answers


@dataclasses.dataclass
class Party:
    """What the machine knows of a signer."""

    role: str
    id: int
    slug: str
    name: str | None
    email: str | None
    phone: str | None
    saved: dict[str, Any] = dataclasses.field(default_factory=dict)
    codes: set[str] = dataclasses.field(default_factory=set)
    pages: list[Page] = dataclasses.field(default_factory=list)
    session: requests.Session = dataclasses.field(default_factory=requests.Session)
    signed: Page | None = None
    receipt: str | None = None
    signed_by_api: dict[str, Any] | None = None
    named: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def done(self) -> bool:
        return self.signed is not None or self.signed_by_api is not None

    def party(self) -> dict[str, Any]:
        known = {"role": self.role, "name": self.name, "email": self.email, "phone": self.phone}
        return {key: value for key, value in known.items() if value}


class EvidenceMachine(RuleBasedStateMachine):
    """Whatever happens: what is sealed is what was signed, who was written to is named, and nothing is lost unsaid."""

    world: ClassVar[World]
    counts: ClassVar[dict[str, int]] = {}

    # ------------------------------------------------------------------ who is there

    @initialize(sms=st.booleans(), codes=st.sampled_from([None, 0, 1]))
    def send(self, sms: bool, codes: int | None) -> None:
        order, self.first_to_sign, self.attack = ENDS[self.counts.get("begun", 0) % len(ENDS)]
        self.count("begun")
        self.attacked, self.as_signed = "", dict[str, str]()
        self.journal: list[str] = []
        self.added: list[dict[str, Any]] = []
        self.world.forget()
        self.template = self.world.copy_of_template()
        self.shared, self.edited = True, False
        people: list[dict[str, Any]] = []
        for number, role in enumerate(ROLES):
            person = {"role": role, "name": self.a_name(), "email": self.an_address(), "phone": self.a_number()}
            people.append({**person, "send_sms": sms, "require_email_2fa": codes == number})
        body = {"template_id": self.template, "submitters": people, "order": order}
        made = self.api("POST", "/submissions", body).json()
        self.number = int(made[0]["submission_id"])
        self.parties = [
            Party(
                submitter["role"],
                submitter["id"],
                submitter["slug"],
                submitter["name"],
                submitter["email"],
                submitter["phone"],
            )
            for submitter in made
        ]
        for party, asked in zip(self.parties, people, strict=True):
            party.codes = {"email"} if asked["require_email_2fa"] else set()
        self.owners = {party.slug: {party.email, party.phone} for party in self.parties}
        self.old: list[tuple[Party, Page | None, str]] = []
        self.declined = False
        self.known = self.look()

    def teardown(self) -> None:
        if not hasattr(self, "known"):
            return
        if sys.exc_info()[0] is not None:
            print("\n".join(self.journal[-60:]))
            return
        self.count("runs")
        try:
            self.bring_to_an_end()
            self.judge()
        except BaseException:
            print("\n".join(self.journal[-60:]))
            raise

    # ------------------------------------------------------------------ the signers

    @rule(who=WHO, again=st.booleans())
    def open_form(self, who: int, again: bool) -> None:
        """With the browser that is known already, or another one, which would have to wait for a code of its own."""
        party = self.parties[who]
        if not again and not party.codes:
            party.session = requests.Session()
        self.opened(who)

    @rule(who=WHO, place=PLACE, which=PLACE)
    def save_value(self, who: int, place: int, which: int) -> None:
        if (page := self.page(who, place)) is not None:
            texts = [field for field in page.fields() if field["type"] == "text"]
            chosen = texts[which % len(texts)]
            page.typed[chosen["uuid"]] = self.a_value(chosen)
            self.save(page, {chosen["uuid"]: page.typed[chosen["uuid"]]})

    @rule(who=WHO, place=PLACE, draws=st.booleans(), chance=st.integers(0, 2))
    def press_complete(self, who: int, place: int, draws: bool, chance: int) -> None:
        page = self.page(who, place)
        if page is not None and chance == 1:
            self.fill_in(page, draws=draws)
            self.complete(page)
            self.look_after(page)

    @rule(who=WHO, place=PLACE, chance=st.integers(0, 7))
    def press_decline(self, who: int, place: int, chance: int) -> None:
        page = self.page(who, place)
        if page is None or chance != 4:
            return
        answer = self.on_page(page, "decline", {"reason": "no"})
        if answer.status_code == 200:
            self.declined = True
        self.compare(answer, kinds={"decline_form"})

    @rule(who=WHO, place=PLACE, chance=st.integers(0, 2))
    def this_is_not_me(self, who: int, place: int, chance: int) -> None:
        page = self.page(who, place)
        if page is None or chance != 1:
            return
        answer = self.on_page(page, "wrong_recipient", {"reason": "who?"})
        if answer.status_code == 200:
            read = self.api("GET", f"/submitters/{self.parties[who].id}").json()
            self.replaced(self.parties[who], read["slug"])
        self.compare(answer, kinds={"wrong_recipient"})
        if answer.status_code == 200:
            self.dropped(self.parties[who])

    @rule(
        place=PLACE,
        what=st.sampled_from(
            [
                "form",
                "",
                "values",
                "complete",
                "decline",
                "view",
                "typed_signature",
                "wrong_recipient",
                "code/send",
                "results.json",
            ]
        ),
    )
    @precondition(lambda self: self.old)
    def use_an_old_link(self, place: int, what: str) -> None:
        party, page, slug = self.old[place % len(self.old)]
        if what in ("form", "", "results.json"):
            answer = self.call("GET", f"/s/{slug}/{what}".rstrip("/"), headers={"Accept": "application/json"})
        else:
            body = {"request_id": uuid.uuid4().hex, "values": {}, "type": "signature", "text": "Me", "reason": "no"}
            if page is not None:
                self.fill_in(page, draws=False)
                body |= {"values": page.answers(), "shown": page.token}
            session = page.session if page is not None else None
            answer = self.call("POST", f"/s/{slug}/{what}", body, session=session)
        assert answer.status_code == 404, (what, answer.text)
        for document in page.documents if page is not None else ():
            assert self.call("GET", _path(document["url"]), session=page.session).status_code == 404  # type: ignore[union-attr]
        if what:
            assert {key: answer.json()[key] for key in GONE} == GONE
            assert set(answer.json()) == {*GONE, "details"}
        for secret in (party.slug, party.name, party.email, party.phone, "Agreement", f"T{self.template}"):
            assert not secret or secret not in answer.text, (what, secret)
        self.compare(answer)

    # ------------------------------------------------------------------ the sender

    @rule(who=WHO, what=st.sampled_from(sorted([
        "name", "no name", "email", "same email", "phone", "no phone", "values", "read-only value", "default", "title",
        "heading", "make read-only", "make fillable", "codes", "no codes", "metadata", "again", "again by sms",
        "read-only text",
    ])))  # fmt: skip
    def change_a_submitter(self, who: int, what: str) -> None:
        self.put(who, self.a_change(who, what))

    @rule(what=st.sampled_from(["secret", "secret default"]))
    def change_the_secret(self, what: str) -> None:
        """A rule of its own, or it would be drawn once in ten submissions."""
        who = 1  # who alone has one
        self.put(who, self.a_change(who, what))
        if self.new("update_submitter"):
            self.count("secrets changed")

    @rule(who=WHO, chance=st.integers(0, 3))
    def complete_by_api(self, who: int, chance: int) -> None:
        if chance == 2:
            self.put(who, {"completed": True})

    @rule(what=st.sampled_from(["name", "expire_at", "never", "archived", "restored"]))
    def change_the_submission(self, what: str) -> None:
        later = datetime.now(UTC) + timedelta(days=3, seconds=next(self.world.numbers))
        changes = {
            "name": {"name": self.a_name()},
            "expire_at": {"expire_at": later.isoformat()},
            "never": {"expire_at": None},
            "archived": {"archived": True},
            "restored": {"archived": False},
        }
        kinds = {"name": "update_submission", "archived": "archive_submission", "restored": "restore_submission"}
        before = self.known
        answer = self.api("PUT", f"/submissions/{self.number}", changes[what])
        self.compare(answer, kinds={kinds.get(what, "reschedule_submission")}, by_sender=True)
        if answer.status_code == 200 and what == "name":
            assert self.known["name"] != before["name"]

    @rule(who=WHO, place=PLACE, what=st.sampled_from(SHOWN), other=st.booleans(), completes=st.booleans())
    def change_while_they_look(self, who: int, place: int, what: str, other: bool, completes: bool) -> None:
        """The attack itself: what a signer has before their eyes is changed, and then they go on."""
        page = self.page(who, place)
        if page is None:
            return
        target = 1 - who if other else who
        self.put(target, self.a_change(target, what))
        if page.slug != self.parties[who].slug:
            return
        self.fill_in(page, draws=False)
        if completes:
            self.complete(page)
        else:
            chosen = page.fields()[0]["uuid"]
            self.save(page, {chosen: page.typed.setdefault(chosen, self.a_value(page.fields()[0]))})

    @rule(who=WHO, place=PLACE, which=PLACE, what=st.sampled_from(["email", "phone", "not me"]))
    def it_was_the_wrong_person(self, who: int, place: int, which: int, what: str) -> None:
        """Somebody has typed something already: it goes with their link, and the trail says so."""
        self.save_value(who, place, which)
        saved = dict(self.parties[who].saved)
        if what == "not me":
            self.this_is_not_me(who, place, 1)
        else:
            self.put(who, self.a_change(who, what))
        if saved and self.new("replace_link" if what != "not me" else "wrong_recipient"):
            self.count("dropped")

    @rule(who=WHO, place=PLACE, what=st.sampled_from([*SHOWN, "completed"]), other=st.booleans())
    def complete_and_change_at_once(self, who: int, place: int, what: str, other: bool) -> None:
        """Which comes first is a matter of luck; what is sealed is what was shown in either case."""
        page = self.page(who, place)
        if page is None:
            return
        self.fill_in(page, draws=False)
        target = 1 - who if other else who
        change = {"completed": True} if what == "completed" else self.a_change(target, what)
        with ThreadPoolExecutor(2) as pool:
            pressed = pool.submit(self.complete, page, at_once=True)
            self.put(target, change, at_once=True)
            pressed.result()
        party = self.parties[who]
        if party.signed is page and party.signed_by_api is not None:
            raise AssertionError("signed twice")
        self.known = self.look()

    # ------------------------------------------------------------------ others

    @rule(where=PLACE)
    def the_viewer_reads(self, where: int) -> None:
        paths = [
            f"/submissions/{self.number}",
            f"/submitters/{self.parties[0].id}",
            f"/submissions/{self.number}/events",
            f"/templates/{self.template}/submissions",
            "/submissions",
            f"/submissions/{self.number}/documents",
        ]
        path = paths[where]
        query = {"include": "fields"} if "/events" not in path and "/documents" not in path else {}
        answer = self.ask(self.world.viewer, "GET", path, **query)
        assert answer.status_code == (200 if self.shared or path == "/submissions" else 404), (path, answer.text)
        self.gives_no_way_to_act(answer.text)
        if not self.shared and path == "/submissions":
            assert self.number not in [submission["id"] for submission in answer.json()["data"]]

    @rule(
        what=st.sampled_from(["name", "archive", "erase", "submitter", "get", "seal", "template"]), viewer=st.booleans()
    )
    def a_stranger_acts(self, what: str, viewer: bool) -> None:
        """The other editor, or the viewer, with a key of their own."""
        who = self.world.viewer if viewer else self.world.colleague
        address = f"/submissions/{self.number}"
        method, path, body = {
            "name": ("PUT", address, {"name": "Mine now"}),
            "archive": ("DELETE", address, None),
            "erase": ("DELETE", f"{address}?permanently=true", None),
            "submitter": (
                "PUT",
                f"/submitters/{self.parties[0].id}",
                {"email": "mallory@example.com", "completed": True},
            ),
            "get": ("GET", f"/submitters/{self.parties[1].id}", None),
            "seal": ("POST", f"{address}/seal", {}),
            "template": ("PUT", f"/templates/{self.template}", {"name": "Mine now"}),
        }[what]
        answer = self.ask(who, method, path, body)
        if viewer and what == "get":
            assert answer.status_code == (200 if self.shared else 404), answer.text
        else:
            assert answer.status_code in (403, 404), (what, answer.text)
        if viewer or what != "get":
            self.gives_no_way_to_act(answer.text)
        self.compare(answer)

    @rule()
    def edit_the_template(self) -> None:
        """A submission carries a snapshot: nobody who signs is touched by it."""
        if self.edited:
            answer = self.api("PUT", f"/templates/{self.template}", {"name": f"T{next(self.world.numbers)}"})
        else:
            html = "<p>Other words <text-field name='New' role='Seller'></text-field></p>"
            path = f"/templates/{self.template}/documents"
            answer = self.api("PUT", path, {"documents": [{"html": html, "name": "b"}]})
        self.edited = True
        assert answer.status_code == 200, answer.text
        self.compare(None)

    @rule()
    def share_or_not(self) -> None:
        self.shared = not self.shared
        answer = self.api("PUT", f"/templates/{self.template}", {"shared_link": self.shared})
        assert answer.status_code == 200, answer.text
        expected = 200 if self.shared else 404
        viewer = self.world.viewer

        def seen() -> bool:
            return self.ask(viewer, "GET", f"/submissions/{self.number}").status_code == expected

        wait_until(seen, what=f"the viewer gets {expected}")
        if not self.shared:

            def told() -> list[Any]:
                page = self.ask(viewer, "GET", "/events/submission/submission.created", limit=100)
                return [event for event in page.json()["data"] if event["data"]["id"] == self.number]

            wait_until(lambda: not told(), what="the events are taken from the viewer")

    # ------------------------------------------------------------------ calls

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> requests.Response:
        answer = self.world.call(method, path, body, **more)
        if method != "GET":
            self.journal.append(f"{method} {path} {body} -> {answer.status_code} {answer.text[:200]}")
        self.count(f"{method} {answer.status_code}")
        return answer

    def ask(self, who: dict[str, Any], method: str, path: str, body: Any = None, **query: Any) -> requests.Response:
        return self.call(method, f"/api{path}", body, headers={"X-Auth-Token": who["api_key"]}, params=query)

    def api(self, method: str, path: str, body: Any = None, **query: Any) -> requests.Response:
        """A call of the sender."""
        return self.ask(self.world.sender, method, path, body, **query)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def on_page(self, page: Page, what: str, body: dict[str, Any]) -> requests.Response:
        said = {"shown": page.token, "request_id": uuid.uuid4().hex, **body}
        return self.call("POST", f"/s/{page.slug}/{what}", said, session=page.session)

    def opened(self, who: int) -> Page | None:
        """Open the form with the present link; pass the codes that are asked for. None while there is nothing to fill in."""
        party = self.parties[who]
        form = self.call("GET", f"/s/{party.slug}/form", session=party.session)
        said = form.json()
        if said["state"] == "code":
            assert (said["fields"], said["submitter_name"], said["submission_name"]) == ([], None, "")
            passed = self.passed_code(party, said["code"]["method"])
            self.known = self.look()  # of two codes one may have been passed
            if not passed:
                return None
            said = self.call("GET", f"/s/{party.slug}/form", session=party.session).json()
        if said["state"] != "open":
            assert said["fields"] == []
            return None
        page = Page(who, party.slug, party.session, said)
        for document in said["documents"]:
            got = self.call("GET", _path(document["url"]), session=party.session)
            assert got.status_code == 200, got.text
            page.documents.append({**document, "sha256": stranger.sha256(got.content)})
        for attachment in said["attachments"]:
            attachment["sha256"] = stranger.sha256(
                self.call("GET", _path(attachment["url"]), session=party.session).content
            )
        party.pages.append(page)
        others = [field for field in said["fields"] if not field["mine"]]
        assert not SECRET.search(str(others)), "what a mask hides is shown"
        masked = {field["uuid"] for field in self.known["fields"] if field["name"] == "Secret"}
        if masked & {field["uuid"] for field in others}:
            self.count("masks seen")
        for field in page.fields():
            if field["uuid"] in party.saved:
                assert field["value"] == party.saved[field["uuid"]], f"{field['name']} was lost"
        assert self.token_now(page) == page.token
        viewed = self.on_page(page, "view", {"time_zone": "Europe/Copenhagen"})
        assert viewed.status_code == 200
        self.known = self.look()
        return page

    def passed_code(self, party: Party, method: str) -> bool:
        """Have the code sent and type it. False when it cannot be had now: one was sent to that address a moment ago."""
        address = party.email if method == "email" else party.phone
        before = len(self.arrived(address))
        path = f"/s/{party.slug}/code"
        sent = self.call("POST", f"{path}/send", {"request_id": uuid.uuid4().hex}, session=party.session)
        if sent.status_code == 429:
            return False
        assert sent.status_code == 200, sent.text

        def look() -> list[str]:
            later = self.arrived(address)[before:]
            return [
                code
                for message in later
                for code in re.findall(r"^\d{6}$", message.text.replace("\r", ""), re.MULTILINE)
            ]

        code = wait_until(look, what=f"the code to {address}")[-1]
        body = {"request_id": uuid.uuid4().hex, "code": code}
        assert self.call("POST", path, body, session=party.session).status_code == 200
        return not party.codes - {method} or self.passes_next(party)

    def passes_next(self, party: Party) -> bool:
        said = self.call("GET", f"/s/{party.slug}/form", session=party.session).json()
        return said["state"] != "code" or self.passed_code(party, said["code"]["method"])

    def arrived(self, address: str | None) -> list[Message]:
        return [message for message in self.world.messages() if address and message.to.lower() == address.lower()]

    def page(self, who: int, place: int) -> Page | None:
        pages = self.parties[who].pages
        return pages[place % len(pages)] if pages else self.opened(who)

    def save(self, page: Page, values: dict[str, Any]) -> None:
        answer = self.on_page(page, "values", {"values": values})
        self.is_as_shown(page, answer)
        if answer.status_code == 200:
            self.parties[page.who].saved |= values
        self.compare(answer, kinds={"start_form"})

    def fill_in(self, page: Page, *, draws: bool) -> None:
        for field in page.fields():
            if (
                field["type"] == "text"
                and (field["required"] or field["name"] == "Secret")
                and not page.answers()[field["uuid"]]
            ):
                page.typed[field["uuid"]] = self.a_value(field)
            if field["type"] == "signature" and draws and not page.answers()[field["uuid"]]:
                body = {"type": "signature", "text": "Me"}
                made = self.on_page(page, "typed_signature", body)
                if made.status_code == 200:
                    page.typed[field["uuid"]] = made.json()["uuid"]
                    file = self.call("GET", _path(made.json()["url"]), session=page.session)
                    page.form["attachments"].append({**made.json(), "sha256": stranger.sha256(file.content)})

    def complete(self, page: Page, *, at_once: bool = False) -> None:
        party = self.parties[page.who]
        body: dict[str, Any] = {"values": page.answers()}
        if page.form["statement"]:
            body["statement"] = page.form["statement"]
        named = party.party()
        answer = self.on_page(page, "complete", body)
        if not at_once:
            self.is_as_shown(page, answer)
        if answer.status_code == 200:
            assert not party.done or party.signed is page
            assert page.slug == party.slug or at_once
            party.receipt = answer.json()["receipt"]
            page.signed, party.signed, party.named = body["values"], page, {} if at_once else named
            self.count("signed")
        elif answer.status_code == 409:
            self.count("changed meanwhile")
        if not at_once:
            self.compare(answer, kinds={"complete_form"})
            other = self.parties[1 - page.who]
            if party.signed is page and not other.done and not other.codes:
                self.opened(1 - page.who)  # who has before their eyes what was just signed

    def look_after(self, page: Page) -> None:
        if self.parties[page.who].signed is page:
            again = self.on_page(page, "complete", {"values": page.answers()})
            assert again.status_code in (403, 404, 422), again.text
            self.compare(again)

    def is_as_shown(self, page: Page, answer: requests.Response) -> None:
        """What was taken was as shown, and what was refused as changed was not."""
        if answer.status_code in (200, 409):
            assert (self.token_now(page) == page.token) == (answer.status_code == 200), answer.text

    def token_now(self, page: Page) -> str:
        """What ``stranger`` computes of what this signer sees, as of the parties that the page covers."""
        covers = int(page.token.partition(".")[0], 16)
        whole = self.api("GET", f"/submissions/{self.number}", include="fields").json()
        visible = {field["uuid"]: field for field in page.form["fields"]}
        values: dict[str, Any] = {}
        for place, submitter in enumerate(whole["submitters"]):
            own = [each for each in whole["fields"] if each["submitter_uuid"] == submitter["uuid"]]
            covered = place != page.who and covers >> place & 1 and submitter["status"] == "completed"
            for each in own:
                given = submitter["values"].get(each["name"])
                if each["type"] == "signature":
                    given = visible[each["uuid"]]["value"] if each["uuid"] in visible else None
                if each["type"] == "heading" or (place == page.who and each["readonly"]):
                    values[each["uuid"]] = stranger.standing(each, given, submitter, self.number)
                elif covered:
                    values[each["uuid"]] = given
        return stranger.shown(self.number, self.parties[page.who].id, covers, page.documents, whole["fields"], values)

    # ------------------------------------------------------------------ what is typed

    def a_name(self) -> str:
        return f"Nym N{next(self.world.numbers):06d}N"

    def an_address(self) -> str:
        return self.world.handed_out(f"a{next(self.world.numbers)}@p.example.com")

    def a_number(self) -> str:
        return self.world.handed_out(f"+1415{2_100_000 + next(self.world.numbers)}")

    def a_value(self, field: dict[str, Any]) -> str:
        letter = "M" if field["name"] == "Secret" else "V"
        return f"{letter}{next(self.world.numbers):06d}{letter}"

    def a_change(self, who: int, what: str) -> dict[str, Any]:
        seller, party = who == 0, self.parties[who]
        editable, fixed = ("Note", "Amount") if seller else ("Remark", "Interest")
        number = 1_000_000 + next(self.world.numbers)
        value = f"V{next(self.world.numbers):06d}V"
        known: dict[str, dict[str, Any]] = {
            "name": {"name": self.a_name()},
            "no name": {"name": None},
            "email": {"email": self.an_address()},
            "same email": {"email": (party.email or "").upper()},
            "phone": {"phone": self.a_number()},
            "no phone": {"phone": None},
            "values": {"values": {editable: value}},
            "secret": {"values": {"Secret": value.replace("V", "M")}},
            "secret default": {"fields": [{"name": "Secret", "default_value": value.replace("V", "M")}]},
            "read-only value": {"values": {fixed: number}},
            "read-only text": {
                "fields": [{"name": "Attest" if seller else "Interest", "default_value": "He is {{name}}"}]
            },
            "default": {"fields": [{"name": editable, "default_value": value}]},
            "title": {"fields": [{"name": "Company" if seller else "Full name", "title": f"Title {number}"}]},
            "heading": {
                "fields": [{"name": "Preamble" if seller else "Closing", "default_value": f"{value} {{name}}"}]
            },
            "make read-only": {"fields": [{"name": editable, "readonly": True, "default_value": value}]},
            "make fillable": {"fields": [{"name": fixed, "readonly": False}]},
            "codes": {"require_email_2fa": True, "require_phone_2fa": number % 2 == 0},
            "no codes": {"require_email_2fa": False, "require_phone_2fa": False},
            "metadata": {"metadata": {"a": number}, "external_id": f"x{number}"},
            "again": {"send_email": True},
            "again by sms": {"send_sms": True},
        }
        return known[what]

    # ------------------------------------------------------------------ what is checked at each step

    def put(self, who: int, change: dict[str, Any], *, at_once: bool = False) -> None:
        party, before = self.parties[who], self.known
        answer = self.api("PUT", f"/submitters/{party.id}", change)
        if answer.status_code != 200:
            assert answer.status_code == 422, answer.text
            self.count("refused changes")
            if not at_once:
                self.compare(answer)
            return
        said = answer.json()
        other_slug = said["slug"] != party.slug
        was = party.party()
        party.name, party.email, party.phone = said["name"], said["email"], said["phone"]
        self.codes_changed(party, said["preferences"])
        if other_slug:
            self.replaced(party, said["slug"])
        else:
            self.owners[party.slug] |= {party.email, party.phone}
        overwritten = {*change.get("values", {}), *(field["name"] for field in change.get("fields", ()))}
        for each in before["fields"]:
            if each["name"] in overwritten:
                party.saved.pop(each["uuid"], None)
        if change.get("completed"):
            party.signed_by_api, party.named = said, party.party()
            self.count("completed by API")
        if at_once:
            return
        must_differ = ("email" in change and (was.get("email") or "").lower() != (party.email or "").lower()) or (
            "phone" in change and was.get("phone") not in (None, party.phone)
        )
        assert other_slug == must_differ, (was, change)
        kinds = (
            {"api_complete_form"}
            if change.get("completed")
            else {"invite_party_again", "update_submitter"}
            if set(change) <= {"send_email", "send_sms"}
            else {"update_submitter"}
        )
        self.compare(answer, kinds=kinds, by_sender=True)
        order = ["replace_link", "drop_answers", "update_submitter", "invite_party", "invite_party_again"]
        places = [order.index(line["event_type"]) for line in self.added if line["event_type"] in order]
        assert places == sorted(places), [line["event_type"] for line in self.added]
        if other_slug:
            (line,) = self.new("replace_link")
            assert line["data"]["party"] == was
            assert line["data"]["named"] == party.party()
            self.dropped(party)
        for line in self.new("update_submitter"):
            assert line["data"]["party"] == was
            after = {changed["what"]: changed["after"] for changed in line["data"]["changes"]}
            assert {"name": party.name}.items() <= after.items() or "name" not in after

    def codes_changed(self, party: Party, preferences: dict[str, Any]) -> None:
        party.codes = {way for way in ("email", "phone") if preferences.get(f"require_{way}_2fa")}

    def replaced(self, party: Party, slug: str) -> None:
        """The link of this party opens nothing any more."""
        newest = party.pages[-1] if party.pages else None
        if (party, newest, party.slug) not in self.old:
            self.old.append((party, newest, party.slug))
        party.pages = []
        party.session = requests.Session()
        self.typed_before = dict(party.saved)
        party.saved = {}
        party.slug = slug
        self.owners[slug] = {party.email, party.phone}

    def dropped(self, party: Party) -> None:
        """What was saved with the old link is a line, and nobody reads it."""
        names = {field["uuid"]: field["name"] for field in self.known["fields"]}
        missing = {names[uuid] for uuid in self.typed_before}
        told = {name for line in self.new("drop_answers") for name in line["data"]["fields"]}
        assert missing <= told, f"dropped without a line: {missing - told}"
        for line in self.new("drop_answers"):
            assert not [value for value in self.typed_before.values() if str(value) in str(line)]
        for submitter in self.known["submitters"]:
            if submitter["id"] == party.id:
                assert not [value for value in self.typed_before.values() if value in submitter["values"].values()]

    def look(self) -> dict[str, Any]:
        """The submission as the sender reads it, without what differs with the moment."""
        answer = self.api("GET", f"/submissions/{self.number}", include="fields")
        assert answer.status_code == 200, answer.text
        whole = answer.json()
        assert stranger.hashes(whole["submission_events"]) == [line["hash"] for line in whole["submission_events"]]
        assert not SECRET.search(str(whole["submission_events"])), "what a mask hides is in a line"
        whole["submission_events"] = [
            line for line in whole["submission_events"] if not _LATE.match(line["event_type"])
        ]
        return dict(_still(whole))

    def new(self, kind: str) -> list[dict[str, Any]]:
        """The lines of a kind that the last call has written."""
        return [line for line in self.added if line["event_type"] == kind]

    def compare(
        self, answer: requests.Response | None, *, kinds: Collection[str] = (), by_sender: bool = False
    ) -> None:
        """What was refused has changed nothing. What was taken and changed something is a line, with who did it."""
        before, self.known = self.known, self.look()
        lines = self.known["submission_events"]
        assert lines[: len(before["submission_events"])] == before["submission_events"], "lines were changed"
        self.added = lines[len(before["submission_events"]) :]
        if answer is None or answer.status_code >= 400 or not kinds:
            assert self.known == before, _difference(before, self.known)
            return
        if {key: value for key, value in self.known.items() if key != "submission_events"} != {
            key: value for key, value in before.items() if key != "submission_events"
        } and by_sender:
            assert set(kinds) & {line["event_type"] for line in self.added} or self.new("replace_link"), self.added
        for line in self.added:
            if line["event_type"] in kinds and by_sender:
                who = self.world.sender
                assert (line["data"]["by"], line["data"]["ip"]) == (who["email"], "127.0.0.1")
                assert len(line["data"]["key_id"]) == 16

    def gives_no_way_to_act(self, text: str) -> None:
        for slug in self.owners:
            assert slug not in text
        assert "/s/" not in text
        assert not SECRET.search(text)

    # ------------------------------------------------------------------ the end

    def bring_to_an_end(self) -> None:
        """Whoever has not signed signs, if there is a way."""
        for change in ({"archived": False}, {"expire_at": None}):
            self.api("PUT", f"/submissions/{self.number}", change)
        self.known = self.look()
        if self.declined:
            return
        for who in (self.first_to_sign, 1 - self.first_to_sign):
            party = self.parties[who]
            if party.done:
                continue
            self.attack_the_database()
            page = self.opened(who)
            if page is None and party.codes:  # a code was sent a moment ago
                self.put(who, {"require_email_2fa": False, "require_phone_2fa": False})
                page = self.opened(who)
            assert page is not None, party
            self.fill_in(page, draws=False)
            self.complete(page)
            assert party.signed is page

    # ------------------------------------------------------------------ somebody has got into the database

    def attack_the_database(self) -> None:
        """Between the two signatures, whoever has the database of submissions changes what the first one gave, or who they
        are. Of the second one's page only that much is believed which the first one signed."""
        done = [party for party in self.parties if party.signed is not None]
        if self.attack is None or self.attacked or len(done) != 1 or all(party.done for party in self.parties):
            return
        (party,) = done
        page = party.signed
        assert page is not None
        own = {
            field["uuid"]: field["name"]
            for field in page.fields()
            if field["type"] == "text" and page.answers()[field["uuid"]]
        }
        self.attacked = self.attack
        self.count(f"attacked: {self.attack}")
        self.as_signed = {field["uuid"]: page.shows()[field["uuid"]] for field in page.form["fields"] if field["mine"]}
        if self.attack == "name":
            self.world.change_row("submitters", party.id, name="Mallory")
        elif own:
            uuid = next(iter(own))
            values = self.world.row("submitters", party.id)["field_values"]
            self.changed_row = party, own[uuid], values
            self.world.change_row("submitters", party.id, field_values={**values, uuid: "Mallory Ltd"})
        else:
            self.attacked = ""
        self.known = self.look()

    def put_back(self) -> None:
        """What was changed is not sealed, and is named. Once it is as it was, it is sealed."""
        party, name, values = self.changed_row

        def failed() -> dict[str, Any] | None:
            read: dict[str, Any] = self.api("GET", f"/submissions/{self.number}").json()
            assert read["sealing_status"] != "sealed", "what nobody has signed is sealed"
            return read if read["sealing_status"] == "failed" else None

        whole = wait_until(failed, what="the sealing to be stopped")
        known = party.named or party.party()
        who = known.get("name") or known.get("email") or party.role
        assert (
            f"the value of the field {name} is not the one that {who} ({party.role}) signed" in whole["sealing_error"]
        )
        assert (whole["status"], whole["documents"], whole["audit_log_url"]) == ("pending", [], None)
        self.world.change_row("submitters", party.id, field_values=values)
        assert self.api("POST", f"/submissions/{self.number}/seal", {}).status_code == 200
        self.count("stopped")

    def judge(self) -> None:
        if self.attacked == "value":
            self.put_back()

        def look() -> dict[str, Any] | None:
            read: dict[str, Any] = self.api("GET", f"/submissions/{self.number}", include="fields").json()
            assert read["sealing_status"] != "failed", read["sealing_error"]
            return read if read["status"] in ("completed", "declined") else None

        whole = wait_until(look, what="the end of the submission")
        assert whole is not None
        if whole["status"] == "completed":
            self.count("sealed")
            self.judge_completions(whole)
            self.judge_paper(whole)
            self.judge_evidence(whole)
        self.judge_messages(whole)
        self.judge_what_others_read()

    def judge_completions(self, whole: dict[str, Any]) -> None:
        lines = {
            line["submitter_id"]: line
            for line in whole["submission_events"]
            if line["event_type"] in ("complete_form", "api_complete_form")
        }
        assert set(lines) == {party.id for party in self.parties}
        for party, now in zip(self.parties, whole["submitters"], strict=True):
            said = lines[party.id]["data"]
            own = {field["uuid"]: field for field in whole["fields"] if field["submitter_uuid"] == now["uuid"]}
            if party.named:
                assert said["party"] == party.named
            if party.signed is None:
                assert party.signed_by_api is not None
                assert (said["let_in_by"], said["by"]) == ([{"way": "api"}], self.world.sender["email"])
                assert "shown" not in said
                given = party.signed_by_api["values"]
                values = {uuid: self.given(given.get(field["name"])) for uuid, field in own.items()}
            else:
                page = party.signed
                assert said["shown"] == page.token
                assert said["documents"] == [document["sha256"] for document in page.documents]
                assert said["statement"]["words"] == page.form["statement"]
                codes = [
                    {"way": "code", "method": passed["method"], "to": passed["to"]} for passed in said["let_in_by"][1:]
                ]
                assert said["let_in_by"] == [{"way": "link"}, *codes]
                if party.named:
                    assert {code["method"]: code["to"] for code in codes} == {
                        way: party.named[way] for way in sorted(party.codes)
                    }
                files = {attachment["uuid"]: attachment["sha256"] for attachment in page.form["attachments"]}
                values = {
                    field["uuid"]: field["value"] for field in page.form["fields"] if field["mine"]
                } | page.answers()
                values = {uuid: files.get(value, value) for uuid, value in values.items()}
            values = {uuid: value for uuid, value in values.items() if value is not None}
            assert said["values"] == stranger.digest({"values": values, "reasons": {}}), (party.role, values)

    def given(self, value: Any) -> Any:
        """A value as a digest of values has it: of a file its SHA-256."""
        if not isinstance(value, str) or "/file/" not in value:
            return value
        return stranger.sha256(self.call("GET", "/file/" + value.partition("/file/")[2]).content)

    def judge_paper(self, whole: dict[str, Any]) -> None:
        (document,) = whole["documents"]
        pdf = self.call("GET", "/file/" + document["url"].partition("/file/")[2]).content
        assert stranger.sha256(pdf) == document["sha256"]
        assert "Signature is Valid" in stranger.signatures(pdf)
        words = stranger.words(pdf)
        paper = {field["uuid"]: stranger.text_in(field["areas"][0], words) for field in whole["fields"]}
        names = {field["uuid"]: f"{field['role']}.{field['name']}" for field in whole["fields"]}
        fields = {field["uuid"]: field for field in whole["fields"]}
        expected: set[str] = set()
        for party, now in zip(self.parties, whole["submitters"], strict=True):
            wanted: dict[str, str] = {}
            if party.signed is not None:
                wanted = party.signed.shows()
            elif party.signed_by_api is not None:
                by_name = party.signed_by_api["values"]
                own = [field for field in whole["fields"] if field["submitter_uuid"] == now["uuid"]]
                wanted = {
                    field["uuid"]: _text(by_name.get(field["name"])) for field in own if field["type"] != "heading"
                }
            wanted |= {key: text for key, text in self.as_signed.items() if key in wanted}
            for key, text in wanted.items():
                if fields[key]["type"] == "signature" or "mask" in fields[key]["preferences"]:
                    continue
                assert _plain(paper[key]) == _plain(text), (party.role, names[key], paper[key], text)
            expected |= set(wanted)
        unasked = {names[uuid]: text for uuid, text in paper.items() if text and uuid not in expected}
        assert all("Preamble" in name or "Closing" in name for name in unasked), unasked
        trail = self.call("GET", "/file/" + whole["audit_log_url"].partition("/file/")[2]).content
        assert "Signature is Valid" in stranger.signatures(trail)
        printed = stranger.text(trail)
        told = whole["submission_events"]
        ordered = ("complete_form", "api_complete_form", "retry_sealing")
        last = max(number for number, line in enumerate(told) if line["event_type"] in ordered)
        assert told[last]["hash"] in printed
        for line in told[: last + 1]:
            for address in _addresses(line):
                assert "".join(address.split()) in printed, f"{address} of {line['event_type']} is not on the trail"
        for party in self.parties:
            assert party.named.get("name", "").replace(" ", "") in printed
        assert not SECRET.search(printed), "what a mask hides is on the trail"
        assert not SECRET.search(" ".join(word.text for word in words)), "what a mask hides is on paper"

    def judge_evidence(self, whole: dict[str, Any]) -> None:
        """Each completion is confirmed by one statement, whose receipt is the one that the signer was given."""

        def look() -> requests.Response | None:
            answer = self.api("GET", f"/submissions/{self.number}/evidence")
            return answer if answer.status_code == 200 else None

        evidence = stranger.evidence(wait_until(look, what="the evidence").content)
        told = whole["submission_events"]
        assert evidence.hashes == [line["hash"] for line in told[: len(evidence.hashes)]]
        assert set(evidence.statements) == {party.id for party in self.parties}
        for party in self.parties:
            (data,) = evidence.statements[party.id]
            said = json.loads(data)
            assert party.receipt in (None, stranger.receipt(data))
            assert (party.receipt is None) == (party.signed is None)
            line = told[said["line"]["number"] - 1]
            assert (line["submitter_id"], line["hash"]) == (party.id, said["line"]["hash"])
            assert line["event_type"] in ("complete_form", "api_complete_form")
            assert told[said["head"]["number"] - 1]["hash"] == said["head"]["hash"]
            assert said["values"] == line["data"]["values"]
            assert said["shown"] == (party.signed.token if party.signed is not None else None)
            assert sorted(said["documents"].values()) == sorted(line["data"]["documents"])

    def judge_what_others_read(self) -> None:
        """Neither a viewer nor whoever takes the events gets what a mask hides, or a way to act."""
        for where in range(6):
            self.the_viewer_reads(where)
        for kind in ("form/form.completed", "submission/submission.completed"):
            page = self.api("GET", f"/events/{kind}", limit=100).text
            assert not SECRET.search(page), "what a mask hides is in an event"

    def judge_messages(self, whole: dict[str, Any]) -> None:
        """Each address that something arrived at is named in a line, and no link went to whom it was not for."""

        def unnamed() -> set[str]:
            told = self.api("GET", f"/submissions/{self.number}").json()["submission_events"]
            named = {address.lower() for line in told for address in _recipients(line)}
            return {message.to.lower() for message in self.messages(whole)} - named

        wait_until(lambda: not unnamed(), what=f"lines for all that arrived ({unnamed()})")
        now = {address.lower() for party in self.parties for address in (party.email, party.phone) if address}
        now.add(self.world.sender["email"].lower())
        for message in self.messages(whole):
            for slug in message.slugs & set(self.owners):
                owners = {address.lower() for address in self.owners[slug] if address}
                assert message.to.lower() in owners, f"a link went to {message.to}, which is {owners}'s"
            assert not message.has_documents or message.to.lower() in now, f"documents went to {message.to}"

    def messages(self, whole: dict[str, Any]) -> list[Message]:
        """What arrived of this submission: a mail about the one before may come late."""
        sender = self.world.sender["email"]
        arrived = self.world.messages()
        return [
            message
            for message in arrived
            if (whole["slug"] in message.text if message.to == sender else message.to not in self.world.used_before)
        ]


def _still(value: Any) -> Any:
    """The same without what changes by itself: links, times of sending, what sealing has come to."""
    if isinstance(value, dict):
        return {
            key: _still(each)
            for key, each in value.items()
            if key not in _OF_THE_MOMENT or (key == "id" and "role" in value)
        }
    if isinstance(value, list):
        return [_still(each) for each in value]
    return "a file" if isinstance(value, str) and "/file/" in value else value


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    return "\n".join(f"{key}: {before[key]} -> {after[key]}" for key in before if before[key] != after[key])


def _recipients(line: dict[str, Any]) -> list[str]:
    return [str(line["data"][key]) for key in ("email", "phone") if line["data"].get(key)]


def _addresses(line: dict[str, Any]) -> list[str]:
    """All addresses in a line."""
    people = [line["data"], line["data"].get("party", {}), line["data"].get("named", {})]
    return [str(person[key]) for person in people for key in ("email", "phone") if person.get(key)]


def _path(url: str) -> str:
    return f"/{url.split('/', 3)[3]}" if "://" in url else url


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _plain(text: str) -> str:
    """Without what only is for the eye: spaces, and commas in numbers."""
    return re.sub(r"[\s,]", "", text)


Machine = type[EvidenceMachine]


def machine_of(world: World) -> Machine:
    """The machine for a running suite."""
    return type("OnThisSuite", (EvidenceMachine,), {"world": world, "counts": {}})
