"""Random games, and the tables in which people might keep them: the same games in every layout and kind of file."""

import csv
import io
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unicodedata import category, name, normalize
from zoneinfo import ZoneInfo

from sheet_files import EPOCH, EPOCH_1904, ods, xlsx

from ratings_ledger.ledger.intake.tables.meanings import find_meaning, is_total

ZONE = ZoneInfo("Europe/Berlin")
PLACES, SCORES, BOTH = "places", "scores", "places and scores"
# what readers might take for something else than a name
ODD = (
    "van Dam", 'Pat "Ace" Lee', "Smith; Jo", "Roe, Ann", "O'Neill", "'quoted'", '"J', "a|b", "-1", "007", "1.5", "true",
    "Total", "Summe", "Platz", "2024-11-22", "Anna & Ben", "C++", "#1", "<b>&amp;", "x" * 64, "Anna", "anna",
)  # fmt: skip
WORD_CHARACTERS = ("Lu", "Ll", "Lt", "Lo")


class Game(NamedTuple):
    """A game: its day, or its moment in Berlin; and for every player the name, and the place or the score or both."""

    when: date
    seats: tuple[tuple[str, int | None, str | None], ...]


class Season(NamedTuple):
    """Games, what is known of each, and their ids: numbers of their own, or those of the day."""

    kind: str
    games: list[Game]
    ids: list[str]
    has_ids: bool


class Table(NamedTuple):
    """Rows of cells as a layout has them, and the options that say what the rows do not."""

    rows: list[list[Any]]
    options: tuple[str, ...]
    told: tuple[str, ...]


@cache
def letters() -> dict[str, list[str]]:
    """The letters of each script, by what Unicode calls it."""
    found = dict[str, list[str]]()
    for character in map(chr, range(0x110000)):
        if category(character) in WORD_CHARACTERS:
            found.setdefault(name(character, "").partition(" ")[0], []).append(character)
    return found


def a_name(chance: Random) -> str:
    """A name in any script, or an odd one."""
    if chance.random() < 0.4:
        return chance.choice(ODD)
    script = letters()[chance.choice([*letters()])]
    words = ("".join(chance.choices(script, k=chance.randrange(1, 5))) for _ in range(chance.choice((1, 1, 2))))
    return normalize("NFC", " ".join(words))


def a_season(chance: Random) -> Season:
    """Some games of two to eight players."""
    kind = chance.choice((PLACES, PLACES, SCORES, BOTH))
    names = list(dict.fromkeys(a_name(chance) for _ in range(12)))
    most = chance.choice((2, 2, 4, 8))
    games = sorted((_a_game(chance, kind, names, most) for _ in range(chance.randrange(1, 7))), key=lambda game: (
        game.when.isoformat()
    ))  # fmt: skip
    has_ids = chance.random() < 0.4
    days = [game.when.isoformat()[:10] for game in games]
    numbered = [f"{day}-{days[: at + 1].count(day)}" for at, day in enumerate(days)]
    return Season(kind, games, [f"g-{at}" for at in range(len(games))] if has_ids else numbered, has_ids)


def _a_game(chance: Random, kind: str, names: list[str], most: int) -> Game:
    players = chance.sample(names, min(len(names), chance.randrange(2, most + 1)))
    merits = sorted((chance.randrange(1, 2 * len(players)) for _ in players), reverse=True)
    is_dense = chance.random() < 0.3
    places = [
        1 + (len({m for m in merits if m > merit}) if is_dense else sum(m > merit for m in merits)) for merit in merits
    ]
    step = chance.choice(("1", "1", "0.5", "0.25", "12.10", "-3"))
    worth = abs if kind != BOTH else lambda number: number  # scores of both go with the places
    scores = [str(worth(Decimal(step)) * merit) for merit in merits]
    if step == "-3" and kind != SCORES:
        scores = [str(-3 * place) for place in places]
    elif step == "-3":
        scores = [str(-3 * merit) for merit in merits]
    return Game(_a_time(chance), tuple(
        (player, place if kind != SCORES else None, score if kind != PLACES else None)
        for player, place, score in zip(players, places, scores, strict=True)
    ))  # fmt: skip


