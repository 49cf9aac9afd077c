"""Files as other programs write them, each with what comes out of it. The players in them are invented."""

from cases import Case


def pgn(text: str, encoding: str = "utf-8", **more: object) -> Case:
    """A case of a PGN file."""
    return Case(text.encode(encoding), name="games.pgn", **{"options": (), **more})  # type: ignore[arg-type]


def tags(white: str = "anna", black: str = "ben", result: str = "1-0", date: str = "2024.11.22", **others: str) -> str:
    """The tags of a game, without the blank line behind them."""
    found = {"Event": "Club", "Site": "Here", "Date": date, "Round": "1", "White": white, "Black": black,
             "Result": result, **others}  # fmt: skip
    return "".join(f'[{name} "{value}"]\n' for name, value in found.items())


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
        LICHESS_PGN, games=["lichess.org/q7ZvsdUF 2024-11-22T19:05 annablitz 1 annablits 2",
                            "lichess.org/aBcDeFg8 2024-11-23T08:00 benchess 1 annablitz 1"],
        told=["1 game without a result (*), left out", '1 game of an Event "Casual ...", recorded but not rated'],
    ),
    "PGN of Chess.com": pgn(
        CHESS_COM_PGN, games=["chess.com/game/live/100200300 2024-11-23T00:05 annablitz 2 benchess 1"]
    ),
    "PGN of a club": pgn(
        f"{tags()}\n1. e4 1-0\n\n{tags('ben', 'anna', '1/2-1/2')}\n1/2-1/2\n\n"
        f"{tags(date='2024.11.23', Time='20:05:00')}\n1-0\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-22-2 2024-11-22T11:00 ben 1 anna 1",
               "2024-11-23-1 2024-11-23T19:05 anna 1 ben 2"],
        told=["numbered by day, such as 2024-11-22-1"],
    ),
    "PGN without blank lines, in any order, with the line ends of Windows and a byte order mark": pgn(
        '\ufeff[White "anna"]\r\n[Result "1-0"]\r\n[Black "ben"]\r\n[Date "2024.11.22"]\r\n1-0\r\n[Black "anna"]\r\n'
        '[White "ben"]\r\n[Result "0-1"]\r\n[Date "2024.11.23"]\r\n0-1\r\n',
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-23-1 2024-11-23T11:00 ben 2 anna 1"],
    ),
    "PGN with tags alone": pgn(
        f"{tags()}\n{tags('ben', 'anna', date='2024.11.23')}",
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"],
    ),
    "PGN with comments that hold tags, and lines for other programs": pgn(
        f'% made by hand [White "x"]\n; {{ not open\n{tags()}\n1. e4 {{ [Event "no"]\n[White "x"]\n}} e5 ; {{\n'
        f'%[White "y"]\n1-0\n\n{tags("ben", "anna", date="2024.11.23")}\n1-0\n',
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"],
    ),
    "PGN with a quotation mark and a backslash in names": pgn(
        f'{tags(white="anna " + chr(92) + chr(34) + "ace" + chr(92) + chr(34), black="b" + chr(92) * 2 + "en")}\n1-0\n',
        games=['2024-11-22-1 2024-11-22T11:00 anna "ace" 1 b\\en 2'],
    ),
    "PGN in Latin-1": pgn(
        tags("Jürgen", "Zoë") + "\n1-0\n", "latin-1", games=["2024-11-22-1 2024-11-22T11:00 Jürgen 1 Zoë 2"],
        told=["1 game with letters that are not UTF-8, read as Windows-1252"],
    ),
    "PGN in UTF-16": pgn(tags() + "\n1-0\n", "utf-16", refused=[("1 bad-utf8", "it is UTF-16; save it as UTF-8")]),
    "PGN with what is not known": pgn(
        f"{tags(date='????.??.??')}\n1-0\n\n{tags(date='2024.??.??')}\n1-0\n\n{tags(black='?')}\n1-0\n\n"
        f"{tags(result='2-0')}\n1-0\n\n{tags().replace('Result', 'Outcome')}\n1-0\n\n"
        f"{tags(white='a').replace(chr(34) + ']', ']', 1)}\n1-0\n",
        refused=[
            ("1 bad-time", "Date: '????.??.??' does not say the day; put it there as 2024.11.22"),
            ("11 bad-time", "--set occurred_at=2024-11-22"), ("21 missing-member", "Black: '?' names nobody"),
            ("31 bad-value", "Result: '2-0' is none of 1-0"), ("41 missing-member", "the game has no tag Result"),
            ("51 bad-value", """'[Event "Club]' is no tag such as [White "anna"]"""),
        ],
    ),
    "PGN dated by an option": pgn(
        tags(date="????.??.??") + "\n1-0\n", options=("--set", "occurred_at=2024-11-22"),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"],
    ),
    "PGN of a variant": pgn(
        tags(Variant="Chess960") + "\n1-0\n",
        refused=[("1 bad-value", "Variant: 'Chess960' is not standard chess, so it needs a name as a game")],
    ),
    "PGN of a variant with a name": pgn(
        tags(Variant="Chess960") + "\n1-0\n", options=("--set", "game=chess960"),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"], told=["variants other than Standard: Chess960 (1)"],
    ),
    "PGN with forfeits": pgn(
        f"{tags(result='+/-')}\n\n{tags('ben', 'anna', '-:+')}\n\n{tags(result='-/-')}\n\n"
        f"{tags(date='2024.11.23', Termination='Rules infraction')}\n1-0\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2", "2024-11-22-2 2024-11-22T11:00 ben 2 anna 1",
               "2024-11-22-3 2024-11-22T11:00 anna 1 ben 1", "2024-11-23-1 2024-11-23T11:00 anna 1 ben 2"],
        told=["4 forfeits, recorded but not rated; --forfeits rated"],
    ),
    "PGN with a comment that never ends": pgn(
        f"{tags()}\n1. e4 1-0\n\n{tags(date='2024.11.23')}\n1. e4 {{ why not\n1-0\n\n{tags()}\n1-0\n",
        refused=[("19 bad-value", "a comment begins here with { and never ends with }")],
    ),
    "PGN whose names are typed": pgn(
        f"{tags('Johanna')}\n1-0\n\n{tags('Johana')}\n1-0\n", refused=[("11 close-name", "Johanna")]
    ),
    "PGN by its content": Case(
        tags().encode() + b"\n1-0\n", name="games.txt", options=(), games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"]
    ),
}  # fmt: skip
CASES = PGN
