"""`make demo`: two real agreements from template to sealed PDF and audit trail, on the real services, then stop.

Two signers fill in each through the signing page's own calls; a receiver on loopback takes the webhooks and checks their
signatures; pdfsig (poppler), a program that knows nothing of us, checks the seals. The second agreement is sealed with the
certificate of a provider and gets a duty stamp; both providers run on this machine to be tried.
"""

import base64
import contextlib
import dataclasses
import datetime
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any, ClassVar

import requests
from standardwebhooks.webhooks import Webhook

from deploy.processes.forked import ForkServerFailed, ForkServers
from deploy.suite import Suite, SuiteFailed, settings_from_environment

ROOT = Path(__file__).resolve().parent.parent

STYLE = """
<style>
  @page { size: A4; margin: 24mm 26mm; @bottom-center { content: "Page " counter(page) " of " counter(pages);
          font: 8pt 'Liberation Sans'; color: #667 } }
  body { font: 10.5pt/1.55 'Liberation Serif'; color: #1b2130 } h1 { font-size: 20pt; margin: 0 0 4mm }
  h2 { font-size: 11.5pt; margin: 7mm 0 1mm } table { width: 100%; margin-top: 12mm; border-collapse: collapse;
  table-layout: fixed } td { box-sizing: border-box; width: 50%; vertical-align: top; padding-right: 8mm }
  .parties { margin: 5mm 0; } .parties td { padding: 1.4mm 0; border-bottom: .4pt solid #bcc }
  .parties td:first-child { width: 34mm; color: #556 } .line { border-top: .6pt solid #889; padding-top: 1mm;
  font-size: 8.5pt; color: #556 } p { margin: 1.5mm 0 } .sign { height: 17mm } .stamp { height: 27mm; margin-top: 6mm }
  .tag { white-space: nowrap; font-size: 10pt; overflow: hidden }
</style>
"""

NON_DISCLOSURE = """
<h1>Mutual Non-Disclosure Agreement</h1>
<table class=parties><tr><td>The Discloser</td><td class=tag>{{Company;role=Discloser;width=560}}</td></tr>
<tr><td>The Recipient</td><td class=tag>{{Full name;role=Recipient;width=560}}</td></tr>
<tr><td>Effective from</td><td class=tag>{{Effective date;type=date;role=Discloser;format=DD/MM/YYYY;width=300}}</td></tr>
<tr><td>Years</td><td class=tag>{{Years;type=number;role=Discloser;min=1;max=10;width=120}}</td></tr></table>
<h2>1. Confidential information</h2>
<p>Whatever one party shows the other about its products, plans, prices or customers is confidential, unless it was public
before, becomes public through nobody's fault, or was known to the receiving party already.</p>
<h2>2. What the parties promise</h2>
<p>To use it for the talks about working together only; to show it to nobody who does not need it for that; to take as much care
of it as of their own; to give it back or destroy it when asked.</p>
<h2>3. How long</h2>
<p>For the years named above, from the effective date. Afterwards everything is given back or destroyed.</p>
<p>The Recipient may keep one copy for the records:
<span class=tag>{{Keep a copy;type=checkbox;role=Recipient;required=false}}</span></p>
<h2>4. Law</h2>
<p>This agreement may be signed electronically. Changes need the same form.</p>
<table><tr>
 <td><p class="sign tag">{{Discloser signature;type=signature;role=Discloser;width=430;height=110}}</p>
     <p class=line>For the Discloser</p></td>
 <td><p class="sign tag">{{Recipient signature;type=signature;role=Recipient;width=430;height=110}}</p>
     <p class=line>The Recipient</p></td>
</tr></table>
"""

PURCHASE = """
<h1>Purchase Agreement</h1>
<table class=parties><tr><td>The Seller</td><td class=tag>{{Seller;role=Seller;width=560}}</td></tr>
<tr><td>The Buyer</td><td class=tag>{{Buyer;role=Buyer;width=560}}</td></tr>
<tr><td>Goods</td><td class=tag>{{Goods;role=Seller;width=560}}</td></tr>
<tr><td>Price</td><td class=tag>{{Price;role=Seller;width=300}}</td></tr>
<tr><td>To be delivered by</td><td class=tag>{{Delivery;type=date;role=Seller;format=DD/MM/YYYY;width=300}}</td></tr></table>
<h2>1. The goods</h2>
<p>The Seller sells the goods named above to the Buyer and delivers them, free of any right of others, by the day named
above. The risk passes to the Buyer when they are handed over.</p>
<h2>2. The price</h2>
<p>The Buyer pays the price within fourteen days of the delivery. Until then the goods remain the Seller's.</p>
<h2>3. Duty</h2>
<p>The Seller bears the duty on this agreement. It is paid by the stamp on this page.</p>
<h2>4. Law</h2>
<p>This agreement may be signed electronically. Changes need the same form.</p>
<p class="tag stamp">{{Stamp;type=dutystamp;role=Seller;width=180;height=180}}</p>
<table><tr>
 <td><p class="sign tag">{{Seller signature;type=signature;role=Seller;width=430;height=110}}</p>
     <p class=line>For the Seller</p></td>
 <td><p class="sign tag">{{Buyer signature;type=signature;role=Buyer;width=430;height=110}}</p>
     <p class=line>The Buyer</p></td>
</tr></table>
"""

TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()


@dataclasses.dataclass(frozen=True)
class Agreement:
    """What is agreed on: the document, who signs it, and what each of them fills in, by role."""

    name: str
    body: str
    signers: list[dict[str, str]]
    values: dict[str, dict[str, Any]]


NON_DISCLOSURE_AGREEMENT = Agreement(
    "Non-disclosure agreement",
    NON_DISCLOSURE,
    [
        {"role": "Discloser", "email": "freja@woerner.example", "name": "Freja Wörner"},
        {"role": "Recipient", "email": "zoe@example.com", "name": "Zoë Ångström-Łukasz"},
    ],
    {
        "Discloser": {"Company": "Wörner & Søn A/S", "Effective date": TODAY, "Years": 3},
        "Recipient": {"Full name": "Zoë Ångström-Łukasz", "Keep a copy": True},
    },
)
PURCHASE_AGREEMENT = Agreement(
    "Purchase agreement",
    PURCHASE,
    [
        {"role": "Seller", "email": "dewi@jati.example", "name": "Dewi Lestari"},
        {"role": "Buyer", "email": "arief@example.com", "name": "Arief Wibowo"},
    ],
    {
        "Seller": {
            "Seller": "CV Kayu Jati, Jepara",
            "Goods": "Twelve dining tables of teak",
            "Price": "Rp 84.000.000",
            "Delivery": TODAY,
        },
        "Buyer": {"Buyer": "PT Rumah Makan Sederhana, Jakarta"},
    },
)


