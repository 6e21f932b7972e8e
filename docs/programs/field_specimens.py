"""What docs/fields.md shows: a specimen for each type of field and each attribute of a tag, as it is written in a document."""

from dataclasses import dataclass, field
from typing import Any

SIGNATURE, PHOTO, PAPER = "@signature", "@photo", "@paper"
"""Stand for files in ``values``: a drawn name, a picture, a document."""


@dataclass(frozen=True)
class Specimen:
    """``names`` are the types or attributes that it is for, ``says`` what they do. ``lines`` are the document's text, empty for
    nothing to be seen; ``values`` are given by field name."""

    names: tuple[str, ...]
    says: str
    lines: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return f"{self.names[0]}.png"


@dataclass(frozen=True)
class Fault:
    """Something that is not understood: how it is ``written`` (a tag, or the JSON of a field), what is ``said`` of it, and what
    that ``means``."""

    written: str
    message: str
    means: str


@dataclass(frozen=True)
class Ways:
    """One field in each way of writing it."""

    tag: str
    html: str
    json: str


WAYS = [
    Ways(
        "{{Start;type=date;role=Tenant;format=DD.MM.YYYY;required=false}}",
        '<date-field name="Start" role="Tenant" format="DD.MM.YYYY" required="false"></date-field>',
        '{"name": "Start", "type": "date", "role": "Tenant", "required": false, "preferences": {"format": "DD.MM.YYYY"}}',
    ),
    Ways(
        "{{Rent;type=number;role=Landlord;min=1;max=5000;format=eur;font-size=10.5}}",
        '<number-field name="Rent" role="Landlord" min="1" max="5000" format="eur" font-size="10.5"></number-field>',
        '{"name": "Rent", "type": "number", "role": "Landlord", "validation": {"min": 1, "max": 5000},'
        ' "preferences": {"format": "eur", "font_size": 10.5}}',
    ),
    Ways(
        "{{Colour;type=select;options=Red,Green;default=Green;title=Which one?}}",
        '<select-field name="Colour" options="Red,Green" default="Green" title="Which one?"></select-field>',
        '{"name": "Colour", "type": "select", "options": ["Red", "Green"], "default_value": "Green", "title": "Which one?"}',
    ),
    Ways(
        "{{Signature;type=signature;role=Tenant;format=drawn;reasons=I agree,I was there}}",
        '<signature-field name="Signature" role="Tenant" format="drawn" reasons="I agree,I was there"></signature-field>',
        '{"name": "Signature", "type": "signature", "role": "Tenant",'
        ' "preferences": {"format": "drawn", "reasons": ["I agree", "I was there"]}}',
    ),
]

NO_TAGS = [
    Fault("{{}}", "it is empty", "Nothing stands between the braces."),
    Fault(
        "{{;type=date}}",
        "it has no name",
        "A name comes first, or else the type: `{{type=date}}`.",
    ),
    Fault("{{Name;type=poem}}", "the type “poem” does not exist", "The types are those above."),
    Fault(
        "{{Name;type=kba}}",
        "questions about a signer's past (KBA) are not offered",
        "That type exists elsewhere; it has no equal here.",
    ),
    Fault(
        "{{Name;role={A}}}",
        "its role is more than a line of 60 characters without braces",
        "Most likely the end of the tag is missing, and this is the text behind it.",
    ),
]
"""They stay as text (``unknown_tag``)."""

