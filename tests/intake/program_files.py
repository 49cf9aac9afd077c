"""Files as other programs write them, each with the expected result of its import. The players are invented."""

import json

from cases import Case


def pgn(text: str, encoding: str = "utf-8", **case_members: object) -> Case:
    """Return a case of a PGN file."""
    return Case(text.encode(encoding), name="games.pgn", **{"options": (), **case_members})  # type: ignore[arg-type]


def format_tags(
    white: str = "anna", black: str = "ben", result: str = "1-0", date: str = "2024.11.22", **other_tags: str
) -> str:
    """Return the tags of a game, without the blank line after them."""
    tags = {
        "Event": "Club",
        "Site": "Here",
        "Date": date,
        "Round": "1",
        "White": white,
        "Black": black,
        "Result": result,
        **other_tags,
    }
    return "".join(f'[{name} "{value}"]\n' for name, value in tags.items())


LICHESS_PGN = """\
[Event "Rated blitz game"]
[Site "https://lichess.org/q7ZvsdUF"]
[Date "2024.11.22"]
[White "annablitz"]
[Black "annablits"]
[Result "1-0"]
[UTCDate "2024.11.22"]
[UTCTime "19:05:07"]
[WhiteElo "1500"]
[BlackElo "1480"]
[Variant "Standard"]
[TimeControl "180+2"]
[ECO "C20"]
[Termination "Time forfeit"]

1. e4 { [%clk 0:03:00] } e5 { [%clk 0:03:00] } 2. Qh5?! { (0.25 → -0.60) Inaccuracy. Nc3 was best. } 1-0


[Event "Casual correspondence game"]
[Site "https://lichess.org/aBcDeFg8"]
[Date "2024.11.23"]
[White "benchess"]
[Black "annablitz"]
[Result "1/2-1/2"]
[UTCDate "2024.11.23"]
[UTCTime "08:00:00"]
[Variant "Standard"]
[Termination "Normal"]

1/2-1/2


[Event "Rated blitz game"]
[Site "https://lichess.org/zzzzzzz1"]
[Date "2024.11.23"]
[White "benchess"]
[Black "annablitz"]
[Result "*"]
[UTCDate "2024.11.23"]
[UTCTime "09:00:00"]
[Variant "Standard"]
[Termination "Unterminated"]

*
"""
CHESS_COM_PGN = """\
[Event "Live Chess"]
[Site "Chess.com"]
[Date "2024.11.22"]
[Round "-"]
[White "annablitz"]
[Black "benchess"]
[Result "0-1"]
[CurrentPosition "8/8/8/8/8/8/8/8 w - -"]
[Timezone "UTC"]
[UTCDate "2024.11.22"]
[UTCTime "23:55:00"]
[TimeControl "600"]
[Termination "benchess won by resignation"]
[StartTime "23:55:00"]
[EndDate "2024.11.23"]
[EndTime "00:05:30"]
[Link "https://www.chess.com/game/live/100200300"]

1. e4 {[%clk 0:09:58]} 1... e5 {[%clk 0:09:57]} 0-1
"""
PGN = {
    "PGN of Lichess": pgn(
        LICHESS_PGN,
        games=[
            "lichess.org/q7ZvsdUF 2024-11-22T19:05 annablitz 1 annablits 2",
            "lichess.org/aBcDeFg8 2024-11-23T08:00 benchess 1 annablitz 1",
        ],
        notes=["1 game without a result (*), left out", '1 game of an Event "Casual ...", recorded but not rated'],
    ),
    "PGN of Chess.com": pgn(
        CHESS_COM_PGN, games=["chess.com/game/live/100200300 2024-11-23T00:05 annablitz 2 benchess 1"]
    ),
    "PGN of a club": pgn(
        f"{format_tags()}\n1. e4 1-0\n\n{format_tags('ben', 'anna', '1/2-1/2')}\n1/2-1/2\n\n"
        f"{format_tags(date='2024.11.23', Time='20:05:00')}\n1-0\n",
        games=[
            "2024-11-22-1 2024-11-22T11:00 anna 1 ben 2",
            "2024-11-22-2 2024-11-22T11:00 ben 1 anna 1",
            "2024-11-23-1 2024-11-23T19:05 anna 1 ben 2",
        ],
        notes=["numbered by day, such as 2024-11-22-1"],
    ),
    "PGN without blank lines, in any order, with the line ends of Windows and a byte order mark": pgn(
        '\ufeff[White "anna"]\r\n[Result "1-0"]\r\n[Black "ben"]\r\n[Date "2024.11.22"]\r\n1-0\r\n[Black "anna"]\r\n'
        '[White "ben"]\r\n[Result "0-1"]\r\n[Date "2024.11.23"]\r\n0-1\r\n',
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-23-1 2024-11-23T11:00 ben 2 anna 1"],
    ),
    "PGN with tags alone": pgn(
        f"{format_tags()}\n{format_tags('ben', 'anna', date='2024.11.23')}",
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"],
    ),
    "PGN with comments that hold tags, and lines for other programs": pgn(
        f'% made by hand [White "x"]\n; {{ not open\n{format_tags()}\n1. e4 {{ [Event "no"]\n[White "x"]\n}} e5 ; {{\n'
        f'%[White "y"]\n1-0\n\n{format_tags("ben", "anna", date="2024.11.23")}\n1-0\n',
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"],
    ),
    "PGN with a quotation mark and a backslash in names": pgn(
        format_tags(white='anna \\"ace\\"', black="b\\\\en") + "\n1-0\n",
        games=['2024-11-22-1 2024-11-22T11:00 anna "ace" 1 b\\en 2'],
    ),
    "PGN in Latin-1": pgn(
        format_tags("Jürgen", "Zoë") + "\n1-0\n",
        "latin-1",
        games=["2024-11-22-1 2024-11-22T11:00 Jürgen 1 Zoë 2"],
        notes=["1 game with letters that are not UTF-8, read as Windows-1252"],
    ),
    "PGN in Latin-1 with two tags on a line": pgn(
        format_tags("Jürgen", "Zoë").replace("]\n[", "] [", 1) + "\n1-0\n",
        "latin-1",
        games=["2024-11-22-1 2024-11-22T11:00 Jürgen 1 Zoë 2"],
        notes=["1 game with letters that are not UTF-8, read as Windows-1252"],
    ),
    "PGN in UTF-16": pgn(
        format_tags() + "\n1-0\n", "utf-16", refused=[("1 bad-utf8", "the file is UTF-16; save it as")]
    ),
    "PGN with missing and invalid tags": pgn(
        f"{format_tags(date='????.??.??')}\n1-0\n\n{format_tags(date='2024.??.??')}\n1-0\n\n{format_tags(black='?')}\n1-0\n\n"
        f"{format_tags(result='2-0')}\n1-0\n\n{format_tags().replace('Result', 'Outcome')}\n1-0\n\n"
        f"{format_tags(white='a').replace(chr(34) + ']', ']', 1)}\n1-0\n",
        refused=[
            ("1 bad-time", "Date: '????.??.??' is not a full date; write the day in the form 2024.11.22"),
            ("11 bad-time", "--set occurred_at=2024-11-22"),
            ("21 missing-member", "Black: '?' is not a player"),
            ("31 bad-value", "Result: '2-0' is not one of 1-0"),
            ("41 missing-member", "the game has no tag Result"),
            ("51 bad-value", """'[Event "Club]' is not a tag; write tags such as [White "anna"]"""),
        ],
    ),
    "PGN dated by an option": pgn(
        format_tags(date="????.??.??") + "\n1-0\n",
        options=("--set", "occurred_at=2024-11-22"),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"],
    ),
    "PGN of a variant": pgn(
        format_tags(Variant="Chess960") + "\n1-0\n",
        refused=[("1 bad-value", "Variant: 'Chess960' is not standard chess and must be recorded as another game")],
    ),
    "PGN of a variant, with the name of a game": pgn(
        format_tags(Variant="Chess960") + "\n1-0\n",
        options=("--set", "game=chess960"),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"],
        notes=["variants other than Standard: Chess960 (1)"],
    ),
    "PGN with forfeits": pgn(
        f"{format_tags(result='+/-')}\n\n{format_tags('ben', 'anna', '-:+')}\n\n{format_tags(result='-/-')}\n\n"
        f"{format_tags(date='2024.11.23', Termination='Rules infraction')}\n1-0\n",
        games=[
            "2024-11-22-1 2024-11-22T11:00 anna 1 ben 2",
            "2024-11-22-2 2024-11-22T11:00 ben 2 anna 1",
            "2024-11-22-3 2024-11-22T11:00 anna 1 ben 1",
            "2024-11-23-1 2024-11-23T11:00 anna 1 ben 2",
        ],
        notes=[
            "4 forfeits, recorded but not rated (lines ",
            "); to rate forfeits with a winner, pass --forfeits rated",
        ],
    ),
    "PGN with a comment that never ends": pgn(
        f"{format_tags()}\n1. e4 1-0\n\n"
        f"{format_tags(date='2024.11.23')}\n1. e4 {{ why not\n1-0\n\n{format_tags()}\n1-0\n",
        refused=[("19 bad-value", "the comment that begins here with { has no }")],
    ),
    "PGN with a name that may be mistyped": pgn(
        f"{format_tags('Johanna')}\n1-0\n\n{format_tags('Johana')}\n1-0\n", refused=[("11 close-name", "Johanna")]
    ),
    "PGN that only its content shows": Case(
        format_tags().encode() + b"\n1-0\n",
        name="games.txt",
        options=(),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"],
    ),
}


