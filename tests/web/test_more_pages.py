"""Pages of lists, changes, persons, rulesets, hypothetical results, the log and the status, also in a folder."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from asking import Application, Response, get, write_pages
from club import LADDER, record_game, run_ok
from ledgers import set_clock
from thresholds import set_thresholds

import ratings_ledger
from ratings_ledger.web import addresses

Ratings = Callable[..., Any]

NOON_US, DAY_US = 1_745_150_400_000_000, 86_400_000_000  # 2025-04-20T12:00Z, in microseconds


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for new events at every request."""
    set_thresholds(monkeypatch, head_us=0)


def extract_text(response: Response) -> str:
    """Return the text of a page, without markup and surplus blanks."""
    assert response.status == 200, response.text
    text = re.sub(r"<[^>]*>", " ", response.text.partition("<main")[2].partition("</main>")[0])
    return " ".join(text.replace("&#39;", "'").split())


def get_json(pages: Application, address: str) -> Any:
    path, _, query = address.partition("?")
    response = get(pages, f"{path}.json" + (f"?{query}" if query else ""))
    assert response.status == 200, response.text
    return json.loads(response.text)


def find_correction_position(ratings: Ratings, url: str) -> int:
    events = json.loads(run_ok(ratings, "log", "--type", "game.corrected", "--format", "json", db=url).stdout)
    rows = events if isinstance(events, list) else events["rows"]
    return int(rows[-1]["position"])


def test_published_list_is_compared_with_today(pages: Application, url: str, ratings: Ratings) -> None:
    """The page of a published list compares it with today's standings after a correction; each row's causes sum
    exactly."""
    comparison = get_json(pages, f"/lists/{LADDER}")
    published = json.loads(run_ok(ratings, "standings", LADDER, "--as-published", "--format", "json", db=url).stdout)
    now = json.loads(run_ok(ratings, "standings", LADDER, "--as-of", "2025-02-28", "--format", "json", db=url).stdout)
    assert [(row["player"], row["before"]) for row in comparison["rows"]] == [
        (row["player"], row["points"]) for row in published["rows"]
    ]
    assert {row["player"]: row["after"] for row in comparison["rows"]} == {
        row["player"]: row["points"] for row in now["rows"]
    }
    assert {decision["type"] for decision in comparison["decisions"]} == {"game.corrected"}
    for row in comparison["rows"]:
        amounts = [Fraction(cause["amount"]) for cause in row["causes"]]
        assert sum(amounts, Fraction(0)) == Fraction(row["after"]) - Fraction(row["before"])
    assert comparison["differing"] == sum(row["before"] != row["after"] for row in comparison["rows"]) > 0
    text = extract_text(get(pages, f"/lists/{LADDER}"))
    assert f"would differ for {comparison['differing']} of " in text
    assert "scores &lt;read&gt; wrong" in get(pages, f"/lists/{LADDER}").text
    assert get(pages, "/lists/elo-catan/3-4").status == 404


@pytest.mark.slow_cases
def test_published_lists_appear_on_their_pages(pages: Application, ratings: Ratings, url: str) -> None:
    """A published list appears on the page of lists, has a page of its own, and links to the ladder's earlier lists."""
    assert f"{LADDER.removesuffix('/all')} 28 Feb 2025" in extract_text(get(pages, "/lists"))
    run_ok(ratings, "publish", "elo-catan/3-4", "--as-of", "2025-01-31", "--by", "mira", db=url)
    assert "elo-catan/3-4 31 Jan 2025" in extract_text(get(pages, "/lists"))
    assert get(pages, "/lists/elo-catan/3-4").status == 200
    assert get(pages, "/lists/elo-catan/3-4?as_of=2025-01-31").status == 200
    assert get(pages, "/lists/elo-catan/3-4?as_of=2025-01-30").status == 404
    run_ok(ratings, "publish", LADDER, "--as-of", "2025-01-31", "--by", "mira", db=url)
    earlier = re.search(r'<a href="([^"]*)">28 Feb 2025</a>', get(pages, f"/lists/{LADDER}").text)
    assert earlier is not None
    address = urljoin(f"/lists/{LADDER}", earlier[1])
    assert get_json(pages, address)["as_of"].startswith("2025-02-28T22:59:59")


