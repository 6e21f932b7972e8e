"""The words by which forms say what is to be filled in, in many languages: a table.

Words are written as they are normalised for comparing (``labels.normalised``): without accents, in small letters. A ``*`` at
either end stands for any letters, so that compounds and endings are known: ``*datum`` is Geburtsdatum, too. What begins with
``=``, or has one or two letters, counts only at the end of a label. Words of Chinese, Japanese and Korean are found anywhere,
since nothing stands between words there.
"""

from collections.abc import Mapping

Words = Mapping[str, str]
"""By language (ISO 639-1), separated by commas."""

SIGNATURE: Words = {
    "en": "signature*, sign here, signed, signed by, =by, signatory, authorized signatory, authorised signatory",
    "de": "unterschrift*, *unterschrift, unterschriften, unterzeichn*, gezeichnet, firmenstempel und unterschrift",
    "fr": "signature*, signataire*, signe par, lu et approuve",
    "es": "firma, firmas, firma del, firmante*, firmado, rubrica",
    "it": "firma, firme, firmatario, sottoscri*, firmato",
    "pt": "assinatura*, assinado, assinante*, signatario*",
    "nl": "handtekening*, ondertekening, ondertekend*, ondertekenaar",
    "pl": "podpis*, czytelny podpis",
    "cs": "podpis*, vlastnorucni podpis",
    "sv": "underskrift*, namnteckning*, signatur*, undertecknad*",
    "da": "underskrift*, underskrevet, underskriver*",
    "nb": "underskrift*, signatur*",
    "fi": "allekirjoitus*, allekirjoittaja*, allekirjoitukset",
    "tr": "imza*",
    "id": "tanda tangan*, ttd, tandatangan*",
    "uk": "підпис*",
    "zh": "签名, 簽名, 签字, 簽字, 签署, 簽署, 签章, 簽章",
    "ja": "署名, サイン, 記名押印",
    "ko": "서명",
}

INITIALS: Words = {
    "en": "initial, initials, initial here",
    "de": "initialen, paraphe, kurzzeichen, handzeichen",
    "fr": "initiales, paraphe*, parapher",
    "es": "iniciales, rubrica abreviada",
    "it": "iniziali, sigla, parafa",
    "pt": "iniciais, rubrica",
    "nl": "initialen, paraaf, parafen",
    "pl": "inicjaly, parafa*, parafka",
    "cs": "inicialy, parafa",
    "sv": "initialer",
    "da": "initialer",
    "nb": "initialer",
    "fi": "nimikirjaimet, puumerkki",
    "tr": "paraf*",
    "id": "paraf, inisial",
    "uk": "ініціали",
    "ja": "イニシャル",
}

DATE: Words = {
    "en": (
        "date, dated, date of birth, birth date, birthdate, birthday, dob, start date, end date, expiry date, "
        "expiration date, day month year"
    ),
    "de": "datum, *datum, geboren am, tag der geburt, =den, am",
    "fr": "date, dates, date de naissance, ne le, nee le, fait le, le",
    "es": "fecha*, fecha de nacimiento, a dia",
    "it": "data, data di nascita, nato il, nata il, li",
    "pt": "data, data de nascimento, nascido em",
    "nl": "datum, *datum, d d",
    "pl": "data, daty, data urodzenia, dnia",
    "cs": "datum, datum narozeni, dne",
    "sv": "datum, *datum, fodelsedag",
    "da": "dato, *dato, fodselsdag",
    "nb": "dato, *dato",
    "fi": "paivamaara*, pvm, paivays, *aika, syntymaaika",
    "tr": "tarih*, dogum tarihi",
    "id": "tanggal*, tgl",
    "uk": "дата, дата народження",
    "zh": "日期, 出生日期, 年月日",
    "ja": "日付, 年月日, 生年月日",
    "ko": "날짜, 일자, 생년월일",
}