def _a_time(chance: Random) -> date:
    """A day, or a moment of it that no change of clocks makes unclear."""
    day = chance.choice((date(2024, 11, 22), date(2024, 11, 23), date(2023, 2, 3), date(1999, 12, 31)))
    if chance.random() < 0.5:
        return day
    clock = chance.choice((time(20, 5), time(0, 0), time(9, 30, 15), time(23, 59, 59)))
    return datetime.combine(day, clock)


def events(season: Season) -> list[dict[str, Any]]:
    """The games as events, in the order of the tables; the participants by name."""
    return [
        {
            "type": "game.recorded", "occurred_at": _instant(game.when),
            "data": {
                "game": "catan", "game_id": game_id,
                "participants": sorted(map(_participant, game.seats), key=lambda one: str(one["player"])),
            },
        }
        for game, game_id in zip(season.games, season.ids, strict=True)
    ]  # fmt: skip


def _instant(when: date) -> str:
    local = when if isinstance(when, datetime) else datetime.combine(when, time(12))
    return f"{local.replace(tzinfo=ZONE).astimezone(ZoneInfo('UTC')):%Y-%m-%dT%H:%M:%S.%fZ}"


def _participant(seat: tuple[str, int | None, str | None]) -> dict[str, Any]:
    player, place, score = seat
    found: dict[str, Any] = {"player": player}
    if place is not None:
        found["place"] = place
    if score is not None:
        plain = format(Decimal(score).normalize(), "f")
        found["score"] = plain if "." in plain else int(plain)
    return found


# dates of a column: as they are typed, the time behind them, and the option that says their order
Shown = tuple[Callable[[date], Any], str]


def _typed(day: str, clock: str) -> Callable[[date], str]:
    def text(when: date) -> str:
        if not isinstance(when, datetime):
            return when.strftime(day)
        return when.strftime(f"{day} {clock.replace('%M', '%M:%S') if when.second else clock}")

    return text


DATES: dict[str, Shown] = {
    "ISO 8601": (_typed("%Y-%m-%d", "%H:%M"), ""),
    "points": (_typed("%d.%m.%Y", "%H:%M"), "dmy"),
    "short": (_typed("%d.%m.%y", "%H:%M Uhr"), "dmy"),
    "slashes": (_typed("%d/%m/%Y", "%H:%M"), "dmy"),
    "American": (_typed("%m/%d/%y", "%I:%M %p"), "mdy"),
    "months by name": (_typed("%A, %d. %B %Y", "%H:%M"), ""),
    "Excel's months": (_typed("%d-%b-%y", "%I:%M %p"), ""),
    "the year first": (_typed("%Y/%m/%d", "%H:%M"), ""),
}
CELLS = "real dates"
HEADERS = {
    "player": ("player", "Spieler", "Name", "Joueur"), "place": ("place", "Platz", "Rank"),
    "score": ("score", "Punkte", "Points"), "occurred_at": ("occurred_at", "Date", "Datum"),
    "game_id": ("game_id", "Nr.", "Partie"), "time": ("Time", "Uhrzeit"),
}  # fmt: skip


