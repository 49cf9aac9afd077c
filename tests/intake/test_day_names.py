"""Names of months and weekdays in seven languages, in full and abbreviated."""

from datetime import date, timedelta

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.tables.dates import WEEKDAYS, normalise_date_time

MONTHS = {
    "English": "January February March April May June July August September October November December",
    "English, short": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "German": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "German, short": "Jan. Feb. Mär. Apr. Mai Jun. Jul. Aug. Sept. Okt. Nov. Dez.",
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "French, short": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "Spanish, short": "ene feb mar abr may jun jul ago sept oct nov dic",
    "Italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "Italian, short": "gen feb mar apr mag giu lug ago set ott nov dic",
    "Dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "Dutch, short": "jan. feb. mrt. apr. mei jun. jul. aug. sep. okt. nov. dec.",
    "Polish": "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
    "Polish, in dates": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
    "listopada grudnia",
    "Polish, short": "sty lut mar kwi maj cze lip sie wrz paź lis gru",
}
WEEKDAY_NAMES = {
    "English": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "English, short": "Mon Tue Wed Thu Fri Sat Sun",
    "German": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "German, short": "Mo. Di. Mi. Do. Fr. Sa. So.",
    "French": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "French, short": "lun. mar. mer. jeu. ven. sam. dim.",
    "Spanish": "lunes martes miércoles jueves viernes sábado domingo",
    "Spanish, short": "lun mar mié jue vie sáb dom",
    "Italian": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "Italian, short": "lun mar mer gio ven sab dom",
    "Dutch": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "Dutch, short": "ma di wo do vr za zo",
    "Polish": "poniedziałek wtorek środa czwartek piątek sobota niedziela",
    "Polish, short": "pon. wt. śr. czw. pt. sob. niedz.",
}
MONDAY = date(2024, 11, 18)


def capitalise_without_accents(text: str) -> str:
    """Return a text in capitals without accents, as it is typed on another keyboard."""
    return text.translate(str.maketrans("äéèêûìáśćńźąłö", "aeeeuiascnzalo")).upper()


@pytest.mark.parametrize("language", MONTHS)
def test_months_are_read(language: str) -> None:
    """A date with the name of a month is read: day first or month first, also in capitals without accents."""
    for number, name in enumerate(MONTHS[language].split(), 1):
        for text in (f"5 {name} 2024", f"{name} 5, 2024", capitalise_without_accents(f"5 {name} 24")):
            assert normalise_date_time(text, None, "") == f"2024-{number:02}-05", text


@pytest.mark.parametrize("language", WEEKDAY_NAMES)
def test_weekdays_are_read(language: str) -> None:
    """A date is read if it follows the name of its weekday; with a wrong name, the refusal states the right one."""
    for number, name in enumerate(WEEKDAY_NAMES[language].split()):
        day = MONDAY + timedelta(days=number)
        for text in (f"{name} {day.day} November 2024", capitalise_without_accents(f"{name}, {day.day}.11.2024")):
            assert normalise_date_time(text, None, "dmy") == f"{day}", text
        actual_weekday = WEEKDAYS[(number + 1) % 7]
        with pytest.raises(Refused, match=f" says {WEEKDAYS[number]}, but 2024-11-{day.day - 6} is a {actual_weekday}"):
            normalise_date_time(f"{name} {day.day - 6}-Nov-2024", None, "")


@pytest.mark.parametrize("text", ["5 2024", "Foo 5 2024", "5 Foo 2024", "Mon", "March 2024", "5 March 124"])
def test_incomplete_dates_are_refused(text: str) -> None:
    """An incomplete date, or one with an unknown word, is refused with examples of dates."""
    with pytest.raises(Refused, match=r"is not a time like .*05\.03\.2010, 5 March 2010 or Fri 5 Mar 2010"):
        normalise_date_time(text, None, "dmy")