def format_lichess_line(white: object, black: object, **members: object) -> str:
    """Return a line of an export of Lichess."""
    game = {
        "id": "q7ZvsdUF",
        "rated": True,
        "variant": "standard",
        "speed": "blitz",
        "perf": "blitz",
        "createdAt": 1732302307000,
        "lastMoveAt": 1732302607000,
        "status": "mate",
        "players": {"white": build_lichess_player(white), "black": build_lichess_player(black)},
        "winner": "white",
        **members,
    }
    return json.dumps({name: value for name, value in game.items() if value is not None}, separators=(",", ":")) + "\n"


def build_lichess_player(name: object) -> object:
    """Return a player of a game of Lichess: a name, a level of the computer, or None for a missing account."""
    if isinstance(name, int):
        return {"aiLevel": name}
    return {} if name is None else {"user": {"name": name, "id": str(name).lower()}, "rating": 1500}


def ndjson(*lines: str, **case_members: object) -> Case:
    """Return a case of an export of Lichess."""
    return Case("".join(lines).encode(), name="lichess.ndjson", **{"options": (), **case_members})  # type: ignore[arg-type]


LICHESS = {
    "games of Lichess": ndjson(
        format_lichess_line("AnnaBlitz", "AnnaBlits"),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFg8", winner=None, status="draw", rated=False),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFg9", winner=None, status="aborted"),
        format_lichess_line("benchess", 3, id="aBcDeFga"), format_lichess_line(None, "benchess", id="aBcDeFgb"),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFgc", winner="black", status="noStart"),
        games=["lichess.org/q7ZvsdUF 2024-11-22T19:05 AnnaBlitz 1 AnnaBlits 2",
               "lichess.org/aBcDeFg8 2024-11-22T19:05 benchess 1 AnnaBlitz 1",
               "lichess.org/aBcDeFgc 2024-11-22T19:05 benchess 2 AnnaBlitz 1"],
        notes=["1 game aborted or unfinished, left out", "2 games with the computer or a player without an account",
              "1 game marked as casual, recorded but not rated", "1 forfeit, recorded but not rated"],
    ),
    "games of Lichess of a variant": ndjson(
        format_lichess_line("benchess", "AnnaBlitz", variant="atomic"),
        refused=[("1 bad-value", "variant: 'atomic' is not standard chess and must be recorded as another game")],
    ),
    "games of Lichess with invalid members": ndjson(
        format_lichess_line("benchess", "AnnaBlitz"), format_lichess_line("benchess", "AnnaBlitz", id="x/y"),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFg8", winner="green"),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFg8", players={}),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFg8", createdAt=1e300),
        format_lichess_line("benchess", "AnnaBlitz", id="aBcDeFg8", winner=["white"], status={}), '{"id":"q7Zvs\n',
        refused=[("2 bad-value", "id: 'x/y' is not a game id of Lichess"),
                 ("3 bad-value", "winner: 'green' contradicts the status 'mate'"),
                 ("4 missing-member", "the game has no players.white"),
                 ("5 bad-time", "is not a number of milliseconds since 1970"),
                 ("6 bad-value", "winner: ['white'] contradicts the status {}"),
                 ("7 bad-json", "is not a JSON object")],
    ),
}  # fmt: skip