def test_published_list_page_has_changes_since_previous_list(pages: Application, ratings: Ratings, url: str) -> None:
    """A list's page shows rank, player, points, games and the change since the previous list; the first has no
    changes."""
    run_ok(ratings, "publish", LADDER, "--as-of", "2025-01-31", "--by", "mira", db=url)
    run_ok(ratings, "player", "rename", "anna", "zoe", "--by", "mira", db=url)
    lists = {
        day: json.loads(
            run_ok(ratings, "standings", LADDER, "--as-published", "--as-of", day, "--format", "json", db=url).stdout
        )["rows"]
        for day in ("2025-01-31", "2025-02-28")
    }
    earlier = {row["player"]: row for row in lists["2025-01-31"]}
    page_list = get_json(pages, f"/lists/{LADDER}")
    assert page_list["previous"] == "2025-01-31T22:59:59.999999Z"
    names = {"anna": "zoe"}
    for row, published in zip(page_list["rows"], lists["2025-02-28"], strict=True):
        before = earlier.get(published["player"]) or earlier.get(names.get(published["player"], ""))
        change = None if before is None else Fraction(published["points"]) - Fraction(before["points"])
        assert row["player"] == names.get(published["player"], published["player"])
        assert row["games"] == published["games"]
        assert (row["since_previous"] and Fraction(row["since_previous"])) == change
        assert row["previous_rank"] == (before and before["rank"])
    listed = get(pages, f"/lists/{LADDER}").text.partition('<section class="screen">')[0]
    assert "Played up to 28 Feb 2025; changes are since 31 Jan 2025" in listed
    assert re.findall("<th[^>]*>([^<]*)</th>", listed) == ["Rank", "Player", "Points", "Games", "Change"]
    first = get(pages, f"/lists/{LADDER}?as_of=2025-01-31").text
    assert "Change</th>" not in first
    assert "changes are since" not in first


@pytest.mark.slow
def test_each_published_list_has_its_own_address(
    pages: Application, ratings: Ratings, url: str, tmp_path: Path
) -> None:
    """Each of a ladder's two published lists has its own address, on a server and in a folder; `lists` links to
    both."""
    run_ok(ratings, "publish", LADDER, "--as-of", "2025-01-31", "--by", "mira", db=url)
    rows = [row for row in get_json(pages, "/lists")["published"] if row["ladder"] == LADDER]
    assert len(rows) == 2
    write_pages(url, tmp_path / "site")
    lists = (tmp_path / "site/lists.html").read_text()
    for row in rows:
        address = f"lists/{LADDER}/_{row['position']}"
        assert f'href="{address}"' in get(pages, "/lists").text
        assert f'href="{address}.html"' in lists
        assert get_json(pages, f"/{address}")["as_of"] == row["as_of"]
        in_folder = (tmp_path / f"site/{address}.html").read_text()
        assert f"at position {row['position']}" in in_folder
    latest = max(rows, key=lambda row: (row["as_of"], row["position"]))
    assert get_json(pages, f"/lists/{LADDER}") == get_json(pages, f"/lists/{LADDER}/_{latest['position']}")
    assert get(pages, f"/lists/{LADDER}/_1").status == 404


