"""Draw random games, and write them as tables in every layout and kind of file."""

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
# names that a reader could confuse with something else
ODD_NAMES = (
    "van Dam", 'Pat "Ace" Lee', "Smith; Jo", "Roe, Ann", "O'Neill", "'quoted'", '"J', "a|b", "-1", "007", "1.5", "true",
    "Total", "Summe", "Platz", "2024-11-22", "Anna & Ben", "C++", "#1", "<b>&amp;", "x" * 64, "Anna", "anna",
)  # fmt: skip
WORD_CHARACTERS = ("Lu", "Ll", "Lt", "Lo")


class Game(NamedTuple):
    """A game: its day or its local time in Berlin, and the name, the place, and the score of each player."""

    when: date
    seats: tuple[tuple[str, int | None, str | None], ...]


class Season(NamedTuple):
    """Games with places, scores or both, and their ids, which are in the table or numbered by day."""

    kind: str
    games: list[Game]
    ids: list[str]
    has_ids: bool


class Table(NamedTuple):
    """The rows of a table, the options that its import needs, and the features of the table."""

    rows: list[list[Any]]
    options: tuple[str, ...]
    features: tuple[str, ...]


@cache
def list_letters_by_script() -> dict[str, list[str]]:
    """Return the letters of each script by its Unicode name."""
    letters = dict[str, list[str]]()
    for character in map(chr, range(0x110000)):
        if category(character) in WORD_CHARACTERS:
            letters.setdefault(name(character, "").partition(" ")[0], []).append(character)
    return letters


def draw_name(chance: Random) -> str:
    """Draw a name in any script, or an odd one."""
    if chance.random() < 0.4:
        return chance.choice(ODD_NAMES)
    script = list_letters_by_script()[chance.choice([*list_letters_by_script()])]
    words = ("".join(chance.choices(script, k=chance.randrange(1, 5))) for _ in range(chance.choice((1, 1, 2))))
    return normalize("NFC", " ".join(words))


def draw_season(chance: Random) -> Season:
    """Draw some games of two to eight players."""
    kind = chance.choice((PLACES, PLACES, SCORES, BOTH))
    names = list(dict.fromkeys(draw_name(chance) for _ in range(12)))
    players_max = chance.choice((2, 2, 4, 8))
    games = sorted(
        (_draw_game(chance, kind, names, players_max) for _ in range(chance.randrange(1, 7))),
        key=lambda game: game.when.isoformat(),
    )
    has_ids = chance.random() < 0.4
    days = [game.when.isoformat()[:10] for game in games]
    numbered_ids = [f"{day}-{days[: index + 1].count(day)}" for index, day in enumerate(days)]
    return Season(kind, games, [f"g-{index}" for index in range(len(games))] if has_ids else numbered_ids, has_ids)


def _draw_game(chance: Random, kind: str, names: list[str], players_max: int) -> Game:
    players = chance.sample(names, min(len(names), chance.randrange(2, players_max + 1)))
    merits = sorted((chance.randrange(1, 2 * len(players)) for _ in players), reverse=True)
    is_dense = chance.random() < 0.3
    places = [
        1
        + (
            len({better for better in merits if better > merit})
            if is_dense
            else sum(better > merit for better in merits)
        )
        for merit in merits
    ]
    step = chance.choice(("1", "1", "0.5", "0.25", "12.10", "-3"))
    scores = [str(Decimal(step) * merit) for merit in merits]
    if step == "-3" and kind == BOTH:
        # beside places, better places must have higher scores
        scores = [str(-3 * place) for place in places]
    return Game(
        _draw_time(chance),
        tuple(
            (player, place if kind != SCORES else None, score if kind != PLACES else None)
            for player, place, score in zip(players, places, scores, strict=True)
        ),
    )


