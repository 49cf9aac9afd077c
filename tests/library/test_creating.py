"""Ledgers created from Python: in each kind of store, and the example."""

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
    """A new ledger has the requested zone and rulesets, recorded by the given name, and can be reopened."""
    with rl.create(store, zone="Europe/Berlin", rulesets=["elo-chess", "b5-league"], by="mira") as ledger:
        rulesets = [row.version for row in ledger.at().rulesets().rows]
        events = [row.event for row in ledger.log().rows]
        ledger.propose(GAME, by="mira").commit()

    assert rulesets == ["elo-chess@1", "b5-league@1", "b5-league@2"]
    assert events[0]["data"] == {"zone": "Europe/Berlin"}
    assert {event["by"] for event in events} == {"mira"}
    with rl.open(store) as reopened:
        assert [row.player for row in reopened.at().standings("elo-chess/all").rows] == ["anna", "ben"]


def test_create_leaves_an_existing_ledger_alone(store: str) -> None:
    """Creating a ledger where one exists is refused and changes nothing."""
    rl.create(store).close()

    with pytest.raises(rl.LedgerExists, match=r"already holds a ledger") as refusal:
        rl.create(store, zone="Europe/Berlin")

    assert (refusal.value.reason, refusal.value.exit_code) == ("ledger-exists", 1)
    with rl.open(store) as ledger:
        assert ledger.head.position == 0


def test_open_creates_only_a_missing_ledger(tmp_path: Path) -> None:
    """Opening a missing ledger fails; with `create=True` it creates one, and later opens the same one."""
    path = tmp_path / "club.db"
    with pytest.raises(rl.NoLedger):
        rl.open(path)
    with rl.open(path, create=True) as ledger:
        ledger.publish("elo-chess", by="mira")

    with rl.open(path, create=True) as ledger:
        assert ledger.head.position == 1


@pytest.mark.parametrize(
    ("options", "argument", "message"),
    [
        ({"zone": "Mars"}, "zone", "'Mars' is not a time zone"),
        ({"zone": 1}, "zone", "zone must be a string"),
        ({"rulesets": "elo-chess"}, "rulesets", "rulesets must be a list, such as ['elo-chess']"),
        ({"rulesets": ["elo"]}, "rulesets", "elo needs the name of a game, as in elo-chess"),
        ({"rulesets": ["elo-ches", "glico-chess"]}, "rulesets", "no shipped ruleset is called 'glico-chess'"),
        ({"rulesets": [3]}, "rulesets", "not int"),
        ({"rulesets": ["id = 'x'"]}, "rulesets", "version: missing key"),
        ({"rulesets": [Path("none.toml")]}, "rulesets", "none.toml cannot be read"),
        ({"by": ""}, "by", "by: '' must have 1 to 2,000 characters"),
    ],
)
def test_wrong_argument_creates_no_ledger(tmp_path: Path, options: dict[str, Any], argument: str, message: str) -> None:
    """A wrong argument of `create` is named, and no file is created."""
    path = tmp_path / "club.db"

    with pytest.raises(rl.BadArgument) as refusal:
        rl.create(path, **options)

    assert message in str(refusal.value)
    assert (refusal.value.argument, list(tmp_path.iterdir())) == (argument, [])


def test_conflicting_rulesets_leave_no_file(tmp_path: Path) -> None:
    """Two different texts of the same version are refused, and no file remains."""
    path = tmp_path / "club.db"
    conflicting_text = TOML.replace('version = "2"', 'version = "1"')

    with pytest.raises(rl.Refused):
        rl.create(path, rulesets=["elo-catan", conflicting_text])

    assert not path.exists()


@pytest.mark.parametrize("kind", ["text", "path", "tables"])
def test_ruleset_is_published_once_in_any_form(tmp_path: Path, kind: str) -> None:
    """A ruleset is published from a text, a path or tables, and a second time nothing is published."""
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
    """A published template gets the home zone of the ledger."""
    with rl.create(zone="Asia/Tokyo") as ledger:
        assert ledger.publish("riichi", by="mira") == ["riichi@1"]
        assert ledger.log().rows[-1].event["data"]["time_zone"] == "Asia/Tokyo"


def test_example_is_the_same_each_time() -> None:
    """Two examples have the same standings, the documented ladders, and the corrected game."""
    with rl.example() as first, rl.example() as second:
        standings = [ledger.at().standings("elo-catan/all") for ledger in (first, second)]
        ladders = [row.ladder for row in first.at().ladders().rows]
        corrected = first.at().games("gm-4").rows[0].data["participants"]

    assert standings[0].rows == standings[1].rows
    assert standings[0].digest == standings[1].digest
    assert ladders == [
        "b5-league/2025-1",
        "elo-catan/3-4",
        "elo-catan/5-6",
        "elo-catan/all",
        "galactic-points",
        "youplay-league/spring",
    ]
    places = {participant["player"]: participant["place"] for participant in corrected}
    assert (places["Åke"], places["Ada"]) == (1, 2)


def test_upgrade_of_a_missing_ledger_creates_none(tmp_path: Path) -> None:
    """Upgrading a missing ledger fails and creates no file."""
    with pytest.raises(rl.NoLedger):
        rl.upgrade(tmp_path / "club.db")

    assert not (tmp_path / "club.db").exists()
