"""The file of all games: imported into another ledger it gives the same ladders, and it is sent in parts."""

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


def read_games(url: str, query: str = "") -> list[Event]:
    """Return the lines of the file of all games."""
    response = get(serve(url), f"/games.jsonl{query}")
    assert (response.status, response.headers["content-type"]) == (200, "application/jsonl"), response.text
    assert "content-length" not in response.headers
    return [json.loads(line) for line in response.text.splitlines()]


def read_digests(url: str) -> dict[str, Any]:
    """Return the digest of every ladder."""
    with ratings_ledger.open(url) as ledger:
        results = ledger.at().every_standings()
        return {result.ladder: result.digest for result in results if isinstance(result, ratings_ledger.Standings)}


def import_into_new_ledger(ratings: Ratings, url: str, folder: Path, *init_options: str) -> str:
    """Import the file of a ledger's games into a new ledger and return its URL."""
    file, copy = folder / "games.jsonl", f"sqlite:///{folder / 'copy.db'}"
    file.write_bytes(get(serve(url), "/games.jsonl").body)
    run_ok(ratings, "init", *init_options, db=copy)
    run_ok(ratings, "import", file, "--allow-uncounted", "--any-date", db=copy)
    return copy


def test_imported_games_file_gives_same_standings(
    copy_ledger: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """The club's games, one of them corrected, give the same standings in another ledger; a voided game is left out."""
    url = copy_ledger(create_club)
    copy = import_into_new_ledger(ratings, url, tmp_path, "--for", "catan")
    assert read_digests(copy) == read_digests(url)
    assert LADDER in read_digests(copy)
    run_ok(ratings, "void", "g-2", "--reason", "never played", "--by", "mira", db=url)
    assert [line["data"]["game_id"] for line in read_games(url)] == ["g-1", "g-3", "g-4", "g-5"]
    assert len(read_games(url, "?known_at=8")) == len(read_games(copy, "?as_of=2025-02-28")) + 1 == 5


def draw_game(rng: Random, game_id: str) -> Event:
    """Return the data of a random game with two to four players and ties."""
    places = sorted(rng.choices(range(1, 5), k=rng.randint(2, 4)))
    ranked = [places.index(place) + 1 for place in places]
    seats = rng.sample(PEOPLE, len(places))
    placed = [{"player": player, "place": place} for player, place in zip(seats, ranked, strict=True)]
    slug = rng.choice(["catan", "club-catan"])
    return {"game_id": game_id, "game": slug, "group": "basic", "city": "7", "participants": placed}


def draw_event(rng: Random, number: int) -> Event:
    """Return a random event about the games so far; many are refused."""
    at = f"2009-0{rng.randint(2, 6)}-{rng.randint(1, 28):02}T{rng.choice([12, 20])}:00:00Z"
    known_id = f"g-{rng.randint(1, 20)}"
    type_name = rng.choices(
        ["game.recorded", "game.corrected", "game.voided", "game.reinstated", "player.renamed"], [20, 5, 4, 3, 1]
    )[0]
    data: Event = {"game_id": known_id, "reason": "as it was"}
    if type_name == "game.recorded":
        data = draw_game(rng, f"g-{number}")
    elif type_name == "game.corrected":
        dated = {"occurred_at": at} if rng.random() < 0.4 else {}
        data |= {"game": draw_game(rng, known_id) | dated}
    elif type_name == "player.renamed":
        data = {"player": rng.choice(PEOPLE), "new_player": rng.choice([*PEOPLE, f"new-{number}"])}
    return {"type": type_name, "occurred_at": at, "data": data}


def create_random_history(ratings: Ratings, url: str, seed: int) -> None:
    """Create a ledger with random games, corrections (also of dates), voids, reinstatements and renames."""
    run_ok(ratings, "init", db=url)
    rng = Random(seed)
    with ratings_ledger.open(url) as ledger:
        for number in range(1, 50):
            try:
                ledger.propose(draw_event(rng, number), "mira", new_names="accept", allow_uncounted=True).commit()
            except (Refused, LedgerError):
                continue


@pytest.mark.slow
@pytest.mark.parametrize("seed", mark_long_values(range(4), range(100)))
def test_imported_random_games_give_same_digests(
    seed: int, copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """After random corrections, voids and renames, the live games give the same digests in another ledger."""
    url = copy_ledger_file(create_random_history, seed)
    digests = read_digests(url)
    assert len(digests) > 3
    assert read_digests(import_into_new_ledger(ratings, url, tmp_path)) == digests


@pytest.mark.slow
def test_file_in_parts_is_the_whole_file(
    copy_ledger: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file is the same in one part, in many and in a site's folder, and a client that has it gets 304."""
    url = copy_ledger(create_club)
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


def test_interrupted_file_has_no_last_part(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store is lost half-way, no last part is sent, so that no client takes a part for the whole."""
    pages = serve(url)
    break_off_games(monkeypatch, StoreUnavailable("gone", "unreachable"))
    sent: list[Any] = []
    response = get(pages, "/games.jsonl", sent=sent)
    assert (response.status, response.body) == (200, b"{}\n")
    assert all(message.get("more_body") for message in sent[1:])
    assert pages._downloads == 0


@pytest.fixture
def url(copy_ledger_file: Callable[..., str]) -> str:
    """Return the path of the club's ledger, which `serve` takes in place of a URL."""
    return copy_ledger_file(create_club)


def test_too_many_downloads_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the maximum number of clients reads all games, another gets 503 and the time after which to retry."""
    set_thresholds(monkeypatch, files_at_once=0)
    response = get(serve(url), "/games.jsonl")
    assert (response.status, response.headers["retry-after"]) == (503, "5")
