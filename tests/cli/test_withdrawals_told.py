"""A report of changes and the page of a withdrawal describe the withdrawn event, whatever its type."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from correction_helpers import NOON, Ratings, build_event_line, read_json
from stores import make_empty_ledger, record_lines

from ratings_ledger.ledger.events.revisions import GAME_EVENTS
from ratings_ledger.ledger.events.types import TYPES

pytestmark = pytest.mark.slow

LADDER = "elo-chess/all"
# the description of a withdrawn event, by type; the events of a game have no withdrawals
DESCRIPTIONS = {
    "ledger.zone_set": "the home zone is UTC",
    "import.recorded": "the import of -: position 3",
    "list.rows": f"{LADDER}: part 1 of 1, 2 rows",
    "list.published": f"the published list {LADDER} as of 2010-04-01 23:59 UTC: 2 rows under elo-chess@1, position 4",
    "list.scheduled": f"the schedule: {LADDER} will be published every month",
    "player.registered": "the registration of eve, free",
    "player.account_changed": "eve has a premium account from 2010-03-05 12:00 UTC",
    "player.renamed": "eve is renamed Eve M.",
    "points.adjusted": f"anna: +5 points on {LADDER}",
    "player.seeded": "zoe starts on elo-chess/all with points 1650, after 3 games elsewhere",
    "club.renamed": "the club north is renamed North",
    "ruleset.published": "shogi@1",
    "league.created": "the league summer of chess, 2 players a game",
    "league.joined": "p8 joins spring",
    "league.scheduled": "spring: 56 games, drawn with the seed s",
    "clock.started": "clock.started of k-1 at 0 ms",
    "clock.offered": "clock.offered of k-1 at 1 ms, anna, sell-houses",
    "clock.decided": "clock.decided of k-1 at 2 ms, anna",
    "clock.auction_started": "clock.auction_started of k-1 at 3 ms, anna",
    "clock.heartbeat": "clock.heartbeat of k-1 at 4 ms, ben",
    "clock.pause_asked": "clock.pause_asked of k-1 at 5 ms, ben",
    "clock.pause_answered": "clock.pause_answered of k-1 at 6 ms, anna, yes",
    "clock.turn_ended": "clock.turn_ended of k-1 at 7 ms",
    "clock.resume_asked": "clock.resume_asked of k-1 at 8 ms, ben",
    "clock.player_left": "clock.player_left of k-1 at 9 ms, ben",
    "clock.stopped": "clock.stopped of k-1 at 10 ms",
    "event.voided": f"the withdrawal of anna: +5 points on {LADDER}",
}
RULESET = {
    "id": "shogi",
    "version": "1",
    "rule": "pairwise-elo/1",
    "scope": {"game": ["shogi"]},
    "params": {"start": 1000, "k_total": 32, "scale": 400},
}
CLOCK_EVENTS = """started, anna offered, anna decided, anna auction_started, ben heartbeat, ben pause_asked,
anna pause_answered, turn_ended, ben resume_asked, ben player_left, stopped"""
CLOCK_DATA = {
    "started": {"players": ["anna", "ben"]},
    "offered": {"choice": "sell-houses"},
    "pause_answered": {"answer": "yes"},
}


def record_every_type(ratings: Ratings, url: str) -> None:
    """Make a ledger with an event of every type that can be withdrawn."""
    make_empty_ledger(ratings, url)
    lines = [
        build_event_line("list.scheduled", ladder=LADDER, every="month"),
        build_event_line("player.registered", player="eve", account="free"),
        build_event_line("player.account_changed", player="eve", account="premium"),
        build_event_line("player.renamed", player="eve", new_player="Eve M."),
        build_event_line("points.adjusted", ladder=LADDER, player="anna", points="5", reason="r"),
        build_event_line("player.seeded", ladder=LADDER, player="zoe", state={"points": "1650"}, games=3),
        build_event_line(
            "game.recorded",
            game_id="g-2",
            game="go",
            participants=[{"player": "anna", "place": 1, "club": "north"}, {"player": "ben", "place": 2}],
        ),
        build_event_line("club.renamed", club="north", new_club="North"),
        build_event_line("ruleset.published", **RULESET),
        build_event_line("league.created", league="spring", game="chess", players_per_game=2),
        *(build_event_line("league.joined", league="spring", player=f"p{number}") for number in range(1, 9)),
    ]
    for at, entry in enumerate(CLOCK_EVENTS.split(",")):
        *player, name = entry.split()
        data = {"game_id": "k-1", "at": at, **({"player": player[0]} if player else {}), **CLOCK_DATA.get(name, {})}
        lines.append(json.dumps({"type": f"clock.{name}", "occurred_at": NOON, "data": data}) + "\n")
    game = "game_id,occurred_at,1st,2nd\ng-1,2010-03-05 12:00,anna,ben\n"
    steps: list[tuple[str, str | None]] = [
        ("init --for chess --zone UTC", None),
        ("import - --set game=chess", game),
        (f"publish {LADDER} --as-of 2010-04-01", None),
    ]
    for command, text in steps:
        assert ratings(*command.split(), db=url, input=text).exit_code == 0, command
    result = record_lines(url, "".join(lines))
    assert not result.rejected, result.rejected
    assert ratings("league", "schedule", "spring", "--seed", "s", db=url).exit_code == 0
    record_lines(url, build_event_line("league.created", league="summer", game="chess", players_per_game=2))


def withdraw_every_type(ratings: Ratings, url: str) -> dict[str, int]:
    """Withdraw the last event of every type, newest first, then one withdrawal; return their positions by type."""
    events = read_json(ratings, url, "log", "--limit", "0")["rows"]
    last = {event["type"]: event["id"] for event in events if event["type"] not in GAME_EVENTS}
    voids = [(name, f"v-{name}", last[name]) for name in reversed(last)]
    voids.append(("event.voided", "v", "v-points.adjusted"))
    lines = [
        json.dumps({"type": "event.voided", "id": void_id, "occurred_at": NOON, "data": {"id": target, "reason": name}})
        for name, void_id, target in voids
    ]
    result = record_lines(url, "\n".join(lines))
    assert not result.rejected, result.rejected
    return {name: len(events) + number for number, (name, _, _) in enumerate(voids, 1)}


def test_withdrawal_of_every_type_is_described(
    copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """The withdrawal of an event is described in the report and on its page, for every type that can be withdrawn."""
    db = copy_ledger_file(record_every_type)
    positions = withdraw_every_type(ratings, db)
    assert {*positions} == TYPES.keys() - GAME_EVENTS == {*DESCRIPTIONS}

    report, site = tmp_path / "r.md", tmp_path / "site"
    first = min(positions.values())
    result = ratings("report", "changes", "--from", first - 1, "-o", report, db=db)
    assert result.exit_code == 0, result
    rows = re.findall(r"\| withdrawn: (.*) \| (\S+) \|", report.read_text().replace("\\", ""))
    assert {why: what for what, why in rows} == DESCRIPTIONS

    result = ratings("site", site, db=db)
    assert result.exit_code == 0, result
    for name, position in positions.items():
        page = (site / "changes" / f"{position}.html").read_text()
        assert DESCRIPTIONS[name] in html.unescape(page), name