def format_trf_player(start: int, name: str, *rounds: str) -> str:
    """Return the line of a player, with the identifier 001, in a report of a tournament."""
    return (
        f"{f'001 {start:4} m    {name:33} 1500 GER':91}"
        + "".join(f"{result:10}" for result in rounds).rstrip()
        + "\r\n"
    )


HEADER_LINES = "012 Club Open\r\n042 2024/11/22\r\n052 2024/11/29\r\n"
ROUND_DATES = f"{'132':91}24/11/22  24/11/29\r\n"


def trf(*lines: str, encoding: str = "utf-8", **case_members: object) -> Case:
    """Return a case of a report of a tournament."""
    return Case("".join(lines).encode(encoding), name="open.trf", **{"options": (), **case_members})  # type: ignore[arg-type]


TRF = {
    "TRF16": trf(
        HEADER_LINES,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", "   2 w 1", "   3 b ="),
        format_trf_player(2, "Berg, Ben", "   1 b 0", "0000 - U"),
        format_trf_player(3, "Dorn, Cleo", "0000 - H", "   1 w ="),
        games=[
            "club-open-2024-11-22-r1-1-2 2024-11-22T11:00 Adler, Anna 1 Berg, Ben 2",
            "club-open-2024-11-22-r2-3-1 2024-11-29T11:00 Dorn, Cleo 1 Adler, Anna 1",
        ],
        notes=["2 games without an opponent (byes), left out"],
    ),
    "TRF26": trf(
        "### made by hand\r\n",
        HEADER_LINES,
        ROUND_DATES,
        "142 2\r\n152 W\r\n162 W 1.0 D 0.5\r\n",
        format_trf_player(1, "Adler, Anna", "   2 w +", "   3 b W"),
        format_trf_player(2, "Berg, Jürgen", "   1 b -", "   4 w -"),
        format_trf_player(3, "Dorn, Cleo", "   4 w 0", "   1 w L"),
        format_trf_player(4, "Dora", "   3 b 1", "   2 b -"),
        encoding="cp1252",
        games=[
            "club-open-2024-11-22-r1-1-2 2024-11-22T11:00 Adler, Anna 1 Berg, Jürgen 2",
            "club-open-2024-11-22-r1-3-4 2024-11-22T11:00 Dorn, Cleo 2 Dora 1",
            "club-open-2024-11-22-r2-3-1 2024-11-29T11:00 Dorn, Cleo 2 Adler, Anna 1",
            "club-open-2024-11-22-r2-2-4 2024-11-29T11:00 Berg, Jürgen 1 Dora 1",
        ],
        notes=["1 game of less than a move (W, D, L), recorded but not rated", "2 forfeits, recorded but not rated"],
    ),
    "TRF with results that contradict each other": trf(
        HEADER_LINES,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", "   2 w 1"),
        format_trf_player(2, "Berg, Ben", "   1 b 1"),
        refused=[("5 bad-value", "round 1: the results contradict each other: line 5 has '2 w 1', line 6 '1 b 1'")],
    ),
    "TRF with an opponent who is missing": trf(
        HEADER_LINES,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", "   7 w 1"),
        format_trf_player(2, "Berg, Ben", "   1 b 0"),
        refused=[
            ("5 bad-value", "round 1: 'Adler, Anna' has the opponent 7, but no player has this"),
            ("6 bad-value", "round 1: line 6 has '1 b 0', line 5 '7 w 1'"),
        ],
    ),
    "TRF without dates of rounds": trf(
        HEADER_LINES,
        format_trf_player(1, "Adler, Anna", "   2 w 1"),
        format_trf_player(2, "Berg, Ben", "   1 b 0"),
        refused=[("4 bad-time", "no line that begins with 132 has the date of round 1; add the date")],
    ),
    "TRF with two players of the same name": trf(
        HEADER_LINES,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", "   2 w 1"),
        format_trf_player(2, "Adler, Anna", "   1 b 0"),
        refused=[("6 player-twice", "'Adler, Anna' is also the player of line 5; give the players different names")],
    ),
    "TRF with a result in the wrong columns": trf(
        HEADER_LINES,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", " 2 w 1 "),
        refused=[("5 bad-value", "round 1: ' 2 w 1    ' in columns 92-99 is not a result; write one like '  12 w 1'")],
    ),
}


