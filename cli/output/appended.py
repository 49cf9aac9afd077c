"""Printing what was appended, what was refused and who is new."""

import re
from collections.abc import Sequence
from typing import Any

from cli.output import render
from cli.output.impact import impact_json, note_failed, print_impact, print_lists
from ledger.intake.importing import Imported
from ledger.rejections import Rejection, shown
from ledger.store.opening import Ledger
from ledger.validation.new_names import TOLD_MAX
from projections.admission.new_ladders import NewLadders
from projections.queries.answers_compared import DifferingList, Impact
from projections.queries.coordinates import times_of

SHOWN_REJECTIONS = 20
# these depend on how a whole file is written: one cause, whatever the cells hold
WRITTEN = frozenset({"bad-utf8", "bad-time", "naive-time"})

_WITHOUT_VALUES = re.compile(r"'[^']*'|\d+")


def tell_new_ladders(result: Imported, new_ladders: NewLadders) -> None:
    """Add to a result which ladders begin, unless something was refused."""
    if not result.rejected_count:
        result.new_ladders = [begun.ladder for begun in new_ladders.found]
        result.close_ladders = {begun.ladder: begun.like for begun in new_ladders.found if begun.like}


def note_homeless(result: Imported, homeless: dict[str, str]) -> None:
    """Report games that are on no ladder, one for each reason, unless something was refused."""
    for reason, game_id in homeless.items() if not result.rejected_count else ():
        render.note(f"note: on no ladder, such as {render.plain(game_id)}: {reason}")


def note_leagueless(result: Imported, leagueless: dict[str, str]) -> None:
    """Report games that a league has scheduled but that do not name it, one for each league."""
    for league, game_id in leagueless.items() if not result.rejected_count else ():
        league, game_id = render.plain(league), render.plain(game_id)
        render.note(
            f"note: {game_id} is scheduled in the league {league}, but does not say so; fix it with: "
            f"ratings correct {game_id} --league {league} --reason TEXT"
        )


def report_appended(
    ledger: Ledger, result: Imported, form: str, dry_run: bool, found: Impact | None = None, quiet: bool = False,
    lists: Sequence[DifferingList] | None = None,
) -> int:  # fmt: skip
    """Print what was appended and what was refused, who is new, and what that changes as far as known, or only which
    published lists; returns the exit code.
    """
    if found is None and dry_run:
        found = Impact()
    if found is not None:
        note_failed(found)
    if form == "json":
        render.print_json(
            {
                "appended": result.appended,
                "existing": result.existing,
                "rejected": [
                    {"file": r.file, "line": r.line, "code": r.code, "message": r.message} for r in result.rejected
                ],
                "head": result.head.position if result.head else 0,
                **({"rejected_count": result.rejected_count} if result.rejected_count > len(result.rejected) else {}),
                **new_told(result),
                **({"dry_run": True, "would_append": result.would_append} if dry_run else {}),
                **({} if found is None else impact_json(found)),
                **({"incomplete": result.passed} if result.passed else {}),
                **({} if lists is None else {"published": [one.model_dump() for one in lists]}),
            }
        )
        return int(result.rejected_count > 0)
    for passed in result.passed:
        render.note(f"note: {render.plain(passed)}")
    causes = _causes(result.rejected)
    for rejections in causes[:SHOWN_REJECTIONS]:
        render.note(rejection_line(rejections[0]) + _more(rejections))
    untold = result.rejected_count - sum(map(len, causes[:SHOWN_REJECTIONS]))
    if untold > 0:
        render.note(f"... and {untold:,} more (--format json lists them)")
    if not quiet:
        note_new(result)
    did = f"{result.would_append:,} would be appended" if dry_run else f"{result.appended:,} appended"
    there = f", {result.existing:,} already there" if result.existing else ""
    refused = f", {result.rejected_count:,} refused" if result.rejected_count else ""
    nothing = "; nothing was appended" if result.rejected_count and not result.appended and not dry_run else ""
    if not quiet or result.rejected_count:
        render.echo(f"{did}{there}{refused}{nothing}; the head is {result.head.position if result.head else 0:,}.")
    if found is not None and result.would_append and not quiet:
        print_impact(found, ledger)
    if lists:
        with ledger.reading() as connection:
            print_lists(lists, times_of(connection))
    return int(result.rejected_count > 0)


def _causes(rejected: list[Rejection]) -> list[list[Rejection]]:
    """Refusals grouped by cause, as a file often has the same one on many lines."""
    found: dict[tuple[str | None, str, str], list[Rejection]] = {}
    for one in rejected:
        message = _WITHOUT_VALUES.sub("", one.message) if one.code in WRITTEN else one.message
        found.setdefault((one.file, one.code, message), []).append(one)
    return list(found.values())


def _more(rejections: list[Rejection]) -> str:
    """How often a cause recurs, and where it last does."""
    again = len(rejections) - 1
    return f" ({render.count(again, 'more line')} like this, the last {rejections[-1].line})" if again else ""


def new_told(result: Imported) -> dict[str, Any]:
    """Who is new, whose name is close to another, and the same for ladders, as stated in JSON."""
    close = [{"player": name, "close_to": others} for name, others in result.close.items()]
    ladders = [{"ladder": name, "close_to": [other]} for name, other in result.close_ladders.items()]
    return {
        "new_players": result.new_players, "close_names": close,
        "new_ladders": result.new_ladders, "close_ladders": ladders,
    }  # fmt: skip


def note_new(result: Imported) -> None:
    """Print which ladders begin and who is new, unless nothing was taken, and whose name is close to another."""
    if result.new_ladders:
        named = {name: f" (like {other}?)" for name, other in result.close_ladders.items()}
        names = ", ".join(name + named.get(name, "") for name in result.new_ladders[:TOLD_MAX])
        more = f" and {len(result.new_ladders) - TOLD_MAX:,} more" if len(result.new_ladders) > TOLD_MAX else ""
        render.note(render.plain(f"note: {render.count(len(result.new_ladders), 'new ladder')}: {names}{more}"))
    if not result.new_players or (result.rejected_count and not result.would_append):
        return
    like = {name: f" (like {others[0]}?)" for name, others in result.alike.items()}
    names = ", ".join(name + like.get(name, "") for name in result.new_players[:TOLD_MAX])
    more = f" and {len(result.new_players) - TOLD_MAX:,} more" if len(result.new_players) > TOLD_MAX else ""
    render.note(render.plain(f"note: {render.count(len(result.new_players), 'new player')}: {names}{more}"))
    for name, others in list(result.close.items())[:TOLD_MAX]:
        render.note(f"note: {shown(name)} is close to {', '.join(map(shown, others))}")


def rejection_line(rejection: Rejection) -> str:
    """`FILE:LINE: code: message`, on one line."""
    where = "".join(f"{part}:" for part in (rejection.file, rejection.line) if part is not None)
    return render.plain(f"{where}{' ' if where else ''}{rejection.code}: {rejection.message}")
