"""What images are built of, as far as it is known without an engine that builds them: ``tests/deployed`` builds them."""

import pytest

from deploy.release.make_images import NotBuilt, by_digest, epoch_of

ONE, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
PYTHON = "docker.io/library/python"


@pytest.mark.parametrize(
    ("base", "known", "name"),
    [
        (f"{PYTHON}:3.11", [f"{PYTHON}@{ONE}"], f"{PYTHON}@{ONE}"),
        (f"{PYTHON}:3.11", [f"mirror.example.com/python@{OTHER}", f"{PYTHON}@{ONE}"], f"{PYTHON}@{ONE}"),
        (f"{PYTHON}:3.11@{OTHER}", [f"{PYTHON}@{ONE}", f"{PYTHON}@{OTHER}"], f"{PYTHON}@{OTHER}"),
        (f"{PYTHON}@{OTHER}", [], f"{PYTHON}@{OTHER}"),
        ("example.com:5000/python", [f"example.com:5000/python@{ONE}"], f"example.com:5000/python@{ONE}"),
        (f"{PYTHON}:3.11", [f"python@{ONE}"], f"{PYTHON}@{ONE}"),  # as docker calls it
    ],
)
def test_a_base_image_is_named_by_the_digest_that_was_asked_for(base: str, known: list[str], name: str) -> None:
    """Podman knows an image by the digest of its list as well, and by what any repository calls it."""
    assert by_digest(base, known) == name


def test_a_base_image_that_was_only_built_here_has_none() -> None:
    with pytest.raises(NotBuilt, match="has no digest here"):
        by_digest(PYTHON, [])


def test_a_time_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(NotBuilt, match="SOURCE_DATE_EPOCH must be a whole number of seconds"):
        epoch_of("HEAD")
