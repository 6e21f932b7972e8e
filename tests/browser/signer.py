"""A person in front of the signing page: finds fields by their label and buttons by their name."""

import math
from typing import Any

from playwright.sync_api import Locator, Page, expect


class Signer:
    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def start(self) -> None:
        self.press("Start")

    def next(self) -> None:
        self.press("Next")

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=True)

    def fill(self, label: str, value: str) -> None:
        """One step: a text, a date or a number, then Next."""
        self.field(label).fill(value)
        self.next()

    def check(self, label: str) -> None:
        self.field(label).check()
        self.next()

    def draw(self, label: str) -> None:
        """A wave across the pad with the mouse; does not press Next."""
        pad = self.field(label)
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        assert box is not None
        mouse = self.page.mouse
        mouse.move(box["x"] + box["width"] * 0.15, box["y"] + box["height"] * 0.5)
        mouse.down()
        for step in range(16):  # a browser draws its page anew after each
            along = step / 15
            up = math.sin(along * 12) * 0.3
            mouse.move(box["x"] + box["width"] * (0.15 + 0.7 * along), box["y"] + box["height"] * (0.5 + up))
        mouse.up()

    def type_signature(self, label: str, text: str) -> None:
        """Does not press Next."""
        self.press("Type")
        self.field(label).fill(text)

    def complete(self) -> None:
        self.press("Complete")
        self.is_done()

    def is_done(self) -> None:
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(
            "you have signed", ignore_case=True, timeout=60_000
        )

    def sees_problem(self, text: str) -> None:
        expect(self.page.get_by_role("alert").filter(has_text=text)).to_be_visible()

    def saved(self) -> None:
        expect(self.page.locator("#saving")).to_have_text("Saved")

    def form(self) -> dict[str, Any]:
        """The form as the server has it now."""
        return self.page.evaluate("fetch(location.pathname + '/form').then((answer) => answer.json())")  # type: ignore[no-any-return]

    def value(self, name: str) -> Any:
        return next(field["value"] for field in self.form()["fields"] if field.get("name") == name)