def _draw_time(chance: Random) -> date:
    """Draw a day, or a local time that is unambiguous."""
    day = chance.choice((date(2024, 11, 22), date(2024, 11, 23), date(2023, 2, 3), date(1999, 12, 31)))
    if chance.random() < 0.5:
        return day
    clock = chance.choice((time(20, 5), time(0, 0), time(9, 30, 15), time(23, 59, 59)))
    return datetime.combine(day, clock)


def build_events(season: Season) -> list[dict[str, Any]]:
    """Return the games as events in the order of the tables, with participants sorted by name."""
    return [
        {
            "type": "game.recorded",
            "occurred_at": _format_instant(game.when),
            "data": {
                "game": "catan",
                "game_id": game_id,
                "participants": sorted(
                    map(_build_participant, game.seats), key=lambda participant: str(participant["player"])
                ),
            },
        }
        for game, game_id in zip(season.games, season.ids, strict=True)
    ]


def _format_instant(when: date) -> str:
    local = when if isinstance(when, datetime) else datetime.combine(when, time(12))
    return f"{local.replace(tzinfo=ZONE).astimezone(ZoneInfo('UTC')):%Y-%m-%dT%H:%M:%S.%fZ}"


def _build_participant(seat: tuple[str, int | None, str | None]) -> dict[str, Any]:
    player, place, score = seat
    participant: dict[str, Any] = {"player": player}
    if place is not None:
        participant["place"] = place
    if score is not None:
        plain = format(Decimal(score).normalize(), "f")
        participant["score"] = plain if "." in plain else int(plain)
    return participant


# the format of a column of dates, and the value of --dates for it
DateFormat = tuple[Callable[[date], Any], str]


def _build_date_formatter(day_format: str, clock_format: str) -> Callable[[date], str]:
    def format_date(when: date) -> str:
        if not isinstance(when, datetime):
            return when.strftime(day_format)
        clock = clock_format.replace("%M", "%M:%S") if when.second else clock_format
        return when.strftime(f"{day_format} {clock}")

    return format_date


DATES: dict[str, DateFormat] = {
    "ISO 8601": (_build_date_formatter("%Y-%m-%d", "%H:%M"), ""),
    "dots": (_build_date_formatter("%d.%m.%Y", "%H:%M"), "dmy"),
    "short": (_build_date_formatter("%d.%m.%y", "%H:%M Uhr"), "dmy"),
    "slashes": (_build_date_formatter("%d/%m/%Y", "%H:%M"), "dmy"),
    "American": (_build_date_formatter("%m/%d/%y", "%I:%M %p"), "mdy"),
    "months by name": (_build_date_formatter("%A, %d. %B %Y", "%H:%M"), ""),
    "Excel's months": (_build_date_formatter("%d-%b-%y", "%I:%M %p"), ""),
    "the year first": (_build_date_formatter("%Y/%m/%d", "%H:%M"), ""),
}
REAL_DATES = "real dates"
HEADERS = {
    "player": ("player", "Spieler", "Name", "Joueur"),
    "place": ("place", "Platz", "Rank"),
    "score": ("score", "Punkte", "Points"),
    "occurred_at": ("occurred_at", "Date", "Datum"),
    "game_id": ("game_id", "Nr.", "Partie"),
    "time": ("Time", "Uhrzeit"),
}


