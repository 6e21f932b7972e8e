"""`make demo`: one real agreement from template to sealed PDF and audit trail, on the real services, then stop.

Two signers fill it in through the signing page's own calls; a receiver on loopback takes the webhooks and checks their
signatures; pdfsig (poppler), a program that knows nothing of us, checks the seals.
"""

import base64
import contextlib
import datetime
import http.server
import json
import os
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

from deploy.suite import Suite, SuiteFailed, settings_from_environment

ROOT = Path(__file__).resolve().parent.parent

AGREEMENT = """
<style>
  @page { size: A4; margin: 24mm 26mm; @bottom-center { content: "Page " counter(page) " of " counter(pages);
          font: 8pt 'Liberation Sans'; color: #667 } }
  body { font: 10.5pt/1.55 'Liberation Serif'; color: #1b2130 } h1 { font-size: 20pt; margin: 0 0 4mm }
  h2 { font-size: 11.5pt; margin: 7mm 0 1mm } table { width: 100%; margin-top: 12mm; border-collapse: collapse;
  table-layout: fixed } td { width: 50%; vertical-align: top; padding-right: 8mm }
  .parties { margin: 5mm 0; } .parties td { padding: 1.4mm 0; border-bottom: .4pt solid #bcc }
  .parties td:first-child { width: 34mm; color: #556 } .line { border-top: .6pt solid #889; padding-top: 1mm;
  font-size: 8.5pt; color: #556 } p { margin: 1.5mm 0 } .sign { height: 17mm }
  .tag { white-space: nowrap; font-size: 10pt; overflow: hidden }
</style>
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

TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()
VALUES: dict[str, dict[str, Any]] = {
    "Discloser": {
        "Company": "Wörner & Søn A/S",
        "Effective date": TODAY,
        "Years": 3,
    },
    "Recipient": {"Full name": "Zoë Ångström-Łukasz", "Keep a copy": True},
}


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
        self.began = time.monotonic()

    def run(self) -> bool:
        webhook = self.receive_webhooks()
        template = self.make_template()
        submission_id, signers = self.send(template)
        for signer in signers:
            self.sign(signer)
        signed_at = time.monotonic()
        submission = self.wait_for_completion(submission_id)
        seconds = time.monotonic() - signed_at
        say(f"5. Completed {seconds:.2f} s after the last signature: sealed PDF and audit trail are there")
        valid = self.check_all(self.download(submission))
        self.show_deliveries(webhook)
        self.show_mails()
        say(f"\nAll files are in {self.folder}")
        return valid

    def receive_webhooks(self) -> dict[str, Any]:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/hook"
        kinds = ["form.completed", "submission.created", "submission.completed"]
        webhook: dict[str, Any] = self.api("POST", "/webhooks", {"url": url, "events": kinds})
        Receiver.secret = webhook["signing_secret"]
        return webhook

    def make_template(self) -> dict[str, Any]:
        # Imported here: half a second that the suite can use for its start.
        from weasyprint import HTML

        pdf = HTML(string=AGREEMENT).write_pdf()
        (self.folder / "agreement.pdf").write_bytes(pdf)
        document = {"name": "Non-disclosure agreement", "file": base64.b64encode(pdf).decode()}
        template: dict[str, Any] = self.api("POST", "/templates/pdf", {"name": "NDA", "documents": [document]})
        fields = ", ".join(f"{field['name']} ({field['type']})" for field in template["fields"])
        say(f"1. Template {template['id']} from a PDF with {{{{...}}}} tags: {fields}")
        return template

    def send(self, template: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
        signers = self.api(
            "POST",
            "/submissions",
            {
                "template_id": template["id"],
                "submitters": [
                    {"role": "Discloser", "email": "freja@woerner.example", "name": "Freja Wörner"},
                    {"role": "Recipient", "email": "zoe@example.com", "name": "Zoë Ångström-Łukasz"},
                ],
            },
        )
        say(
            f"2. Submission {signers[0]['submission_id']} sent to {' and then '.join(signer['email'] for signer in signers)}"
        )
        return signers[0]["submission_id"], signers

    def sign(self, signer: dict[str, Any]) -> None:
        """What the browser does: view, fill in, adopt a signature, complete."""
        page = f"/s/{signer['slug']}"
        self.page("POST", f"{page}/view", {"time_zone": "Europe/Copenhagen"})
        form = self.page("GET", f"{page}/form")
        texts = VALUES[signer["role"]]
        values = {
            field["uuid"]: texts[field["name"]] for field in form["fields"] if field["mine"] and field["name"] in texts
        }
        signature = next(field for field in form["fields"] if field["mine"] and field["type"] == "signature")
        typed = {"text": signer["name"], "type": "signature", "request_id": str(uuid.uuid4())}
        values[signature["uuid"]] = self.page("POST", f"{page}/typed_signature", typed)["uuid"]
        self.page("POST", f"{page}/complete", {"values": values, "request_id": str(uuid.uuid4())})
        step = 3 + list(VALUES).index(signer["role"])
        say(f"{step}. {signer['name']} signed as {signer['role']} at {self.suite.base_url}{page[:8]}...")

    def wait_for_completion(self, submission_id: int) -> dict[str, Any]:
        while True:
            submission: dict[str, Any] = self.api("GET", f"/submissions/{submission_id}")
            if submission["status"] == "completed":
                return submission
            if submission["sealing_status"] == "failed":
                raise SuiteFailed(f"Sealing failed: {submission['sealing_error']}")
            if time.monotonic() - self.began > 120:
                raise SuiteFailed(f"The submission was not completed in time: {submission}")
            time.sleep(0.02)

    def download(self, submission: dict[str, Any]) -> list[Path]:
        links = [*submission["documents"], {"name": "audit-trail", "url": submission["audit_log_url"]}]
        paths = []
        for link in links:
            path = self.folder / f"{link['name']}.pdf"
            answer = requests.get(link["url"], timeout=30)
            answer.raise_for_status()
            path.write_bytes(answer.content)
            paths.append(path)
        return paths

    def check_all(self, paths: list[Path]) -> bool:
        verdicts = [self.check(path) for path in paths]
        return all(verdicts)

    def check(self, path: Path) -> bool:
        """Our own verdict (/tools/verify) and poppler's, which trusts nothing of ours and looks at the file only."""
        ours = self.api("POST", "/tools/verify", {"file": base64.b64encode(path.read_bytes()).decode()})
        theirs = subprocess.run(["pdfsig", str(path)], capture_output=True, text=True, check=False).stdout
        lines = [line.strip(" -") for line in theirs.splitlines() if "Validation" in line or "Total document" in line]
        level = ours["signatures"][0]["level"] if ours["signatures"] else "no signature"
        valid = (
            ours["checksum_status"] == "valid" and "Signature is Valid" in theirs and "Total document signed" in theirs
        )
        say(f"   {path.name}: {'valid' if valid else 'NOT VALID'} ({level}); pdfsig: {'; '.join(lines)}")
        return valid

    def show_deliveries(self, webhook: dict[str, Any]) -> None:
        deadline = time.monotonic() + 15
        while not any(event["event_type"] == "submission.completed" for event in Receiver.received):
            if time.monotonic() > deadline:
                raise SuiteFailed("The webhook for submission.completed did not arrive.")
            time.sleep(0.05)
        kinds = ", ".join(event["event_type"] for event in Receiver.received)
        say(f"6. Webhooks, in order, each with a verified signature: {kinds}")
        (self.folder / "webhooks.json").write_text(json.dumps(Receiver.received, indent=1, ensure_ascii=False))
        say(f"   Deliveries and attempts: GET {self.suite.base_url}/api/webhooks/{webhook['id']}/deliveries")

    def show_mails(self) -> None:
        mails = self.suite.var_dir / "mail"
        deadline = time.monotonic() + 15
        # Two invitations, the sender's completion mail, two copies.
        while len(list(mails.glob("*.eml"))) < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        say(f"7. Mails ({len(list(mails.glob('*.eml')))}), kept because no SMTP server is set: {mails}")

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
    shutil.rmtree(folder, ignore_errors=True)
    results = folder / "results"
    results.mkdir(parents=True)
    # Ports are free ones, whatever runs here already; a mail server or database of the caller's is not for a demo.
    ours = {"VAR_DIR", "PORT", "BASE_URL", "SMTP_URL", "AMQP_URL", "BLOB_URL", "ADMIN_API_KEY"}
    environment = {key: value for key, value in settings_from_environment().items() if key not in ours}
    suite = Suite(
        folder, environment={key: value for key, value in environment.items() if not key.endswith("_DATABASE_URL")}
    )
    began = time.monotonic()
    say("Starting the services, a private RabbitMQ node and their databases ...")
    try:
        suite.start()
        say(f"Ready after {time.monotonic() - began:.1f} s at {suite.base_url}\n")
        valid = Demo(suite, results).run()
    except KeyboardInterrupt:
        return 130
    except (SuiteFailed, requests.RequestException) as error:
        say(f"The demo failed: {error}\nLogs are in {folder / 'log'}")
        return 1
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            suite.stop()
    say("Stopped. `make up` runs it for you to try: the API docs are at /docs, the mails at /dev/mail.")
    return 0 if valid else 1


def say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