def test_page_of_a_correction_agrees_with_diff(pages: Application, url: str, ratings: Ratings) -> None:
    """The page of a correction shows the difference between the ladders just before it and at it."""
    position = find_correction_position(ratings, url)
    change_page = get_json(pages, f"/changes/{position}")
    differences = json.loads(
        run_ok(ratings, "diff", str(position - 1), str(position), "--format", "json", db=url).stdout
    )
    expected_changes = {
        (ladder["ladder"], row["player"]): row["change"]
        for ladder in differences["ladders"]
        for row in ladder["rows"]
        if row["change"] not in (None, "0")
    }
    assert {(row["ladder"], row["player"]): row["change"] for row in change_page["rows"]} == expected_changes
    assert change_page["reason"] == "scores <read> wrong"
    assert [listed["ladder"] for listed in change_page["published"]] == [LADDER]
    for summary in change_page["ladders"]:
        changes = sorted(
            abs(Fraction(row["change"])) for row in change_page["rows"] if row["ladder"] == summary["ladder"]
        )
        rows = json.loads(
            run_ok(
                ratings, "standings", summary["ladder"], "--known-at", str(position), "--format", "json", db=url
            ).stdout
        )["rows"]
        assert summary["up"] + summary["down"] == len(changes)
        assert summary["up"] + summary["down"] + summary["stayed"] + summary["joined"] == len(rows)
        assert Fraction(summary["largest"]) == changes[-1]
        middle = changes[(len(changes) - 1) // 2 : len(changes) // 2 + 1]
        assert Fraction(summary["median"]) == sum(middle, Fraction(0)) / len(middle)
    assert "“scores <read> wrong”".replace("<", "&lt;").replace(">", "&gt;") in get(pages, f"/changes/{position}").text


@pytest.mark.parametrize("position", ["0", "-1", "01", "x", "99999", "9" * 30, "1.5"])
def test_invalid_positions_have_no_change_page(pages: Application, position: str) -> None:
    """The address of a change that names no position of the log gives status 404."""
    assert get(pages, f"/changes/{position}").status == 404


@pytest.mark.slow_cases
def test_every_position_has_a_change_page(pages: Application) -> None:
    """Every position of the log has a page of its change."""
    head = get_json(pages, "/status")["position"]
    for position in range(1, head + 1):
        assert get(pages, f"/changes/{position}").status == 200, position


def test_pages_link_to_the_correction(pages: Application, url: str, ratings: Ratings) -> None:
    """The pages of a game, a player and a list, the first page and the log link to the page of the correction."""
    position = find_correction_position(ratings, url)
    for address in ("/games/g-1", f"/players/anna/{LADDER}", "/", "/log", f"/lists/{LADDER}"):
        assert f'changes/{position}"' in get(pages, address).text, address


@pytest.mark.slow
def test_late_game_has_a_change(pages: Application, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """In a folder, a game that was recorded after the list to which it belongs has a page of its change.

    The other events with such a page are decisions.
    """
    run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", "late", "--at", "2025-01-05T20:00Z", "anna", "ben",
       db=url)  # fmt: skip
    with ratings_ledger.open(url) as ledger:
        write_pages(ledger, tmp_path / "site")
        head = ledger.head.position
    change_pages = {int(path.stem) for path in (tmp_path / "site" / "changes").glob("*.html")}
    events = get_json(pages, "/log")["rows"]
    decision_types = ("game.corrected", "ruleset.published")
    assert change_pages == {row["position"] for row in events if row["type"] in decision_types} | {head}


def import_april_games(ratings: Ratings, url: str, folder: Path) -> None:
    """Publish the monthly lists of Catan, and import twenty games of April, which count for one of them."""
    run_ok(ratings, "rules", "publish", "--shipped", "catan-monthly", "--by", "mira", db=url)
    participants = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben", "Łukasz"), 1)]
    games = [
        {"game_id": f"h-{number}", "game": "catan", "city": "berlin", "group": "open", "participants": participants}
        for number in range(20)
    ]
    lines = [{"type": "game.recorded", "occurred_at": "2025-04-01T20:00Z", "data": game} for game in games]
    (folder / "games.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run_ok(ratings, "import", str(folder / "games.jsonl"), "--by", "mira", db=url)


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_person_page_has_earlier_ids_games_and_gold(
    cached: bool, pages: Application, url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a person shows their earlier ids, the number of their games, and the lists that gave them gold."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1 if cached else 10**9)
    import_april_games(ratings, url, tmp_path)
    run_ok(ratings, "player", "rename", "anna", "anna-b", "--by", "mira", db=url)
    person = get_json(pages, "/players/anna-b")
    assert (person["earlier"], person["started"], person["finished"]) == (["anna"], 24, 24)
    assert (person["stars"], person["golden"], person["ratio"]) == (3, True, "1")
    assert {row["ladder"] for row in person["rows"]} >= {LADDER, "catan-monthly/berlin/open/2025-04"}
    lists = json.loads(run_ok(ratings, "statistics", "anna-b", "--format", "json", db=url).stdout)
    assert person["gold_by_list"] == lists["gold_by_list"]
    assert person["gold_by_list"]
    text = extract_text(get(pages, "/players/anna-b"))
    assert "formerly anna" in text
    assert f"{person['gold']} from" in text
    assert get(pages, "/players/anna").status == 404
    with ratings_ledger.open(url) as ledger:
        write_pages(ledger, tmp_path / "site")
        run_ok(
            ratings,
            "record",
            "-q",
            "--game",
            "chess",
            "--game-id",
            "c-1",
            "--at",
            "2025-05-01T20:00Z",
            "--by",
            "mira",
            "anna-b",
            "ben",
            db=url,
        )
        write_pages(ledger, tmp_path / "site")
        head = ledger.head.position
    written_person = json.loads((tmp_path / "site" / "players" / "anna-b.json").read_text())
    assert (written_person["started"], written_person["known_at"]) == (25, head)
    assert get_json(pages, f"/players/anna-b?known_at={head}")["started"] == 25


def test_ruleset_page_explains_rule_and_changed_settings(pages: Application, url: str, ratings: Ratings) -> None:
    """The page of a version describes the rule in words and lists each setting that differs from the version before."""
    run_ok(ratings, "rules", "publish", "--shipped", "youplay-wsim", "--by", "mira", db=url)
    first, second, third = (extract_text(get(pages, f"/rules/youplay-wsim/v{number}")) for number in (0, 1, 2))
    assert "Description of the rule" in first
    assert "Changes since" not in first
    assert "Changes since version v0" in second
    changed = third.partition("Changes since version v1")[2].partition("Settings")[0]
    assert "params.top_scorer 1 0" in changed
    assert "effective_from – 2010-01-01" in changed
    assert "scope.kind" not in changed


def test_another_result_gives_what_a_correction_would(pages: Application, url: str, ratings: Ratings) -> None:
    """The hypothetical result of a game equals its result once it is corrected that way; nothing is recorded."""
    head = get_json(pages, "/status")["position"]
    before_correction = get_json(pages, "/games/g-3")
    hypothetical = get_json(pages, "/games/g-3/_otherwise?place=4&place=1&place=1&place=3")
    assert get_json(pages, "/status")["position"] == head
    assert "Hypothetical result" in get(pages, "/games/g-3").text
    assert "as it was played" in get(pages, "/games/g-3/_otherwise?place=4&place=1&place=1&place=3").text
    run_ok(ratings, "correct", "g-3", "anna=ben", "美咲", "Łukasz", "--reason", "wrong", "--by", "mira", db=url)
    after_correction = get_json(pages, "/games/g-3")
    assert [row["player"] for row in hypothetical["rows"] if row["ladder"] == LADDER] == [
        "anna",
        "ben",
        "美咲",
        "Łukasz",
    ]
    for row in hypothetical["rows"]:
        before, after = (
            find_change(game, row["ladder"], row["player"]) for game in (before_correction, after_correction)
        )
        assert (row["gave"], row["would_give"]) == (before, after)
        assert Fraction(row["difference"]) == Fraction(after) - Fraction(before)


@pytest.mark.slow_cases
def test_games_without_possible_other_results_show_none(
    pages: Application, url: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A game that is voided, scored, left by a player or too large has no hypothetical result.

    Otherwise the result uses the corrected data of the game: the group that a correction removed stays out.
    """
    three_players = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben", "Łukasz"), 1)]
    with_leaver = [
        three_players[0],
        three_players[1] | {"status": "abandoned"},
        {"player": "Łukasz", "place": 2, "status": "substitute", "replaces": "ben"},
    ]
    games = {
        "scored": [participant | {"score": 10 - participant["place"]} for participant in three_players],
        "left": with_leaver,
        "many": [{"player": f"p-{number}", "place": number} for number in range(1, 18)],
        "grouped": three_players,
    }
    lines = [
        {
            "type": "game.recorded",
            "occurred_at": "2025-04-01T20:00Z",
            "data": {"game_id": name, "game": "catan", "group": "basic", "participants": participants},
        }
        for name, participants in games.items()
    ]
    whole = {"game_id": "grouped", "game": "catan", "participants": three_players}
    lines.append(
        {
            "type": "game.corrected",
            "occurred_at": "2025-04-02T20:00Z",
            "data": {"game_id": "grouped", "game": whole, "reason": "no group"},
        }
    )
    (tmp_path / "games.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run_ok(ratings, "import", str(tmp_path / "games.jsonl"), "--by", "mira", db=url)
    run_ok(ratings, "void", "g-4", "--reason", "never played", "--by", "mira", db=url)
    assert "group" not in get_json(pages, "/games/grouped")["data"]
    for game_id, places in {"scored": "213", "left": "211", "many": "1" * 17, "g-4": "21"}.items():
        assert "Hypothetical result" not in get(pages, f"/games/{game_id}").text, game_id
        query = "&".join(f"place={place}" for place in places)
        assert get(pages, f"/games/{game_id}/_otherwise.json?{query}").status == 400, game_id
    hypothetical, game = (
        get_json(pages, f"/games/grouped{rest}") for rest in ("/_otherwise?place=2&place=1&place=3", "")
    )
    assert {row["ladder"] for row in hypothetical["rows"]} == {row["ladder"] for row in game["ladders"]}


def find_change(game: dict[str, Any], ladder: str, player: str) -> Any:
    players = next(row["players"] for row in game["ladders"] if row["ladder"] == ladder)
    return next(row["change"] for row in players if row["player"] == player)


@pytest.mark.parametrize("query", ["", "place=1", "place=1&place=3&place=4&place=4", "place=0&place=1&place=2&place=3",
                                   "place=x&place=1&place=2&place=3", "place=5&place=1&place=2&place=3"])  # fmt: skip
def test_impossible_places_are_refused(pages: Application, query: str) -> None:
    """Places that no result of the game can have give status 400 with the reason."""
    response = get(pages, f"/games/g-3/_otherwise.json?{query}")
    assert response.status == 400
    assert "place" in json.loads(response.text)["error"]["reason"]


def test_log_is_filtered_and_newest_first(pages: Application) -> None:
    """The log is filtered by subject, type and recorder, the page lists the newest event first; unknown filters are
    refused."""
    rows = get_json(pages, "/log")["rows"]
    assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
    text = extract_text(get(pages, "/log")).partition("Position Recorded")[2]
    assert text.index("game.corrected") < text.index("list.published") < text.index("ruleset.published")
    about = get_json(pages, "/log?about=g-1")["rows"]
    assert [row["type"] for row in about] == ["game.recorded", "game.corrected"]
    assert [row["type"] for row in get_json(pages, "/log?type=list.published")["rows"]] == ["list.published"]
    assert get_json(pages, "/log?by=nobody")["rows"] == []
    assert {row["by"] for row in get_json(pages, "/log?by=mira&about=anna")["rows"]} == {"mira"}
    assert get(pages, "/log?type=game.lost").status == 400
    assert get(pages, "/?about=anna").status == 400
    assert "noindex" in get(pages, "/log?by=mira").headers["x-robots-tag"]


@pytest.mark.slow
def test_long_log_is_divided_into_pages(
    pages: Application, url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log is divided into complete pages that never change; each links to the previous one."""
    set_thresholds(monkeypatch, page_events=3)
    head = get_json(pages, "/status")["position"]
    positions, address = list[int](), "/log"
    while address:
        positions += [row["position"] for row in reversed(get_json(pages, address)["rows"])]
        older = re.search(r'<a href="([^"]*)" rel="prev">', get(pages, address).text)
        address = f"/log/{older[1].rpartition('/')[2]}" if older else ""
    assert sorted({*positions}) == list(range(1, head + 1))
    before = get(pages, "/log/1").body
    write_pages(url, tmp_path / "site")
    assert len(list((tmp_path / "site" / "log").glob("*.html"))) == (head - 1) // 3
    run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-7", "anna", "ben", db=url)
    assert get(pages, "/log/1").body == before
    assert get(pages, f"/log/{head}").status == 404
    filtered = get(pages, "/log?by=mira").text
    assert re.search(r'href="[^"]*known_at=\d+[^"]*" rel="prev"', filtered)


@pytest.mark.slow_cases
def test_status_page_shows_head_and_last_runs(pages: Application, url: str, ratings: Ratings) -> None:
    """The status page shows the head and the last runs, and does not reveal the location of the ledger."""
    text = extract_text(get(pages, "/status"))
    assert "Last verified never" in text
    assert "Last rebuilt never" in text
    run_ok(ratings, "verify", db=url)
    run_ok(ratings, "rebuild", db=url)
    status, page = get_json(pages, "/status"), get(pages, "/status")
    with ratings_ledger.open(url) as ledger:
        assert (status["head"], status["position"]) == (str(ledger.head), ledger.head.position)
        assert ledger.location not in page.text
    assert (status["verified"]["result"], status["rebuilt"]["result"], status["behind"]) == ("done", "done", 0)
    assert "Last verified done on" in extract_text(page)
    assert url not in page.text
    refusal = get(pages, "/status?as_of=2025-01-01")
    assert refusal.status == 400
    assert "is not a parameter of this page; it takes none." in refusal.text


@pytest.mark.slow_cases
def test_unrelated_pages_do_not_change_with_the_head(pages: Application, url: str, ratings: Ratings) -> None:
    """A new game leaves the pages of lists, changes and games that it does not concern unchanged, byte for byte."""
    position = find_correction_position(ratings, url)
    unrelated = ("/lists", f"/lists/{LADDER}", f"/changes/{position}", "/rules", "/games/g-2")
    before = {address: get(pages, address).body for address in unrelated}
    run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-6", "--at", "2025-03-14T20:00Z", "anna", "ben",
       db=url)  # fmt: skip
    assert {address: get(pages, address).body for address in before} == before


def test_ladder_counts_games_per_month(url: str, ratings: Ratings) -> None:
    """A ladder lists its number of games per month up to its last game, in Berlin's months and without gaps."""
    run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-8", "--at", "2025-04-30T22:30Z", "anna", "ben",
       db=url)  # fmt: skip
    with ratings_ledger.open(url) as ledger:
        months = {row.ladder: row.months for row in ledger.at().ladders().rows}
    assert months[LADDER] == (2, 2, 1, 0, 1)


def write_site_files(url: str, folder: Path) -> dict[str, bytes]:
    """Update a site and return its files, without the status, which depends on jobs."""
    write_pages(url, folder)
    paths = (path for path in folder.rglob("*.*") if path.stem != "status")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_end_of_month_closes_list_without_an_event(
    pages: Application, url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a month ends, its list closes and pays its gold without a new event, on a running server and in a folder."""
    import_april_games(ratings, url, tmp_path)
    set_clock(monkeypatch, NOON_US)
    listed = "/ladders/catan-monthly/berlin/open/2025-04"
    assert "is still running" in extract_text(get(pages, listed))
    before = {address: get(pages, address).body for address in ("/lists", "/players/anna", listed)}
    write_site_files(url, tmp_path / "site")
    set_clock(monkeypatch, NOON_US + 15 * DAY_US)
    assert "is still running" not in extract_text(get(pages, listed))
    assert {address for address in before if get(pages, address).body != before[address]} == set(before)
    old, new = write_site_files(url, tmp_path / "site"), write_site_files(url, tmp_path / "new")
    del old["MANIFEST.json"], new["MANIFEST.json"]
    assert [name for name in old | new if old.get(name) != new.get(name)] == []


@pytest.mark.slow
def test_updated_site_equals_new_site(
    url: str, store_kind: str, ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """After each decision that removes or restores pages, an updated folder equals a newly written one, and no link is
    broken.

    In the second store only the last step is compared.
    """
    compares_each_step = at_length or store_kind == "sqlite"

    def write_files(folder: str) -> dict[str, bytes]:
        return write_site_files(url, tmp_path / folder)

    write_files("site")
    renamed = json.dumps(
        {
            "type": "player.renamed",
            "occurred_at": "2025-04-01T00:00:00Z",
            "data": {"player": "anna", "new_player": "zoe"},
        }
    )
    decision_options = ("--reason", "so it was", "--by", "mira")
    steps = (
        ("import", "-"),
        ("void", "g-5", *decision_options),
        ("adjust", LADDER, "ben", "5", *decision_options),
        ("record", "-q", "--game", "catan", "--game-id", "g-9", "--at", "2025-01-20T20:00Z", "ben", "zoe"),
        ("reinstate", "g-5", *decision_options),
        ("publish", LADDER, "--as-of", "2025-03-31", "--by", "mira"),
    )
    for number, step in enumerate(steps, 1):
        result = ratings(*step, db=url, input=renamed if step[0] == "import" else None)
        assert result.exit_code == 0, result
        old = write_files("site")
        if not compares_each_step and number < len(steps):
            continue
        new = write_files(f"new-{number}")
        del old["MANIFEST.json"], new["MANIFEST.json"]
        assert old.keys() == new.keys(), step
        assert [name for name in old if old[name] != new[name]] == [], step
        for name in (name for name in old if name.endswith(".html")):
            for link in re.findall(rb'href="([^"#]+)[#"]', old[name]):
                target = (tmp_path / "site" / name).parent / link.decode().replace("%7E", "~")
                assert target.resolve().is_file(), (step, name, link)


@pytest.mark.slow_cases
def test_addresses_with_cut_ids_work_before_the_first_game(
    url: str, pages: Application, ratings: Callable[..., Any]
) -> None:
    """An address with a shortened id gives the same status as a full id, also before the player's first game."""
    long_name, short_name = "名" * 64, "dora"
    for game_id, player in (("long", long_name), ("short", short_name)):
        record_game(ratings, url, game_id, "2025-06-01T20:00Z", player, "ben")
    for path in (addresses.player, lambda player: addresses.player_ladder(player, LADDER)):
        address, short_address = (
            "/" + "/".join(path(player)) + "?as_of=2020-01-31" for player in (long_name, short_name)
        )
        assert "~~" in address
        assert (get(pages, address).status, get(pages, address.partition("?")[0]).status) == (
            get(pages, short_address).status,
            200,
        )
        assert "an id in an address has" not in get(pages, address).text
