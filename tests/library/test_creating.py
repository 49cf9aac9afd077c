"""Ledgers made from Python: in a file, in PostgreSQL, in memory, as an example."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ratings_ledger as rl
from ratings_ledger.example_club import EXAMPLES

TOML = (EXAMPLES / "elo-catan-2.toml").read_text(encoding="utf-8")
GAME = {
    "game_id": "g-1",
    "game": "chess",
    "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
}


def test_new_ledger_has_its_zone_and_rulesets(store: str) -> None:
    with rl.create(store, zone="Europe/Berlin", rulesets=["elo-chess", "b5-league"], by="mira") as ledger:
        rulesets = [row.version for row in ledger.at().rulesets().rows]
        events = [row.event for row in ledger.log().rows]
        ledger.propose(GAME, by="mira").commit()

    assert rulesets == ["elo-chess@1", "b5-league@1", "b5-league@2"]
    assert events[0]["data"] == {"zone": "Europe/Berlin"}
    assert {event["by"] for event in events} == {"mira"}
    with rl.open(store) as again:
        assert [row.player for row in again.at().standings("elo-chess/all").rows] == ["anna", "ben"]


def test_create_leaves_an_existing_ledger_alone(store: str) -> None:
    rl.create(store).close()

    with pytest.raises(rl.LedgerExists, match=r"already holds a ledger") as refusal:
        rl.create(store, zone="Europe/Berlin")

    assert (refusal.value.reason, refusal.value.exit_code) == ("ledger-exists", 1)
    with rl.open(store) as ledger:
        assert ledger.head.position == 0


def test_open_creates_only_where_there_is_none(tmp_path: Path) -> None:
    place = tmp_path / "club.db"
    with pytest.raises(rl.NoLedger):
        rl.open(place)
    with rl.open(place, create=True) as ledger:
        ledger.publish("elo-chess", by="mira")

    with rl.open(place, create=True) as ledger:
        assert ledger.head.position == 1


@pytest.mark.parametrize(
    ("options", "argument", "told"),
    [
        ({"zone": "Mars"}, "zone", "'Mars' is not a time zone"),
        ({"zone": 1}, "zone", "zone must be a string"),
        ({"rulesets": "elo-chess"}, "rulesets", "rulesets are a list, such as ['elo-chess']"),
        ({"rulesets": ["elo"]}, "rulesets", "elo rates one game: name it, as in elo-chess"),
        ({"rulesets": ["elo-ches", "glico-chess"]}, "rulesets", "no shipped ruleset is called 'glico-chess'"),
        ({"rulesets": [3]}, "rulesets", "not int"),
        ({"rulesets": ["id = 'x'"]}, "rulesets", "version: missing key"),
        ({"rulesets": [Path("none.toml")]}, "rulesets", "none.toml cannot be read"),
        ({"by": ""}, "by", "by"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], argument: str, told: str
) -> None:
    place = tmp_path / "club.db"

    with pytest.raises(rl.BadArgument) as refusal:
        rl.create(place, **options)

    assert told in str(refusal.value)
    assert (refusal.value.argument, list(tmp_path.iterdir())) == (argument, [])


def test_rulesets_that_do_not_fit_each_other_leave_no_file(tmp_path: Path) -> None:
    place = tmp_path / "club.db"
    other = TOML.replace('version = "2"', 'version = "1"')

    with pytest.raises(rl.Refused):
        rl.create(place, rulesets=["elo-catan", other])

    assert not place.exists()


@pytest.mark.parametrize("kind", ["text", "path", "tables"])
def test_ruleset_is_published_once_in_any_form(tmp_path: Path, kind: str) -> None:
    (tmp_path / "house.toml").write_text(TOML, encoding="utf-8")
    tables = {
        "id": "house",
        "version": "1",
        "rule": "pairwise-elo/1",
        "effective_from": "2010-01-01",
        "scope": {"game": ["chess"]},
        "params": {"k_total": 32},
    }
    source: Any = {"text": TOML, "path": tmp_path / "house.toml", "tables": tables}[kind]
    with rl.create() as ledger:
        assert ledger.publish(source, by="mira") == ["house@1" if kind == "tables" else "elo-catan@2"]
        assert ledger.publish(source, by="mira") == []
        assert ledger.head.position == 1


def test_template_gets_the_home_zone() -> None:
    with rl.create(zone="Asia/Tokyo") as ledger:
        assert ledger.publish("riichi", by="mira") == ["riichi@1"]
        assert ledger.log().rows[-1].event["data"]["time_zone"] == "Asia/Tokyo"


def test_ledger_in_memory_is_one_for_all_threads() -> None:
    with rl.create(rulesets=["elo-chess"]) as ledger, ThreadPoolExecutor(4) as threads:
        games = [{**GAME, "game_id": f"g-{number}"} for number in range(20)]
        positions = {*threads.map(lambda game: ledger.propose(game, by="mira").commit().position, games)}

        assert (ledger.location, positions) == (":memory:", {*range(2, 22)})
        assert ledger.at().standings("elo-chess/all").games == 20


def test_example_is_the_same_each_time() -> None:
    with rl.example() as first, rl.example() as second:
        standings = [ledger.at().standings("elo-catan/all") for ledger in (first, second)]
        ladders = [row.ladder for row in first.at().ladders().rows]
        corrected = first.at().games("gm-4").rows[0].data["participants"]

    assert standings[0].rows == standings[1].rows
    assert standings[0].digest == standings[1].digest
    assert ladders[:5] == ["b5-league/2025-1", "elo-catan/3-4", "elo-catan/5-6", "elo-catan/all", "galactic-points"]
    assert {one["player"]: one["place"] for one in corrected if one["player"] in ("Åke", "Ada")} == {"Åke": 1, "Ada": 2}


def test_nothing_is_upgraded_where_there_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(rl.NoLedger):
        rl.upgrade(tmp_path / "club.db")

    assert not (tmp_path / "club.db").exists()