def table(chance: Random, season: Season, layout: str, in_cells: bool) -> Table | None:
    """The games in a layout, with real dates in the cells or dates as text; None if it cannot say them."""
    made = LAYOUTS[layout](chance, season)
    if made is None:
        return None
    header, games, more = made
    dates = CELLS if in_cells and chance.random() < 0.7 else chance.choice([*DATES])
    apart = chance.random() < 0.2
    is_usual = chance.random() < 0.3  # the form that is read without a look at the whole
    named = {name: known[0] if is_usual else chance.choice(known) for name, known in HEADERS.items()}
    rows = [[named["occurred_at"], *([named["time"]] if apart else []),
             *([named["game_id"]] if season.has_ids else []), *(named.get(name, name) for name in header)]]  # fmt: skip
    told = [layout, dates, *(["times apart"] if apart else [])]
    once = layout == "rows" and not season.has_ids and chance.random() < 0.3
    # a row without a date whose first word is Total sums up others
    once = once and not any(is_total([player]) for game in season.games for player, _, _ in game.seats)
    # without ids, an empty line tells a game from another of that moment, unless its places do
    before: tuple[date, int] | None = None
    for game, game_id, own in zip(season.games, season.ids, games, strict=True):
        places = [place or 0 for _, place, _ in game.seats]
        if layout == "rows" and not season.has_ids and before is not None and before[0] == game.when and (
            before[1] <= places[0] or chance.random() < 0.3
        ):  # fmt: skip
            rows.append([None] * len(rows[0]))
            told.append("an empty line")
        before = game.when, places[-1]
        for number, cells in enumerate(own):
            when = _shown(game.when, dates, apart)
            if once and number:
                when = [None] * len(when)
                told.append("the date once")
            rows.append([*when, *([game_id] if season.has_ids else []), *cells])
    order = DATES[dates][1] if dates != CELLS else ""
    decides = any(game.when.day > 12 for game in season.games)
    options = [*more, *(["--dates", order] if order and (not decides or chance.random() < 0.3) else [])]
    if not once and chance.random() < 0.5:
        _shuffle_columns(chance, rows)
    if chance.random() < 0.2:
        rows.insert(0, ["Catan Club 2024"])
        told.append("a title")
    return Table(rows, tuple(options), tuple(told))


def _shown(when: date, dates: str, apart: bool) -> list[Any]:
    day = date(when.year, when.month, when.day)
    clock = when.time() if isinstance(when, datetime) else None
    if dates == CELLS:
        return [day, clock] if apart else [when]
    shown = DATES[dates][0]
    return [shown(day), clock and f"{clock:%H:%M:%S}"] if apart else [shown(when)]


def _shuffle_columns(chance: Random, rows: list[list[Any]]) -> None:
    order = list(range(len(rows[0])))
    chance.shuffle(order)
    rows[:] = [[row[column] for column in order] for row in rows]


# what a layout makes of games: its columns besides those of the game, the rows of each game, and options
Made = tuple[list[str], list[list[list[Any]]], list[str]]


def _rows(chance: Random, season: Season) -> Made | None:
    of = {PLACES: ["player", "place"], SCORES: ["player", "score"], BOTH: ["player", "place", "score"]}[season.kind]
    cells = [
        [[player, *([place] if place is not None else []), *([Decimal(score)] if score is not None else [])]
         for player, place, score in game.seats]
        for game in season.games
    ]  # fmt: skip
    if season.has_ids:
        for own in cells:
            chance.shuffle(own)
    return of, cells, []


def _places(chance: Random, season: Season) -> Made | None:
    if season.kind != PLACES:
        return None
    last = max(place or 0 for game in season.games for _, place, _ in game.seats)
    tie, options = chance.choice((("=", []), (" = ", []), (" / ", ["--ties", "/"])))
    games = []
    for game in season.games:
        row: list[Any] = [None] * last
        for place, seats in groupby(game.seats, lambda seat: seat[1] or 0):
            row[place - 1] = tie.join(player for player, _, _ in seats)
        games.append([row])
    return [f"{place}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(place, 'th') }" for place in range(1, last + 1)], games, options


