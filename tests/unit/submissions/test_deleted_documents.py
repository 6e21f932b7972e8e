"""Which documents a receipt of deletion names: not those of a template, and each once."""

from services.submissions.commands.erasing import deleted_documents


def test_documents_that_came_along_are_named_by_their_digest() -> None:
    """What a template keeps is not; and what is both original and prepared is named once."""

    def file(key: str, sha256: str) -> dict[str, str]:
        return {"key": key, "sha256": sha256}

    documents = [
        {"original": file("templates/1", "a"), "file": file("templates/2", "b")},
        {"original": file("submissions/3", "c"), "file": file("submissions/4", "d")},
        {"original": file("submissions/5", "e"), "file": file("submissions/5", "e")},
    ]
    earlier = {"documents": [{"file": file("rendering/6", "f")}], "audit_trail": file("rendering/7", "g")}
    results = {
        "documents": [{"file": file("rendering/8", "h")}],
        "audit_trail": file("rendering/9", "i"),
        "merged": file("rendering/0", "j"),
        "earlier": [earlier],
    }
    found = [(each.kind, each.sha256) for each in deleted_documents(documents, results)]
    assert sorted(found, key=lambda one: one[1]) == [
        ("original", "c"),
        ("prepared", "d"),
        ("original", "e"),
        ("sealed", "f"),
        ("audit_trail", "g"),
        ("sealed", "h"),
        ("audit_trail", "i"),
        ("combined", "j"),
    ]
    assert deleted_documents(documents[:1], None) == []
