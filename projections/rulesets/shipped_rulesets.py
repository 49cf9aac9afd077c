"""Find the rulesets that come with this program: `init` publishes some of them, others are published on request.

Some files leave the game or the time zone open: GAME and ZONE in their text are filled in when they are published.
"""

import tomllib
from functools import cache
from typing import NamedTuple

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.fields import read_slug
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.rulesets.versions import ELO, ON_REQUEST, SHIPPED, read_shipped_text

GAME_SUFFIX = "-GAME"


class ShippedRuleset(NamedTuple):
    """A ruleset that comes with this program, by the name under which it is published on request.

    texts, versions: the files and the versions, in the order in which they are published
    rule, description, source, games: of the newest version; the description is the first line of its file
    on_request: whether it is published only on request
    takes_game, takes_zone: whether its files leave the game or the time zone open
    makes_ladders: whether `init --system` offers it, because for any game it makes the same ladders as Elo
    """

    id: str
    texts: tuple[str, ...]
    versions: tuple[str, ...]
    rule: str
    description: str
    source: str
    games: tuple[str, ...]
    on_request: bool
    takes_game: bool
    takes_zone: bool
    makes_ladders: bool

    def fill_in(self, game: str = "", zone: str = "UTC") -> list[str]:
        """Return the files of its versions, filled in for a game (a slug) and a time zone."""
        return [text.replace("GAME", game).replace("ZONE", zone) for text in self.texts]

    def refuse_choice(self, has_games: bool, has_zone: bool) -> None:
        """Raise `BadArgument` if a game is missing, or if a game or a zone is given that cannot be chosen."""
        if has_games and not self.takes_game:
            raise BadArgument(f"{self.id} rates only {joined(self.games)}; leave out games", "games")
        if self.takes_game and not has_games:
            raise BadArgument(f"{self.id} needs the name of a game; pass it as games", "games")
        if has_zone and not self.takes_zone:
            raise BadArgument(f"{self.id} has its own time zone; leave out zone", "zone")


@cache
def shipped_rulesets() -> dict[str, ShippedRuleset]:
    """Return the shipped rulesets by name: first those that `init` publishes, then Elo, then all others."""
    texts_by_name: dict[str, list[str]] = {}
    for name in (*SHIPPED, *sorted(ON_REQUEST, key=lambda name: (not name.startswith(f"{ELO}-"), name))):
        text = read_shipped_text(name)
        texts_by_name.setdefault(tomllib.loads(text)["id"].removesuffix(GAME_SUFFIX), []).append(text)
    ladders = _read_ladders(texts_by_name[ELO][-1])
    published_by_init = {tomllib.loads(read_shipped_text(name))["id"] for name in SHIPPED}
    return {
        name: _describe_ruleset(name, texts, on_request=name not in published_by_init, ladders_of_elo=ladders)
        for name, texts in texts_by_name.items()
    }


def _describe_ruleset(name: str, texts: list[str], *, on_request: bool, ladders_of_elo: object) -> ShippedRuleset:
    newest = tomllib.loads(texts[-1])
    takes_game = newest["id"].endswith(GAME_SUFFIX)
    return ShippedRuleset(
        id=name,
        texts=tuple(texts),
        versions=tuple(tomllib.loads(text)["version"] for text in texts),
        rule=newest["rule"],
        description=texts[-1].partition("\n")[0].removeprefix("#").strip(),
        source=newest.get("source", ""),
        games=tuple(newest["scope"]["game"]),
        on_request=on_request,
        takes_game=takes_game,
        takes_zone="ZONE" in texts[-1],
        makes_ladders=takes_game and _read_ladders(texts[-1]) == ladders_of_elo,
    )


def _read_ladders(text: str) -> object:
    """Return the members that decide which ladders a ruleset has, and when they are scored."""
    data = tomllib.loads(text)
    return data.get("partition"), data.get("period", "game"), data["scope"].get("kind"), data.get("entrant", "player")


def list_systems() -> list[str]:
    """Return the names of the rulesets that `init --system` offers for any game, Elo first."""
    return [ruleset.id for ruleset in shipped_rulesets().values() if ruleset.makes_ladders]


def read_rated_game(ruleset_id: str, game: str) -> str:
    """Check the name of a game for which a shipped ruleset is published, and return it. Raises `Refused` (bad-slug)."""
    return read_slug(f"{ruleset_id}-{game}")[len(ruleset_id) + 1 :]


def find_shipped(name: str) -> ShippedRuleset:
    """Return the shipped ruleset with a name. Raises `BadArgument` for an unknown name."""
    known = shipped_rulesets()
    if name not in known:
        hint = did_you_mean(name, known)
        message = (
            f"no shipped ruleset is called {quote(name)}; to list the shipped ones: ratings rules list --shipped{hint}"
        )
        raise BadArgument(message, "ruleset_id")
    return known[name]


def find_shipped_texts(name: str, zone: str) -> list[str]:
    """Return the files of a shipped ruleset, filled in, by the id that it will have, such as elo-chess.

    Raises `BadArgument` if no shipped ruleset can have this id, and `Refused` (bad-slug) for an invalid game name.
    """
    templates = [ruleset for ruleset in shipped_rulesets().values() if ruleset.takes_game]
    for template in sorted(templates, key=lambda ruleset: -len(ruleset.id)):
        if name.startswith(f"{template.id}-") and name not in shipped_rulesets():
            return template.fill_in(read_rated_game(template.id, name[len(template.id) + 1 :]), zone)
    ruleset = find_shipped(name)
    if ruleset.takes_game:
        raise BadArgument(f"{name} needs the name of a game, as in {name}-chess", "ruleset")
    return ruleset.fill_in(zone=zone)


def find_shipped_text(name: str) -> str:
    """Return the file of a shipped ruleset: of NAME@VERSION or, by NAME alone, of the newest. Raises `BadArgument`."""
    ruleset_id, at, version = name.partition("@")
    ruleset = find_shipped(ruleset_id)
    if not at:
        return ruleset.texts[-1]
    if version not in ruleset.versions:
        message = f"{ruleset.id} has no version {quote(version)}; its versions are {', '.join(ruleset.versions)}"
        raise BadArgument(message + did_you_mean(version, ruleset.versions), "ruleset_id")
    return ruleset.texts[ruleset.versions.index(version)]
