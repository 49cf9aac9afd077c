"""Lists, changes, the log, leagues, clocks and the status: what each says is what the commands say."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from asking import Application, TimelineEntry, get, write_pages
from club import LADDER, ok
from ledgers import set_clock
from thresholds import set_thresholds

import ratings_ledger
from ratings_ledger.web import addresses

Ratings = Callable[..., Any]

NOON, DAY = 1_745_150_400_000_000, 86_400_000_000  # 2025-04-20T12:00Z, in microseconds


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for new events at every request."""
    set_thresholds(monkeypatch, head_us=0)


def shown(told: TimelineEntry) -> str:
    """The text of a page, without markup and the space between words."""
    assert told.status == 200, told.text
    text = re.sub(r"<[^>]*>", " ", told.text.partition("<main")[2].partition("</main>")[0])
    return " ".join(text.replace("&#39;", "'").split())


def told_json(pages: Application, address: str) -> Any:
    path, _, query = address.partition("?")
    told = get(pages, f"{path}.json" + (f"?{query}" if query else ""))
    assert told.status == 200, told.text
    return json.loads(told.text)


def corrected_at(ratings: Ratings, url: str) -> int:
    events = json.loads(ok(ratings, "log", "--type", "game.corrected", "--format", "json", db=url).stdout)
    rows = events if isinstance(events, list) else events["rows"]
    return int(rows[-1]["position"])


def test_published_list_stands_beside_the_one_of_today(pages: Application, url: str, ratings: Ratings) -> None:
    """Given a game that was corrected since a list was published, its page has both, and the causes sum exactly."""
    found = told_json(pages, f"/lists/{LADDER}")
    published = json.loads(ok(ratings, "standings", LADDER, "--as-published", "--format", "json", db=url).stdout)
    now = json.loads(ok(ratings, "standings", LADDER, "--as-of", "2025-02-28", "--format", "json", db=url).stdout)
    assert [(row["player"], row["before"]) for row in found["rows"]] == [
        (row["player"], row["points"]) for row in published["rows"]
    ]
    assert {row["player"]: row["after"] for row in found["rows"]} == {
        row["player"]: row["points"] for row in now["rows"]
    }
    assert {one["type"] for one in found["decisions"]} == {"game.corrected"}
    for row in found["rows"]:
        amounts = [Fraction(cause["amount"]) for cause in row["causes"]]
        assert sum(amounts, Fraction(0)) == Fraction(row["after"]) - Fraction(row["before"])
    assert found["differing"] == sum(row["before"] != row["after"] for row in found["rows"]) > 0
    text = shown(get(pages, f"/lists/{LADDER}"))
    assert f"would differ for {found['differing']} of " in text
    assert "scores &lt;read&gt; wrong" in get(pages, f"/lists/{LADDER}").text
    assert get(pages, "/lists/elo-catan/3-4").status == 404


@pytest.mark.slow_cases
def test_lists_have_what_was_published(pages: Application, ratings: Ratings, url: str) -> None:
    """A list that is published appears, with a link to its page."""
    assert f"{LADDER.removesuffix('/all')} 28 Feb 2025" in shown(get(pages, "/lists"))
    ok(ratings, "publish", "elo-catan/3-4", "--as-of", "2025-01-31", "--by", "mira", db=url)
    assert "elo-catan/3-4 31 Jan 2025" in shown(get(pages, "/lists"))
    assert get(pages, "/lists/elo-catan/3-4").status == 200
    assert get(pages, "/lists/elo-catan/3-4?as_of=2025-01-31").status == 200
    assert get(pages, "/lists/elo-catan/3-4?as_of=2025-01-30").status == 404
    ok(ratings, "publish", LADDER, "--as-of", "2025-01-31", "--by", "mira", db=url)
    earlier = re.search(r'<a href="([^"]*)">28 Feb 2025</a>', get(pages, f"/lists/{LADDER}").text)
    assert earlier is not None
    address = urljoin(f"/lists/{LADDER}", earlier[1])
    assert told_json(pages, address)["as_of"].startswith("2025-02-28T22:59:59")