LEFT_OUT = [
    Fault("{{A;colour=red}}", "the attribute “colour” is not known", "The attributes are those above."),
    Fault("{{A;required}}", "“required” is not an attribute (name=value)", "Each has a value: `required=false`."),
    Fault("{{A;role=B;role=C}}", "the attribute “role” is given twice; the last one counts", "Take one away."),
    Fault("{{A;required=maybe}}", "“required” must be true or false", "`true`, `yes`, `1`, `false`, `no`, `0`."),
    Fault("{{A;type=number;min=low}}", "“min” must be a number", "Digits, with a point for the fraction."),
    Fault("{{A;type=number;min=1e16}}", "“min” is out of range", "From -2^53 to 2^53."),
    Fault("{{A;width=0}}", "“width” must be above 0 and up to 10,000 pixels", "Pixels, above 0 and up to 10,000."),
    Fault("{{A;type=date;min=2026-02-30}}", "“min” must be a date as YYYY-MM-DD", "Year, month, day of a day that exists."),
    Fault("{{A;min=low}}", "“min” must be a number or a date as YYYY-MM-DD", "As its type is."),
    Fault("{{A;type=number;min=9;max=1}}", "the attribute “max” must not be below min", "Nothing could lie between them."),
    Fault("{{A;type=number;step=0}}", "“step” must be above 0", "A step goes forward."),
    Fault("{{A;type=payment;price=-1}}", "“price” must not be below 0", "0 or more."),
    Fault("{{A;type=payment;payment_url=shop}}", "“payment_url” is not a valid http or https URL", "The whole address."),
    Fault("{{A;align=middle}}", "“align” must be one of left, center, right", "One of these words."),
    Fault("{{A;font=Comic}}", "“font” must be one of Times, Helvetica, Courier", "One of these, or nothing."),
    Fault("{{A;font_size=1}}", "“font_size” must be between 4 and 144", "Points, halves too."),
    Fault("{{A;color=blueish}}", "“color” must be", "`black`, `white`, `blue`, `red`, or `#` and 3 or 6 hex digits."),
    Fault("{{A;type=signature;reasons=,}}", "“reasons” must be a list of at most", "Texts between commas."),
    Fault("{{A;type=text;option=B}}", "“option” only belongs to radio and multiple fields", "Take it away, or change `type`."),
    Fault("{{A;type=radio;option=}}", "“option” must not be blank", "The option that this tag is the mark of."),
    Fault("{{A;type=date;default=soon}}", "the default “soon” must be a date as YYYY-MM-DD", "As its `format`, or so."),
    Fault("{{A;pattern=" + "x" * 257 + "}}", "“pattern” must not be longer than 256 characters", "Shorten it."),
    Fault("{{A;title=" + "x" * 2001 + "}}", "“title” must not be longer than 2,000 characters", "Shorten it."),
    Fault(
        "{{A;formula=" + "x" * 5001 + "}}", "“formula” must not be longer than 5,000 characters",
        "As in JSON: [formulas.md](formulas.md).",
    ),
    Fault("{{A;type=radio;option=" + "x" * 256 + "}}", "“option” must not be longer than 255 characters", "Shorten it."),
    Fault(
        "{{A;type=select;options=" + ",".join(map(str, range(501))) + "}}", "“options” must not have more than 500 entries",
        "Of `<option>` elements in HTML it says so of “the list of options”.",
    ),
    Fault("{{" + "x" * 256 + "}}", "the name is cut to 255 characters", "Shorten it; `title` and `description` may be long."),
]  # fmt: skip
"""The field is made without them (``tag_attribute``)."""