PHONE: Words = {
    "en": "phone*, telephone*, tel, mobile, mobile number, cell, cell phone, fax",
    "de": "telefon*, tel, mobil, mobiltelefon, handy*, rufnummer, fax, telefax",
    "fr": "telephone*, tel, portable, mobile, fax",
    "es": "telefono*, tel, movil, celular, fax",
    "it": "telefono, tel, cellulare, fax, cell",
    "pt": "telefone*, tel, telemovel, celular, fax",
    "nl": "telefoon*, tel, mobiel, gsm, fax",
    "pl": "telefon*, tel, nr telefonu, numer telefonu, komorka, faks",
    "cs": "telefon*, tel, mobil, fax",
    "sv": "telefon*, tel, mobil*, fax",
    "da": "telefon*, tlf, mobil*, fax",
    "nb": "telefon*, tlf, mobil*",
    "fi": "puhelin*, puh, matkapuhelin, faksi",
    "tr": "telefon*, cep telefonu, gsm",
    "id": "telepon*, telp, hp, no hp, ponsel",
    "uk": "телефон*, тел",
    "zh": "电话, 電話, 手机, 手機",
    "ja": "電話, 電話番号, 携帯",
    "ko": "전화, 휴대폰, 연락처",
}

EMAIL: Words = {
    "en": "email*, e mail*, email address",
    "de": "e mail*, email*, mailadresse",
    "fr": "courriel, e mail, email, adresse electronique, mel",
    "es": "correo electronico, correo, e mail, email",
    "it": "e mail, email, posta elettronica, pec",
    "pt": "e mail, email, correio eletronico, correio electronico",
    "nl": "e mail*, email*",
    "pl": "e mail*, email*, adres e mail, poczta elektroniczna",
    "cs": "e mail*, email*",
    "sv": "e post*, epost*, mejl*, mail",
    "da": "e mail*, email*, mail",
    "nb": "e post*, epost*",
    "fi": "sahkoposti*, s posti",
    "tr": "e posta*, eposta*",
    "id": "email, surel",
    "uk": "електронна пошта, e mail, email",
    "zh": "电子邮件, 電子郵件, 邮箱, 電郵",
    "ja": "メール, メールアドレス",
    "ko": "이메일",
}

NUMBER: Words = {
    "en": (
        "amount*, total*, subtotal, price, quantity, qty, rent, deposit, salary, fee, sum, balance, age, "
        "percentage, hourly rate, purchase price"
    ),
    "de": (
        "betrag, *betrag, summe, gesamtsumme, preis, *preis, menge, anzahl, miete, *miete, kaution, gehalt, "
        "alter, honorar, gebuhr*"
    ),
    "fr": "montant*, total, prix, quantite, loyer, depot de garantie, salaire, somme, solde, age, honoraires",
    "es": "importe*, total, precio, cantidad, renta, alquiler, fianza, salario, suma, saldo, edad, honorarios, monto",
    "it": "importo*, totale, prezzo, quantita, canone, deposito, stipendio, somma, saldo, eta, compenso",
    "pt": (
        "montante, total, preco, quantidade, renda, aluguel, caucao, salario, soma, saldo, idade, valor, honorarios"
    ),
    "nl": "bedrag, *bedrag, totaal, prijs, *prijs, aantal, huur, *huur, waarborgsom, borg, salaris, saldo, leeftijd",
    "pl": "kwota*, suma, razem, cena, ilosc, czynsz, kaucja, wynagrodzenie, saldo, wiek",
    "cs": "castka, celkem, cena, mnozstvi, pocet, najemne, kauce, mzda, vek, odmena",
    "sv": "belopp, *belopp, summa, totalt, pris, *pris, antal, hyra, deposition, lon, alder, saldo",
    "da": "belob, *belob, sum, i alt, pris, antal, husleje, depositum, lon, alder",
    "nb": "belop, *belop, sum, totalt, pris, antall, leie, depositum, lonn, alder",
    "fi": "summa, yhteensa, hinta, *hinta, maara, lukumaara, vuokra, takuu, palkka, ika, saldo",
    "tr": "tutar*, toplam, fiyat*, miktar*, kira, depozito, maas, yas, ucret",
    "id": "jumlah, total, harga, sewa, gaji, umur, usia, biaya",
    "uk": "сума, всього, ціна, кількість, оренда, вік",
    "zh": "金额, 金額, 总计, 總計, 数量, 數量, 价格, 價格",
    "ja": "金額, 合計, 数量, 価格, 年齢",
    "ko": "금액, 합계, 수량, 가격",
}

