"""Bad input by name: refused with its code and line, exit code 1, and nothing of the call is appended."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from output_filters import remove_newcomer_notes
from stores import make_empty_ledger

GOOD = (
    '{"type":"game.recorded","occurred_at":"2024-01-01T12:00:00Z","data":{"game_id":"g-1","game":"catan",'
    '"participants":[{"player":"anna","place":1},{"player":"ben","place":2}]}}'
)


def other(**replaced: str) -> bytes:
    """The good game under the id g-2, with pieces of its text replaced."""
    text = GOOD.replace("g-1", "g-2")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return text.encode()


def replace(old: str, new: str) -> bytes:
    return other(**{old: new})


def participants(text: str) -> bytes:
    """The good game under the id g-2 with these participants."""
    return replace('[{"player":"anna","place":1},{"player":"ben","place":2}]', f"[{text}]")


def placed(*places: int) -> bytes:
    return participants(",".join(f'{{"player":"p{number}","place":{place}}}' for number, place in enumerate(places)))


RECORD_BYTES = 65_535  # the most that a record may have
pytestmark = pytest.mark.ledger(make=make_empty_ledger, store="sqlite")


def refused(ratings: Callable[..., Any], db: str, content: bytes, *arguments: str) -> list[tuple[int | None, str]]:
    """(line, code) of every refusal of an import that must be refused as a whole."""
    result = ratings("import", "-", *arguments, "--format", "json", db=db, input=content)
    told = json.loads(result.stdout)
    assert (result.exit_code, told["appended"], told["head"]) == (1, 0, 0)
    assert json.loads(ratings("status", "--format", "json", db=db).stdout)["position"] == 0
    return [(rejection["line"], rejection["code"]) for rejection in told["rejected"]]


def accepted(ratings: Callable[..., Any], db: str, content: bytes, *arguments: str) -> list[dict[str, Any]]:
    """The data of the events of an import that must work."""
    result = ratings("import", "-", *arguments, db=db, input=content)
    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")
    return [json.loads(line)["data"] for line in exported(ratings, db)]


def exported(ratings: Callable[..., Any], db: str) -> list[str]:
    """The records of a ledger, without that of the import itself."""
    *lines, batch = ratings("export", "events", db=db).stdout.splitlines()
    assert json.loads(batch)["type"] == "import.recorded"
    return lines


LINES = {
    "an unknown member of the event": (replace('"type"', '"note":"x","type"'), "unknown-member"),
    "an unknown member of the game": (replace('"game_id"', '"note":"x","game_id"'), "unknown-member"),
    "an unknown member of a participant": (replace('"place":2', '"place":2,"points":7'), "unknown-member"),
    "a member in other case": (replace('"place":2', '"Place":2'), "unknown-member"),
    "places 1 3": (placed(1, 3), "place-gap"),
    "places 1 2 2 5": (placed(1, 2, 2, 5), "place-gap"),
    "places 1 1 2 4": (placed(1, 1, 2, 4), "place-gap"),
    "places 2 3": (placed(2, 3), "place-gap"),
    "places 1 1 3 3 4": (placed(1, 1, 3, 3, 4), "place-gap"),
    "place 0": (placed(0, 1), "out-of-range"),
    "a better score in a worse place": (
        participants('{"player":"anna","place":1,"score":5},{"player":"ben","place":2,"score":6}'),
        "score-contradicts-place",
    ),
    "a better score, as decimals, in a worse place": (
        participants('{"player":"anna","place":1,"score":"9.5"},{"player":"ben","place":2,"score":"10"}'),
        "score-contradicts-place",
    ),
    "the same player twice": (
        participants('{"player":"anna","place":1},{"player":"anna","place":2}'), "player-twice",
    ),
    "the same player twice, once with a decomposed accent": (
        participants('{"player":"zo\\u00e9","place":1},{"player":"zoe\\u0301","place":2}'), "player-twice",
    ),
    "one participant": (placed(1), "too-few-participants"),
    "no participant": (placed(), "too-few-participants"),
    "a leaver and his substitute alone": (
        participants('{"player":"anna","place":1,"status":"abandoned"},'
                     '{"player":"ben","place":1,"status":"substitute","replaces":"anna"}'), "too-few-participants",
    ),
    "a substitute of himself": (
        participants('{"player":"anna","place":1},{"player":"ben","place":2,"status":"substitute","replaces":"ben"}'),
        "substitute-without-leaver",
    ),
    "a place and a score": (participants('{"player":"anna","place":1},{"player":"ben","score":2}'), "place-missing"),
    "a time without offset": (replace("12:00:00Z", "12:00:00"), "naive-time"),
    "year 0": (replace("2024-", "0000-"), "bad-time"),
    "year 10000": (replace("2024-", "10000-"), "bad-time"),
    "a time that is a number": (replace('"2024-01-01T12:00:00Z"', "1704110400"), "wrong-type"),
    "a float for a place": (replace('"place":2', '"place":2.0'), "not-an-integer"),
    "a float for a score": (participants('{"player":"anna","score":1.5},{"player":"ben","score":1}'), "not-an-integer"),
    "text for a place": (replace('"place":2', '"place":"2"'), "not-an-integer"),
    "true for a place": (replace('"place":2', '"place":true'), "not-an-integer"),
    "a place of 20 digits": (replace('"place":2', '"place":22222222222222222222'), "integer-too-large"),
    "NaN for a place": (replace('"place":2', '"place":NaN'), "not-a-finite-number"),
    "a decimal NaN for a score": (
        participants('{"player":"anna","score":"NaN"},{"player":"ben","score":1}'), "bad-decimal",
    ),
    "a member twice": (replace('"place":2', '"place":2,"place":1'), "duplicate-key"),
    "broken UTF-8": (other().replace(b"anna", b"ann\xe4"), "bad-utf8"),
    "half a surrogate pair": (replace("anna", "\\ud83d"), "lone-surrogate"),
    "an id with a control character": (replace("anna", "an\\u0000na"), "bad-identifier"),
    "an id with a line break": (replace("anna", "an\\nna"), "bad-identifier"),
    "an id with an escape character": (replace("anna", "\\u001b[31manna"), "bad-identifier"),
    "an id with a C1 control character": (replace("anna", "an\\u009bna"), "bad-identifier"),
    "an id that reverses the text": (replace("anna", "\\u202eanna"), "bad-identifier"),
    "an id of 65 code points": (replace("anna", "a" * 65), "bad-identifier"),
    "an id of no code points": (replace("anna", ""), "bad-identifier"),
    "an id with a leading space": (replace("anna", " anna"), "bad-identifier"),
    "an id with a trailing no-break space": (replace("anna", "anna\\u00a0"), "bad-identifier"),
    "an id with a slash": (replace("anna", "an/na"), "bad-identifier"),
    "an id with an equals sign": (replace("anna", "=1+1"), "bad-identifier"),
    "an event id of 129 characters": (replace('"type"', f'"id":"{"x" * 129}","type"'), "bad-identifier"),
    "the same id with other content": (replace("g-2", "g-1").replace(b'"place":2', b'"place":1'), "id-conflict"),
    "the same game under another event id": (replace("g-2", "g-1").replace(b"{", b'{"id":"x",', 1), "game-exists"),
    "a key of extra that is not ASCII": (replace('"game_id"', '"extra":{"ü":"x"},"game_id"'), "bad-value"),
    "a number in extra": (replace('"game_id"', '"extra":{"x":1},"game_id"'), "wrong-type"),
    "a list for a participant": (participants("[]"), "wrong-type"),
    "null for a participant": (participants("null"), "wrong-type"),
    "a correction of nothing": (replace("game.recorded", "game.recorded "), "unknown-type"),
    "brackets 50,000 deep": (replace('"game_id"', f'"extra":{"[" * 50_000}{"]" * 50_000},"game_id"'), "bad-json"),
    "brackets 200 deep": (replace('"game_id"', f'"extra":{"[" * 200}{"]" * 200},"game_id"'), "wrong-type"),
    "a list of events": (b"[" + other() + b"]", "bad-json"),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "code"), LINES.values(), ids=LINES)
def test_bad_line_refuses_the_import(bad: bytes, code: str, db: str, ratings: Callable[..., Any]) -> None:
    """A bad line beside a good one is refused with its line and code, and nothing is appended."""
    assert refused(ratings, db, GOOD.encode() + b"\n" + bad + b"\n") == [(2, code)]


def test_all_bad_lines_are_named(db: str, ratings: Callable[..., Any]) -> None:
    """Several bad lines are all named, in order."""
    content = b"\n".join((placed(1), GOOD.encode(), b"", b"nonsense", placed(1, 3)))

    assert refused(ratings, db, content) == [(1, "too-few-participants"), (4, "bad-json"), (5, "place-gap")]


WORKING = {
    "competition places": (placed(1, 2, 2, 4), [1, 2, 2, 4]),
    "dense places": (placed(1, 2, 2, 3), [1, 2, 2, 3]),
    "everybody tied": (placed(1, 1, 1), [1, 1, 1]),
    "in any order": (placed(3, 1, 2), [3, 1, 2]),
    "equal scores placed apart": (
        participants('{"player":"anna","place":1,"score":5},{"player":"ben","place":2,"score":"5.0"}'), [1, 2],
    ),
    "low scores first": (
        participants('{"player":"anna","place":1,"score":5},{"player":"ben","place":2,"score":6}').replace(
            b'"game_id"', b'"score_order":"low","game_id"'), [1, 2],
    ),
    "scores alone": (participants('{"player":"anna","score":5},{"player":"ben","score":6}'), [None, None]),
}  # fmt: skip


@pytest.mark.parametrize(("line", "places"), WORKING.values(), ids=WORKING)
def test_fitting_places_and_scores_are_kept(
    line: bytes, places: list[int | None], db: str, ratings: Callable[..., Any]
) -> None:
    """A game whose places and scores fit together is recorded as given."""
    (game,) = accepted(ratings, db, line)

    assert [participant.get("place") for participant in game["participants"]] == places


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("zoe\\u0301", "zoé"),
        ("a" * 64, "a" * 64),
        ("e\\u0301" * 64, "é" * 64),
        ("\\ud83d\\ude00", "😀"),
        ("ᾳ\\u0345 x", "ᾳ\u0345 x"),
        ("名無し", "名無し"),
        ("[red]x", "[red]x"),
    ],
)
def test_player_id_is_kept_composed(written: str, kept: str, db: str, ratings: Callable[..., Any]) -> None:
    """An unusual player id is kept in its composed form."""
    (game,) = accepted(ratings, db, replace("anna", written))

    assert game["participants"][0]["player"] == kept


def record_of(size: int) -> bytes:
    """A game whose record, as the first of its ledger recorded by `r`, has so many bytes."""
    padding = replace('"game_id"', '"extra":{"notes":"NOTES"},"game_id"')
    overhead = len(
        '"position":1,"recorded_at":"2024-01-01T12:00:00.000000Z","schema_version":1,"by":"r","id":"game:g-2",.000000'
    )
    return padding.replace(b"NOTES", b"x" * (size - (len(padding) - len("NOTES")) - overhead))


def test_largest_record_is_accepted(db: str, ratings: Callable[..., Any]) -> None:
    """A record of exactly 65,535 bytes is accepted."""
    accepted(ratings, db, record_of(RECORD_BYTES), "--by", "r")

    assert [len(line.encode()) for line in exported(ratings, db)] == [RECORD_BYTES]


def test_record_above_the_limit_is_refused(db: str, ratings: Callable[..., Any]) -> None:
    """A record one byte larger than the limit is refused, in a dry run, too."""
    for more in ((), ("--dry-run",)):
        assert refused(ratings, db, record_of(RECORD_BYTES + 1), "--by", "r", *more) == [(1, "record-too-large")]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\r\n", b"\xef\xbb\xbf"])
def test_file_without_events_is_empty(content: bytes, db: str, ratings: Callable[..., Any]) -> None:
    """A file without an event is refused as empty."""
    assert refused(ratings, db, content) == [(None, "empty-file")]


@pytest.mark.parametrize(
    "content", [b"\x00" * 1_000, b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"PK\x03\x04" + b"\x00" * 50]
)
def test_binary_file_gets_one_message(content: bytes, db: str, ratings: Callable[..., Any]) -> None:
    """A binary file is refused with a single message."""
    assert len(refused(ratings, db, content)) == 1