class Receiver(http.server.BaseHTTPRequestHandler):
    """A webhook receiver: verifies the Standard Webhooks signature of each delivery, keeps what it was told."""

    secret: ClassVar[str] = ""
    received: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Webhook(self.secret).verify(body, dict(self.headers.items()))
        self.received.append(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet: the demo prints what was delivered."""


class Demo:
    """The steps, in the order they are printed."""

    def __init__(self, suite: Suite, folder: Path) -> None:
        self.suite = suite
        self.folder = folder
        self.steps = itertools.count(1)

    def run(self) -> bool:
        webhook = self.receive_webhooks()
        _, files = self.agree(NON_DISCLOSURE_AGREEMENT, self.folder)
        valid = self.check_all(files)
        self.show_deliveries(webhook)
        self.show_mails()
        say("\nA second agreement, sealed with the certificate of a provider and stamped\n")
        valid = self.run_with_providers() and valid
        say(f"\nAll files are in {self.folder}")
        return valid

    def run_with_providers(self) -> bool:
        """The same with the providers that run on this machine to be tried."""
        self.suite.start_providers()
        self.set_providers()
        folder = self.folder / "with-providers"
        folder.mkdir()
        submission, files = self.agree(
            PURCHASE_AGREEMENT, folder, certsign={"enabled": True}, dutystamp={"enabled": True}
        )
        (stamp,) = submission["dutystamp"]["stamps"]
        owner = common_name(submission["certsign"]["subject"])
        say(
            f"   Signed by the provider of certificates as {owner!r}, stamped with {stamp['serial']} on page {stamp['page']}"
        )
        document, trail = files
        valid = self.check(document, sealed_by=owner, stamps=1)
        valid = self.check(trail) and valid
        self.show_ledger(submission)
        return valid

    def agree(self, agreement: Agreement, folder: Path, **wishes: Any) -> tuple[dict[str, Any], list[Path]]:
        """From the template to the downloaded files."""
        template = self.make_template(agreement, folder)
        submission_id, signers = self.send(template, agreement, wishes)
        for signer in signers:
            self.sign(signer, agreement)
        signed_at = time.monotonic()
        submission = self.wait_for_completion(submission_id)
        seconds = time.monotonic() - signed_at
        self.step(f"Completed {seconds:.2f} s after the last signature: sealed PDF and audit trail are there")
        return submission, self.download(submission, folder)

    def step(self, message: str) -> None:
        say(f"{next(self.steps)}. {message}")

    def receive_webhooks(self) -> dict[str, Any]:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/hook"
        kinds = ["form.completed", "submission.created", "submission.completed"]
        webhook: dict[str, Any] = self.api("POST", "/webhooks", {"url": url, "events": kinds})
        Receiver.secret = webhook["signing_secret"]
        return webhook

    def set_providers(self) -> None:
        """As an admin does. Stamps are for submissions that ask for them in any case, certificates unless ``enabled``."""
        certsign = {**self.suite.certsign_settings(), "enabled": False}
        dutystamp = self.suite.dutystamp_settings()
        account = self.api("PUT", "/account", {"certsign": certsign, "dutystamp": dutystamp})
        for name in ("certsign", "dutystamp"):
            if account[name]["problem"]:
                raise SuiteFailed(f"The provider of {name} did not work: {account[name]['problem']}")
        self.step("The account gets two providers, for submissions that ask for them: PUT /api/account")
        say(f"   certsign: {common_name(account['certsign']['subject'])}, from {certsign['url']}")
        say(f"   dutystamp: {account['dutystamp']['balance']} stamps can be bought from {dutystamp['stamp_url']}")

    def make_template(self, agreement: Agreement, folder: Path) -> dict[str, Any]:
        # Imported here: half a second that the suite can use for its start.
        from weasyprint import HTML

        pdf = HTML(string=STYLE + agreement.body).write_pdf()
        (folder / "agreement.pdf").write_bytes(pdf)
        document = {"name": agreement.name, "file": base64.b64encode(pdf).decode()}
        template: dict[str, Any] = self.api("POST", "/templates/pdf", {"name": agreement.name, "documents": [document]})
        fields = ", ".join(f"{field['name']} ({field['type']})" for field in template["fields"])
        self.step(f"Template {template['id']} from a PDF with {{{{...}}}} tags: {fields}")
        return template

    def send(
        self, template: dict[str, Any], agreement: Agreement, wishes: dict[str, Any]
    ) -> tuple[int, list[dict[str, Any]]]:
        body = {"template_id": template["id"], "submitters": agreement.signers, **wishes}
        signers = self.api("POST", "/submissions", body)
        people = " and then ".join(signer["email"] for signer in signers)
        providers_asked = f", with {' and '.join(wishes)}" if wishes else ""
        self.step(f"Submission {signers[0]['submission_id']} sent to {people}{providers_asked}")
        return signers[0]["submission_id"], signers

    def sign(self, signer: dict[str, Any], agreement: Agreement) -> None:
        """Do what the browser does: view, fill in, adopt a signature, complete."""
        page = f"/s/{signer['slug']}"
        self.page("POST", f"{page}/view", {"time_zone": "Europe/Copenhagen"})
        form = self.page("GET", f"{page}/form")
        texts = agreement.values[signer["role"]]
        values = {
            field["uuid"]: texts[field["name"]] for field in form["fields"] if field["mine"] and field["name"] in texts
        }
        signature = next(field for field in form["fields"] if field["mine"] and field["type"] == "signature")
        typed = {"text": signer["name"], "type": "signature", "request_id": str(uuid.uuid4())}
        values[signature["uuid"]] = self.page("POST", f"{page}/typed_signature", typed)["uuid"]
        self.page("POST", f"{page}/complete", {"values": values, "request_id": str(uuid.uuid4())})
        self.step(f"{signer['name']} signed as {signer['role']} at {self.suite.base_url}{page[:8]}...")

    def wait_for_completion(self, submission_id: int) -> dict[str, Any]:
        deadline = time.monotonic() + 120
        while True:
            submission: dict[str, Any] = self.api("GET", f"/submissions/{submission_id}")
            if submission["status"] == "completed":
                return submission
            if submission["sealing_status"] == "failed":
                raise SuiteFailed(f"Sealing failed: {submission['sealing_error']}")
            if time.monotonic() > deadline:
                raise SuiteFailed(f"The submission was not completed in time: {submission}")
            time.sleep(0.02)

    def download(self, submission: dict[str, Any], folder: Path) -> list[Path]:
        links = [*submission["documents"], {"name": "audit-trail", "url": submission["audit_log_url"]}]
        paths = []
        for link in links:
            path = folder / f"{link['name']}.pdf"
            answer = requests.get(link["url"], timeout=30)
            answer.raise_for_status()
            path.write_bytes(answer.content)
            paths.append(path)
        return paths

    def check_all(self, paths: list[Path]) -> bool:
        verdicts = [self.check(path) for path in paths]
        return all(verdicts)

    def check(self, path: Path, sealed_by: str | None = None, stamps: int = 0) -> bool:
        """Our own verdict (/tools/verify) and poppler's, which trusts nothing of ours and looks at the file only.
        ``sealed_by``: who must have made the seal, the first signature; as many more must follow as there are ``stamps``."""
        ours = self.api("POST", "/tools/verify", {"file": base64.b64encode(path.read_bytes()).decode()})
        theirs = subprocess.run(["pdfsig", str(path)], capture_output=True, text=True, check=False).stdout
        shown_lines = ("Signature Validation", "Total document") if stamps else ("Validation", "Total document")
        lines = [line.strip(" -") for line in theirs.splitlines() if any(words in line for words in shown_lines)]
        signer_names = [signature["signer_name"] for signature in ours["signatures"]]
        level = ours["signatures"][0]["level"] if signer_names else "no signature"
        valid = (
            ours["checksum_status"] == "valid"
            and len(signer_names) == 1 + stamps
            and sealed_by in (None, signer_names[0])
            and theirs.count("Signature is Valid") == len(signer_names)
            and "Total document signed" in theirs
        )
        what = f"{level}, by {', then '.join(signer_names)}" if stamps else level
        say(f"   {path.name}: {'valid' if valid else 'NOT VALID'} ({what}); pdfsig: {'; '.join(lines)}")
        return valid

    def show_ledger(self, submission: dict[str, Any]) -> None:
        """Print what was bought, as the account's admins see it."""
        ledger = self.api("GET", "/account/dutystamps")["data"]
        (self.folder / "with-providers" / "ledger.json").write_text(json.dumps(ledger, indent=1, ensure_ascii=False))
        bought = ", ".join(
            f"{stamp['serial']} for submission {stamp['submission_id']} ({stamp['state']})" for stamp in ledger
        )
        self.step(f"Stamps that were bought: {bought}")
        say(f"   The ledger: GET {self.suite.base_url}/api/account/dutystamps")

    def show_deliveries(self, webhook: dict[str, Any]) -> None:
        deadline = time.monotonic() + 15
        while not any(event["event_type"] == "submission.completed" for event in Receiver.received):
            if time.monotonic() > deadline:
                raise SuiteFailed("The webhook for submission.completed did not arrive.")
            time.sleep(0.05)
        kinds = ", ".join(event["event_type"] for event in Receiver.received)
        self.step(f"Webhooks, in order, each with a verified signature: {kinds}")
        (self.folder / "webhooks.json").write_text(json.dumps(Receiver.received, indent=1, ensure_ascii=False))
        say(f"   Deliveries and attempts: GET {self.suite.base_url}/api/webhooks/{webhook['id']}/deliveries")

    def show_mails(self) -> None:
        mails = self.suite.var_dir / "mail"
        deadline = time.monotonic() + 15
        # Two invitations, the sender's completion mail, two copies.
        while len(list(mails.glob("*.eml"))) < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.step(f"Mails ({len(list(mails.glob('*.eml')))}), kept because no SMTP server is set: {mails}")

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, f"/api{path}", body, {"X-Auth-Token": self.suite.api_key})

    def page(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, path, body, {})

    def _call(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        url = f"http://127.0.0.1:{self.suite.port}{path}"
        answer = requests.request(method, url, json=body, headers=headers, timeout=60)
        if answer.status_code >= 400:
            raise SuiteFailed(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json()


def main() -> int:
    folder = Path(os.environ.get("VAR_DIR") or ROOT / "var" / "demo")
    results = folder / "results"
    if folder.exists() and any(folder.iterdir()) and not results.is_dir():
        # It begins with an empty folder, and VAR_DIR may be that of a suite that people work with.
        say(f"{folder} holds something else than a demo: name another folder as VAR_DIR.")
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    results.mkdir(parents=True)
    # Ports are free ones, whatever runs here already; a mail server or database of the caller's is not for a demo.
    ours = {
        "VAR_DIR",
        "PORT",
        "BASE_URL",
        "SMTP_URL",
        "AMQP_URL",
        "BLOB_URL",
        "ADMIN_API_KEY",
        "RENDERING_STAMP_FOLDER",
    }
    environment = {key: value for key, value in settings_from_environment().items() if key not in ours}
    servers = ForkServers.of_this_process()
    servers.begin()
    suite = Suite(
        folder,
        environment={key: value for key, value in environment.items() if not key.endswith("_DATABASE_URL")},
        with_providers=True,
        start_process=servers.start,
    )
    began = time.monotonic()
    say("Starting the services, a private RabbitMQ node and their databases ...")
    try:
        suite.start()
        say(f"Ready after {time.monotonic() - began:.1f} s at {suite.base_url}\n")
        valid = Demo(suite, results).run()
    except KeyboardInterrupt:
        return 130
    except (SuiteFailed, ForkServerFailed, requests.RequestException) as error:
        say(f"The demo failed: {error}\nLogs are in {folder / 'log'}")
        return 1
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            suite.stop()
            servers.close()
    say("Stopped. `make up` runs it for you to try: the API docs are at /docs, mails and providers at /dev/mail.")
    return 0 if valid else 1


def common_name(subject: str) -> str:
    """The name in a certificate's subject."""
    return dict(part.split("=", 1) for part in re.split(r",\s*(?=\w+=)", subject))["CN"]


def say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
