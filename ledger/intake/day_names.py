"""What people call months and weekdays, in the languages of many clubs: by name, the number that it stands for.

Polish months have two names, the second for dates: styczeń, 14 stycznia. In three languages "mar" is Tuesday before a
date, and March in it.
"""

from ratings_ledger.ledger.validation.close_names import folded

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# without accents and capitals
_MONTHS = (
    "january jan januar jänner janvier janv enero ene gennaio gen januari styczeń stycznia sty",
    "february feb februar feber février févr fév febrero febbraio februari luty lutego lut",
    "march mar märz maerz mär mrz mars marzo maart mrt marzec marca",
    "april apr avril avr abril abr aprile kwiecień kwietnia kwi",
    "may mai mayo maggio mag mei maj maja",
    "june jun juni juin junio giugno giu czerwiec czerwca cze",
    "july jul juli juillet juil julio luglio lug lipiec lipca lip",
    "august aug août agosto ago augustus sierpień sierpnia sie",
    "september sep sept septembre septiembre setiembre settembre set wrzesień września wrz",
    "october oct oktober okt octobre octubre ottobre ott październik października paź",
    "november nov novembre noviembre listopad listopada lis",
    "december dec dezember dez décembre déc diciembre dic dicembre grudzień grudnia gru",
)
_WEEKDAYS = (
    "monday mon montag mo lundi lun lunes lunedì maandag maa ma poniedziałek poniedzialek pon pn",
    "tuesday tues tue dienstag die di mardi mar martes martedì dinsdag din wtorek wt",
    "wednesday wed mittwoch mit mi mercredi mer miércoles mié mercoledì woensdag woe wo środa śr",
    "thursday thurs thur thu donnerstag don do jeudi jeu jueves jue giovedì gio donderdag czwartek czw",
    "friday fri freitag fre fr vendredi ven viernes vie venerdì vrijdag vri vr piątek pt",
    "saturday sat samstag sonnabend sam sa samedi sábado sáb sabato zaterdag zat za sobota sob",
    "sunday sun sonntag son so dimanche dim domingo dom domenica zondag zon zo niedziela niedz ndz nd",
)
_MONTH_OF = {folded(name): number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_WEEKDAY_OF = {folded(name): number for number, names in enumerate(_WEEKDAYS) for name in names.split()}


def month_of(name: str) -> int | None:
    """The number of a month, 1 for January; capitals and accents do not matter.

    >>> month_of("März"), month_of("MARS"), month_of("marca"), month_of("Mürz")
    (3, 3, 3, None)
    """
    return _MONTH_OF.get(folded(name))


def weekday_of(name: str) -> int | None:
    """The number of a weekday, 0 for Monday.

    >>> weekday_of("Sábado"), weekday_of("do"), weekday_of("today")
    (5, 3, None)
    """
    return _WEEKDAY_OF.get(folded(name))