TEXT: Words = {
    "en": (
        "name*, first name, last name, last, first, suffix, prefix, home, work, occupation, surname, full name, "
        "print name, printed name, middle, address*, street*, city*, town, state*, zip*, postal code, postcode, "
        "country, county, province*, title, position, company*, organization, organisation, employer, "
        "nationality, place*, place of birth, relationship, iban, bic, account*, account number, account no, "
        "bank*, tax id, vat, vat id, vat number, passport*, social security*, ssn, license*, number, no, "
        "reference*, ref, comments, remarks, notes, reason, description, department, suite, apt, unit, witness, "
        "grade*, street address, mailing address"
    ),
    "de": (
        "name, *name, namen, anschrift, adresse, strasse*, *strasse, hausnummer, ort, *ort, plz, stadt, land, "
        "bundesland, firma, unternehmen, beruf, arbeitgeber, position, funktion, staatsangehorigkeit, iban, "
        "bic, konto*, kontoinhaber, kreditinstitut, bank, steuer*, ust*, ausweis*, *nummer, *nr, bemerkung*, "
        "anmerkung*, grund, titel, anrede"
    ),
    "fr": (
        "nom*, prenom*, adresse*, rue, ville, code postal, pays, societe, entreprise, profession, employeur, "
        "nationalite, lieu*, iban, bic, numero*, fonction, qualite, remarque*, observations, titre, a, "
        "domicile, demeurant a, raison sociale, siret"
    ),
    "es": (
        "nombre*, apellido*, direccion*, domicilio, calle, ciudad, codigo postal, pais, provincia, empresa, "
        "profesion, cargo, nacionalidad, lugar*, iban, numero*, dni, nie, nif, observaciones, titulo, "
        "localidad, razon social, en"
    ),
    "it": (
        "nome*, cognome*, indirizzo*, via, citta, cap, comune, paese, provincia, societa, azienda, ditta, "
        "professione, nazionalita, luogo*, iban, numero*, codice fiscale, partita iva, note, titolo, qualifica, "
        "residente*, residenza, ragione sociale"
    ),
    "pt": (
        "nome*, apelido*, sobrenome*, endereco*, morada, rua, cidade, codigo postal, cep, pais, empresa, "
        "profissao, cargo, nacionalidade, local*, iban, nif, cpf, cnpj, numero*, observacoes, titulo, "
        "localidade"
    ),
    "nl": (
        "naam*, *naam, voornaam, achternaam, adres*, straat*, huisnummer, postcode, plaats*, *plaats, "
        "woonplaats, land, bedrijf*, beroep, functie, nationaliteit, iban, bsn, *nummer, opmerking*, te"
    ),
    "pl": (
        "imie*, nazwisko*, imie i nazwisko, adres*, ulica, miasto, miejscowosc*, kod pocztowy, kraj, firma, "
        "nazwa*, zawod, stanowisko, obywatelstwo, miejsce*, iban, pesel, nip, regon, numer*, nr*, uwagi, seria "
        "i numer*"
    ),
    "cs": (
        "jmeno*, prijmeni*, jmeno a prijmeni, adresa*, ulice, mesto, obec, psc, stat, firma, nazev*, povolani, "
        "funkce, statni prislusnost, misto*, iban, ico, dic, rodne cislo, cislo*, poznamka*, bydliste, v"
    ),
    "sv": (
        "namn*, *namn, adress*, gata, *adress, ort*, *ort, postnummer, stad, land, foretag*, yrke, befattning, "
        "titel, nationalitet, plats*, personnummer, *nummer, *nr, anmarkning*, namnfortydligande"
    ),
    "da": (
        "navn*, *navn, adresse*, gade, by, postnr, postnummer, land, firma*, virksomhed, stilling, titel, "
        "nationalitet, sted*, cpr*, cvr*, *nummer, *nr, bemaerkning*, kommentar*"
    ),
    "nb": "navn*, *navn, adresse*, sted*, by, land, firma*, stilling, fodselsnummer, *nummer, merknad*, postnummer",
    "fi": (
        "nimi*, *nimi, nimenselvennys, osoite*, *osoite, katuosoite, kaupunki, paikka*, *paikka, postinumero, "
        "maa, yritys*, ammatti, asema, tehtavanimike, kansalaisuus, henkilotunnus, y tunnus, *numero, "
        "huomautuks*, lisatie*"
    ),
    "tr": (
        "ad, adi, adiniz, soyad*, adi soyadi, adres*, sehir, ulke, sirket, meslek, unvan*, t c kimlik no, yer, iban"
    ),
    "id": "nama*, alamat*, kota, jabatan, perusahaan, pekerjaan, nik, no ktp, tempat*",
    "uk": "імя, ім я, прізвище*, піб, п і б, адреса*, місто, посада, компанія, місце*",
    "zh": "姓名, 地址, 公司, 职位, 職位, 身份证, 身分證",
    "ja": "氏名, 名前, 住所, 会社名, 役職, お名前",
    "ko": "성명, 이름, 주소, 회사, 직위, 성",
}

