"""The same random games give the same events and the same ladders, whatever file and layout they are written in."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unicodedata import name

import pytest
from drawn_tables import LAYOUTS, File, Season, build_events, draw_files, draw_season
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ratings_ledger as rl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

Ratings = Callable[..., Any]
# events without what belongs to the file, and the digests of all ladders
Found = tuple[list[dict[str, Any]], dict[str, str]]

SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)
# what must have occurred in the end, or the comparison was about less than it says
WANTED = {f"{layout} in .{kind}" for layout in LAYOUTS for kind in ("csv", "xlsx", "ods")} | {
    "places", "scores", "places and scores", "ties", "dense places", "eight players", "ids of its own", "fractions",
    "days and moments", "midnight", "seconds", "real dates", "the system of 1904", "times apart", "an empty line",
    "the date once", "a title", "utf-16", "utf-8-sig", "decimal commas", "a blank", "a quotation mark", "a semicolon",
    "LATIN", "GREEK", "CYRILLIC", "ARABIC", "CJK", "two ladders",
}  # fmt: skip


def made(ratings: Ratings, url: str) -> None:
    """A ledger for Catan, at home in Berlin."""
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=url).exit_code == 0


def taken(ratings: Ratings, url: str, file: Path, *options: str) -> Found:
    """What a ledger says after the import of a file."""
    told = ratings("import", file, *options, "--format", "json", db=url)
    assert told.exit_code == 0, told.stderr or json.loads(told.stdout)["rejected"]
    with rl.open(url) as ledger:
        view = ledger.at()
        rows = [row.event for row in view.events(types=["game.recorded"]).rows]
        digests = {one.ladder: view.standings(one.ladder).digest for one in view.ladders().rows}
    for row in rows:
        row["data"]["participants"].sort(key=lambda one: one["player"])
    return [{member: row[member] for member in ("type", "occurred_at", "data")} for row in rows], digests


def said(season: Season, folder: Path) -> Path:
    """The season as events in JSON Lines, which no reader of tables has touched."""
    file = folder / "season.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in build_events(season)), encoding="utf-8")
    return file


def written(file: File, folder: Path) -> Path:
    path = folder / file.name
    path.write_bytes(file.content)
    return path


def noted(season: Season, found: Found) -> set[str]:
    """What is of interest about a season."""
    seats = [seat for game in season.games for seat in game.seats]
    names = {player for player, _, _ in seats}
    places = [[place or 0 for _, place, _ in game.seats] for game in season.games]
    kinds = {
        "ties": any(len(own) > len({*own}) for own in places), "ids of its own": season.has_ids,
        "dense places": any(2 in own and own[0] == own[1] for own in places),
        "eight players": any(len(game.seats) == 8 for game in season.games),
        "fractions": any(score and "." in score for _, _, score in seats),
        "days and moments": len({type(game.when) for game in season.games}) == 2,
        "midnight": any("T00:00" in game.when.isoformat() for game in season.games),
        "seconds": any(game.when.isoformat()[17:] not in ("", "00") for game in season.games),
        "a blank": any(" " in one for one in names), "a quotation mark": any('"' in one for one in names),
        "a semicolon": any(";" in one for one in names), "two ladders": len(found[1]) > 1,
    }  # fmt: skip
    scripts = {name(character, "").partition(" ")[0] for one in names for character in one}
    return {season.kind, *scripts, *(kind for kind, is_so in kinds.items() if is_so)}


def test_same_games_from_every_file(
    copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """Random games, written as events and as tables in every layout that can say them, as CSV, .xlsx and .ods: all give
    the same data of the events and the same digest of every ladder."""
    template, db = copied_file(made, name="template.db"), str(tmp_path / "ratings.db")
    done = set[str]()

    @settings(SETTINGS, max_examples=500 if at_length else 6, derandomize=not at_length,
              phases=[Phase.generate, *[Phase.shrink][:at_length]])  # fmt: skip
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        chance = Random(seed)
        season = draw_season(chance)
        shutil.copyfile(template, db)
        wanted = taken(ratings, db, said(season, tmp_path), "--new-names", "accept")
        assert wanted[0] == build_events(season)
        done.update(noted(season, wanted))
        for file in draw_files(chance, season):
            shutil.copyfile(template, db)
            assert taken(ratings, db, written(file, tmp_path), *file.options) == wanted, (seed, file)
            done.update(file.features)

    check()
    assert (WANTED if at_length else {kind for kind in WANTED if " in ." in kind}) <= done


@pytest.mark.parametrize("kind", ["csv", "xlsx", "ods"])
def test_same_games_in_each_store(
    kind: str, copied: Callable[..., str], copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """In each kind of store a table gives what the same games as events give in SQLite."""
    chance = Random(3)
    season = draw_season(chance)
    file = next(file for file in draw_files(chance, season) if file.name.endswith(kind))
    events_alone = copied_file(made, name="events.db")
    wanted = taken(ratings, events_alone, said(season, tmp_path), "--new-names", "accept")
    assert taken(ratings, copied(made), written(file, tmp_path), *file.options) == wanted
