"""Every code of a rejection, with an input that produces it through the command line; nothing is ever appended."""

import gzip
import hashlib
import json
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from sheet_files import ERROR, xlsx
from stores import make_empty_ledger, make_ruled_ledger

from ratings_ledger.ledger.intake import readers
from ratings_ledger.ledger.rejections import CODES
from ratings_ledger.ledger.validation.leagues import draw_schedule
from ratings_ledger.projections.rules.pairwise_elo import RULE
from ratings_ledger.projections.rulesets import registry

PICKY = RULE._replace(name="picky", check=lambda n, columns, params: "it is Monday")


class Case(NamedTuple):
    """The content of a file (None: a folder), and further arguments of `ratings import`, of which FILE is that file; or
    another command. And the codes of what is refused before it, without which there is no such refusal."""

    content: bytes | None
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def line(**members: Any) -> bytes:
    """An event as one line: a registered player with other members; None leaves one out."""
    event = {"type": "player.registered", "occurred_at": "2024-01-01T12:00:00Z", "data": {"player": "anna"}, **members}
    return json.dumps({name: value for name, value in event.items() if value is not None}).encode()


def game(*participants: dict[str, Any], **members: Any) -> bytes:
    """A game as one line; without participants, anna beats ben."""
    given = list(participants) or [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    return line(type="game.recorded", data={"game_id": "g-2", "game": "catan", "participants": given, **members})


def seat(player: str, place: int | None = None, **members: Any) -> dict[str, Any]:
    """A participant."""
    return {"player": player, **({} if place is None else {"place": place}), **members}


def b5(*vps: int, **members: Any) -> bytes:
    """A game of kind b5 as one line, won by anna before ben and the others, who get these victory points."""
    players = ("anna", "ben", "cleo", "dora")
    seats = [seat(players[i], power=9 - i, influence=0, vp=vp) for i, vp in enumerate(vps)]
    return game(*seats, kind="b5", **members)


def battle(*players: str) -> bytes:
    """A game of kind battle as one line, each player with side, units, losses and kills: `battle("anna red 1 0 1")`."""
    seats = []
    for player in players:
        name, side, *counts = player.split()
        seats.append(
            seat(name, side=side, **dict(zip(("units", "units_lost", "kills"), map(int, counts), strict=False)))
        )
    return game(*seats, kind="battle")


def diplomacy(*powers: str, **held: dict[str, int]) -> bytes:
    """A game of kind diplomacy as one line: the players of these powers, and centres: `y1901={"Italy": 5}`."""
    centres = {year.removeprefix("y"): centres for year, centres in held.items()}
    return game(
        *(seat(f"p{number}", power=power) for number, power in enumerate(powers)), kind="diplomacy", centres=centres
    )


def ruleset(**members: Any) -> bytes:
    """A published ruleset as one line."""
    given = {
        "id": "chess",
        "version": "1",
        "rule": "pairwise-elo/1",
        "scope": {"game": ["chess"]},
        "params": {"k_total": 8},
    }
    return line(type="ruleset.published", data={**given, **members})


def measured(*participants: dict[str, Any], **members: Any) -> bytes:
    """A ruleset that reads scores in whole points and needs `numbers.length` of 1 to 9, and a game that it scores."""
    limits = {"length": {"min": 1, "max": 9, "absent": "refuse"}}
    reads = {"rule": "pairwise-elo/2", "effective_from": "2000-01-01", "params": {"margin": "ln"}, "numbers": limits}
    return ruleset(**reads) + b"\n" + game(*participants, game="chess", **members)


def adjusted(ladder: str, points: str) -> bytes:
    """An adjustment as one line."""
    data = {"ladder": ladder, "player": "anna", "points": points, "reason": "late arrival"}
    return line(type="points.adjusted", data=data)


def seeded(player: str, ladder: str = "catan-elo/basic", **state: str) -> bytes:
    """A seed as one line."""
    return line(type="player.seeded", data={"ladder": ladder, "player": player, "state": state})


def created(**members: Any) -> bytes:
    """A created league as one line."""
    return line(type="league.created", data={"league": "L1", "game": "chess", "players_per_game": 2, **members})


def joined(player: str, **members: Any) -> bytes:
    """Somebody in the league as one line."""
    return line(type="league.joined", data={"league": "L1", "player": player, **members})


def scheduled(seed: str, games: int = 56) -> bytes:
    """The first so many games of the league, drawn with a seed, as one line."""
    drawn = draw_schedule(list("abcdefgh"), 2, seed)
    told = [{"game_id": f"L1-{number}", "seats": seats} for number, seats in enumerate(drawn[:games])]
    return line(type="league.scheduled", data={"league": "L1", "seed": seed, "games": told})


def full(*more: bytes) -> bytes:
    """A league with all its players, and what comes then."""
    return lines(created(), *map(joined, "abcdefgh"), *more)


def clock(*steps: str) -> bytes:
    """The clock of a game as lines, each step a type, a time and its members: `offered 5 anna choice=fortune`."""
    told = []
    for step in ("started 0", *steps):
        name, at, *more = step.split()
        members: dict[str, Any] = {"players": ["anna", "ben"]} if name == "started" else {}
        for part in more:
            member, _, value = part.rpartition("=")
            members[member or "player"] = value
        told.append(line(type=f"clock.{name}", data={"game_id": "g-1", "at": int(at), **members}))
    return lines(*told)


def listed(*hours: str) -> bytes:
    """A list published at each of these hours as lines: its one row, and its head."""
    rows = [{"games": 1, "player": "anna", "points": "1004", "qualified": True, "rank": 1}]
    content = json.dumps({"rows": rows, "ruleset": "catan-elo@2009-01"}, sort_keys=True, separators=(",", ":"))
    name = {"ladder": "catan-elo/basic", "digest": f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"}
    head = {**name, "known_at": 16, "ruleset": "catan-elo@2009-01", "row_count": 1, "parts": 1}
    events = []
    for hour in hours:
        at = f"2024-01-01T{hour}:00:00Z"
        events.append(line(type="list.rows", data={**name, "part": 1, "parts": 1, "rows": rows}, occurred_at=at))
        events.append(line(type="list.published", data=head, occurred_at=at))
    return lines(*events)


def lines(*events: bytes) -> bytes:
    """Events one a line; the last is the one that is refused."""
    return b"\n".join(events)


def about(type_name: str, game_id: str, reason: str = "wrong") -> bytes:
    """An event that voids or reinstates a game as one line."""
    return line(type=type_name, data={"game_id": game_id, "reason": reason})


def corrected(game_id: str, now: str | None = None) -> bytes:
    """A correction of a game as one line: ben won; `now` is the game's id in its corrected data."""
    given = {"game_id": now or game_id, "game": "catan", "participants": [seat("ben", 1), seat("anna", 2)]}
    return line(type="game.corrected", data={"game_id": game_id, "reason": "wrong way round", "game": given})


def withdrawn(event_id: str, reason: str = "wrong") -> bytes:
    """An event that withdraws another as one line."""
    return line(type="event.voided", data={"id": event_id, "reason": reason})


def renamed(player: str, new_player: str) -> bytes:
    """A rename as one line."""
    return line(type="player.renamed", data={"player": player, "new_player": new_player})


def table(*rows: str, header: str = "game_id,occurred_at,game,player,place") -> bytes:
    """A CSV file of these rows."""
    return "\n".join((header, *rows, "")).encode()


def sheet(*games: str, players: str = "ben,anna") -> bytes:
    """A table of games that all ended alike."""
    return table(*(f"{name},2024-01-01T12:00:00Z,catan,{players}" for name in games), header=f"{NAMES},1st,2nd")


NAMES = "game_id,occurred_at,game"
SHEET = [f"g-{number}" for number in range(1, 13)]
RECORDED = game(game_id="g-1") + b"\n"
ANNA, BEN = "g-2,2024-01-01T12:00:00Z,catan,anna,1", "g-2,2024-01-01T12:00:00Z,catan,ben,2"
BERLIN = ("--zone", "Europe/Berlin")
POWERS = ("Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey")

CASES = {
    "is-a-directory": Case(None),
    "empty-file": Case(b" \n\n"),
    "file-too-large": Case(line()),
    "bad-gzip": Case(gzip.compress(line(), mtime=0)[:-4]),
    "too-many-blank-lines": Case(b"\n" * 100_001 + line()),
    "bad-utf8": Case(line().replace(b"anna", b"\xff\xfe")),
    "bad-json": Case(line()[:-1]),
    "is-a-spreadsheet": Case(b"\xd0\xcf\x11\xe0" + bytes(100)),
    "bad-spreadsheet": Case(b"PK\x03\x04" + bytes(100)),
    "which-sheet": Case(xlsx([["Date"]], ("More", "visible", [["Date"]]))),
    "bad-cell": Case(xlsx([["Date", "1st", "2nd"], ["2024-11-22", "anna", ERROR]]), ("--set", "game=catan")),
    "bad-reader": Case(table(ANNA, BEN)),
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
    "bad-csv": Case(table(ANNA, BEN, 'g-2,2024-01-01T12:00:00Z,catan,"cleo"x,3')),
    "line-break": Case(table(ANNA, BEN, BEN.replace("ben", '"cleo\ndora"'))),
    "column-twice": Case(table(ANNA, BEN, header="game_id,occurred_at,game,player,player")),
    "game-incomplete": Case(
        table(ANNA, BEN, BEN + ",x", ANNA.replace("g-2", "g-3"), BEN.replace("g-2", "g-3")), before=("row-length",)
    ),
    "line-too-long": Case(b'{"type":"' + b"x" * (1 << 20) + b'"}'),
    "duplicate-key": Case(line().replace(b'{"type"', b'{"type":"x","type"')),
    "lone-surrogate": Case(line().replace(b"anna", b"\\ud800")),
    "not-a-finite-number": Case(game(extra=None).replace(b'"place": 2', b'"place": NaN')),
    "not-an-integer": Case(game(seat("anna", 1), seat("ben", 2, seat="2"))),
    "integer-too-large": Case(game(seat("anna", score=12345678901234567890), seat("ben", score=1))),
    "unknown-column": Case(table(ANNA + ",x", BEN + ",x", header="game_id,occurred_at,game,player,place,fee")),
    "missing-column": Case(table("g-2,catan,anna,1", header="game_id,game,player,place")),
    "not-a-table": Case(RECORDED, ("--sync",)),
    "another-sheet": Case(sheet("g-99"), ("--sync", "--yes")),
    "rows-apart": Case(table(ANNA, BEN, ANNA.replace("g-2", "g-3"), BEN.replace("g-2", "g-3"), ANNA, BEN)),
    "row-length": Case(table(ANNA, BEN, BEN.replace("ben", "cleo") + ",x")),
    "rows-disagree": Case(table(ANNA, BEN.replace("catan", "chess"))),
    "unknown-type": Case(line(type="player.exiled")),
    "unknown-kind": Case(game(kind="auction")),
    "unknown-member": Case(game(colour="red")),
    "missing-member": Case(line(occurred_at=None)),
    "wrong-type": Case(line(data=["anna"])),
    "bad-value": Case(game(score_order="middle")),
    "out-of-range": Case(game(seat("anna", 0), seat("ben", 1))),
    "bad-time": Case(line(occurred_at="2024-02-30T12:00:00Z")),
    "naive-time": Case(line(occurred_at="2024-01-01T12:00:00")),
    "ambiguous-time": Case(table(ANNA.replace("2024-01-01T12:00:00Z", "2010-10-31 02:30")), BERLIN),
    "nonexistent-time": Case(table(ANNA.replace("2024-01-01T12:00:00Z", "2010-03-28 02:30")), BERLIN),
    "unknown-game": Case(b"game_id,occurred_at,game,1st,2nd\ng-9,2024-11-22,cattan,anna,ben\n"),
    "unknown-zone": Case(ruleset(time_zone="Europe/Atlantis")),
    "bad-identifier": Case(game(seat("an/na", 1), seat("ben", 2))),
    "bad-slug": Case(game(game="Catan")),
    "bad-decimal": Case(game(seat("anna", score="ten"), seat("ben", score=1))),
    "bad-text": Case(adjusted("club-catan-elo/all", "5").replace(b"late arrival", b"")),
    "record-too-large": Case(game(extra={"notes": "x" * 65_535})),
    "unknown-schema-version": Case(line(schema_version=2)),
    "too-few-participants": Case(game(seat("anna", 1))),
    "player-twice": Case(game(seat("anna", 1), seat("anna", 2))),
    "place-missing": Case(game(seat("anna", 1), seat("ben"))),
    "schedule-exists": Case(
        line(type="list.scheduled", data={"ladder": "catan-monthly/7/basic/2010-03", "every": "month"})
    ),
    "score-missing": Case(b"", command=("record", "--game", "catan", "--game-id", "g-2", "anna:3", "ben")),
    "place-gap": Case(game(seat("anna", 1), seat("ben", 3))),
    "score-contradicts-place": Case(game(seat("anna", 1, score=5), seat("ben", 2, score=6))),
    "substitute-without-leaver": Case(game(seat("anna", 1), seat("ben", 2, status="substitute"))),
    "leaver-replaced-twice": Case(game(
        seat("anna", 1), seat("ben", 2, status="abandoned"),
        seat("cleo", 2, status="substitute", replaces="ben"), seat("dora", 2, status="substitute", replaces="ben"),
    )),
    "seat-disagrees": Case(game(
        seat("anna", 1), seat("ben", 3, status="abandoned"), seat("cleo", 2, status="substitute", replaces="ben"),
    )),
    "team-missing": Case(game(seat("anna", 1, team=1), seat("ben", 2))),
    "side-disagrees": Case(game(seat("anna", 1, team=1), seat("ben", 2, team=1), seat("cleo", 3, team=2))),
    "one-side": Case(game(seat("anna", 1, team=1), seat("ben", 1, team=1))),
    "two-homes": Case(game(seat("anna", 1, home=True), seat("ben", 2, home=True))),
    "number-twice": Case(game(seat("anna", 1, numbers={"n": 1}), seat("ben", 2), numbers={"n": 1})),
    "b5-too-few-players": Case(b5(0, 1)),
    "referee-plays": Case(b5(0, 1, 0, referee="cleo")),
    "victory-points-total": Case(b5(0, 1, 0, within_time=True)),
    "victory-points-all-kept": Case(b5(1, 0, 0)),
    "battle-sides": Case(battle("anna red", "ben blue", "cleo green")),
    "units-lost-exceed": Case(battle("anna red 1 2", "ben blue")),
    "kills-without-losses": Case(battle("anna red 1 0 1", "ben blue")),
    "power-twice": Case(diplomacy(*POWERS, "Italy", y1901={"Italy": 5})),
    "power-missing": Case(diplomacy(*POWERS[:6], y1901={"Italy": 5})),
    "years-not-gapless": Case(diplomacy(*POWERS, y1901={"Italy": 5}, y1903={"Italy": 5})),
    "too-many-centres": Case(diplomacy(*POWERS, y1901={"Italy": 18, "France": 17})),
    "close-name": Case(table("g-2,2024-01-01T12:00:00Z,catan,Anna,1", "g-2,2024-01-01T12:00:00Z,catan,cleo,2")),
    "tied-players": Case(table("g-2,2024-01-01T12:00:00Z,catan,cleo & dora,1", "g-2,2024-01-01T12:00:00Z,catan,ben,2")),
    "nobody": Case(table("g-2,2024-01-01T12:00:00Z,catan,BYE,1", "g-2,2024-01-01T12:00:00Z,catan,ben,2")),
    "new-player": Case(
        None, command=("record", "--strict", "--game", "catan", "--game-id", "g-2", "anna", "dora")
    ),
    "new-ladder": Case(
        None, command=("record", "--strict", "--game", "catan", "--game-id", "g-2", "--group", "other", "anna", "ben",
                       "cleo")
    ),
    "unlikely-date": Case(game().replace(b"2024-", b"0024-")),
    "id-conflict": Case(game(game_id="g-1", rated=False)),
    "game-exists": Case(game(game_id="g-1").replace(b'{"type"', b'{"id":"other","type"')),
    "uncounted": Case(ruleset(rule="picky/1", effective_from="2000-01-01") + b"\n" + game(game="chess")),
    "score-too-fine": Case(
        measured(seat("anna", 1, score="7.5"), seat("ben", 2, score=3), numbers={"length": 5})
    ),
    "number-out-of-range": Case(measured(seat("anna", 1, score=7), seat("ben", 2, score=3), numbers={"length": 10})),
    "no-teams": Case(
        game(
            seat("anna", 1, team="reds"), seat("ben", 1, team="reds"), seat("cleo", 3, team=2), group="basic"
        )
    ),
    "number-missing": Case(measured(seat("anna", 1, score=7), seat("ben", 2, score=3))),
    "unknown-ladder": Case(adjusted("club-catan-elo/9-10", "5")),
    "finer-than-scale": Case(adjusted("club-catan-elo/all", "0.0000001")),
    "seed-column": Case(seeded("anna", rating="1650")),
    "seed-late": Case(lines(game(group="basic"), seeded("anna", points="1650"))),
    "seed-exists": Case(lines(seeded("zoe", points="1"), seeded("zoe", points="2"))),
    "seed-of-club": Case(ruleset(
        id="makers", entrant="club", rule="sum-of-squares/1", scope={"game": ["diplomacy"], "kind": ["diplomacy"]},
        effective_from="2000-01-01", params={},
    ) + b"\n" + seeded("Lotus", "makers", points="1")),
    "seeds-differ": Case(lines(seeded("zoe", points="1"), seeded("yan", points="2"), renamed("zoe", "yan"))),
    "bad-ruleset": Case(ruleset(rule="pairwise-elo/99")),
    "version-exists": Case(ruleset() + b"\n" + ruleset(params={"k_total": 9})),
    "partition-changed": Case(ruleset() + b"\n" + ruleset(version="2", partition={"by": ["city"]})),
    "ladder-not-adjustable": Case(adjusted("catan-monthly/7/basic/2010-03", "5")),
    "league-exists": Case(lines(created(), created(players_per_game=4))),
    "league-unscored": Case(
        b"", command=("league", "create", "L9", "--game", "go", "--players-per-game", "2")
    ),
    "league-unknown": Case(joined("anna")),
    "league-joined": Case(lines(created(), joined("anna"), joined("anna").replace(b"12:00", b"13:00"))),
    "league-full": Case(full(joined("i"))),
    "league-not-full": Case(lines(created(), joined("a"), scheduled("x"))),
    "league-scheduled": Case(full(scheduled("x"), scheduled("y"))),
    "bad-schedule": Case(full(scheduled("x", 55))),
    "not-active": Case(lines(created(game="cartagena"), joined("anna"))),
    "not-scheduled": Case(lines(created(game="catan"), game(league="L1"))),
    "not-as-scheduled": Case(lines(created(), game(league="L1"))),
    "clock-not-started": Case(clock("heartbeat 5 anna").partition(b"\n")[2]),
    "clock-started-twice": Case(clock("started 5")),
    "clock-stopped": Case(clock("stopped 5", "heartbeat 6 anna")),
    "clock-time-backwards": Case(clock("heartbeat 5 anna", "heartbeat 4 anna")),
    "clock-paused": Case(clock("pause_asked 5 anna", "pause_answered 6 ben answer=yes", "turn_ended 7",
                               "offered 8 anna choice=fortune")),
    "clock-player-unknown": Case(clock("heartbeat 5 zoe")),
    "clock-player-out": Case(clock("player_left 5 anna", "heartbeat 6 anna")),
    "clock-choice-open": Case(clock("offered 5 anna choice=fortune", "offered 6 anna choice=fortune")),
    "clock-choice-missing": Case(clock("decided 5 anna")),
    "clock-time-short": Case(clock("offered 0 anna choice=fortune", "heartbeat 30000 anna", "heartbeat 60000 anna",
                                   "heartbeat 90000 anna", "auction_started 110000 anna")),
    "clock-pause-open": Case(clock("pause_asked 5 anna", "pause_asked 6 ben")),
    "clock-no-question": Case(clock("pause_answered 5 ben answer=yes")),
    "clock-not-paused": Case(clock("resume_asked 5 ben")),
    "game-unknown": Case(corrected("g-9")),
    "game-voided": Case(lines(about("game.voided", "g-1"), corrected("g-1"))),
    "game-live": Case(about("game.reinstated", "g-1")),
    "nothing-to-correct": Case(None, command=("correct", "g-1", "anna", "ben", "--reason", "looked at it again")),
    "game-id-changed": Case(corrected("g-1", now="g-2")),
    "event-unknown": Case(withdrawn("player:nobody")),
    "event-of-game": Case(withdrawn("game:g-1")),
    "event-voided": Case(lines(line(id="joined"), withdrawn("joined"), withdrawn("joined", "once more"))),
    "still-needed": Case(lines(ruleset(), adjusted("chess", "5"), withdrawn("chess-1")).replace(
        b'{"type": "ruleset.published"', b'{"id": "chess-1", "type": "ruleset.published"'
    )),
    "changed-in-both": Case(sheet("g-0"), ("--sync", "--yes")),
    "not-confirmed": Case(sheet(*SHEET), ("--sync",)),
    "changed-meanwhile": Case(None, command=("void", "g-1", "--expect", "1", "--reason", "never played")),
    "list-running": Case(None, command=("publish", "catan-monthly/7/basic/9999-01")),
    "period-open": Case(None, command=("publish", "fide")),
    "list-empty": Case(None, command=("publish", "catan-monthly/7/basic/2001-01")),
    "list-exists": Case(listed("12", "13")),
    "bad-batch": Case(line(type="import.recorded", position=25, data={
        "name": "a.csv", "ranges": [[1, 25]], "source": "a.csv", "sha256": "0" * 64,
    })),
    "batch-unknown": Case(None, command=("void", "--batch", "a.csv", "--reason", "wrong")),
    "nothing-to-undo": Case(None, command=("undo", "--by", "nobody", "--yes")),
    "never-undone": Case(None, command=("undo", "1", "--yes")),
    "changed-since": Case(None, command=("undo", "21", "--yes")),
    "undone-already": Case(None, command=("undo", "23", "--yes")),
    "bad-list": Case(listed("12").split(b"\n")[1]),
    "player-unknown": Case(renamed("zoe", "anna")),
    "club-unknown": Case(line(type="club.renamed", data={"club": "Lotus", "new_club": "Team Lotus"})),
    "renamed-already": Case(lines(renamed("anna", "anne"), renamed("anna", "annette"))),
    "rename-loop": Case(lines(renamed("anna", "anne"), renamed("anne", "anna"))),
    "players-met": Case(renamed("anna", "ben")),
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
}  # fmt: skip


def test_every_code_has_a_case() -> None:
    """Every rejection code can be produced, and every case has its code."""
    assert sorted(CODES.keys() - CASES.keys()) == []
    assert sorted(CASES.keys() - CODES.keys()) == []


def test_codes_are_hyphenated_words() -> None:
    """Rejection codes are lower-case hyphenated words with a meaning."""
    assert all(code.replace("-", "").isalnum() and code == code.lower() and meaning for code, meaning in CODES.items())


def with_a_game(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the shipped rulesets and the games that are in it before every case."""
    make_ruled_ledger(ratings, url)
    assert ratings("import", "-", db=url, input=RECORDED).exit_code == 0
    # at 19 and 21 two more, of which one was corrected since, and one is voided
    for name in ("h-8", "h-9"):
        recorded = ("record", "--game", "catan", "--game-id", name, "kurt", "lena", "--new-names", "accept")
        assert ratings(*recorded, db=url).exit_code == 0
        change = ("correct", name, "lena", "kurt") if name == "h-8" else ("void", name)
        assert ratings(*change, "--reason", "wrong", db=url).exit_code == 0


def with_a_sheet(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the games of a sheet, of which somebody has voided one."""
    make_ruled_ledger(ratings, url)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        file.write_bytes(sheet("g-0", *SHEET, players="anna,ben"))
        assert ratings("import", file, db=url).exit_code == 0
    assert ratings("void", "g-0", "--reason", "a friendly", db=url).exit_code == 0


def with_an_open_month(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with a game between rated players in a month that has not ended."""
    assert ratings("init", "--for", "go", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "fide", db=url).exit_code == 0
    for player in ("anna", "ben"):
        seed = ("seed", "fide", player, "rating=1650", "--reason", "rated elsewhere")
        assert ratings(*seed, db=url).exit_code == 0
    assert ratings("record", "--game", "chess", "--game-id", "g-1", "anna", "ben", db=url).exit_code == 0


def needs_too_much(_: object) -> None:
    """What reading a file comes to for which there is not enough memory."""
    raise MemoryError


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_rejection_names_code_file_and_line(
    code: str,
    copied_file: Callable[..., str],
    tmp_path: Path,
    ratings: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each bad input is refused with its code, file and line, and nothing is appended."""
    case = CASES[code]
    monkeypatch.setattr(registry, "entry_points", lambda group, name=None: [PickyEntry("picky/1", "here", group)])
    besides = [PickyEntry("picky", "here", "ratings.readers")] if code == "bad-reader" else []
    monkeypatch.setattr(readers, "entry_points", lambda group: besides)
    if code == "file-too-large":
        monkeypatch.setattr(readers, "json_events", needs_too_much)
    registry.rule.cache_clear()
    path = tmp_path / "input"
    if case.content is None:
        path.mkdir()
    else:
        path.write_bytes(case.content)
    make = make_empty_ledger if "--restore" in case.arguments else with_a_game
    make = with_an_open_month if code == "period-open" else make
    db = copied_file(with_a_sheet if "--sync" in case.arguments else make)
    before = json.loads(ratings("status", "--format", "json", db=db).stdout)

    arguments = (path if one == "FILE" else one for one in case.arguments)
    result = ratings(*(case.command or ("import", path, *arguments)), "--format", "json", db=db)

    told = json.loads(result.stdout)
    assert [rejection["code"] for rejection in told["rejected"]] == [*case.before, code], told["rejected"]
    if not case.command:
        assert told["rejected"][-1]["file"] == str(path)
        assert told["rejected"][-1]["line"] == LINES.get(code, 1)
    assert told["rejected"][-1]["message"].isprintable()
    assert (result.exit_code, told["appended"], told["existing"]) == (1, 0, 0)
    assert json.loads(ratings("status", "--format", "json", db=db).stdout) == before
    registry.rule.cache_clear()


# the line that is named where it is not the first; None: the file as a whole
LINES = {
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
    """A rule that another package registers, which scores no game, or a reader that is none."""

    def load(self) -> Any:
        return PICKY
