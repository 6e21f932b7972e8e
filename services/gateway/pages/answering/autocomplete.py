"""Name what a field of the signer asks about the signer, so that their browser can offer it (HTML, ``autocomplete``).

Only where the field's whole name says so. "Name of the landlord" is about somebody else, and so may be the second "Name" of a
form: what is wrong in a contract is worse than what has to be typed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from contracts.rpc.submissions.signing.form import FormField
from contracts.types import FieldType

_WORDS: Mapping[str, str] = {
    "name": """name|full name|full legal name|legal name|first and last name|name and surname|vollständiger name
        vor und nachname|vor und zuname|nom et prénom|prénom et nom|nom complet|nombre completo|nombre y apellidos
        nome completo|nome e cognome|nome e sobrenome|volledige naam|naam|voor en achternaam|imię i nazwisko
        jméno a příjmení|ad soyad|adı soyadı|nama lengkap|nama|повне ім'я|ім'я та прізвище|піб|الاسم الكامل|الاسم
        שם מלא|पूरा नाम|नाम|氏名|お名前|성명|이름|姓名""",
    "given-name": """first name|given name|vorname|prénom|nombre|voornaam|imię|jméno|nome próprio|nama depan|ім'я
        الاسم الأول|שם פרטי|名字""",
    "family-name": """last name|family name|surname|nachname|familienname|nom de famille|apellido|apellidos|cognome
        sobrenome|apelido|achternaam|nazwisko|příjmení|soyad|soyadı|nama belakang|прізвище|اسم العائلة|שם משפחה
        उपनाम|姓""",
    "email": """email|e mail|email address|e mail address|mail|e mail adresse|adresse e mail|adresse électronique
        courriel|correo electrónico|correo|indirizzo email|endereço de email|e mail adres|adres e mail|adres email
        e mailová adresa|e posta|e posta adresi|alamat email|surel|електронна пошта|البريد الإلكتروني|דואר אלקטרוני
        ईमेल|メールアドレス|이메일|邮箱|电子邮箱|電子郵件|電郵""",
    "tel": """phone|phone number|telephone|telephone number|mobile|mobile number|mobile phone|telefon
        telefonnummer|handynummer|mobilnummer|téléphone|numéro de téléphone|teléfono|número de teléfono|telefono
        numero di telefono|telefone|telefoonnummer|numer telefonu|telefonní číslo|telefon numarası|nomor telepon
        телефон|номер телефону|رقم الهاتف|טלפון|מספר טלפון|फ़ोन नंबर|電話番号|전화번호|电话|手机号码|電話""",
    "organization": """company|company name|organization|organisation|firma|firmenname|unternehmen|société|entreprise
        empresa|azienda|bedrijf|bedrijfsnaam|nazwa firmy|název firmy|şirket|perusahaan|компанія|الشركة|חברה|कंपनी
        会社名|회사명|公司|公司名称""",
    "organization-title": """job title|position|berufsbezeichnung|fonction|cargo|qualifica|functie|stanowisko|pozice|unvan
        jabatan|посада|المسمى الوظيفي|תפקיד|पदनाम|役職|직위|职位|職稱""",
    "street-address": """address|postal address|full address|adresse|anschrift|adresse postale|dirección|indirizzo|endereço
        morada|adres|adresa|alamat|адреса|العنوان|כתובת|पता|住所|주소|地址""",
    "address-line1": """street|street address|street and number|straße|strasse|straße und hausnummer|rue|calle|via|rua
        straat|straat en huisnummer|ulica|ulice|sokak|jalan|вулиця|الشارع|רחוב""",
    "postal-code": """postcode|postal code|zip|zip code|plz|postleitzahl|code postal|código postal|cap|cep|kod pocztowy
        psč|posta kodu|kode pos|поштовий індекс|الرمز البريدي|מיקוד|पिन कोड|郵便番号|우편번호|邮政编码|郵遞區號""",
    "address-level2": """city|town|ort|wohnort|stadt|ville|ciudad|localidad|città|comune|cidade|localidade|plaats|woonplaats
        miasto|miejscowość|město|obec|şehir|kota|місто|المدينة|עיר|शहर|市区町村|도시|城市""",
    "country-name": """country|land|pays|país|paese|kraj|země|stát|ülke|negara|країна|البلد|ארץ|מדינה|देश|国|國家|국가|国家""",
    "bday": """date of birth|birth date|birthday|geburtsdatum|date de naissance|fecha de nacimiento|data di nascita
        data de nascimento|geboortedatum|data urodzenia|datum narození|doğum tarihi|tanggal lahir|дата народження
        تاريخ الميلاد|תאריך לידה|जन्म तिथि|生年月日|생년월일|出生日期""",
}
_OWN = re.compile(r"^(?:your|my|ihr|ihre|votre|su|il suo|o seu|uw|twój|váš|ваш) ")
_TYPES: Mapping[FieldType, frozenset[str]] = {
    FieldType.TEXT: frozenset(_WORDS) - {"bday"},
    FieldType.DATE: frozenset({"bday"}),
}


def tokens(fields: Iterable[FormField], labels: Mapping[str, str]) -> dict[str, str]:
    """Return for fields, by uuid, the token of what they ask of the signer. ``labels``: what the signer reads above each. What
    two fields ask for is offered to neither: one of them may be about somebody else."""
    token_by_field = {
        field.uuid: token
        for field in fields
        if field.mine and not field.readonly and (token := _token(field, labels[field.uuid]))
    }
    times = Counter(token_by_field.values())
    return {uuid: token for uuid, token in token_by_field.items() if times[token] == 1}


def _token(field: FormField, label: str) -> str | None:
    token = _TOKENS.get(_OWN.sub("", _plain(label)))
    return token if token in _TYPES.get(field.type, ()) else None


def _plain(label: str) -> str:
    """In small letters, without punctuation and doubled blanks.

    >>> _plain("  E-Mail-Adresse: * ")
    'e mail adresse'
    """
    text = unicodedata.normalize("NFKC", label).casefold().replace("’", "'")
    return " ".join("".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in text).split())


_TOKENS = {
    _plain(name): token for token, names in _WORDS.items() for line in names.splitlines() for name in line.split("|")
}