def test_published_list_can_be_pinned_up(pages: Application, ratings: Ratings, url: str) -> None:
    """Its page begins with rank, name, points, games and change since the list before; of the first, without one."""
    ok(ratings, "publish", LADDER, "--as-of", "2025-01-31", "--by", "mira", db=url)
    ok(ratings, "player", "rename", "anna", "zoe", "--by", "mira", db=url)
    lists = {
        day: json.loads(
            ok(ratings, "standings", LADDER, "--as-published", "--as-of", day, "--format", "json", db=url).stdout
        )["rows"]
        for day in ("2025-01-31", "2025-02-28")
    }
    earlier = {row["player"]: row for row in lists["2025-01-31"]}
    found = told_json(pages, f"/lists/{LADDER}")
    assert found["previous"] == "2025-01-31T22:59:59.999999Z"
    names = {"anna": "zoe"}
    for row, published in zip(found["rows"], lists["2025-02-28"], strict=True):
        before = earlier.get(published["player"]) or earlier.get(names.get(published["player"], ""))
        since = None if before is None else Fraction(published["points"]) - Fraction(before["points"])
        assert row["player"] == names.get(published["player"], published["player"])
        assert row["games"] == published["games"]
        assert (row["since_previous"] and Fraction(row["since_previous"])) == since
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
    """Given two lists of a ladder, each stays at its address, on a server and in a folder; `lists` links to both."""
    ok(ratings, "publish", LADDER, "--as-of", "2025-01-31", "--by", "mira", db=url)
    rows = [row for row in told_json(pages, "/lists")["published"] if row["ladder"] == LADDER]
    assert len(rows) == 2
    write_pages(url, tmp_path / "site")
    lists = (tmp_path / "site/lists.html").read_text()
    for row in rows:
        address = f"lists/{LADDER}/_{row['position']}"
        assert f'href="{address}"' in get(pages, "/lists").text
        assert f'href="{address}.html"' in lists
        assert told_json(pages, f"/{address}")["as_of"] == row["as_of"]
        in_folder = (tmp_path / f"site/{address}.html").read_text()
        assert f"at position {row['position']}" in in_folder
    latest = max(rows, key=lambda row: (row["as_of"], row["position"]))
    assert told_json(pages, f"/lists/{LADDER}") == told_json(pages, f"/lists/{LADDER}/_{latest['position']}")
    assert get(pages, f"/lists/{LADDER}/_1").status == 404


