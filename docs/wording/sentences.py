"""The style of what callers, signers and operators are told, as rules that a program can hold a sentence to.

CONTRIBUTING has them in words, with examples ("Sentences").
"""

import re

AS_THE_PEER = frozenset(
    {
        "At least 2 files are required",
        "Cannot delete your own account",
        "File not found",
        "Files are required",
        "Defined more signing parties than in template",
        "Form has been expired.",
        "Identity verification not configured",
        "Internal error",
        "Invalid field",
        "Malformed PDF",
        "Method not allowed",
        "No completed submitter found to generate test payload",
        "Not authenticated",
        "Not authorized",
        "Not found",
        "Phone verification not configured",
        "Read-only field",
        "Template has been archived",
        "Test webhook request has been queued",
        "The documents do not contain fields",
        "Unknown submitter role: {role}. Template defines [{roles}]",
        "Verification required, refresh the page and pass 2FA.",
        "Webhook has been deleted",
        "{noun} not found",
        "{subject} contain fields",
        "{name} role doesn't exist",
    }
)
"""Sentences that clients of other services compare, word for word, and those made after them."""

OF_VERDICTS = frozenset(
    {
        "There is content after the end of the file: other readers may show something different from what was signed",
        "The file is damaged and readers have to repair it: they may show something different from what was signed",
    }
)
"""What a verification finds, which stands in a list, or at the end of a refusal."""

_OF_A_PLACE = re.compile(r" in `[^`]+`\.$|\{inside\}\.?$")
"""The end of a sentence that names the object that a key is missing in: the peer's, with a full stop."""

_NAME = re.compile(r"PostgreSQL|[A-Z][A-Z0-9_]{2,}|[A-Z][a-z]+-[A-Z]|[`'“<{]|\[\[")
"""What begins as it is written, whatever its case: a setting, a header, a name that is filled in."""

_WORDS: tuple[tuple[str, str], ...] = (
    (r"\b(we|us|our|ours)\b", "say what is refused, not who refuses it: no 'we', 'our'"),
    (r"\b(\w+n't|it's|that's)\b", "write short forms out: 'does not', 'cannot'"),
    (r"\b(None|True|False|null is|dict|str)\b", "name JSON's values: null, true, false, an object, a string"),
    (r"(?<![Tt]here )\b(is|are) no (?!longer\b)[a-z]", "write 'is not a ...'"),
    (r"\b(is|are) none\b|\bnone of\b", "write 'is not ...', 'must be one of ...'"),
    (r"\bthat there is\b|\bthere are none\b|\bis there twice\b", "say which are allowed: 'must be one of ...'"),
    (r"\bsome(body|thing) else\b|\bis another one\b|\bwho may\b|\bof old\b", "name what is meant"),
    (r"\bfound\b(?! to generate)|\bis asked for\b|\bis waited for\b", "use the verb that names the action"),
    (
        r", (?:please )?(?:try|wait|read|use|ask|make|look|put|send|delete|enter|save|choose)\b",
        "begin a new sentence there",
    ),
    (r"\bcolor\b(?!_)|\borganization\b(?!_)", "the project writes British English: colour, organisation"),
    (r"\be?mail adress\b|\bemail address\b", "write 'e-mail address'"),
    (r"\s{2,}|\s$|^\s", "no blanks at the ends, and one between words"),
    (r"!", "no exclamation marks"),
)
MOST_SENTENCES, LONGEST = 3, 400


def faults(text: str) -> list[str]:
    """Return what is to be mended in a refusal, as advice; nothing when it is in the style. ``{name}`` is what is filled in."""
    if text in AS_THE_PEER | OF_VERDICTS or _OF_A_PLACE.search(text):
        return []
    is_beginning, text = text.endswith(" "), text.rstrip(" ")
    words = re.sub(r"\{\w+\}", "X", text)
    advice_given = [advice for pattern, advice in _WORDS if re.search(pattern, words)]
    begins_as_written = _NAME.match(text) is not None
    if text[:1].isupper() and not begins_as_written and not is_beginning and not re.search(r"[.?]$|: \{\w+\}$", text):
        advice_given.append("a sentence that begins with a capital letter ends with a full stop")
    if text[:1].islower() and not begins_as_written and text.endswith(".") and len(sentences(text)) == 1:
        advice_given.append("a reason, and a sentence that begins with the name of a field, has no full stop")
    if len(sentences(text)) > MOST_SENTENCES or len(text) > LONGEST:
        advice_given.append(f"at most {MOST_SENTENCES} sentences and {LONGEST} characters")
    return advice_given


def sentences(text: str) -> list[str]:
    """Split a text into its sentences."""
    return [part for part in re.split(r"(?<=[.?])\s+(?=[A-Z{])", text.strip()) if part]