def build_play(uuid: str, *scores: str, game: int = 1, **members: object) -> dict[str, object]:
    """Return a play of BG Stats; each score is `PLAYER SCORE [TEAM]`, with - for no score and ! for a winner."""
    player_scores = []
    for number, text in enumerate(scores):
        player, score, *team = text.split()
        score_text = score.removesuffix("!")
        player_scores.append({"score": "" if score_text == "-" else score_text, "winner": score.endswith("!"),
                              "newPlayer": False, "startPlayer": False, "playerRefId": int(player), "rank": 0,
                              "seatOrder": number, **({"team": team[0]} if team else {})})  # fmt: skip
    return {
        "uuid": uuid,
        "modificationDate": "2024-11-23 08:00:00",
        "playDate": "2024-11-22 20:05:00",
        "ignored": False,
        "manualWinner": False,
        "rounds": 0,
        "usesTeams": False,
        "gameRefId": game,
        "playerScores": player_scores,
        **members,
    }


def build_bg_stats_case(*plays: dict[str, object], **case_members: object) -> Case:
    """Return a case of an export of BG Stats."""
    data = {
        "games": [
            {"id": 1, "uuid": "g1", "name": "Catan", "cooperative": False, "highestWins": True},
            {"id": 2, "uuid": "g2", "name": "Pandemic", "cooperative": True, "highestWins": True},
            {"id": 3, "uuid": "g3", "name": "Golf", "cooperative": False, "highestWins": False},
        ],
        "players": [
            {"id": number, "uuid": f"p{number}", "name": name, "isAnonymous": name == "Anonymous"}
            for number, name in enumerate(("anna", "ben", "cleo", "dora", "Anonymous"), 1)
        ],
        "locations": [],
        "plays": [*plays],
        "userInfo": {"meRefId": 1},
    }
    text = json.dumps(data, indent=1)
    return Case(text.encode(), name="BGStatsExport.json", **{"options": (), **case_members})  # type: ignore[arg-type]