REFUSED = [
    Fault('{"type": "select"}', "options are required for a select field", "A choice needs something to choose from."),
    Fault('{"type": "select", "options": [""]}', "options[0] must not be blank", "Take it away, or name it."),
    Fault('{"type": "select", "options": ["A", "A"]}', "options[1] repeats the option 'A'", "Each option once."),
    Fault('{"type": "number", "validation": {"min": "x"}}', "validation.min must be a number", "A number, or its digits."),
    Fault('{"type": "number", "validation": {"min": 1e300}}', "validation.min is out of range", "From -2^53 to 2^53."),
    Fault('{"type": "number", "validation": {"step": 0}}', "validation.step must be above 0", "A step goes forward."),
    Fault('{"type": "date", "validation": {"min": 5}}', "validation.min must be a date as YYYY-MM-DD", "Whatever `format` is."),
    Fault(
        '{"type": "text", "validation": {"min": "x"}}', "validation.min must be a number or a date as YYYY-MM-DD",
        "As its type is.",
    ),
    Fault(
        '{"type": "number", "validation": {"min": 9, "max": 1}}', "validation.max must not be below min",
        "Nothing could lie between them.",
    ),
    Fault(
        '{"type": "number", "validation": {"max": -9007199254740992, "step": 7}}',
        "validation.step must leave a number to choose", "Steps are counted from `min`, or from 0.",
    ),
    Fault(
        '{"type": "text", "validation": {"pattern": "(?=x)"}}', "validation.pattern must be a pattern that RE2 understands",
        "HTML's `pattern` without look-around and back-references.",
    ),
    Fault('{"type": "text", "validation": {"pattern": 1}}', "validation.pattern must be text", "Text in quotes."),
    Fault('{"type": "text", "validation": {"pattern": "^$"}}', "validation.pattern must match some text", "Nothing does."),
    Fault(
        '{"type": "phone", "validation": {"pattern": "0.*"}}',
        "validation.pattern must match phone numbers such as +14155550123", "Every value begins with + and the country code.",
    ),
    Fault('{"type": "text", "preferences": {"align": "middle"}}', "preferences.align must be one of", "The words follow."),
    Fault(
        '{"type": "text", "preferences": {"color": "x"}}', "preferences.color must be",
        "A word, or a hex colour such as #1a2b3c.",
    ),
    Fault('{"type": "text", "preferences": {"font_size": 1}}', "preferences.font_size must be between 4 and 144", "Points."),
    Fault(
        '{"type": "text", "preferences": {"mask": 1.5}}',
        "preferences.mask must be true, false or a whole number of characters up to 255", "As `mask` above.",
    ),
    Fault('{"type": "text", "preferences": {"hidden": "x"}}', "preferences.hidden must be true or false", "Or their words."),
    Fault('{"type": "payment", "preferences": {"price": -1}}', "preferences.price must not be below 0", "0 or more."),
    Fault(
        '{"type": "payment", "preferences": {"payment_url": "x"}}', "preferences.payment_url is not a valid http or https URL",
        "The whole address.",
    ),
    Fault(
        '{"type": "signature", "preferences": {"reasons": [""]}}', "preferences.reasons must be a list of at most",
        "Numbers and lengths follow.",
    ),
    Fault(
        '{"type": "date", "preferences": {"format": "x"}}', "preferences.format must be a date format such as DD/MM/YYYY",
        "The signs are in `format` above.",
    ),
    Fault(
        '{"type": "select", "options": ["A"], "default_value": "B"}', "default_value must be one of A",
        "A default is something that could be chosen.",
    ),
    Fault('{"type": "checkbox", "default_value": "x"}', "default_value must be true or false", "As the type is."),
    Fault(
        '{"type": "signature", "preferences": {"method": "qes"}}', "preferences.method is for verification fields only",
        "So is `one_time_code` for phone fields: elsewhere nothing would be proved.",
    ),
    Fault(
        '{"type": "number", "preferences": {"formula": "1 +"}}', "preferences.formula ends too early",
        "The place is told of what is not expected; the grammar is in [formulas](formulas.md).",
    ),
    Fault(
        '{"type": "select", "options": ["A"], "preferences": {"formula": "1"}}',
        "preferences.formula is for number, text, cells, date, checkbox fields only", "Others are chosen, made or proved.",
    ),
    Fault(
        '{"type": "number", "default_value": 5, "preferences": {"formula": "1"}}',
        "default_value must be left out: a formula computes the value", "One of the two.",
    ),
    Fault(
        '{"type": "date", "default_value": "2026-02-30"}', "default_value must be a day of the calendar",
        "Year, month, day of a day that exists.",
    ),
    Fault(
        '{"type": "phone", "default_value": "0664 123"}',
        "default_value must be a phone number with + and the country code, such as +14155550123",
        "A default is something that a signer could enter; `min`, `pattern` and the like hold for it, too.",
    ),
    Fault(
        '{"type": "payment", "default_value": 5}', "default_value must be left out: a payment field takes no value",
        "Its amount is `price`.",
    ),
    Fault(
        '{"type": "signature", "default_value": "{{name}}"}', "default_value must be a picture or a file, not a placeholder",
        "A URL, base64, or a name to be written.",
    ),
    Fault(
        '{"type": "verification", "default_value": "x"}',
        "default_value must be left out: only the signer can prove who they are", "Leave it away.",
    ),
]  # fmt: skip
"""422 (``invalid``); ``details`` names the field before it."""

