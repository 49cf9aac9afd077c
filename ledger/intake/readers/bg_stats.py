"""Read an export of BG Stats, the app for board gamers: plays with their games and players (BGStatsExport.json).

    {"games":[{"id":1,"name":"Catan","highestWins":true}],"players":[{"id":1,"name":"anna"},{"id":2,"name":"ben"}],
     "plays":[{"uuid":"6f1c...","gameRefId":1,"playDate":"2024-11-22 20:05:00","playerScores":[
         {"playerRefId":1,"score":"3+7","winner":true},{"playerRefId":2,"score":"8","winner":false}]}]}

A play becomes a game of the ledger with the play's uuid as its id, so an edited play is compared with that game.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.readers.other_programs import COLUMNS, CommonMembers, SpecialGames
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.tables.columns import TableOptions, normalise_instant
from ratings_ledger.ledger.rejections import Refused, quote

FILE_BYTES_MAX = 200_000_000
_NUMBER = r"\d{1,12}(?:[.,]\d{1,6})?"
_SUM = re.compile(rf"[+-]?{_NUMBER}(?:[+-]{_NUMBER})*", re.ASCII)
_PART = re.compile(rf"[+-]?{_NUMBER}", re.ASCII)
# members that occur only in exports of BG Stats
_MEMBERS = (b'"playerScores"', b'"gameRefId"', b'"isAnonymous"', b'"highestWins"', b'"bggUsername"')


class _Side(NamedTuple):
    """A side of a play: a player, or the players of a team; `rank` is 0 if it is unknown."""

    players: list[str]
    team: str | None
    score: Decimal | None
    is_winner: bool
    rank: int


class _PlayConverter:
    """A converter of the plays of an export to events. It counts the plays that it treats specially."""

    def __init__(self, data: dict[str, Any], options: TableOptions) -> None:
        self.special_games = SpecialGames()
        self._games, self._players = _index_by_id(data, "games"), _index_by_id(data, "players")
        self._common, self._options = CommonMembers.read(options), options

    def convert_play(self, play: Any) -> dict[str, Any] | None:
        """Convert a play to an event; return None for a play that is left out. Raises `Refused`."""
        if not isinstance(play, dict) or not isinstance(play.get("uuid"), str):
            raise Refused("missing-member", f"the play {quote(play)} has no uuid; export the plays again")
        game = self._games.get(play.get("gameRefId"))
        if game is None or not isinstance(game.get("name"), str):
            message = f"gameRefId {quote(play.get('gameRefId'))} is not a game of the export; export the plays again"
            raise Refused("bad-value", f"play {play['uuid']}: {message}")
        if game.get("cooperative") is True:
            self.special_games.add("played cooperatively")
            return None
        sides = self._read_sides(play)
        if sides is None:
            return None
        participants = _build_participants(sides, is_low=game.get("highestWins") is False)
        if participants is None:
            self.special_games.add("without a winner, scores or ranks")
            return None
        is_scored = all("score" in participant for participant in participants)
        data = {
            "game": game["name"],
            **self._common.members,
            "game_id": play["uuid"],
            "participants": participants,
        }
        if is_scored and game.get("highestWins") is False:
            data["score_order"] = "low"
        if play.get("ignored") is True:
            data["rated"] = False
            self.special_games.add("ignored in the statistics of BG Stats", "recorded but not rated")
        occurred_at = self._common.occurred_at
        if occurred_at is None:
            if not isinstance(play.get("playDate"), str):
                raise Refused("missing-member", f"play {play['uuid']} has no playDate; add its date in BG Stats")
            occurred_at = normalise_instant(play["playDate"], self._options.zone)
        return {"type": "game.recorded", "occurred_at": occurred_at, "data": data}

    def _read_sides(self, play: dict[str, Any]) -> list[_Side] | None:
        """Return the sides of a play, or None if the play is left out. Raises `Refused`."""
        scores = play.get("playerScores")
        if not isinstance(scores, list) or not all(isinstance(entry, dict) for entry in scores):
            raise Refused("missing-member", f"play {play['uuid']} has no playerScores; export the plays again")
        players = list[_Side]()
        for entry in scores:
            player = self._players.get(entry.get("playerRefId"))
            name = None if player is None else player.get("name")
            if player is None or not isinstance(name, str):
                message = f"playerRefId {quote(entry.get('playerRefId'))} is not a player of the export"
                raise Refused("bad-value", f"play {play['uuid']}: {message}; export the plays again")
            if player.get("isAnonymous") is True and name not in self._options.aliases:
                self.special_games.add("with an anonymous player", "left out unless --aliases names the player")
                return None
            team, rank = entry.get("team"), entry.get("rank")
            players.append(
                _Side(
                    players=[name],
                    team=team if isinstance(team, str) and team else None,
                    score=_parse_score(play, name, entry.get("score")),
                    is_winner=entry.get("winner") is True,
                    rank=rank if isinstance(rank, int) and not isinstance(rank, bool) else 0,
                )
            )
        if len(players) < 2:
            self.special_games.add("with only one player")
            return None
        if play.get("usesTeams") is True:
            return self._join_teams(players)
        return [player._replace(team=None) for player in players]

    def _join_teams(self, players: list[_Side]) -> list[_Side] | None:
        """Return the teams of a play, or None if the play is left out."""
        if any(player.team is None for player in players):
            self.special_games.add("with teams and a player without one")
            return None
        teams = dict[str | None, list[_Side]]()
        for player in players:
            teams.setdefault(player.team, []).append(player)
        if len(teams) < 2:
            self.special_games.add("played cooperatively")
            return None
        return [
            _Side(
                players=[name for mate in mates for name in mate.players],
                team=team,
                score=_find_common_value([mate.score for mate in mates if mate.score is not None]),
                is_winner=any(mate.is_winner for mate in mates),
                rank=_find_common_value([mate.rank for mate in mates]) or 0,
            )
            for team, mates in teams.items()
        ]


def _find_common_value(values: list[Any]) -> Any:
    """Return the value that all elements have, or None if they differ or there are none."""
    return values[0] if values and all(value == values[0] for value in values) else None


def _index_by_id(data: dict[str, Any], name: str) -> dict[Any, dict[str, Any]]:
    """Return the games or players of an export by their ids. Raises `Refused`."""
    rows = data.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Refused("missing-member", f"the export of BG Stats has no list of {name}; export the plays again")
    return {row["id"]: row for row in rows if isinstance(row.get("id"), int)}


def _parse_score(play: dict[str, Any], name: str, score: Any) -> Decimal | None:
    """Parse a score, which may be a sum such as 3+20+5. Raises `Refused` (bad-decimal)."""
    text = "" if score is None else str(score).replace(" ", "")
    if not text:
        return None
    if not _SUM.fullmatch(text):
        problem = f"the score {quote(score)} of {quote(name)} is not a number or a sum such as 3+20+5; correct it"
        raise Refused("bad-decimal", f"play {play['uuid']}: {problem}")
    return sum((Decimal(part.replace(",", ".")) for part in _PART.findall(text)), Decimal(0))


def _build_participants(sides: list[_Side], is_low: bool) -> list[dict[str, Any]] | None:
    """Build the participants of a game; return None if ranks, winners and scores are missing.

    Ranks determine the places, or else winners and then scores. Scores that contradict the places are dropped,
    because the players then chose the winner by hand.
    """
    # negated unless low scores win, so that the lower number is always better
    scores = [side.score if is_low else -side.score for side in sides if side.score is not None]
    has_scores = len(scores) == len(sides)
    if all(side.rank > 0 for side in sides):
        keys: list[Any] = [side.rank for side in sides]
    elif any(side.is_winner for side in sides):
        keys = [(not side.is_winner, scores[index] if has_scores else 0) for index, side in enumerate(sides)]
    elif has_scores:
        keys = [*scores]
    else:
        return None
    pairs = sorted(zip(keys, scores, strict=True)) if has_scores else []
    scores_agree = has_scores and all(better[1] <= worse[1] for better, worse in pairwise(pairs))
    participants = []
    for side, key in zip(sides, keys, strict=True):
        place = 1 + sum(len(better.players) for better, better_key in zip(sides, keys, strict=True) if better_key < key)
        for name in side.players:
            participant: dict[str, Any] = {"player": name, "place": place}
            if side.team is not None:
                participant["team"] = side.team
            if scores_agree and side.score is not None:
                participant["score"] = (
                    int(side.score) if side.score == side.score.to_integral_value() else f"{side.score.normalize():f}"
                )
            participants.append(participant)
    return participants


def _read(opened: Opened, options: TableOptions) -> Iterator[Read]:
    content = opened.content.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        message = f"the export of BG Stats has more than {FILE_BYTES_MAX:,} bytes; export fewer plays"
        raise Refused("file-too-large", message)
    try:
        data = json.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as problem:
        raise Refused(
            "bad-json", f"the export of BG Stats is cut off or damaged: {quote(str(problem))}; export it again"
        ) from None
    plays = data.get("plays") if isinstance(data, dict) else None
    if not isinstance(plays, list):
        raise Refused("missing-member", "the export of BG Stats has no list of plays; export it again, with its plays")
    if options.on_columns is not None:
        options.on_columns(COLUMNS)
    yield ReadAs("read as an export of BG Stats; line numbers count its plays")
    converter = _PlayConverter(data, options)
    for number, play in enumerate(plays, 1):
        try:
            event = converter.convert_play(play)
        except Refused as problem:
            yield number, problem, play, None
            continue
        if event is not None:
            yield number, event, play, None
    yield from converter.special_games.describe()


def _is_bg_stats(name: str, start: bytes) -> bool:
    is_object = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    is_named = "bgstats" in name.lower() or name.lower().endswith(".bgsplay")
    return is_object and b'"type"' not in start[:100] and (is_named or any(member in start for member in _MEMBERS))


BG_STATS = Reader("BG Stats", _is_bg_stats, _read, tables=True)