def draw_table(chance: Random, season: Season, layout: str, allows_real_dates: bool) -> Table | None:
    """Write games in a layout, with real dates or dates as text; return None if the layout cannot represent them."""
    table_parts = LAYOUTS[layout](chance, season)
    if table_parts is None:
        return None
    header, games, layout_options = table_parts
    dates = REAL_DATES if allows_real_dates and chance.random() < 0.7 else chance.choice([*DATES])
    has_time_column = chance.random() < 0.2
    is_usual = chance.random() < 0.3  # the usual form is read without a look at the whole table
    header_by_meaning = {
        name: spellings[0] if is_usual else chance.choice(spellings) for name, spellings in HEADERS.items()
    }
    rows = [
        [
            header_by_meaning["occurred_at"],
            *([header_by_meaning["time"]] if has_time_column else []),
            *([header_by_meaning["game_id"]] if season.has_ids else []),
            *(header_by_meaning.get(name, name) for name in header),
        ]
    ]
    features = [layout, dates, *(["times apart"] if has_time_column else [])]
    shows_date_once = layout == "rows" and not season.has_ids and chance.random() < 0.3
    # a row that has no date and begins with Total would be read as the sum of other rows
    shows_date_once = shows_date_once and not any(
        is_total([player]) for game in season.games for player, _, _ in game.seats
    )
    # without ids, an empty line or descending places separate games of the same time
    previous: tuple[date, int] | None = None
    for game, game_id, game_rows in zip(season.games, season.ids, games, strict=True):
        places = [place or 0 for _, place, _ in game.seats]
        if (
            layout == "rows"
            and not season.has_ids
            and previous is not None
            and previous[0] == game.when
            and (previous[1] <= places[0] or chance.random() < 0.3)
        ):
            rows.append([None] * len(rows[0]))
            features.append("an empty line")
        previous = game.when, places[-1]
        for number, cells in enumerate(game_rows):
            when = _format_time_cells(game.when, dates, has_time_column)
            if shows_date_once and number:
                when = [None] * len(when)
                features.append("the date once")
            rows.append([*when, *([game_id] if season.has_ids else []), *cells])
    order = DATES[dates][1] if dates != REAL_DATES else ""
    is_order_clear = any(game.when.day > 12 for game in season.games)
    options = [
        *layout_options,
        *(["--dates", order] if order and (not is_order_clear or chance.random() < 0.3) else []),
    ]
    if not shows_date_once and chance.random() < 0.5:
        _shuffle_columns(chance, rows)
    if chance.random() < 0.2:
        rows.insert(0, ["Catan Club 2024"])
        features.append("a title")
    return Table(rows, tuple(options), tuple(features))


def _format_time_cells(when: date, dates: str, has_time_column: bool) -> list[Any]:
    day = date(when.year, when.month, when.day)
    clock = when.time() if isinstance(when, datetime) else None
    if dates == REAL_DATES:
        return [day, clock] if has_time_column else [when]
    formatter = DATES[dates][0]
    return [formatter(day), clock and f"{clock:%H:%M:%S}"] if has_time_column else [formatter(when)]


def _shuffle_columns(chance: Random, rows: list[list[Any]]) -> None:
    order = list(range(len(rows[0])))
    chance.shuffle(order)
    rows[:] = [[row[column] for column in order] for row in rows]


# the games in a layout: the columns besides those of the date and the id, the rows of each game, and options
TableParts = tuple[list[str], list[list[list[Any]]], list[str]]


def _lay_out_rows(chance: Random, season: Season) -> TableParts | None:
    columns = {PLACES: ["player", "place"], SCORES: ["player", "score"], BOTH: ["player", "place", "score"]}[
        season.kind
    ]
    cells = [
        [
            [player, *([place] if place is not None else []), *([Decimal(score)] if score is not None else [])]
            for player, place, score in game.seats
        ]
        for game in season.games
    ]
    if season.has_ids:
        for game_rows in cells:
            chance.shuffle(game_rows)
    return columns, cells, []


def _lay_out_places(chance: Random, season: Season) -> TableParts | None:
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


def _lay_out_players(chance: Random, season: Season) -> TableParts | None:
    """Write a column per player; return None if a player's name is like that of another column."""
    names = list(dict.fromkeys(player for game in season.games for player, _, _ in game.seats))
    is_taken = any(find_meaning(player) or is_total([player]) for player in names)
    if season.kind == BOTH or is_taken or len({player.casefold() for player in names}) < len(names):
        return None
    chance.shuffle(names)
    games = []
    for game in season.games:
        values = {player: place if score is None else Decimal(score) for player, place, score in game.seats}
        games.append([[values.get(player) for player in names]])
    layout = "player-scores" if season.kind == SCORES else "player-places"
    return names, games, ["--layout", layout] if season.kind == SCORES or chance.random() < 0.3 else []


