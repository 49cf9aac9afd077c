"""Every rejection code has an input that produces it on the command line, and nothing is appended."""

import gzip
import hashlib
import json
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from own_rules import load_built_in_rule, substitute_rule
from sheet_files import ERROR, xlsx
from stores import make_empty_ledger, make_ruled_ledger

from ratings_ledger.ledger.intake import readers
from ratings_ledger.ledger.rejections import CODES
from ratings_ledger.ledger.validation.leagues import draw_schedule

PICKY = load_built_in_rule("pairwise-elo/1")._replace(name="picky", check=lambda n, columns, params: "it is Monday")


class Case(NamedTuple):
    """A bad input, which is the content of a file (None: a folder) or a command.

    `arguments` are further arguments of `ratings import`, in which FILE stands for the file. `command` is run instead
    of an import. `before` are the codes of rejections that necessarily come first.
    """

    content: bytes | None
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def format_event(**members: Any) -> bytes:
    """Return a registration as one line; `members` replace members of the event, and None leaves one out."""
    event = {"type": "player.registered", "occurred_at": "2024-01-01T12:00:00Z", "data": {"player": "anna"}, **members}
    return json.dumps({name: value for name, value in event.items() if value is not None}).encode()


def format_game(*participants: dict[str, Any], **members: Any) -> bytes:
    """Return a game as one line; without participants, anna beats ben."""
    seats = list(participants) or [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    return format_event(
        type="game.recorded", data={"game_id": "g-2", "game": "catan", "participants": seats, **members}
    )


def build_seat(player: str, place: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a participant."""
    return {"player": player, **({} if place is None else {"place": place}), **members}


def format_b5_game(*vps: int, **members: Any) -> bytes:
    """Return a game of kind b5 as one line: anna before ben, cleo and dora, with these victory points."""
    players = ("anna", "ben", "cleo", "dora")
    seats = [build_seat(players[index], power=9 - index, influence=0, vp=vp) for index, vp in enumerate(vps)]
    return format_game(*seats, kind="b5", **members)


def format_battle(*players: str) -> bytes:
    """Return a game of kind battle as one line; a player "anna red 1 0 1" has a side, units, losses and kills."""
    seats = []
    for player in players:
        name, side, *counts = player.split()
        seats.append(
            build_seat(name, side=side, **dict(zip(("units", "units_lost", "kills"), map(int, counts), strict=False)))
        )
    return format_game(*seats, kind="battle")


def format_diplomacy_game(*powers: str, **centres_by_year: dict[str, int]) -> bytes:
    """Return a game of kind diplomacy as one line, with these powers and centres such as `y1901={"Italy": 5}`."""
    centres = {year.removeprefix("y"): centres for year, centres in centres_by_year.items()}
    return format_game(
        *(build_seat(f"p{number}", power=power) for number, power in enumerate(powers)),
        kind="diplomacy",
        centres=centres,
    )


def format_ruleset(**members: Any) -> bytes:
    """Return a published ruleset as one line."""
    ruleset = {
        "id": "chess",
        "version": "1",
        "rule": "pairwise-elo/1",
        "scope": {"game": ["chess"]},
        "params": {"k_total": 8},
    }
    return format_event(type="ruleset.published", data={**ruleset, **members})


def format_measured_game(*participants: dict[str, Any], **members: Any) -> bytes:
    """Return a ruleset that reads whole scores and `numbers.length` of 1 to 9, and a game that it scores."""
    limits = {"length": {"min": 1, "max": 9, "absent": "refuse"}}
    members_of_ruleset = {
        "rule": "pairwise-elo/2",
        "effective_from": "2000-01-01",
        "params": {"margin": "ln"},
        "numbers": limits,
    }
    return format_ruleset(**members_of_ruleset) + b"\n" + format_game(*participants, game="chess", **members)


def format_adjustment(ladder: str, points: str) -> bytes:
    """Return an adjustment as one line."""
    data = {"ladder": ladder, "player": "anna", "points": points, "reason": "late arrival"}
    return format_event(type="points.adjusted", data=data)


def format_seed(player: str, ladder: str = "catan-elo/basic", **state: str) -> bytes:
    """Return a seed as one line."""
    return format_event(type="player.seeded", data={"ladder": ladder, "player": player, "state": state})


def format_league(**members: Any) -> bytes:
    """Return a created league as one line."""
    return format_event(type="league.created", data={"league": "L1", "game": "chess", "players_per_game": 2, **members})


def format_join(player: str, **members: Any) -> bytes:
    """Return a player's joining of the league as one line."""
    return format_event(type="league.joined", data={"league": "L1", "player": player, **members})


def format_schedule(seed: str, games: int = 56) -> bytes:
    """Return the first games of the league's schedule, drawn with a seed, as one line."""
    schedule = draw_schedule(list("abcdefgh"), 2, seed)
    scheduled_games = [{"game_id": f"L1-{number}", "seats": seats} for number, seats in enumerate(schedule[:games])]
    return format_event(type="league.scheduled", data={"league": "L1", "seed": seed, "games": scheduled_games})


def format_full_league(*events: bytes) -> bytes:
    """Return a league with all its players, and further events."""
    return join_events(format_league(), *map(format_join, "abcdefgh"), *events)


def format_clock(*steps: str) -> bytes:
    """Return the clock of a game as lines; a step such as `offered 5 anna choice=fortune` has a type, a time and
    members."""
    events = []
    for step in ("started 0", *steps):
        name, at, *parts = step.split()
        members: dict[str, Any] = {"players": ["anna", "ben"]} if name == "started" else {}
        for part in parts:
            member, _, value = part.rpartition("=")
            members[member or "player"] = value
        events.append(format_event(type=f"clock.{name}", data={"game_id": "g-1", "at": int(at), **members}))
    return join_events(*events)


def format_published_lists(*hours: str) -> bytes:
    """Return a list with one row, published at each of these hours, as lines: its rows and its head."""
    rows = [{"games": 1, "player": "anna", "points": "1004", "qualified": True, "rank": 1}]
    content = json.dumps({"rows": rows, "ruleset": "catan-elo@2009-01"}, sort_keys=True, separators=(",", ":"))
    name = {"ladder": "catan-elo/basic", "digest": f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"}
    head = {**name, "known_at": 16, "ruleset": "catan-elo@2009-01", "row_count": 1, "parts": 1}
    events = []
    for hour in hours:
        at = f"2024-01-01T{hour}:00:00Z"
        events.append(
            format_event(type="list.rows", data={**name, "part": 1, "parts": 1, "rows": rows}, occurred_at=at)
        )
        events.append(format_event(type="list.published", data=head, occurred_at=at))
    return join_events(*events)


def join_events(*events: bytes) -> bytes:
    """Return events as lines; the case is about the last one."""
    return b"\n".join(events)


def format_decision(type_name: str, game_id: str, reason: str = "wrong") -> bytes:
    """Return an event that voids or reinstates a game as one line."""
    return format_event(type=type_name, data={"game_id": game_id, "reason": reason})


def format_correction(game_id: str, new_id: str | None = None) -> bytes:
    """Return a correction of a game as one line: ben won; `new_id` is the game's id in its corrected data."""
    game = {
        "game_id": new_id or game_id,
        "game": "catan",
        "participants": [build_seat("ben", 1), build_seat("anna", 2)],
    }
    return format_event(type="game.corrected", data={"game_id": game_id, "reason": "wrong way round", "game": game})


def format_withdrawal(event_id: str, reason: str = "wrong") -> bytes:
    """Return an event that withdraws another as one line."""
    return format_event(type="event.voided", data={"id": event_id, "reason": reason})


def format_rename(player: str, new_player: str) -> bytes:
    """Return a rename as one line."""
    return format_event(type="player.renamed", data={"player": player, "new_player": new_player})


def build_table(*rows: str, header: str = "game_id,occurred_at,game,player,place") -> bytes:
    """Return a CSV file of these rows."""
    return "\n".join((header, *rows, "")).encode()


def build_sheet(*games: str, players: str = "ben,anna") -> bytes:
    """Return a table of games with the same players in the same places."""
    return build_table(
        *(f"{name},2024-01-01T12:00:00Z,catan,{players}" for name in games), header=f"{SHEET_COLUMNS},1st,2nd"
    )


SHEET_COLUMNS = "game_id,occurred_at,game"
SHEET_GAMES = [f"g-{number}" for number in range(1, 13)]
RECORDED_GAME = format_game(game_id="g-1") + b"\n"
ANNA, BEN = "g-2,2024-01-01T12:00:00Z,catan,anna,1", "g-2,2024-01-01T12:00:00Z,catan,ben,2"
BERLIN_ZONE = ("--zone", "Europe/Berlin")
POWERS = ("Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey")

CASES = {
    "is-a-directory": Case(None),
    "empty-file": Case(b" \n\n"),
    "file-too-large": Case(format_event()),
    "bad-gzip": Case(gzip.compress(format_event(), mtime=0)[:-4]),
    "too-many-blank-lines": Case(b"\n" * 100_001 + format_event()),
    "bad-utf8": Case(format_event().replace(b"anna", b"\xff\xfe")),
    "bad-json": Case(format_event()[:-1]),
    "is-a-spreadsheet": Case(b"\xd0\xcf\x11\xe0" + bytes(100)),
    "bad-spreadsheet": Case(b"PK\x03\x04" + bytes(100)),
    "which-sheet": Case(xlsx([["Date"]], ("More", "visible", [["Date"]]))),
    "bad-cell": Case(xlsx([["Date", "1st", "2nd"], ["2024-11-22", "anna", ERROR]]), ("--set", "game=catan")),
    "bad-reader": Case(build_table(ANNA, BEN)),
    "unclear-layout": Case(
        b"Date,anna,ben,cleo\n2024-05-03,3,1,2\n2024-05-04,2,1,3\n2024-05-05,1,2,4\n", ("--set", "game=catan")
    ),
    "winner-not-in-row": Case(b"Date,Player 1,Player 2,Winner\n2024-05-03,anna,ben,cleo\n", ("--set", "game=catan")),
    "others-unknown": Case(
        b"Date,Player 1,Player 2,Player 3,Winner\n2024-05-03,anna,ben,cleo,ben\n", ("--set", "game=catan")
    ),
    "results-disagree": Case(b"Date,Winner,Loser,Score\n2024-05-03,anna,ben,1-3\n", ("--set", "game=catan")),
    "result-became-date": Case(b"Date,White,Black,Result\n2024-05-03,anna,ben,01.03.2024\n", ("--set", "game=catan")),
    "unclear-dates": Case(b"Date,1st,2nd\n03/05/2024,anna,ben\n", ("--set", "game=catan")),
    "bad-csv": Case(build_table(ANNA, BEN, 'g-2,2024-01-01T12:00:00Z,catan,"cleo"x,3')),
    "line-break": Case(build_table(ANNA, BEN, BEN.replace("ben", '"cleo\ndora"'))),
    "column-twice": Case(build_table(ANNA, BEN, header="game_id,occurred_at,game,player,player")),
    "game-incomplete": Case(
        build_table(ANNA, BEN, BEN + ",x", ANNA.replace("g-2", "g-3"), BEN.replace("g-2", "g-3")),
        before=("row-length",),
    ),
    "line-too-long": Case(b'{"type":"' + b"x" * (1 << 20) + b'"}'),
    "duplicate-key": Case(format_event().replace(b'{"type"', b'{"type":"x","type"')),
    "lone-surrogate": Case(format_event().replace(b"anna", b"\\ud800")),
    "not-a-finite-number": Case(format_game(extra=None).replace(b'"place": 2', b'"place": NaN')),
    "not-an-integer": Case(format_game(build_seat("anna", 1), build_seat("ben", 2, seat="2"))),
    "integer-too-large": Case(format_game(build_seat("anna", score=12345678901234567890), build_seat("ben", score=1))),
    "unknown-column": Case(build_table(ANNA + ",x", BEN + ",x", header="game_id,occurred_at,game,player,place,fee")),
    "missing-column": Case(build_table("g-2,catan,anna,1", header="game_id,game,player,place")),
    "not-a-table": Case(RECORDED_GAME, ("--sync",)),
    "another-sheet": Case(build_sheet("g-99"), ("--sync", "--yes")),
    "rows-apart": Case(build_table(ANNA, BEN, ANNA.replace("g-2", "g-3"), BEN.replace("g-2", "g-3"), ANNA, BEN)),
    "row-length": Case(build_table(ANNA, BEN, BEN.replace("ben", "cleo") + ",x")),
    "rows-disagree": Case(build_table(ANNA, BEN.replace("catan", "chess"))),
    "unknown-type": Case(format_event(type="player.exiled")),
    "unknown-kind": Case(format_game(kind="auction")),
    "unknown-member": Case(format_game(colour="red")),
    "missing-member": Case(format_event(occurred_at=None)),
    "wrong-type": Case(format_event(data=["anna"])),
    "bad-value": Case(format_game(score_order="middle")),
    "out-of-range": Case(format_game(build_seat("anna", 0), build_seat("ben", 1))),
    "bad-time": Case(format_event(occurred_at="2024-02-30T12:00:00Z")),
    "naive-time": Case(format_event(occurred_at="2024-01-01T12:00:00")),
    "ambiguous-time": Case(build_table(ANNA.replace("2024-01-01T12:00:00Z", "2010-10-31 02:30")), BERLIN_ZONE),
    "nonexistent-time": Case(build_table(ANNA.replace("2024-01-01T12:00:00Z", "2010-03-28 02:30")), BERLIN_ZONE),
    "unknown-game": Case(b"game_id,occurred_at,game,1st,2nd\ng-9,2024-11-22,cattan,anna,ben\n"),
    "unknown-zone": Case(format_ruleset(time_zone="Europe/Atlantis")),
    "bad-identifier": Case(format_game(build_seat("an/na", 1), build_seat("ben", 2))),
    "bad-slug": Case(format_game(game="Catan")),
    "bad-decimal": Case(format_game(build_seat("anna", score="ten"), build_seat("ben", score=1))),
    "bad-text": Case(format_adjustment("club-catan-elo/all", "5").replace(b"late arrival", b"")),
    "record-too-large": Case(format_game(extra={"notes": "x" * 65_535})),
    "unknown-schema-version": Case(format_event(schema_version=2)),
    "too-few-participants": Case(format_game(build_seat("anna", 1))),
    "player-twice": Case(format_game(build_seat("anna", 1), build_seat("anna", 2))),
    "place-missing": Case(format_game(build_seat("anna", 1), build_seat("ben"))),
    "schedule-exists": Case(
        format_event(type="list.scheduled", data={"ladder": "catan-monthly/7/basic/2010-03", "every": "month"})
    ),
    "score-missing": Case(b"", command=("record", "--game", "catan", "--game-id", "g-2", "anna:3", "ben")),
    "place-gap": Case(format_game(build_seat("anna", 1), build_seat("ben", 3))),
    "score-contradicts-place": Case(format_game(build_seat("anna", 1, score=5), build_seat("ben", 2, score=6))),
    "substitute-without-leaver": Case(format_game(build_seat("anna", 1), build_seat("ben", 2, status="substitute"))),
    "leaver-replaced-twice": Case(
        format_game(
            build_seat("anna", 1),
            build_seat("ben", 2, status="abandoned"),
            build_seat("cleo", 2, status="substitute", replaces="ben"),
            build_seat("dora", 2, status="substitute", replaces="ben"),
        )
    ),
    "seat-disagrees": Case(
        format_game(
            build_seat("anna", 1),
            build_seat("ben", 3, status="abandoned"),
            build_seat("cleo", 2, status="substitute", replaces="ben"),
        )
    ),
    "team-missing": Case(format_game(build_seat("anna", 1, team=1), build_seat("ben", 2))),
    "side-disagrees": Case(
        format_game(build_seat("anna", 1, team=1), build_seat("ben", 2, team=1), build_seat("cleo", 3, team=2))
    ),
    "one-side": Case(format_game(build_seat("anna", 1, team=1), build_seat("ben", 1, team=1))),
    "two-homes": Case(format_game(build_seat("anna", 1, home=True), build_seat("ben", 2, home=True))),
    "number-twice": Case(format_game(build_seat("anna", 1, numbers={"n": 1}), build_seat("ben", 2), numbers={"n": 1})),
    "b5-too-few-players": Case(format_b5_game(0, 1)),
    "referee-plays": Case(format_b5_game(0, 1, 0, referee="cleo")),
    "victory-points-total": Case(format_b5_game(0, 1, 0, within_time=True)),
    "victory-points-all-kept": Case(format_b5_game(1, 0, 0)),
    "battle-sides": Case(format_battle("anna red", "ben blue", "cleo green")),
    "units-lost-exceed": Case(format_battle("anna red 1 2", "ben blue")),
    "kills-without-losses": Case(format_battle("anna red 1 0 1", "ben blue")),
    "power-twice": Case(format_diplomacy_game(*POWERS, "Italy", y1901={"Italy": 5})),
    "power-missing": Case(format_diplomacy_game(*POWERS[:6], y1901={"Italy": 5})),
    "years-not-gapless": Case(format_diplomacy_game(*POWERS, y1901={"Italy": 5}, y1903={"Italy": 5})),
    "too-many-centres": Case(format_diplomacy_game(*POWERS, y1901={"Italy": 18, "France": 17})),
    "close-name": Case(build_table("g-2,2024-01-01T12:00:00Z,catan,Anna,1", "g-2,2024-01-01T12:00:00Z,catan,cleo,2")),
    "tied-players": Case(
        build_table("g-2,2024-01-01T12:00:00Z,catan,cleo & dora,1", "g-2,2024-01-01T12:00:00Z,catan,ben,2")
    ),
    "nobody": Case(build_table("g-2,2024-01-01T12:00:00Z,catan,BYE,1", "g-2,2024-01-01T12:00:00Z,catan,ben,2")),
    "new-player": Case(None, command=("record", "--strict", "--game", "catan", "--game-id", "g-2", "anna", "dora")),
    "new-ladder": Case(
        None,
        command=(
            "record",
            "--strict",
            "--game",
            "catan",
            "--game-id",
            "g-2",
            "--group",
            "other",
            "anna",
            "ben",
            "cleo",
        ),
    ),
    "unlikely-date": Case(format_game().replace(b"2024-", b"0024-")),
    "id-conflict": Case(format_game(game_id="g-1", rated=False)),
    "game-exists": Case(format_game(game_id="g-1").replace(b'{"type"', b'{"id":"other","type"')),
    "uncounted": Case(format_ruleset(rule="picky/1", effective_from="2000-01-01") + b"\n" + format_game(game="chess")),
    "score-too-fine": Case(
        format_measured_game(build_seat("anna", 1, score="7.5"), build_seat("ben", 2, score=3), numbers={"length": 5})
    ),
    "number-out-of-range": Case(
        format_measured_game(build_seat("anna", 1, score=7), build_seat("ben", 2, score=3), numbers={"length": 10})
    ),
    "no-teams": Case(
        format_game(
            build_seat("anna", 1, team="reds"),
            build_seat("ben", 1, team="reds"),
            build_seat("cleo", 3, team=2),
            group="basic",
        )
    ),
    "number-missing": Case(format_measured_game(build_seat("anna", 1, score=7), build_seat("ben", 2, score=3))),
    "unknown-ladder": Case(format_adjustment("club-catan-elo/9-10", "5")),
    "finer-than-scale": Case(format_adjustment("club-catan-elo/all", "0.0000001")),
    "seed-column": Case(format_seed("anna", rating="1650")),
    "seed-late": Case(join_events(format_game(group="basic"), format_seed("anna", points="1650"))),
    "seed-exists": Case(join_events(format_seed("zoe", points="1"), format_seed("zoe", points="2"))),
    "seed-of-club": Case(
        format_ruleset(
            id="makers",
            entrant="club",
            rule="sum-of-squares/1",
            scope={"game": ["diplomacy"], "kind": ["diplomacy"]},
            effective_from="2000-01-01",
            params={},
        )
        + b"\n"
        + format_seed("Lotus", "makers", points="1")
    ),
    "seeds-differ": Case(
        join_events(format_seed("zoe", points="1"), format_seed("yan", points="2"), format_rename("zoe", "yan"))
    ),
    "bad-ruleset": Case(format_ruleset(rule="pairwise-elo/99")),
    "version-exists": Case(format_ruleset() + b"\n" + format_ruleset(params={"k_total": 9})),
    "partition-changed": Case(format_ruleset() + b"\n" + format_ruleset(version="2", partition={"by": ["city"]})),
    "ladder-not-adjustable": Case(format_adjustment("catan-monthly/7/basic/2010-03", "5")),
    "league-exists": Case(join_events(format_league(), format_league(players_per_game=4))),
    "league-unscored": Case(b"", command=("league", "create", "L9", "--game", "go", "--players-per-game", "2")),
    "league-unknown": Case(format_join("anna")),
    "league-joined": Case(
        join_events(format_league(), format_join("anna"), format_join("anna").replace(b"12:00", b"13:00"))
    ),
    "league-full": Case(format_full_league(format_join("i"))),
    "league-not-full": Case(join_events(format_league(), format_join("a"), format_schedule("x"))),
    "league-scheduled": Case(format_full_league(format_schedule("x"), format_schedule("y"))),
    "bad-schedule": Case(format_full_league(format_schedule("x", 55))),
    "not-active": Case(join_events(format_league(game="cartagena"), format_join("anna"))),
    "not-scheduled": Case(join_events(format_league(game="catan"), format_game(league="L1"))),
    "not-as-scheduled": Case(join_events(format_league(), format_game(league="L1"))),
    "clock-not-started": Case(format_clock("heartbeat 5 anna").partition(b"\n")[2]),
    "clock-started-twice": Case(format_clock("started 5")),
    "clock-stopped": Case(format_clock("stopped 5", "heartbeat 6 anna")),
    "clock-time-backwards": Case(format_clock("heartbeat 5 anna", "heartbeat 4 anna")),
    "clock-paused": Case(
        format_clock(
            "pause_asked 5 anna", "pause_answered 6 ben answer=yes", "turn_ended 7", "offered 8 anna choice=fortune"
        )
    ),
    "clock-player-unknown": Case(format_clock("heartbeat 5 zoe")),
    "clock-player-out": Case(format_clock("player_left 5 anna", "heartbeat 6 anna")),
    "clock-choice-open": Case(format_clock("offered 5 anna choice=fortune", "offered 6 anna choice=fortune")),
    "clock-choice-missing": Case(format_clock("decided 5 anna")),
    "clock-time-short": Case(
        format_clock(
            "offered 0 anna choice=fortune",
            "heartbeat 30000 anna",
            "heartbeat 60000 anna",
            "heartbeat 90000 anna",
            "auction_started 110000 anna",
        )
    ),
    "clock-pause-open": Case(format_clock("pause_asked 5 anna", "pause_asked 6 ben")),
    "clock-no-question": Case(format_clock("pause_answered 5 ben answer=yes")),
    "clock-not-paused": Case(format_clock("resume_asked 5 ben")),
    "game-unknown": Case(format_correction("g-9")),
    "game-voided": Case(join_events(format_decision("game.voided", "g-1"), format_correction("g-1"))),
    "game-live": Case(format_decision("game.reinstated", "g-1")),
    "nothing-to-correct": Case(None, command=("correct", "g-1", "anna", "ben", "--reason", "looked at it again")),
    "game-id-changed": Case(format_correction("g-1", new_id="g-2")),
    "event-unknown": Case(format_withdrawal("player:nobody")),
    "event-of-game": Case(format_withdrawal("game:g-1")),
    "event-voided": Case(
        join_events(format_event(id="joined"), format_withdrawal("joined"), format_withdrawal("joined", "once more"))
    ),
    "still-needed": Case(
        join_events(format_ruleset(), format_adjustment("chess", "5"), format_withdrawal("chess-1")).replace(
            b'{"type": "ruleset.published"', b'{"id": "chess-1", "type": "ruleset.published"'
        )
    ),
    "changed-in-both": Case(build_sheet("g-0"), ("--sync", "--yes")),
    "not-confirmed": Case(build_sheet(*SHEET_GAMES), ("--sync",)),
    "changed-meanwhile": Case(None, command=("void", "g-1", "--expect", "1", "--reason", "never played")),
    "list-running": Case(None, command=("publish", "catan-monthly/7/basic/9999-01")),
    "period-open": Case(None, command=("publish", "fide")),
    "list-empty": Case(None, command=("publish", "catan-monthly/7/basic/2001-01")),
    "list-exists": Case(format_published_lists("12", "13")),
    "bad-batch": Case(
        format_event(
            type="import.recorded",
            position=25,
            data={
                "name": "a.csv",
                "ranges": [[1, 25]],
                "source": "a.csv",
                "sha256": "0" * 64,
            },
        )
    ),
    "batch-unknown": Case(None, command=("void", "--batch", "a.csv", "--reason", "wrong")),
    "nothing-to-undo": Case(None, command=("undo", "--by", "nobody", "--yes")),
    "never-undone": Case(None, command=("undo", "1", "--yes")),
    "changed-since": Case(None, command=("undo", "21", "--yes")),
    "undone-already": Case(None, command=("undo", "23", "--yes")),
    "bad-list": Case(format_published_lists("12").split(b"\n")[1]),
    "player-unknown": Case(format_rename("zoe", "anna")),
    "club-unknown": Case(format_event(type="club.renamed", data={"club": "Lotus", "new_club": "Team Lotus"})),
    "renamed-already": Case(join_events(format_rename("anna", "anne"), format_rename("anna", "annette"))),
    "rename-loop": Case(join_events(format_rename("anna", "anne"), format_rename("anne", "anna"))),
    "players-met": Case(format_rename("anna", "ben")),
    "restore-mismatch": Case(
        b'{"by":"r","data":{"player":"anna"},"id":"x","occurred_at":"2024-01-01T12:00:00.000000Z","position":2,'
        b'"recorded_at":"2024-01-01T12:00:00.000000Z","schema_version":1,"type":"player.registered"}\n',
        ("--restore",),
    ),
    "end-missing": Case(
        b'{"by":"r","data":{"player":"anna"},"id":"x","occurred_at":"2024-01-01T12:00:00.000000Z","position":1,'
        b'"recorded_at":"2024-01-01T12:00:00.000000Z","schema_version":1,"type":"player.registered"}\n',
        ("--restore",),
    ),
    "bad-alias": Case(b"ana anna\n", ("--aliases", "FILE")),
    "bad-profile": Case(b"sheet = 3\n", ("--profile", "FILE")),
    "end-mismatch": Case(b'{"end":2,"head":"2:' + b"a" * 64 + b'"}\n'),
}


def test_every_code_has_a_case() -> None:
    """Every rejection code has a case, and every case is about a rejection code."""
    assert sorted(CODES.keys() - CASES.keys()) == []
    assert sorted(CASES.keys() - CODES.keys()) == []


def test_codes_are_hyphenated_words() -> None:
    """Rejection codes are lower-case hyphenated words with a meaning."""
    assert all(code.replace("-", "").isalnum() and code == code.lower() and meaning for code, meaning in CODES.items())


def make_game_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the shipped rulesets and the games that most cases refer to."""
    make_ruled_ledger(ratings, url)
    assert ratings("import", "-", db=url, input=RECORDED_GAME).exit_code == 0
    # the games at positions 21 and 23 are corrected and voided
    for name in ("h-8", "h-9"):
        recorded = ("record", "--game", "catan", "--game-id", name, "kurt", "lena", "--new-names", "accept")
        assert ratings(*recorded, db=url).exit_code == 0
        change = ("correct", name, "lena", "kurt") if name == "h-8" else ("void", name)
        assert ratings(*change, "--reason", "wrong", db=url).exit_code == 0


def make_sheet_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the games of a sheet, one of which is voided."""
    make_ruled_ledger(ratings, url)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        file.write_bytes(build_sheet("g-0", *SHEET_GAMES, players="anna,ben"))
        assert ratings("import", file, db=url).exit_code == 0
    assert ratings("void", "g-0", "--reason", "a friendly", db=url).exit_code == 0


def make_open_month_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with a game between rated players in a month that has not ended."""
    assert ratings("init", "--for", "go", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "fide", db=url).exit_code == 0
    for player in ("anna", "ben"):
        seed = ("seed", "fide", player, "rating=1650", "--reason", "rated elsewhere")
        assert ratings(*seed, db=url).exit_code == 0
    assert ratings("record", "--game", "chess", "--game-id", "g-1", "anna", "ben", db=url).exit_code == 0


def raise_memory_error(_: object) -> None:
    """Fail like the reader of a file that does not fit in memory."""
    raise MemoryError


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_rejection_names_code_file_and_line(
    code: str,
    copy_ledger_file: Callable[..., str],
    tmp_path: Path,
    ratings: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each bad input is refused with its code, file and line, and nothing is appended."""
    case = CASES[code]
    # the ledger is made before the test replaces rules and readers, because other cases copy the same ledger
    make = make_empty_ledger if "--restore" in case.arguments else make_game_ledger
    make = make_open_month_ledger if code == "period-open" else make
    db = copy_ledger_file(make_sheet_ledger if "--sync" in case.arguments else make)
    substitute_rule(monkeypatch, PICKY)
    entry_points = [PickyEntry("picky", "here", "ratings.readers")] if code == "bad-reader" else []
    monkeypatch.setattr(readers, "entry_points", lambda group: entry_points)
    if code == "file-too-large":
        monkeypatch.setattr(readers, "read_json_lines", raise_memory_error)
    path = tmp_path / "input"
    if case.content is None:
        path.mkdir()
    else:
        path.write_bytes(case.content)
    status_before = json.loads(ratings("status", "--format", "json", db=db).stdout)

    arguments = (path if argument == "FILE" else argument for argument in case.arguments)
    result = ratings(*(case.command or ("import", path, *arguments)), "--format", "json", db=db)

    summary = json.loads(result.stdout)
    assert [rejection["code"] for rejection in summary["rejected"]] == [*case.before, code], summary["rejected"]
    if not case.command:
        assert summary["rejected"][-1]["file"] == str(path)
        assert summary["rejected"][-1]["line"] == REJECTED_LINES.get(code, 1)
    assert summary["rejected"][-1]["message"].isprintable()
    assert (result.exit_code, summary["appended"], summary["existing"]) == (1, 0, 0)
    assert json.loads(ratings("status", "--format", "json", db=db).stdout) == status_before


# the line that a rejection names, if it is not the first; None: the file as a whole
REJECTED_LINES = {
    "unclear-layout": 4,
    **dict.fromkeys(("winner-not-in-row", "others-unknown", "results-disagree", "result-became-date"), 2),
    "unknown-game": 2,
    **dict.fromkeys(("is-a-directory", "file-too-large", "empty-file", "bad-gzip", "end-missing")),
    **dict.fromkeys(("another-sheet", "not-confirmed")), "changed-in-both": 2,
    **dict.fromkeys(("is-a-spreadsheet", "bad-spreadsheet", "which-sheet", "bad-reader")),
    "bad-cell": 2, "close-name": 2, "nobody": 2, "tied-players": 2,
    "bad-csv": 4, "line-break": 4, "game-incomplete": 5,
    "rows-apart": 6, "row-length": 4, "rows-disagree": 2, "ambiguous-time": 2, "nonexistent-time": 2,
    "score-too-fine": 2, "number-out-of-range": 2, "number-missing": 2,
    "uncounted": 2, "version-exists": 2, "partition-changed": 2, "game-voided": 2, "event-voided": 3, "still-needed": 3,
    "seed-late": 2, "seed-exists": 2, "seed-of-club": 2, "seeds-differ": 3,
    "renamed-already": 2, "rename-loop": 2, "league-exists": 2, "list-exists": 4,
    "league-joined": 3, "league-full": 10, "league-not-full": 3, "league-scheduled": 11, "bad-schedule": 10,
    "not-active": 2, "not-scheduled": 2, "not-as-scheduled": 2,
    "clock-started-twice": 2, "clock-stopped": 3, "clock-time-backwards": 3, "clock-paused": 5,
    "clock-player-unknown": 2, "clock-player-out": 3, "clock-choice-open": 3, "clock-choice-missing": 2,
    "clock-time-short": 6, "clock-pause-open": 3, "clock-no-question": 2, "clock-not-paused": 2,
}  # fmt: skip


class PickyEntry(EntryPoint):
    """An entry point of another package for an object that is not a reader."""

    def load(self) -> Any:
        return PICKY
