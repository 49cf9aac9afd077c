"""Whether each event of a log fits those before it, as an import would have validated it at that point.

`verify` and `--restore` both ask here, so that one accepts exactly what the other is silent about. What an option of
the import can allow does not matter, nor what depends on rules from packages.
"""

from collections.abc import Callable, Iterable, Iterator

from sqlalchemy import Connection

from ledger.events.canonical import dump
from ledger.events.revisions import KnownEvent
from ledger.events.types import Draft
from ledger.rejections import Refused
from ledger.store.log import Log, known_events, known_of, read_records, read_records_at, read_where, withdrawn_ids
from ledger.validation.identities import players_of
from ledger.validation.validator import LadderChecks, NoLadderChecks, Validator

# almost all records end like this; the members of a record are in order
PLAIN_END = '"type":"game.recorded"}'


def misfits(
    connection: Connection,
    until: int,
    ladders: Callable[[Connection], LadderChecks] = lambda connection: NoLadderChecks(),
) -> Iterator[tuple[int, Refused]]:
    """(position, why) of each event up to a position that does not fit those before it.

    A record that is not a valid event is left out, as in a replay.
    """
    before, wrong = _Before(connection, until), False
    validator = Validator(connection, before, ladders, until=0)
    gone = withdrawn_ids(connection, until)
    for page in read_records(connection, until=until):
        for position, record in page:
            if record.endswith(PLAIN_END) and position not in before.games:
                continue
            event = next(known_events([(position, record)]), None)
            # a withdrawn list claims nothing
            if event is None or (event.type == "list.published" and event.event_id in gone):
                continue
            before.until = position - 1
            try:
                validator.validate(Draft(event.event_id, event.type, 0, "", event.occurred_at, ""), event.data)
            except Refused as problem:
                wrong = True
                yield position, problem
            except (LookupError, ValueError, AssertionError):
                if not wrong:
                    raise
                yield position, Refused("restore-mismatch", "it depends on an event that does not fit")


class _Before:
    """The events before a given one in a log, as if they were waiting before it (`validator.WaitingEvents`).

    `games` are the positions of games that involve a rename or a league that was created.
    """

    def __init__(self, connection: Connection, until: int) -> None:
        self.connection = connection
        self.until = 0
        self.games: set[int] = set()
        # where the names that are asked for occur: those of renames and of leagues
        self._places: dict[str, list[int]] = {}
        renames = _data(connection, until, "player.renamed")
        ids = {name for data in renames for name in (data["player"], data["new_player"])}
        leagues = {data["league"] for data in _data(connection, until, "league.created")}
        sought = ids | leagues
        # unless a name needs escaping, a record that has it has it between quotation marks; other records are not read
        every = any(dump(name) != f'"{name}"' for name in sought)
        for page in read_records(connection, until=until) if sought else ():
            naming = (row for row in page if every or not sought.isdisjoint(row[1].split('"')))
            for event in known_events(naming):
                self._note(event, ids, leagues)

    def _note(self, event: KnownEvent, ids: set[str], leagues: set[str]) -> None:
        named = players_of(event) & ids
        data = event.data["game"] if event.type == "game.corrected" else event.data
        label = str(data.get("league", "")) if event.type.startswith("game.") else ""
        if event.type == "game.recorded" and (len(named) > 1 or label in leagues):
            self.games.add(event.position or 0)
        for name in named | ({label} & leagues):
            self._places.setdefault(name, []).append(event.position or 0)

    @property
    def count(self) -> int:
        """How many events there are before."""
        return self.until

    def about(self, subject: str) -> list[KnownEvent]:
        """The events about a subject, in order."""
        return Log(self.connection, self.until).about(subject)

    def event(self, event_id: str) -> KnownEvent | None:
        """The event with this id."""
        return Log(self.connection, self.until).event(event_id)

    def successor(self, event_id: str) -> KnownEvent | None:
        """The event that supersedes the one with this id."""
        return Log(self.connection, self.until).successor(event_id)

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """The events that have one of these names, which must be a renamed player's or a league's."""
        places = {position for name in names for position in self._places.get(name, ()) if position <= self.until}
        yield from known_events(sorted(read_records_at(self.connection, sorted(places)).items()))


def _data(connection: Connection, until: int, type_name: str) -> list[dict[str, str]]:
    found = read_where(connection, until=until, type_name=type_name)
    return [event.data for event in known_of(type_name, found)]
