"""Bad input is refused with its code and line, and nothing is appended; good input is recorded as given."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from output_filters import remove_newcomer_notes
from stores import make_empty_ledger

GOOD_LINE = (
    '{"type":"game.recorded","occurred_at":"2024-01-01T12:00:00Z","data":{"game_id":"g-1","game":"catan",'
    '"participants":[{"player":"anna","place":1},{"player":"ben","place":2}]}}'
)


def change_good_line(**replacements: str) -> bytes:
    """Return the good game with the id g-2 and pieces of its text replaced."""
    text = GOOD_LINE.replace("g-1", "g-2")
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new)
    return text.encode()


def replace_in_good_line(old: str, new: str) -> bytes:
    return change_good_line(**{old: new})


def build_line_of(text: str) -> bytes:
    """Return the good game with the id g-2 and these participants."""
    return replace_in_good_line('[{"player":"anna","place":1},{"player":"ben","place":2}]', f"[{text}]")


def build_line_of_places(*places: int) -> bytes:
    return build_line_of(",".join(f'{{"player":"p{number}","place":{place}}}' for number, place in enumerate(places)))


RECORD_BYTES_MAX = 65_535
pytestmark = pytest.mark.ledger(make=make_empty_ledger, store="sqlite")


def import_refused(
    ratings: Callable[..., Any], db: str, content: bytes, *arguments: str
) -> list[tuple[int | None, str]]:
    """Import content that must be refused as a whole, and return the line and the code of each rejection."""
    result = ratings("import", "-", *arguments, "--format", "json", db=db, input=content)
    summary = json.loads(result.stdout)
    assert (result.exit_code, summary["appended"], summary["head"]) == (1, 0, 0)
    assert json.loads(ratings("status", "--format", "json", db=db).stdout)["position"] == 0
    return [(rejection["line"], rejection["code"]) for rejection in summary["rejected"]]


def import_accepted(ratings: Callable[..., Any], db: str, content: bytes, *arguments: str) -> list[dict[str, Any]]:
    """Import content that must be accepted, and return the data of its events."""
    result = ratings("import", "-", *arguments, db=db, input=content)
    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")
    return [json.loads(line)["data"] for line in export_records(ratings, db)]


def export_records(ratings: Callable[..., Any], db: str) -> list[str]:
    """Return the records of a ledger without that of the import itself."""
    *lines, batch = ratings("export", "events", db=db).stdout.splitlines()
    assert json.loads(batch)["type"] == "import.recorded"
    return lines


BAD_LINES = {
    "an unknown member of the event": (replace_in_good_line('"type"', '"note":"x","type"'), "unknown-member"),
    "an unknown member of the game": (replace_in_good_line('"game_id"', '"note":"x","game_id"'), "unknown-member"),
    "an unknown member of a participant": (replace_in_good_line('"place":2', '"place":2,"points":7'), "unknown-member"),
    "a member in other case": (replace_in_good_line('"place":2', '"Place":2'), "unknown-member"),
    "places 1 3": (build_line_of_places(1, 3), "place-gap"),
    "places 1 2 2 5": (build_line_of_places(1, 2, 2, 5), "place-gap"),
    "places 1 1 2 4": (build_line_of_places(1, 1, 2, 4), "place-gap"),
    "places 2 3": (build_line_of_places(2, 3), "place-gap"),
    "places 1 1 3 3 4": (build_line_of_places(1, 1, 3, 3, 4), "place-gap"),
    "place 0": (build_line_of_places(0, 1), "out-of-range"),
    "a better score in a worse place": (
        build_line_of('{"player":"anna","place":1,"score":5},{"player":"ben","place":2,"score":6}'),
        "score-contradicts-place",
    ),
    "a better score, as decimals, in a worse place": (
        build_line_of('{"player":"anna","place":1,"score":"9.5"},{"player":"ben","place":2,"score":"10"}'),
        "score-contradicts-place",
    ),
    "the same player twice": (
        build_line_of('{"player":"anna","place":1},{"player":"anna","place":2}'),
        "player-twice",
    ),
    "the same player twice, once with a decomposed accent": (
        build_line_of('{"player":"zo\\u00e9","place":1},{"player":"zoe\\u0301","place":2}'),
        "player-twice",
    ),
    "one participant": (build_line_of_places(1), "too-few-participants"),
    "no participant": (build_line_of_places(), "too-few-participants"),
    "a leaver and their substitute alone": (
        build_line_of(
            '{"player":"anna","place":1,"status":"abandoned"},'
            '{"player":"ben","place":1,"status":"substitute","replaces":"anna"}'
        ),
        "too-few-participants",
    ),
    "a substitute who replaces themselves": (
        build_line_of('{"player":"anna","place":1},{"player":"ben","place":2,"status":"substitute","replaces":"ben"}'),
        "substitute-without-leaver",
    ),
    "a place and a score": (build_line_of('{"player":"anna","place":1},{"player":"ben","score":2}'), "place-missing"),
    "a time without offset": (replace_in_good_line("12:00:00Z", "12:00:00"), "naive-time"),
    "year 0": (replace_in_good_line("2024-", "0000-"), "bad-time"),
    "year 10000": (replace_in_good_line("2024-", "10000-"), "bad-time"),
    "a time that is a number": (replace_in_good_line('"2024-01-01T12:00:00Z"', "1704110400"), "wrong-type"),
    "a float for a place": (replace_in_good_line('"place":2', '"place":2.0'), "not-an-integer"),
    "a float for a score": (
        build_line_of('{"player":"anna","score":1.5},{"player":"ben","score":1}'),
        "not-an-integer",
    ),
    "text for a place": (replace_in_good_line('"place":2', '"place":"2"'), "not-an-integer"),
    "true for a place": (replace_in_good_line('"place":2', '"place":true'), "not-an-integer"),
    "a place of 20 digits": (replace_in_good_line('"place":2', '"place":22222222222222222222'), "integer-too-large"),
    "NaN for a place": (replace_in_good_line('"place":2', '"place":NaN'), "not-a-finite-number"),
    "a decimal NaN for a score": (
        build_line_of('{"player":"anna","score":"NaN"},{"player":"ben","score":1}'),
        "bad-decimal",
    ),
    "a member twice": (replace_in_good_line('"place":2', '"place":2,"place":1'), "duplicate-key"),
    "broken UTF-8": (change_good_line().replace(b"anna", b"ann\xe4"), "bad-utf8"),
    "half a surrogate pair": (replace_in_good_line("anna", "\\ud83d"), "lone-surrogate"),
    "an id with a control character": (replace_in_good_line("anna", "an\\u0000na"), "bad-identifier"),
    "an id with a line break": (replace_in_good_line("anna", "an\\nna"), "bad-identifier"),
    "an id with an escape character": (replace_in_good_line("anna", "\\u001b[31manna"), "bad-identifier"),
    "an id with a C1 control character": (replace_in_good_line("anna", "an\\u009bna"), "bad-identifier"),
    "an id that reverses the text": (replace_in_good_line("anna", "\\u202eanna"), "bad-identifier"),
    "an id of 65 code points": (replace_in_good_line("anna", "a" * 65), "bad-identifier"),
    "an empty id": (replace_in_good_line("anna", ""), "bad-identifier"),
    "an id with a leading space": (replace_in_good_line("anna", " anna"), "bad-identifier"),
    "an id with a trailing no-break space": (replace_in_good_line("anna", "anna\\u00a0"), "bad-identifier"),
    "an id with a slash": (replace_in_good_line("anna", "an/na"), "bad-identifier"),
    "an id with an equals sign": (replace_in_good_line("anna", "=1+1"), "bad-identifier"),
    "an event id of 129 characters": (replace_in_good_line('"type"', f'"id":"{"x" * 129}","type"'), "bad-identifier"),
    "the same id with other content": (
        replace_in_good_line("g-2", "g-1").replace(b'"place":2', b'"place":1'),
        "id-conflict",
    ),
    "the same game under another event id": (
        replace_in_good_line("g-2", "g-1").replace(b"{", b'{"id":"x",', 1),
        "game-exists",
    ),
    "a key of extra that is not ASCII": (replace_in_good_line('"game_id"', '"extra":{"ü":"x"},"game_id"'), "bad-value"),
    "a number in extra": (replace_in_good_line('"game_id"', '"extra":{"x":1},"game_id"'), "wrong-type"),
    "a list for a participant": (build_line_of("[]"), "wrong-type"),
    "null for a participant": (build_line_of("null"), "wrong-type"),
    "a type with a trailing space": (replace_in_good_line("game.recorded", "game.recorded "), "unknown-type"),
    "brackets 50,000 deep": (
        replace_in_good_line('"game_id"', f'"extra":{"[" * 50_000}{"]" * 50_000},"game_id"'),
        "bad-json",
    ),
    "brackets 200 deep": (replace_in_good_line('"game_id"', f'"extra":{"[" * 200}{"]" * 200},"game_id"'), "wrong-type"),
    "a list of events": (b"[" + change_good_line() + b"]", "bad-json"),
}


@pytest.mark.parametrize(("bad_line", "code"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_line_refuses_the_import(bad_line: bytes, code: str, db: str, ratings: Callable[..., Any]) -> None:
    """A bad line after a good one refuses the import with its line and code, and nothing is appended."""
    assert import_refused(ratings, db, GOOD_LINE.encode() + b"\n" + bad_line + b"\n") == [(2, code)]


def test_all_bad_lines_are_named(db: str, ratings: Callable[..., Any]) -> None:
    """All bad lines are named, in order."""
    content = b"\n".join((build_line_of_places(1), GOOD_LINE.encode(), b"", b"nonsense", build_line_of_places(1, 3)))

    assert import_refused(ratings, db, content) == [(1, "too-few-participants"), (4, "bad-json"), (5, "place-gap")]


GOOD_LINES = {
    "competition places": (build_line_of_places(1, 2, 2, 4), [1, 2, 2, 4]),
    "dense places": (build_line_of_places(1, 2, 2, 3), [1, 2, 2, 3]),
    "all tied": (build_line_of_places(1, 1, 1), [1, 1, 1]),
    "in any order": (build_line_of_places(3, 1, 2), [3, 1, 2]),
    "equal scores placed apart": (
        build_line_of('{"player":"anna","place":1,"score":5},{"player":"ben","place":2,"score":"5.0"}'),
        [1, 2],
    ),
    "low scores first": (
        build_line_of('{"player":"anna","place":1,"score":5},{"player":"ben","place":2,"score":6}').replace(
            b'"game_id"', b'"score_order":"low","game_id"'
        ),
        [1, 2],
    ),
    "scores alone": (build_line_of('{"player":"anna","score":5},{"player":"ben","score":6}'), [None, None]),
}


@pytest.mark.parametrize(("line", "places"), GOOD_LINES.values(), ids=GOOD_LINES)
def test_fitting_places_and_scores_are_kept(
    line: bytes, places: list[int | None], db: str, ratings: Callable[..., Any]
) -> None:
    """A game whose places and scores fit together is recorded with the same places and scores."""
    (game,) = import_accepted(ratings, db, line)

    assert [participant.get("place") for participant in game["participants"]] == places
    given_scores, recorded_scores = (
        [Decimal(participant["score"]) if "score" in participant else None for participant in data["participants"]]
        for data in (json.loads(line)["data"], game)
    )
    assert recorded_scores == given_scores


@pytest.mark.parametrize(
    ("input_id", "recorded_id"),
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
def test_player_id_is_kept_composed(input_id: str, recorded_id: str, db: str, ratings: Callable[..., Any]) -> None:
    """An unusual player id is kept in its composed form."""
    (game,) = import_accepted(ratings, db, replace_in_good_line("anna", input_id))

    assert game["participants"][0]["player"] == recorded_id


def build_record_line(size: int) -> bytes:
    """Return a game whose record has this many bytes if `r` records it as the first of a ledger."""
    padding = replace_in_good_line('"game_id"', '"extra":{"notes":"NOTES"},"game_id"')
    overhead = len(
        '"position":1,"recorded_at":"2024-01-01T12:00:00.000000Z","schema_version":1,"by":"r","id":"game:g-2",.000000'
    )
    return padding.replace(b"NOTES", b"x" * (size - (len(padding) - len("NOTES")) - overhead))


def test_largest_record_is_accepted(db: str, ratings: Callable[..., Any]) -> None:
    """A record of exactly 65,535 bytes is accepted."""
    import_accepted(ratings, db, build_record_line(RECORD_BYTES_MAX), "--by", "r")

    assert [len(line.encode()) for line in export_records(ratings, db)] == [RECORD_BYTES_MAX]


def test_record_above_the_limit_is_refused(db: str, ratings: Callable[..., Any]) -> None:
    """A record that is one byte too large is refused, also in a dry run."""
    for options in ((), ("--dry-run",)):
        assert import_refused(ratings, db, build_record_line(RECORD_BYTES_MAX + 1), "--by", "r", *options) == [
            (1, "record-too-large")
        ]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\r\n", b"\xef\xbb\xbf"])
def test_file_without_events_is_empty(content: bytes, db: str, ratings: Callable[..., Any]) -> None:
    """A file without an event is refused as empty."""
    assert import_refused(ratings, db, content) == [(None, "empty-file")]


@pytest.mark.parametrize(
    "content", [b"\x00" * 1_000, b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"PK\x03\x04" + b"\x00" * 50]
)
def test_binary_file_gets_one_message(content: bytes, db: str, ratings: Callable[..., Any]) -> None:
    """A binary file is refused with a single message."""
    assert len(import_refused(ratings, db, content)) == 1