def _players(chance: Random, season: Season) -> Made | None:
    """A column per player, which must not be called as other columns are, nor as another but for capitals."""
    names = list(dict.fromkeys(player for game in season.games for player, _, _ in game.seats))
    is_taken = any(find_meaning(player) or is_total([player]) for player in names)
    if season.kind == BOTH or is_taken or len({player.casefold() for player in names}) < len(names):
        return None
    chance.shuffle(names)
    games = []
    for game in season.games:
        given = {player: place if score is None else Decimal(score) for player, place, score in game.seats}
        games.append([[given.get(player) for player in names]])
    layout = "player-scores" if season.kind == SCORES else "player-places"
    return names, games, ["--layout", layout] if season.kind == SCORES or chance.random() < 0.3 else []


def _pair(chance: Random, season: Season) -> Made | None:
    """Two names, with a result such as 1-0 or a score for each."""
    if season.kind == BOTH or any(len(game.seats) != 2 for game in season.games):
        return None
    of_scores, games = season.kind == SCORES, []
    for game in season.games:
        first, second = seats = chance.sample(game.seats, 2)
        names = [player for player, _, _ in seats]
        if of_scores:
            games.append([[*names, *(Decimal(score or 0) for _, _, score in seats)]])
        elif first[1] == second[1]:
            games.append([[*names, chance.choice(("½-½", "1/2-1/2", "0.5 - 0.5", "draw", "remis"))]])
        else:
            games.append([[*names, chance.choice(("{}-{}", "{} : {}", "{}–{}")).format(*(
                (1, 0) if (first[1] or 0) < (second[1] or 0) else (0, 1)
            ))]])  # fmt: skip
    columns = ["Player 1", "Player 2", "Score 1", "Score 2"] if of_scores else ["White", "Black", "Result"]
    return columns, games, []


LAYOUTS: dict[str, Callable[[Random, Season], Made | None]] = {
    "rows": _rows, "places": _places, "players": _players, "pair": _pair,
}  # fmt: skip


class File(NamedTuple):
    """A file: how it is called, what is in it, the options of the import, and what is of interest about it."""

    name: str
    content: bytes
    options: tuple[str, ...]
    told: tuple[str, ...]


def files(chance: Random, season: Season) -> Iterator[File]:
    """The season in every layout that can say it, each as CSV, .xlsx and .ods."""
    for layout in LAYOUTS:
        for write in (_csv, _xlsx, _ods):
            if (made := table(chance, season, layout, write is not _csv)) is not None:
                file = write(chance, made)
                options = ("--set", "game=catan", "--new-names", "accept", *made.options, *file.options)
                yield file._replace(
                    options=options, told=(*made.told, *file.told, f"{layout} in {Path(file.name).suffix}")
                )


def _csv(chance: Random, made: Table) -> File:
    delimiter = chance.choice(",;\t|")
    comma = delimiter in ";\t" and chance.random() < 0.5
    text = io.StringIO()
    written = csv.writer(
        text, delimiter=delimiter, lineterminator=chance.choice(("\n", "\r\n")),
        quoting=chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    )  # fmt: skip
    for row in made.rows:
        written.writerow([str(cell).replace(".", ",") if comma and isinstance(cell, Decimal) else cell for cell in row])
    encoding = chance.choice(("utf-8", "utf-8-sig", "utf-16"))
    told = (encoding, f"delimiter {delimiter!r}", *(["decimal commas"] if comma else []))
    return File("season.csv", text.getvalue().encode(encoding), (), told)


def _xlsx(chance: Random, made: Table) -> File:
    epoch = chance.choice((EPOCH, EPOCH_1904))
    told = ("the system of 1904",) if epoch is EPOCH_1904 else ()
    return File("season.xlsx", xlsx(_typed_numbers(chance, made.rows), epoch=epoch), (), told)


def _ods(chance: Random, made: Table) -> File:
    return File("season.ods", ods(_typed_numbers(chance, made.rows)), (), ())


def _typed_numbers(chance: Random, rows: list[list[Any]]) -> list[list[Any]]:
    """Some numbers as texts."""
    return [[str(cell) if isinstance(cell, Decimal | int) and chance.random() < 0.2 else cell for cell in row]
            for row in rows]  # fmt: skip