AGREEING: Words = {
    "en": (
        "yes, no, agree*, i agree*, i accept, accept*, consent*, i consent*, male, female, other, none, n a, "
        "applicable, check*"
    ),
    "de": "ja, nein, ich stimme*, einverstanden, zutreffend, mannlich, weiblich, divers, sonstige*, ich willige*",
    "fr": "oui, non, j accepte, j ai lu*, homme, femme, autre*",
    "es": "si, no, acepto, hombre, mujer, otro*",
    "it": "si, no, accetto, acconsento, maschio, femmina, altro",
    "pt": "sim, nao, aceito, concordo, masculino, feminino, outro*",
    "nl": "ja, nee, akkoord, ik ga akkoord, man, vrouw, anders, overig*",
    "pl": "tak, nie, zgadzam*, wyrazam zgode, akceptuje, mezczyzna, kobieta, inne",
    "cs": "ano, ne, souhlasim*, muz, zena, jine",
    "sv": "ja, nej, jag godkanner*, godkanner, samtycker, man, kvinna, annat",
    "da": "ja, nej, jeg accepterer*, accepterer, samtykker, mand, kvinde, andet",
    "nb": "ja, nei, jeg godtar*, samtykker, mann, kvinne, annet",
    "fi": "kylla, ei, hyvaksyn*, suostun, mies, nainen, muu",
    "tr": "evet, hayir, kabul*, onayliyorum",
    "id": "ya, tidak, setuju, laki laki, perempuan",
    "uk": "так, ні, згоден, погоджуюсь",
}

OFFICE: Words = {
    "en": (
        "office use, office use only, for office use, internal use, official use, do not write, do not use, "
        "staff use, for internal use only"
    ),
    "de": "nur fur interne*, nicht ausfullen, wird vom amt*, bearbeitungsvermerk*, interne vermerke",
    "fr": "reserve a*, cadre reserve, ne pas remplir, partie reservee",
    "es": "uso interno, no rellenar, para uso oficial, espacio reservado, reservado para",
    "it": "riservato a*, spazio riservato, non compilare, uso interno",
    "pt": "uso interno, nao preencher, reservado a*",
    "nl": "niet invullen, intern gebruik, in te vullen door",
    "pl": "wypelnia*, nie wypelniac, do uzytku wewnetrznego",
    "cs": "nevyplnujte, pro interni*, vyplni*",
    "sv": "fylls i av, for internt bruk, ifylls ej",
    "da": "udfyldes ikke, til internt brug, forbeholdt",
    "fi": "viranomainen tayttaa, ei tayteta, sisaiseen kayttoon",
}
"""Somebody else fills in what stands under these."""

