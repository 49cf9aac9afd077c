"""All games as a file: taken by `import` elsewhere, they give the same ladders; and they are sent part by part."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from asking import break_off_games, get, serve, write_pages
from club import LADDER, create_club, run_ok
from lengths import mark_long_values
from thresholds import set_thresholds

import ratings_ledger
from ratings_ledger import LedgerError, Refused, StoreUnavailable

Ratings = Callable[..., Any]
Event = dict[str, Any]
PEOPLE = ["anna", "ben", "cleo", "dora", "Łukasz", "美咲"]


def lines(url: str, query: str = "") -> list[Event]:
    response = get(serve(url), f"/games.jsonl{query}")
    assert (response.status, response.headers["content-type"]) == (200, "application/jsonl"), response.text
    assert "content-length" not in response.headers
    return [json.loads(line) for line in response.text.splitlines()]


def ladders(url: str) -> dict[str, Any]:
    """The digest of every ladder."""
    with ratings_ledger.open(url) as ledger:
        found = ledger.at().every_standings()
        return {one.ladder: one.digest for one in found if isinstance(one, ratings_ledger.Standings)}


def imported_elsewhere(ratings: Ratings, url: str, path: Path, *init: str) -> str:
    """A new ledger with the games of another one's file."""
    file, copy = path / "games.jsonl", f"sqlite:///{path / 'copy.db'}"
    file.write_bytes(get(serve(url), "/games.jsonl").body)
    run_ok(ratings, "init", *init, db=copy)
    run_ok(ratings, "import", file, "--allow-uncounted", "--any-date", db=copy)
    return copy


def test_the_club_elsewhere(copied: Callable[..., str], ratings: Ratings, tmp_path: Path) -> None:
    """The club's games, one of them corrected, give the same standings in another ledger; a voided one is not there."""
    url = copied(create_club)
    copy = imported_elsewhere(ratings, url, tmp_path, "--for", "catan")
    assert ladders(copy) == ladders(url)
    assert LADDER in ladders(copy)
    run_ok(ratings, "void", "g-2", "--reason", "never played", "--by", "mira", db=url)
    assert [line["data"]["game_id"] for line in lines(url)] == ["g-1", "g-3", "g-4", "g-5"]
    assert len(lines(url, "?known_at=8")) == len(lines(copy, "?as_of=2025-02-28")) + 1 == 5


def game_of(chance: Random, game_id: str) -> Event:
    places = sorted(chance.choices(range(1, 5), k=chance.randint(2, 4)))
    ranked = [places.index(place) + 1 for place in places]
    seats = chance.sample(PEOPLE, len(places))
    placed = [{"player": player, "place": place} for player, place in zip(seats, ranked, strict=True)]
    slug = chance.choice(["catan", "club-catan"])
    return {"game_id": game_id, "game": slug, "group": "basic", "city": "7", "participants": placed}


def step(chance: Random, number: int) -> Event:
    """An event that somebody may want to record; many are refused."""
    at = f"2009-0{chance.randint(2, 6)}-{chance.randint(1, 28):02}T{chance.choice([12, 20])}:00:00Z"
    known = f"g-{chance.randint(1, 20)}"
    kind = chance.choices(
        ["game.recorded", "game.corrected", "game.voided", "game.reinstated", "player.renamed"], [20, 5, 4, 3, 1]
    )[0]
    data: Event = {"game_id": known, "reason": "as it was"}
    if kind == "game.recorded":
        data = game_of(chance, f"g-{number}")
    elif kind == "game.corrected":
        dated = {"occurred_at": at} if chance.random() < 0.4 else {}
        data |= {"game": game_of(chance, known) | dated}
    elif kind == "player.renamed":
        data = {"player": chance.choice(PEOPLE), "new_player": chance.choice([*PEOPLE, f"new-{number}"])}
    return {"type": kind, "occurred_at": at, "data": data}


def with_history(ratings: Ratings, url: str, seed: int) -> None:
    """Games with corrections, also of their dates, voids, reinstatements and renames, by chance."""
    run_ok(ratings, "init", db=url)
    chance = Random(seed)
    with ratings_ledger.open(url) as ledger:
        for number in range(1, 50):
            try:
                ledger.propose(step(chance, number), "mira", new_names="accept", allow_uncounted=True).commit()
            except (Refused, LedgerError):
                continue


@pytest.mark.slow
@pytest.mark.parametrize("seed", mark_long_values(range(4), range(100)))
def test_random_histories_elsewhere(
    seed: int, copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:  # fmt: skip
    """Whatever became of games, those that stand give the same ladders, with the same digests, in another ledger."""
    url = copied_file(with_history, seed)
    found = ladders(url)
    assert len(found) > 3
    assert ladders(imported_elsewhere(ratings, url, tmp_path)) == found


@pytest.mark.slow
def test_parts_are_the_whole(copied: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sent in many parts, the file is the same as in one, and as in a folder; what somebody has is not sent again."""
    url = copied(create_club)
    pages = serve(url)
    whole = get(pages, "/games.jsonl")
    set_thresholds(monkeypatch, lines_together=1)
    assert get(pages, "/games.jsonl").body == whole.body
    response = get(pages, "/games.jsonl", {"if-none-match": whole.headers["etag"]})
    assert (response.status, response.body) == (304, b"")
    assert get(pages, "/games.jsonl", method="HEAD").body == b""
    assert get(pages, "/games.jsonl?as_of=2025-01-31").headers["etag"] != whole.headers["etag"]
    write_pages(url, tmp_path / "site")
    assert (tmp_path / "site" / "games.jsonl").read_bytes() == whole.body
    assert pages._downloads == 0


def test_file_that_breaks_off_has_no_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store is lost half-way, the end is missing, so that nobody takes a part for the whole."""
    pages = serve(url)
    break_off_games(monkeypatch, StoreUnavailable("gone", "unreachable"))
    sent: list[Any] = []
    response = get(pages, "/games.jsonl", sent=sent)
    assert (response.status, response.body) == (200, b"{}\n")
    assert all(one.get("more_body") for one in sent[1:])
    assert pages._downloads == 0


@pytest.fixture
def url(copied_file: Callable[..., str]) -> str:
    """The club's ledger in a file."""
    return copied_file(create_club)


def test_not_too_many_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes while others read all games is told to come back."""
    set_thresholds(monkeypatch, files_at_once=0)
    response = get(serve(url), "/games.jsonl")
    assert (response.status, response.headers["retry-after"]) == (503, "5")