TYPES = [
    Specimen(
        ("text",),
        "One or several lines. What does not fit is made smaller, then wrapped, then refused when it is entered.",
        ("Tenant: {{Names of all the tenants}}",),
        {"Names of all the tenants": "Zoë Kowalska, Ελένη, 王小明, שלום"},
    ),
    Specimen(
        ("signature",),
        "Drawn, typed or uploaded. With `with_signature_id` or `reasons` its ID, the reason, name and "
        "time are printed beside it.",
        ("", "", "Signed: {{Signature;type=signature}}"),
        {"Signature": SIGNATURE},
    ),
    Specimen(
        ("initials",), "As a signature, smaller.", ("", "Initials: {{Initials;type=initials}}"), {"Initials": SIGNATURE}
    ),
    Specimen(
        ("date",),
        "A day; `format` says how it is written, months in the account's language.",
        ("From: {{Start;type=date;format=D MMMM YYYY}}",),
        {"Start": "2026-03-04"},
    ),
    Specimen(
        ("number",),
        "A number, plain or as `format` says.",
        ("Rent: {{Rent;type=number;format=eur}}",),
        {"Rent": 1234.5},
    ),
    Specimen(
        ("checkbox",),
        "A check mark, or nothing.",
        ("Pets: {{Pets;type=checkbox}}   Smoker: {{Smoker;type=checkbox;required=false}}",),
        {"Pets": True},
    ),
    Specimen(
        ("radio",),
        "One of several: marks beside the options, or the option's text where the tag names none.",
        ("Floor:  one {{Floor;type=radio;option=One}}   two {{Floor;type=radio;option=Two}}",),
        {"Floor": "Two"},
    ),
    Specimen(
        ("multiple",),
        "Any of several, in the same two ways.",
        ("Keys: {{Keys;type=multiple;options=Door,Cellar,Garage}}",),
        {"Keys": ["Door", "Garage"]},
    ),
    Specimen(
        ("select",), "One of a list.", ("City: {{City;type=select;options=Lyon,Gdańsk,Graz}}",), {"City": "Gdańsk"}
    ),
    Specimen(
        ("cells",),
        "One character in each cell.",
        ("VAT number: {{VAT number;type=cells}}",),
        {"VAT number": "ATU12345678"},
    ),
    Specimen(
        ("phone",),
        "A telephone number with its country code.",
        ("Phone: {{Phone;type=phone}}",),
        {"Phone": "+43 660 1234567"},
    ),
    Specimen(
        ("image",),
        "A picture, as large as it goes into its area.",
        ("", "", "", "Photo: {{Photo;type=image}}"),
        {"Photo": PHOTO},
    ),
    Specimen(
        ("file",),
        "Files: a paperclip with the name of each, linked to the submission's page.",
        ("Passport: {{Passport;type=file}}",),
        {"Passport": [PAPER]},
    ),
    Specimen(
        ("stamp",),
        "Who signed, in what role and when; or the picture of `stamp_url`.",
        ("", "", "", "Stamp: {{Stamp;type=stamp;width=400}}"),
    ),
    Specimen(
        ("payment",),
        "An amount in its currency, with a link to where it is paid. Nothing is charged here, and nothing "
        "says that it was paid.",
        ("To pay: {{Fee;type=payment;price=25;currency=GBP}}",),
    ),
    Specimen(
        ("heading",),
        "A text that is printed and not filled in.",
        ("{{Title;type=heading;default=Lease of a flat;font_type=bold;font_size=13}}",),
    ),
    Specimen(
        ("strikethrough",),
        "A line through what is under it; a cross where the area is high.",
        ("Smoking is allowed {{Struck;type=strikethrough}}",),
    ),
    Specimen(
        ("dutystamp",),
        "Where a duty stamp goes that the submission orders without naming a place. Nobody fills it in. Its provider puts the "
        "stamp there after everybody has signed; without an order the place stays empty.",
        ("Duty stamp: {{Meterai;type=dutystamp}}",),
    ),
    Specimen(
        ("verification",),
        "Who the signer is, proved at your OpenID Connect provider before they complete. Whom the provider named is in the "
        "audit trail. Without a provider submissions with such a field are refused.",
        ("Identity: {{Identity;type=verification}}",),
        {"Identity": "verified"},
    ),
]