PARTIES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "en": (
        ("landlord, lessor", "tenant, lessee"),
        ("seller, vendor", "buyer, purchaser"),
        ("employer", "employee"),
        ("client, customer", "contractor, supplier, service provider, consultant"),
        ("lender", "borrower"),
        ("licensor", "licensee"),
        ("disclosing party", "receiving party"),
        ("company", "employee, applicant"),
        ("principal", "agent"),
        ("party a, first party", "party b, second party"),
        ("donor", "recipient"),
        ("owner", "guest, renter"),
        ("guardian, parent", "student, child, participant"),
        ("doctor, physician", "patient"),
    ),
    "de": (
        ("vermieter*", "mieter*"),
        ("verkaufer*", "kaufer*"),
        ("arbeitgeber*", "arbeitnehmer*"),
        ("auftraggeber*, kunde, kundin", "auftragnehmer*"),
        ("darlehensgeber*", "darlehensnehmer*"),
        ("verpachter*", "pachter*"),
        ("lizenzgeber*", "lizenznehmer*"),
    ),
    "fr": (
        ("bailleur, bailleresse", "locataire, preneur"),
        ("vendeur, vendeuse", "acheteur, acquereur"),
        ("employeur", "employe, employee, salarie, salariee"),
        ("client, cliente", "prestataire, fournisseur"),
        ("preteur", "emprunteur"),
    ),
    "es": (
        ("arrendador, arrendadora", "arrendatario, arrendataria, inquilino"),
        ("vendedor, vendedora", "comprador, compradora"),
        ("empleador, empresario", "empleado, trabajador, trabajadora"),
        ("cliente", "contratista, proveedor, prestador"),
        ("prestamista", "prestatario"),
    ),
    "it": (
        ("locatore, locatrice", "conduttore, conduttrice, locatario"),
        ("venditore, venditrice", "acquirente, compratore"),
        ("datore di lavoro", "lavoratore, dipendente"),
        ("cliente, committente", "appaltatore, fornitore, prestatore"),
    ),
    "pt": (
        ("senhorio, locador", "inquilino, arrendatario, locatario"),
        ("vendedor", "comprador"),
        ("empregador", "empregado, trabalhador"),
        ("cliente, contratante", "prestador, fornecedor, contratado"),
    ),
    "nl": (
        ("verhuurder", "huurder"),
        ("verkoper", "koper"),
        ("werkgever", "werknemer"),
        ("opdrachtgever, klant", "opdrachtnemer"),
        ("uitlener", "lener"),
    ),
    "pl": (
        ("wynajmujacy, wynajmujacego", "najemca, najemcy"),
        ("sprzedajacy, sprzedawca, sprzedajacego", "kupujacy, nabywca, kupujacego"),
        ("pracodawca, pracodawcy", "pracownik, pracownika"),
        ("zamawiajacy, zleceniodawca, klient", "wykonawca, zleceniobiorca"),
        ("pozyczkodawca", "pozyczkobiorca"),
    ),
    "cs": (
        ("pronajimatel*", "najemce, najemnik"),
        ("prodavajici*", "kupujici*"),
        ("zamestnavatel*", "zamestnanec, zamestnance"),
        ("objednatel*, klient, zakaznik", "zhotovitel*, dodavatel*"),
    ),
    "sv": (
        ("hyresvard*, uthyrare*", "hyresgast*"),
        ("saljare*", "kopare*"),
        ("arbetsgivare*", "arbetstagare*, anstalld*"),
        ("kund*, bestallare*", "leverantor*, uppdragstagare*"),
    ),
    "da": (
        ("udlejer*", "lejer*"),
        ("saelger*", "kober*"),
        ("arbejdsgiver*", "medarbejder*, lonmodtager*, arbejdstager*"),
        ("kunde*", "leverandor*"),
    ),
    "fi": (
        ("vuokranantaja*", "vuokralainen, vuokralaisen, vuokraaja"),
        ("myyja*", "ostaja*"),
        ("tyonantaja*", "tyontekija*"),
        ("asiakas, asiakkaan, tilaaja*", "toimittaja*"),
    ),
    "tr": (("kiraya veren", "kiraci"), ("satici", "alici"), ("isveren", "isci, calisan")),
    "id": (("pihak pertama", "pihak kedua"), ("penjual", "pembeli"), ("penyewa", "pemilik")),
    "uk": (
        ("орендодавець", "орендар"),
        ("продавець", "покупець"),
        ("роботодавець", "працівник"),
        ("замовник", "виконавець"),
    ),
}
"""Who the parties of agreements are, in pairs."""