def test_change_is_what_the_command_says(pages: Application, url: str, ratings: Ratings) -> None:
    """What a correction did is the difference between the ladders just before it and at it."""
    position = corrected_at(ratings, url)
    found = told_json(pages, f"/changes/{position}")
    differences = json.loads(ok(ratings, "diff", str(position - 1), str(position), "--format", "json", db=url).stdout)
    wanted = {
        (one["ladder"], row["player"]): row["change"]
        for one in differences["ladders"] for row in one["rows"] if row["change"] not in (None, "0")
    }  # fmt: skip
    assert {(row["ladder"], row["player"]): row["change"] for row in found["rows"]} == wanted
    assert found["reason"] == "scores <read> wrong"
    assert [one["ladder"] for one in found["published"]] == [LADDER]
    for one in found["ladders"]:
        changes = sorted(abs(Fraction(row["change"])) for row in found["rows"] if row["ladder"] == one["ladder"])
        rows = json.loads(
            ok(ratings, "standings", one["ladder"], "--known-at", str(position), "--format", "json", db=url).stdout
        )["rows"]
        assert one["up"] + one["down"] == len(changes)
        assert one["up"] + one["down"] + one["stayed"] + one["joined"] == len(rows)
        assert Fraction(one["largest"]) == changes[-1]
        middle = changes[(len(changes) - 1) // 2 : len(changes) // 2 + 1]
        assert Fraction(one["median"]) == sum(middle, Fraction(0)) / len(middle)
    assert "“scores <read> wrong”".replace("<", "&lt;").replace(">", "&gt;") in get(pages, f"/changes/{position}").text


@pytest.mark.parametrize("position", ["0", "-1", "01", "x", "99999", "9" * 30, "1.5"])
def test_no_page_of_a_position_that_is_none(pages: Application, position: str) -> None:
    """What is no position of the log has no page, and the reason is told."""
    assert get(pages, f"/changes/{position}").status == 404


@pytest.mark.slow_cases
def test_change_of_every_position_can_be_told(pages: Application) -> None:
    """Whatever the event at a position is, its page says what it did, if anything."""
    head = told_json(pages, "/status")["position"]
    for position in range(1, head + 1):
        assert get(pages, f"/changes/{position}").status == 200, position


def test_story_and_statement_link_to_the_change(pages: Application, url: str, ratings: Ratings) -> None:
    """Who asks why points moved comes from the game, the statement and the first page to what a correction did."""
    position = corrected_at(ratings, url)
    for address in ("/games/g-1", f"/players/anna/{LADDER}", "/", "/log", f"/lists/{LADDER}"):
        assert f'changes/{position}"' in get(pages, address).text, address


@pytest.mark.slow
def test_late_game_has_a_change(pages: Application, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game that was recorded after a list on which it belongs has a page of what it did in a folder; others none."""
    ok(ratings, "record", "-q", "--game", "catan", "--game-id", "late", "--at", "2025-01-05T20:00Z", "anna", "ben",
       db=url)  # fmt: skip
    with ratings_ledger.open(url) as ledger:
        write_pages(ledger, tmp_path / "site")
        head = ledger.head.position
    there = {int(path.stem) for path in (tmp_path / "site" / "changes").glob("*.html")}
    events = told_json(pages, "/log")["rows"]
    decided = ("game.corrected", "ruleset.published")
    assert there == {row["position"] for row in events if row["type"] in decided} | {head}


def play_april(ratings: Ratings, url: str, folder: Path) -> None:
    """Twenty games of April, which count for a monthly list."""
    ok(ratings, "rules", "publish", "--shipped", "catan-monthly", "--by", "mira", db=url)
    seats = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben", "Łukasz"), 1)]
    games = [{"game_id": f"h-{number}", "game": "catan", "city": "berlin", "group": "open", "participants": seats}
             for number in range(20)]  # fmt: skip
    lines = [{"type": "game.recorded", "occurred_at": "2025-04-01T20:00Z", "data": game} for game in games]
    (folder / "games.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ok(ratings, "import", str(folder / "games.jsonl"), "--by", "mira", db=url)


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_person_has_earlier_ids_games_and_gold(
    cached: bool, pages: Application, url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a person says who they were before, what they did, and which lists gave them gold."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1 if cached else 10**9)
    play_april(ratings, url, tmp_path)
    ok(ratings, "player", "rename", "anna", "anna-b", "--by", "mira", db=url)
    told = told_json(pages, "/players/anna-b")
    assert (told["earlier"], told["started"], told["finished"]) == (["anna"], 24, 24)
    assert (told["stars"], told["golden"], told["ratio"]) == (3, True, "1")
    assert {row["ladder"] for row in told["rows"]} >= {LADDER, "catan-monthly/berlin/open/2025-04"}
    lists = json.loads(ok(ratings, "statistics", "anna-b", "--format", "json", db=url).stdout)
    assert told["gold_by_list"] == lists["gold_by_list"]
    assert told["gold_by_list"]
    text = shown(get(pages, "/players/anna-b"))
    assert "formerly anna" in text
    assert f"{told['gold']} from" in text
    assert get(pages, "/players/anna").status == 404
    with ratings_ledger.open(url) as ledger:
        write_pages(ledger, tmp_path / "site")
        ok(ratings, "record", "-q", "--game", "chess", "--game-id", "c-1", "--at", "2025-05-01T20:00Z", "--by", "mira",
           "anna-b", "ben", db=url)  # fmt: skip
        write_pages(ledger, tmp_path / "site")
        head = ledger.head.position
    there = json.loads((tmp_path / "site" / "players" / "anna-b.json").read_text())
    assert (there["started"], there["known_at"]) == (25, head)
    assert told_json(pages, f"/players/anna-b?known_at={head}")["started"] == 25


def test_ruleset_says_what_its_rule_does_and_what_changed(pages: Application, url: str, ratings: Ratings) -> None:
    """The page of a version has the rule in words, and every key that differs from the version before it."""
    ok(ratings, "rules", "publish", "--shipped", "youplay-wsim", "--by", "mira", db=url)
    first, second, third = (shown(get(pages, f"/rules/youplay-wsim/v{number}")) for number in (0, 1, 2))
    assert "What the rule does" in first
    assert "What changed since" not in first
    assert "What changed since version v0" in second
    changed = third.partition("What changed since version v1")[2].partition("Settings")[0]
    assert "params.top_scorer 1 0" in changed
    assert "effective_from – 2010-01-01" in changed
    assert "scope.kind" not in changed


def test_another_result_gives_what_a_correction_would(pages: Application, url: str, ratings: Ratings) -> None:
    """What a game would have given with other places is what it gives once it is corrected; nothing is recorded."""
    head = told_json(pages, "/status")["position"]
    was = told_json(pages, "/games/g-3")
    told = told_json(pages, "/games/g-3/_otherwise?place=4&place=1&place=1&place=3")
    assert told_json(pages, "/status")["position"] == head
    assert "Hypothetical result" in get(pages, "/games/g-3").text
    assert "as it was played" in get(pages, "/games/g-3/_otherwise?place=4&place=1&place=1&place=3").text
    ok(ratings, "correct", "g-3", "anna=ben", "美咲", "Łukasz", "--reason", "wrong", "--by", "mira", db=url)
    now = told_json(pages, "/games/g-3")
    assert [row["player"] for row in told["rows"] if row["ladder"] == LADDER] == ["anna", "ben", "美咲", "Łukasz"]
    for row in told["rows"]:
        before, after = (change_of(game, row["ladder"], row["player"]) for game in (was, now))
        assert (row["gave"], row["would_give"]) == (before, after)
        assert Fraction(row["difference"]) == Fraction(after) - Fraction(before)


@pytest.mark.slow_cases
def test_other_results_are_shown_of_games_that_can_have_them(
    pages: Application, url: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Not of one that is voided, whose places follow from scores, that somebody left, or that has too many players; and
    what a correction took out of a game stays out."""
    seats = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben", "Łukasz"), 1)]
    left = [seats[0], seats[1] | {"status": "abandoned"}, {"player": "Łukasz", "place": 2, "status": "substitute",
                                                      "replaces": "ben"}]  # fmt: skip
    games = {
        "scored": [one | {"score": 10 - one["place"]} for one in seats], "left": left,
        "many": [{"player": f"p-{number}", "place": number} for number in range(1, 18)], "grouped": seats,
    }  # fmt: skip
    lines = [
        {"type": "game.recorded", "occurred_at": "2025-04-01T20:00Z",
         "data": {"game_id": name, "game": "catan", "group": "basic", "participants": one}}
        for name, one in games.items()
    ]  # fmt: skip
    whole = {"game_id": "grouped", "game": "catan", "participants": seats}
    lines.append({"type": "game.corrected", "occurred_at": "2025-04-02T20:00Z",
                  "data": {"game_id": "grouped", "game": whole, "reason": "no group"}})  # fmt: skip
    (tmp_path / "games.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ok(ratings, "import", str(tmp_path / "games.jsonl"), "--by", "mira", db=url)
    ok(ratings, "void", "g-4", "--reason", "never played", "--by", "mira", db=url)
    assert "group" not in told_json(pages, "/games/grouped")["data"]
    for game_id, places in {"scored": "213", "left": "211", "many": "1" * 17, "g-4": "21"}.items():
        assert "Hypothetical result" not in get(pages, f"/games/{game_id}").text, game_id
        query = "&".join(f"place={place}" for place in places)
        assert get(pages, f"/games/{game_id}/_otherwise.json?{query}").status == 400, game_id
    told, was = (told_json(pages, f"/games/grouped{rest}") for rest in ("/_otherwise?place=2&place=1&place=3", ""))
    assert {row["ladder"] for row in told["rows"]} == {row["ladder"] for row in was["ladders"]}


def change_of(game: dict[str, Any], ladder: str, player: str) -> Any:
    found = next(one for one in game["ladders"] if one["ladder"] == ladder)
    return next(one["change"] for one in found["players"] if one["player"] == player)


@pytest.mark.parametrize("query", ["", "place=1", "place=1&place=3&place=4&place=4", "place=0&place=1&place=2&place=3",
                                   "place=x&place=1&place=2&place=3", "place=5&place=1&place=2&place=3"])  # fmt: skip
def test_no_other_result_with_places_that_none_has(pages: Application, query: str) -> None:
    """Places that no result has are refused, with the reason."""
    told = get(pages, f"/games/g-3/_otherwise.json?{query}")
    assert told.status == 400
    assert "place" in json.loads(told.text)["error"]["reason"]


def test_log_is_filtered_and_newest_first(pages: Application) -> None:
    """The log has every event, or those about somebody, of a type, by somebody; what cannot be asked is refused."""
    rows = told_json(pages, "/log")["rows"]
    assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
    text = shown(get(pages, "/log")).partition("Position Recorded")[2]
    assert text.index("game.corrected") < text.index("list.published") < text.index("ruleset.published")
    about = told_json(pages, "/log?about=g-1")["rows"]
    assert [row["type"] for row in about] == ["game.recorded", "game.corrected"]
    assert [row["type"] for row in told_json(pages, "/log?type=list.published")["rows"]] == ["list.published"]
    assert told_json(pages, "/log?by=nobody")["rows"] == []
    assert {row["by"] for row in told_json(pages, "/log?by=mira&about=anna")["rows"]} == {"mira"}
    assert get(pages, "/log?type=game.lost").status == 400
    assert get(pages, "/?about=anna").status == 400
    assert "noindex" in get(pages, "/log?by=mira").headers["x-robots-tag"]


@pytest.mark.slow
def test_log_has_pages(
    pages: Application, url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log has complete pages which never change, and from the newest one all are reached."""
    set_thresholds(monkeypatch, page_events=3)
    head = told_json(pages, "/status")["position"]
    seen, address = list[int](), "/log"
    while address:
        seen += [row["position"] for row in reversed(told_json(pages, address)["rows"])]
        older = re.search(r'<a href="([^"]*)" rel="prev">', get(pages, address).text)
        address = f"/log/{older[1].rpartition('/')[2]}" if older else ""
    assert sorted({*seen}) == list(range(1, head + 1))
    before = get(pages, "/log/1").body
    write_pages(url, tmp_path / "site")
    assert len(list((tmp_path / "site" / "log").glob("*.html"))) == (head - 1) // 3
    ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-7", "anna", "ben", db=url)
    assert get(pages, "/log/1").body == before
    assert get(pages, f"/log/{head}").status == 404
    filtered = get(pages, "/log?by=mira").text
    assert re.search(r'href="[^"]*known_at=\d+[^"]*" rel="prev"', filtered)


@pytest.mark.slow_cases
def test_status_says_what_was_verified_and_no_more(pages: Application, url: str, ratings: Ratings) -> None:
    """The status has the head and the last runs as soon as they ended, and says nothing of where the ledger lies."""
    text = shown(get(pages, "/status"))
    assert "Last verified never" in text
    assert "Last rebuilt never" in text
    ok(ratings, "verify", db=url)
    ok(ratings, "rebuild", db=url)
    found, told = told_json(pages, "/status"), get(pages, "/status")
    with ratings_ledger.open(url) as ledger:
        assert (found["head"], found["position"]) == (str(ledger.head), ledger.head.position)
        assert ledger.location not in told.text
    assert (found["verified"]["result"], found["rebuilt"]["result"], found["behind"]) == ("done", "done", 0)
    assert "Last verified done on" in shown(told)
    assert url not in told.text
    assert get(pages, "/status?as_of=2025-01-01").status == 400


@pytest.mark.slow_cases
def test_other_pages_do_not_state_the_head(pages: Application, url: str, ratings: Ratings) -> None:
    """One more game leaves the pages of lists and changes that it does not concern as they were, byte for byte."""
    position = corrected_at(ratings, url)
    addresses = (f"/lists/{LADDER}", f"/changes/{position}", "/rules", "/games/g-2")
    before = {address: get(pages, address).body for address in ("/lists", *addresses)}
    ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-6", "--at", "2025-03-14T20:00Z", "anna", "ben",
       db=url)  # fmt: skip
    assert {address: get(pages, address).body for address in before} == before


def test_activity_is_games_a_month(url: str, ratings: Ratings) -> None:
    """A ladder knows how many games each month had, up to that of its last game: Berlin's months, no gap left out."""
    ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-8", "--at", "2025-04-30T22:30Z", "anna", "ben",
       db=url)  # fmt: skip
    with ratings_ledger.open(url) as ledger:
        months = {row.ladder: row.months for row in ledger.at().ladders().rows}
    assert months[LADDER] == (2, 2, 1, 0, 1)


def written(url: str, folder: Path) -> dict[str, bytes]:
    """The files of a site that is brought up to date, but for the status, which tells of jobs."""
    write_pages(url, folder)
    found = (path for path in folder.rglob("*.*") if path.stem != "status")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.mark.slow
def test_end_of_a_month_is_seen_without_an_event(
    pages: Application, url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a month is over, its list is closed and pays its gold: on a server that had answered before, and in a
    folder that was written before.
    """
    play_april(ratings, url, tmp_path)
    set_clock(monkeypatch, NOON)
    listed = "/ladders/catan-monthly/berlin/open/2025-04"
    assert "is still running" in shown(get(pages, listed))
    before = {address: get(pages, address).body for address in ("/lists", "/players/anna", listed)}
    written(url, tmp_path / "site")
    set_clock(monkeypatch, NOON + 15 * DAY)
    assert "is still running" not in shown(get(pages, listed))
    assert {address for address in before if get(pages, address).body != before[address]} == set(before)
    old, new = written(url, tmp_path / "site"), written(url, tmp_path / "new")
    del old["MANIFEST.json"], new["MANIFEST.json"]
    assert [name for name in old | new if old.get(name) != new.get(name)] == []


@pytest.mark.slow
def test_a_site_brought_up_to_date_is_the_one_made_anew(
    url: str, store_kind: str, ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """After decisions that take pages away, and games that bring them back, the folder has what a new one has.

    It is compared after each step, or in the second store after the last.
    """
    each = at_length or store_kind == "sqlite"

    def files(folder: str) -> dict[str, bytes]:
        return written(url, tmp_path / folder)

    files("site")
    renamed = json.dumps(
        {
            "type": "player.renamed",
            "occurred_at": "2025-04-01T00:00:00Z",
            "data": {"player": "anna", "new_player": "zoe"},
        }
    )
    why = ("--reason", "so it was", "--by", "mira")
    steps = (
        ("import", "-"), ("void", "g-5", *why), ("adjust", LADDER, "ben", "5", *why),
        ("record", "-q", "--game", "catan", "--game-id", "g-9", "--at", "2025-01-20T20:00Z", "ben", "zoe"),
        ("reinstate", "g-5", *why), ("publish", LADDER, "--as-of", "2025-03-31", "--by", "mira"),
    )  # fmt: skip
    for number, step in enumerate(steps, 1):
        told = ratings(*step, db=url, input=renamed if step[0] == "import" else None)
        assert told.exit_code == 0, told
        old = files("site")
        if not each and number < len(steps):
            continue
        new = files(f"new-{number}")
        del old["MANIFEST.json"], new["MANIFEST.json"]
        assert old.keys() == new.keys(), step
        assert [name for name in old if old[name] != new[name]] == [], step
        for name in (name for name in old if name.endswith(".html")):
            for link in re.findall(rb'href="([^"#]+)[#"]', old[name]):
                target = (tmp_path / "site" / name).parent / link.decode().replace("%7E", "~")
                assert target.resolve().is_file(), (step, name, link)


@pytest.mark.slow_cases
def test_long_names_are_known_before_their_first_game(
    url: str, pages: Application, ratings: Callable[..., Any]
) -> None:
    """An address with a cut id means the same person, also at a time when nobody of that name had played yet."""
    long, short = "名" * 64, "dora"
    for game_id, player in (("long", long), ("short", short)):
        ok(ratings, "record", "-q", "--game", "catan", "--game-id", game_id, "--at", "2025-06-01T20:00Z", player, "ben",
           db=url)  # fmt: skip
    for path in (addresses.player, lambda player: addresses.player_ladder(player, LADDER)):
        address, usual = ("/" + "/".join(path(player)) + "?as_of=2020-01-31" for player in (long, short))
        assert "~~" in address
        assert (get(pages, address).status, get(pages, address.partition("?")[0]).status) == (
            get(pages, usual).status, 200,
        )  # fmt: skip
        assert "an id in an address has" not in get(pages, address).text
