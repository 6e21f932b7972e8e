"""Which sites may frame a page, and which colours can be read."""

import pytest

from contracts.errors import ServiceError
from services.gateway.accounts.framing import accent, contrast, sites


def test_sites_are_kept_as_the_policy_has_them() -> None:
    given = [
        "https://App.Example.com/",
        " 'self' ",
        "https://app.example.com",
        "http://localhost:3000",
        "https://*.example.com",
    ]
    assert sites(given) == ["https://app.example.com", "'self'", "http://localhost:3000", "https://*.example.com"]
    assert sites([]) == []


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "*",
            "https:",
            "https://",
            "https://*",
            "https://*.com",
            "app.example.com",
            "ftp://app.example.com",
            "'none'",
        ),
        *(
            "https://app.example.com/form",
            "https://app.example.com:0",
            "https://app.example.com:123456",
            "https://-a.example.com",
        ),
        *(
            "https://a.example.com; script-src *",
            "https://a.example.com https://b.example.com",
            "https://a..example.com",
        ),
    ],
)
def test_what_is_no_site_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        sites(["https://app.example.com", text])
    assert [detail["field"] for detail in refused.value.details or []] == ["frame_ancestors[1]"]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#ffffff", "#000000", 21.0),
        ("#777777", "#777777", 1.0),
        ("#767676", "#ffffff", 4.54),  # the lightest grey that WCAG lets stand on white, as its own examples have it
        ("#777777", "#ffffff", 4.48),
        ("#ff0000", "#ffffff", 4.0),
        ("#0000ff", "#ffffff", 8.59),
        ("#175c4c", "#ffffff", 7.86),
        ("#010101", "#ffffff", 20.87),
    ],
)
def test_contrast_is_that_of_wcag(one: str, other: str, found: float) -> None:
    assert contrast(one, other) == pytest.approx(found, abs=0.01)


def test_a_colour_that_can_be_read_is_taken() -> None:
    assert accent(" #767676 ") == "#767676"
    assert accent("#0000FF") == "#0000ff"
    assert accent("  ") == ""


@pytest.mark.parametrize("text", ["#777777", "#ff0000", "#ffffff", "#fff", "red", "#12345g", "#1234567"])
def test_one_that_cannot_is_refused_by_name(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        accent(text)
    assert [detail["field"] for detail in refused.value.details or []] == ["accent_color"]
