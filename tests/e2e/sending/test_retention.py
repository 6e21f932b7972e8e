"""How long submissions are kept, as the API says and shows it. That they are deleted then, tests/contract/submissions/test_retention.py
shows: nobody waits for seven days."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite


def lease(suite: RunningSuite) -> int:
    return int(suite.template(agreement_pdf(["{{Name;role=Tenant}}"]), name="Kept")["id"])


def archived(suite: RunningSuite, template: int, key: str | None = None, **more: Any) -> Any:
    submitters = [{"email": "ann@example.com", "send_email": False}]
    (made,) = suite.api("POST", "/submissions", {"template_id": template, "submitters": submitters, **more}, key=key)
    path = f"/submissions/{made['submission_id']}"
    assert suite.api("GET", path)["erase_at"] is None
    suite.api("DELETE", path)
    return suite.api("GET", path)


def kept_for(submission: dict[str, Any]) -> timedelta | None:
    if submission["erase_at"] is None:
        return None
    return datetime.fromisoformat(submission["erase_at"]) - datetime.fromisoformat(submission["archived_at"])


def test_what_is_kept_for_how_long_is_said_and_shown(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    template = lease(suite)
    assert suite.api("GET", "/account")["keep_days"] is None
    assert kept_for(archived(suite, template)) is None
    assert suite.api("PUT", "/account", {"keep_days": 90})["keep_days"] == 90
    try:
        assert kept_for(archived(suite, template)) == timedelta(days=90)
        changed = suite.api("PUT", f"/templates/{template}", {"preferences": {"keep_days": 30}})
        assert changed["preferences"]["keep_days"] == 30
        assert kept_for(archived(suite, template)) == timedelta(days=30)
        own = archived(suite, template, preferences={"keep_days": 0})
        assert (own["preferences"]["keep_days"], kept_for(own)) == (0, None)
    finally:
        assert suite.api("PUT", "/account", {"keep_days": None})["keep_days"] is None
    for odd in (6, -1, 36_501, "soon", True, 7.5):
        for method, path, body, field in (
            ("PUT", "/account", {"keep_days": odd}, "keep_days"),
            ("PUT", f"/templates/{template}", {"preferences": {"keep_days": odd}}, "preferences.keep_days"),
            (
                "POST",
                "/submissions",
                {"template_id": template, "emails": "ann@example.com", "preferences": {"keep_days": odd}},
                "preferences.keep_days",
            ),
        ):
            refused = suite.api(method, path, body, status=422)
            assert [detail["field"] for detail in refused["details"]] == [field], (path, odd, refused)


def test_what_is_on_legal_hold_is_not_deleted(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    editor = suite.api("POST", "/users", {"email": f"{uuid.uuid4().hex}@example.com", "role": "editor"}, status=201)
    path = f"/submissions/{archived(suite, lease(suite), editor['api_key'])['id']}"
    assert suite.api("PUT", path, {"legal_hold": True}, key=editor["api_key"])["legal_hold"] is True
    refused = suite.api("DELETE", f"{path}?permanently=true", status=409)
    assert refused["code"] == "conflict"
    assert suite.api("GET", path)["legal_hold"] is True
    assert suite.api("PUT", path, {"name": "Otherwise"})["legal_hold"] is True
    suite.api("PUT", path, {"legal_hold": False}, key=editor["api_key"], status=403)
    assert suite.api("PUT", path, {"legal_hold": False})["legal_hold"] is False
    suite.api("DELETE", f"{path}?permanently=true")
    suite.api("GET", path, status=404)
