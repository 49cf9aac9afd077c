"""The same random games give the same events and the same ladders in every kind of file and every layout."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unicodedata import name

import pytest
from drawn_tables import LAYOUTS, SCORES, File, Season, build_events, draw_files, draw_season
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ratings_ledger as rl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

Ratings = Callable[..., Any]
# the events of all games, and the digests of all ladders
ImportedData = tuple[list[dict[str, Any]], dict[str, str]]

SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)
# features that the random seasons and files must have had in the end
REQUIRED_FEATURES = {f"{layout} in .{kind}" for layout in LAYOUTS for kind in ("csv", "xlsx", "ods")} | {
    "places", "scores", "places and scores", "ties", "dense places", "eight players", "ids of its own", "fractions",
    "days and moments", "midnight", "seconds", "real dates", "the system of 1904", "times apart", "an empty line",
    "the date once", "a title", "utf-16", "utf-8-sig", "decimal commas", "a blank", "a quotation mark", "a semicolon",
    "LATIN", "GREEK", "CYRILLIC", "ARABIC", "CJK", "two ladders",
}  # fmt: skip


def make_catan_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger for Catan with the home zone of Berlin."""
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=url).exit_code == 0


def import_and_read(ratings: Ratings, url: str, file: Path, *options: str) -> ImportedData:
    """Import a file, and return the events and the digests of the ledger."""
    result = ratings("import", file, *options, "--format", "json", db=url)
    assert result.exit_code == 0, result.stderr or json.loads(result.stdout)["rejected"]
    with rl.open(url) as ledger:
        view = ledger.at()
        rows = [row.event for row in view.events(types=["game.recorded"]).rows]
        digests = {row.ladder: view.standings(row.ladder).digest for row in view.ladders().rows}
    for row in rows:
        row["data"]["participants"].sort(key=lambda participant: participant["player"])
    return [{member: row[member] for member in ("type", "occurred_at", "data")} for row in rows], digests


def write_events(season: Season, folder: Path) -> Path:
    """Write the season as events in JSON Lines, which no reader of tables reads, and return the file."""
    file = folder / "season.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in build_events(season)), encoding="utf-8")
    return file


def write_file(file: File, folder: Path) -> Path:
    path = folder / file.name
    path.write_bytes(file.content)
    return path


def list_features(season: Season, imported: ImportedData) -> set[str]:
    """Return the features of a season."""
    seats = [seat for game in season.games for seat in game.seats]
    names = {player for player, _, _ in seats}
    # a season of scores alone has no places
    places = [] if season.kind == SCORES else [[place or 0 for _, place, _ in game.seats] for game in season.games]
    has_feature = {
        "ties": any(len(game_places) > len({*game_places}) for game_places in places),
        "ids of its own": season.has_ids,
        "dense places": any(2 in game_places and game_places[0] == game_places[1] for game_places in places),
        "eight players": any(len(game.seats) == 8 for game in season.games),
        "fractions": any(score and "." in score for _, _, score in seats),
        "days and moments": len({type(game.when) for game in season.games}) == 2,
        "midnight": any("T00:00" in game.when.isoformat() for game in season.games),
        "seconds": any(game.when.isoformat()[17:] not in ("", "00") for game in season.games),
        "a blank": any(" " in player_name for player_name in names),
        "a quotation mark": any('"' in player_name for player_name in names),
        "a semicolon": any(";" in player_name for player_name in names),
        "two ladders": len(imported[1]) > 1,
    }
    scripts = {name(character, "").partition(" ")[0] for player_name in names for character in player_name}
    return {season.kind, *scripts, *(feature for feature, is_present in has_feature.items() if is_present)}


def test_same_games_from_every_file(
    copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """Random games give the same events and the same digests of ladders as events and as tables, in every layout that
    can represent them, as CSV, .xlsx and .ods."""
    template, db = copy_ledger_file(make_catan_ledger, name="template.db"), str(tmp_path / "ratings.db")
    features = set[str]()

    @settings(
        SETTINGS,
        max_examples=500 if at_length else 6,
        derandomize=not at_length,
        phases=[Phase.generate, *[Phase.shrink][:at_length]],
    )
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        chance = Random(seed)
        season = draw_season(chance)
        shutil.copyfile(template, db)
        expected = import_and_read(ratings, db, write_events(season, tmp_path), "--new-names", "accept")
        assert expected[0] == build_events(season)
        features.update(list_features(season, expected))
        for file in draw_files(chance, season):
            shutil.copyfile(template, db)
            assert import_and_read(ratings, db, write_file(file, tmp_path), *file.options) == expected, (seed, file)
            features.update(file.features)

    check()
    assert (REQUIRED_FEATURES if at_length else {name for name in REQUIRED_FEATURES if " in ." in name}) <= features


@pytest.mark.parametrize("kind", ["csv", "xlsx", "ods"])
def test_same_games_in_each_store(
    kind: str, copy_ledger: Callable[..., str], copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """In each kind of store, a table gives the same data as the same games as events in SQLite."""
    chance = Random(3)
    season = draw_season(chance)
    file = next(file for file in draw_files(chance, season) if file.name.endswith(kind))
    events_db = copy_ledger_file(make_catan_ledger, name="events.db")
    expected = import_and_read(ratings, events_db, write_events(season, tmp_path), "--new-names", "accept")
    assert (
        import_and_read(ratings, copy_ledger(make_catan_ledger), write_file(file, tmp_path), *file.options) == expected
    )