BG_STATS = {
    "BG Stats": build_bg_stats_case(
        build_play("a1", "1 3+7!", "2 8", "3 8"),
        build_play("a2", "1 5", "2 5!", ignored=True),
        build_play("a3", "1 60", "2 58!", game=3),
        build_play("a4", "1 -!", "2 -"),
        build_play("a5", "1 -!", "2 -!", game=2),
        build_play("a6", "1 5!", "5 3"),
        build_play("a7", "1 5!"),
        build_play("a8", "1 -! A", "2 -! A", "3 - B", "4 - B", usesTeams=True),
        build_play("a9", "1 2.5!", "2 1,25"),
        build_play("b1", "1 9", "2 4!"),
        build_play("b2", "1 -", "2 -"),
        games=[
            "a1 2024-11-22T19:05 anna =10 ben =8 cleo =8",
            "a2 2024-11-22T19:05 anna =5 ben =5",
            "a3 2024-11-22T19:05 anna =60 ben =58",
            "a4 2024-11-22T19:05 anna 1 ben 2",
            "a8 2024-11-22T19:05 anna 1 ben 1 cleo 3 dora 3",
            "a9 2024-11-22T19:05 anna =2.5 ben =1.25",
            "b1 2024-11-22T19:05 anna 2 ben 1",
        ],
        notes=[
            "1 game ignored in the statistics of BG Stats, recorded but not rated",
            "1 game played cooperatively",
            "1 game with an anonymous player",
            "1 game with only one player",
            "1 game without a winner, scores or ranks",
        ],
        options=("--allow-uncounted",),
    ),
    "BG Stats with an invalid score, player and game": build_bg_stats_case(
        build_play("a1", "1 ten!", "2 8"),
        build_play("a2", "9 1!", "2 0"),
        build_play("a3", "1 1!", "2 0", game=9),
        refused=[
            ("1 bad-decimal", "play a1: the score 'ten' of 'anna' is not a number or a sum such as 3+20+5"),
            ("2 bad-value", "playerRefId 9 is not a player of the export"),
            ("3 bad-value", "gameRefId 9 is not a game of the export"),
        ],
    ),
    "BG Stats that is cut off": Case(
        build_bg_stats_case(build_play("a1", "1 3!", "2 1")).content[:-40],
        name="BGStatsExport.json",
        options=(),
        refused=[("None bad-json", "the export of BG Stats is cut off or damaged")],
    ),
}
OTHERS = {
    "a list in JSON": Case(
        b'[{"a": 1},\n {"a": 2}]\n',
        name="games.json",
        refused=[("None bad-json", "this is a JSON array, not JSON Lines; write each event on a line of its own")],
    ),
    "an object over several lines": Case(
        b'{\n  "a": 1\n}\n',
        name="games.json",
        refused=[("None bad-json", "this is one JSON object over several lines, not JSON Lines")],
    ),
    "games of the API of Chess.com": Case(
        b'{\n"games": [{"url": "https://www.chess.com/game/live/1", "pgn": ""}]}',
        name="11.json",
        refused=[("None bad-json", "this is JSON from the Chess.com API; fetch the same address with /pgn")],
    ),
    "a page saved as CSV": Case(
        b"<!DOCTYPE html><html><body><table><tr><td>Date</td></tr></table></body></html>",
        refused=[("None is-a-spreadsheet", "it is an HTML page, which sites and programs save under names such as")],
    ),
}
CASES = PGN | LICHESS | TRF | BG_STATS | OTHERS