def _lay_out_pair(chance: Random, season: Season) -> TableParts | None:
    """Write two names with a result such as 1-0, or with a score for each."""
    if season.kind == BOTH or any(len(game.seats) != 2 for game in season.games):
        return None
    has_scores, games = season.kind == SCORES, []
    for game in season.games:
        first, second = seats = chance.sample(game.seats, 2)
        names = [player for player, _, _ in seats]
        if has_scores:
            games.append([[*names, *(Decimal(score or 0) for _, _, score in seats)]])
        elif first[1] == second[1]:
            games.append([[*names, chance.choice(("½-½", "1/2-1/2", "0.5 - 0.5", "draw", "remis"))]])
        else:
            games.append(
                [
                    [
                        *names,
                        chance.choice(("{}-{}", "{} : {}", "{}–{}")).format(
                            *((1, 0) if (first[1] or 0) < (second[1] or 0) else (0, 1))
                        ),
                    ]
                ]
            )
    columns = ["Player 1", "Player 2", "Score 1", "Score 2"] if has_scores else ["White", "Black", "Result"]
    return columns, games, []


LAYOUTS: dict[str, Callable[[Random, Season], TableParts | None]] = {
    "rows": _lay_out_rows,
    "places": _lay_out_places,
    "players": _lay_out_players,
    "pair": _lay_out_pair,
}


class File(NamedTuple):
    """A file with the options of its import and the features of its table."""

    name: str
    content: bytes
    options: tuple[str, ...]
    features: tuple[str, ...]


def draw_files(chance: Random, season: Season) -> Iterator[File]:
    """Yield the season in every layout that can represent it, each as CSV, .xlsx and .ods."""
    for layout in LAYOUTS:
        for write in (_write_csv, _write_xlsx, _write_ods):
            if (table := draw_table(chance, season, layout, write is not _write_csv)) is not None:
                file = write(chance, table)
                options = ("--set", "game=catan", "--new-names", "accept", *table.options, *file.options)
                yield file._replace(
                    options=options, features=(*table.features, *file.features, f"{layout} in {Path(file.name).suffix}")
                )


def _write_csv(chance: Random, table: Table) -> File:
    delimiter = chance.choice(",;\t|")
    has_decimal_commas = delimiter in ";\t" and chance.random() < 0.5
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=delimiter,
        lineterminator=chance.choice(("\n", "\r\n")),
        quoting=chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    )
    for row in table.rows:
        writer.writerow(
            [str(cell).replace(".", ",") if has_decimal_commas and isinstance(cell, Decimal) else cell for cell in row]
        )
    encoding = chance.choice(("utf-8", "utf-8-sig", "utf-16"))
    features = (encoding, f"delimiter {delimiter!r}", *(["decimal commas"] if has_decimal_commas else []))
    return File("season.csv", text.getvalue().encode(encoding), (), features)


def _write_xlsx(chance: Random, table: Table) -> File:
    epoch = chance.choice((EPOCH, EPOCH_1904))
    features = ("the system of 1904",) if epoch is EPOCH_1904 else ()
    return File("season.xlsx", xlsx(_store_some_numbers_as_text(chance, table.rows), epoch=epoch), (), features)


def _write_ods(chance: Random, table: Table) -> File:
    return File("season.ods", ods(_store_some_numbers_as_text(chance, table.rows)), (), ())


def _store_some_numbers_as_text(chance: Random, rows: list[list[Any]]) -> list[list[Any]]:
    """Store some numbers as text, as in sheets with typed numbers."""
    return [
        [str(cell) if isinstance(cell, Decimal | int) and chance.random() < 0.2 else cell for cell in row]
        for row in rows
    ]
