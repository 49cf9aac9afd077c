"""How the decisions between two positions look: as a page for members."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.html_pages import Page, PagePart
from ratings_ledger.projections.diff.decisions import Decision, Decisions, Share
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders, short_name

# how many of one player's causes are listed singly
CAUSES_TOLD = 4


def concerned(found: Decisions) -> int:
    """Return how many players a decision changed the points of."""
    return len({share.player for share in found.shares if share.is_decided})


def decisions_page(found: Decisions) -> Page:
    """Return what was decided, what each decision did, and whose points changed by what."""
    first, last = map(found.times.stated, found.recorded)
    ladders = render.count(
        len({share.ladder for share in drop_duplicate_ladders(found.shares) if share.is_decided}), "ladder"
    )
    summary = (
        f"Recorded from {first} to {last}: {render.count(len(found.decisions), 'decision')}, and "
        f"{render.count(found.games, 'game')}. Decisions changed the points of "
        f"{render.count(concerned(found), 'player')} on {ladders}."
    )
    rows = [(f"D{number}", *_decision(one, found.times)) for number, one in enumerate(found.decisions, 1)]
    parts = [PagePart("What was decided", (), ("", "recorded", "by", "decision", "why"), rows)]
    if not rows:
        parts = [PagePart("What was decided", ["Nothing was decided."])]
    else:
        header = ("", "ladder", "players", "gained most", "lost most")
        parts.append(PagePart("What each decision did", (), header, list(_effects(found)), ("players",)))
    by_ladder: dict[str, list[Share]] = defaultdict(list)
    for share in drop_duplicate_ladders(found.shares):
        by_ladder[share.ladder].append(share)
    parts += [_ladder(name, them) for name, them in by_ladder.items() if any(share.is_decided for share in them)]
    parts += [
        PagePart(short_name(name), [f"It cannot be replayed: {problem}"]) for name, problem in found.failures.items()
    ]
    footer = (
        f"Computed from the ledger at its positions {found.before} and {found.to}; its head is {found.head}. "
        "Points are rounded to two places."
    )
    return Page(f"Changes from position {found.before} to {found.to}", [summary], parts, footer)


def _decision(one: Decision, times: Times) -> tuple[str, str, str, str]:
    """Return when something was recorded, by whom, what it was, and why."""
    more = len(one.positions) - len(one.told)
    told = "; ".join([*one.told, *([f"and {more:,} more"] if more else [])])
    many = f"{len(one.positions):,} " if len(one.positions) > 1 else ""
    return times.minute(one.recorded_at), one.by, f"{many}{one.did}: {told}", one.reason or ""


def _effects(found: Decisions) -> Iterator[tuple[str, ...]]:
    """Yield a row for each ladder that a decision affects."""
    reached: dict[tuple[int, str], list[tuple[Fraction, str]]] = defaultdict(list)
    for share in drop_duplicate_ladders(found.shares):
        for cause, amount in share.amounts.items():
            if cause is not None:
                reached[cause, share.ladder].append((amount, share.player))
    for number in range(len(found.decisions)):
        ladders = [(ladder, amounts) for (cause, ladder), amounts in reached.items() if cause == number]
        for ladder, amounts in ladders or [("nobody's points", [])]:
            players = f"{len(amounts):,}" if amounts else ""
            gained, lost = (end(amounts, default=None) for end in (max, min))
            yield f"D{number + 1}", short_name(ladder), players, _amount(gained, 1), _amount(lost, -1)


def _amount(one: tuple[Fraction, str] | None, sign: int) -> str:
    """Return who gained or lost, if the amount has this sign."""
    return f"{one[1]} {render.human(one[0], signed=True)}" if one is not None and one[0] * sign > 0 else ""


def _ladder(name: str, shares: list[Share]) -> PagePart:
    """Return whose points on a ladder a decision changed, largest gains first."""
    told = sorted((share for share in shares if share.is_decided), key=lambda share: (-share.change, share.player))
    others = len(shares) - len(told)
    by_games = render.count(others, "more player") if others else ""
    rows = [
        (share.player, _points(share.before), render.human(share.change, signed=True), _points(share.after),
         _ranks(share), _why(share))
        for share in told
    ]  # fmt: skip
    header = ("player", "before", "change", "after", "rank", "by")
    more = [f"The points of {by_games} changed by games alone."] if others else []
    return PagePart(short_name(name), more, header, rows, ("before", "change", "after", "rank"))


def _points(points: Fraction | None) -> str:
    return "-" if points is None else render.human(points)


def _ranks(share: Share) -> str:
    ranks = ["-" if rank is None else str(rank) for rank in share.rank]
    return ranks[0] if ranks[0] == ranks[1] else " → ".join(ranks)


def _why(share: Share) -> str:
    """Return the causes with what each gave, largest first, the rest together."""
    ordered = sorted(share.amounts.items(), key=lambda one: (-abs(one[1]), one[0] is None, one[0] or 0))
    cut = CAUSES_TOLD if len(ordered) > CAUSES_TOLD + 1 else len(ordered)
    told = [
        f"{'games' if cause is None else f'D{cause + 1}'} {render.human(amount, signed=True)}"
        for cause, amount in ordered[:cut]
    ]
    if rest := ordered[cut:]:
        together = render.human(sum((amount for _, amount in rest), Fraction(0)), signed=True)
        told.append(f"{len(rest)} others {together}")
    return ", ".join(told)