ATTRIBUTES = [
    Specimen(("type",), "What kind of field it is: one of the above. `datenow` is the day of signing, `email` a text that must "
             "be an address, `multi-select` is `multiple`.", ("Signed on {{Today;type=datenow}}",)),
    Specimen(("name",), "What the field is called; the same as the words before the first `;`. Tags of one name and role are "
             "one field.", ("{{Tenant}} and again {{Tenant}}",), {"Tenant": "Ana Kowalska"}),
    Specimen(("role",), "Who fills it in; the first role where it is not said."),
    Specimen(("required",), "`true` unless `required=false`."),
    Specimen(("required_if",), "An expression: the field must be filled in while it holds, in place of `required` "
             "([formulas](formulas.md))."),
    Specimen(("formula",), "Of `number`, `text`, `cells`, `date` and `checkbox`: what computes the value. Nobody fills in "
             "such a field ([formulas](formulas.md)).",
             ("Rent: {{Rent;type=number;format=eur}}", "Deposit: {{Deposit;type=number;format=eur;formula=3 * [[Rent]]}}"),
             {"Rent": 850.5}),
    Specimen(("readonly",), "Its value cannot be changed by the signer.",
             ("Clause: {{Clause;readonly=true;default=No pets}}",)),
    Specimen(("default", "default_value"), "What is filled in when the signer comes; `{date}`, `{name}`, `{email}` and the "
             "like are replaced by what holds at the moment of signing.", ("Tenant: {{Tenant;default=To be named}}",)),
    Specimen(("title",), "What the signing page calls the field, instead of its name (Markdown)."),
    Specimen(("description",), "A sentence below the title (Markdown)."),
    Specimen(("options",), "The options of `select`, `radio` and `multiple`, separated by commas.",
             ("Colour: {{Colour;type=radio;options=Red,Green,Blue}}",), {"Colour": "Green"}),
    Specimen(("option",), "This tag is the mark of that option.",
             ("Red {{Paint;type=multiple;option=Red}}  Blue {{Paint;type=multiple;option=Blue}}",), {"Paint": ["Blue"]}),
    Specimen(("condition",), "`Field:value`: shown when that field has the value; `Field`: when it is not empty; or an "
             "expression such as `[[Rent]] > 500` ([formulas](formulas.md)). Hidden fields lose their value and are not "
             "asked for.",
             ("Pets: {{Pets;type=checkbox;required=false}}", "Which: {{Kind;condition=Pets:true;default=a cat}}",
              "None: {{None;condition=Other;default=hidden}} {{Other;required=false}}"), {"Pets": True}),
    Specimen(("width", "height"), "The size of the field, where it is not that of the tag: pixels, 1400 for the width of the "
             "page.", ("Name: {{Name;width=700;height=60;font_size=14}}", ""), {"Name": "Ana Kowalska"}),
    Specimen(("min", "max", "step"), "Bounds of numbers and dates; steps of numbers."),
    Specimen(("pattern", "message"), "What a text must look like, as HTML's `pattern`, and what is said when it does not."),
    Specimen(("format",), "Dates: `DD/MM/YYYY` with `M MM MMM MMMM D DD YY YYYY H HH h hh mm ss A a z`. Numbers: `usd`, `eur`, "
             "`gbp`, `comma`, `dot`, `space`, `percent`, `percent_space`. Signatures: `drawn`, `typed`, `drawn_or_typed`, "
             "`upload`.", ("{{Day;type=date;format=DD.MM.YYYY}}  {{Sum;type=number;format=usd}}",),
             {"Day": "2026-03-04", "Sum": 1234.5}),
    Specimen(("font",), "`Times`, `Helvetica` or `Courier`; what it lacks comes from a font that has it.",
             ("{{A;font=Times}} {{B;font=Courier}}",), {"A": "Ana Kowalska", "B": "Ana Kowalska"}),
    Specimen(("font_size",), "In points. A text that does not fit is wrapped before it is made smaller.",
             ("{{Name of the tenant;font_size=7}}",), {"Name of the tenant": "Ana Kowalska"}),
    Specimen(("font_type",), "`bold`, `italic` or `bold_italic`.",
             ("{{A;font_type=bold}} {{B;font_type=italic}}",),
             {"A": "Ana Kowalska", "B": "Ana Kowalska"}),
    Specimen(("color",), "`black`, `white`, `blue`, `red` or a hex colour, of signatures, too.",
             ("{{A;color=blue}} {{B;color=#0a7d4b}}",), {"A": "Ana Kowalska", "B": "Ana Kowalska"}),
    Specimen(("background",), "The colour of the whole area, under the value.",
             ("{{A;background=#ffe8a0}} {{B;background=black;color=white}}",),
             {"A": "Ana Kowalska", "B": "Ana Kowalska"}),
    Specimen(("align",), "`left`, `center` or `right`; of pictures, too. Right-to-left text begins at the right.",
             ("{{A;align=center;background=#eeeeee}}", "{{B;align=right;background=#eeeeee}}"),
             {"A": "Ana", "B": "Ana"}),
    Specimen(("valign",), "`top`, `center` or `bottom`.",
             ("{{A;valign=top;height=60;background=#eee}}", "", "{{B;valign=bottom;height=60;background=#eee}}", ""),
             {"A": "Ana", "B": "Ana"}),
    Specimen(("hidden",), "`hidden=true`: asked for and kept, not drawn.", ("Number: {{Number;hidden=true}}",),
             {"Number": "never seen"}),
    Specimen(("mask",), "`mask=true` hides every character, `mask=2` all but the first two, `mask=-2` all but the last two; "
             "also on the audit trail, in the API of viewers and in events.",
             ("Account: {{Account;mask=-4;width=600}}",), {"Account": "AT61 1904 3002 3457"}),
    Specimen(("one_time_code",), "Of phone fields: the number is confirmed with a code that is sent to it, wherever the "
             "account can send one, unless this is `false`; `true` refuses submissions where none can be sent."),
    Specimen(("with_signature_id",), "Of signature fields: true prints the signature's ID, the signer and the time beside it."),
    Specimen(("reasons",), "Of signature fields: the reasons to choose from, separated by commas; the chosen one is printed."),
    Specimen(("method",), "Of verification fields: `aes` or `qes`."),
    Specimen(("position",), "Of stamps: `background` lets what is printed under it show through, `foreground` does not."),
    Specimen(("price", "currency"), "Of payment fields: the amount, and `USD` (default), `EUR`, `GBP`, `CAD` or `AUD`.",
             ("Deposit: {{Deposit;type=payment;price=1250;currency=AUD}}",)),
    Specimen(("payment_url",), "Of payment fields: the page that their link opens."),
]  # fmt: skip
