"""Implement `status --format prometheus`: the text format that Prometheus and its collectors read, version 0.0.4.

    # HELP ratings_standings_behind_events Events that the oldest stored standings do not know.
    # TYPE ratings_standings_behind_events gauge
    ratings_standings_behind_events{ledger="ratings.db"} 3

Unknown values, such as the age of standings that are not stored, are left out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.locations import drop_user

# results of a run, each a series of its own: 1 for the actual one
RESULTS = ("done", "failed", "lost", "running")
Samples = list[tuple[dict[str, str], int | None]]


class Family(NamedTuple):
    """One metric's samples, each with its labels."""

    name: str
    kind: str
    help: str
    samples: Samples


def format_metrics(state: dict[str, Any]) -> str:
    """Return what `status --format json` says, as metrics, each with the label `ledger`: its location without the role
    that asked, so that every role writes the same series.
    """
    lines: list[str] = []
    for family in _metric_families(state):
        samples = [(labels, value) for labels, value in family.samples if value is not None]
        if samples:
            lines += [f"# HELP {family.name} {_escaped(family.help)}", f"# TYPE {family.name} {family.kind}"]
        for labels, value in samples:
            named = {"ledger": drop_user(state["ledger"]), **labels}
            label_text = ",".join(f'{name}="{_escaped(text, quoted=True)}"' for name, text in named.items())
            lines.append(f"{family.name}{{{label_text}}} {value}")
    return "".join(f"{line}\n" for line in lines)


# One family after another: a list is easiest to read at once.
def _metric_families(state: dict[str, Any]) -> Iterator[Family]:
    def gauge(name: str, meaning: str, samples: Samples) -> Family:
        return Family(f"ratings_{name}", "gauge", meaning, samples)

    generation, runs = state["generation"] or {}, state["runs"]
    yield gauge("ledger_info", "The ledger by its id; always 1.", [({"ledger_id": state["ledger_id"]}, 1)])
    yield gauge("head_position", "The position of the last event.", [({}, state["position"])])
    yield gauge(
        "head_recorded_timestamp_seconds", "When the last event was recorded.", [({}, _timestamp(state["recorded"]))]
    )
    yield Family(
        "ratings_events_total",
        "counter",
        "Events in the log, by type.",
        [({"type": name}, number) for name, number in sorted(state["events"].items())],
    )
    yield gauge("standings_generation", "The number of the live generation.", [({}, generation.get("generation"))])
    yield gauge(
        "standings_position", "The position that the live generation was built at.", [({}, generation.get("position"))]
    )
    yield gauge(
        "standings_behind_events", "Events that the oldest stored standings do not know.", [({}, state["behind"])]
    )
    yield gauge(
        "standings_age_seconds", "How long ago the oldest stored standings were built.", [({}, state["age_seconds"])]
    )
    built = [text for text in (generation.get("finished"), *(one["built"] for one in state["stale"])) if text]
    yield gauge(
        "standings_built_timestamp_seconds",
        "When the oldest stored standings were built.",
        [({}, _timestamp(min(built, default=None)))],
    )
    whys = [one["why"] for one in state["stale"]]
    yield gauge(
        "stale_ladders",
        "Ladders that are older than the live generation, by the reason.",
        [({"why": why}, whys.count(why)) for why in ("failed", "not-asked")],
    )
    yield gauge("missing_rules", "Published rulesets whose rule is not installed.", [({}, len(state["rules_missing"]))])
    kinds = [ahead["kind"] for ahead in state["dated_ahead"]]
    yield gauge(
        "dated_ahead",
        "Runs, generations and stored ladders that are dated after now.",
        [({"kind": kind}, kinds.count(kind)) for kind in ("run", "generation", "ladder")],
    )
    yield gauge(
        "run_result",
        "The result of the last run of a kind, 1 for the one that it was.",
        [
            ({"kind": kind, "result": result}, int(one["last"]["result"] == result))
            for kind, one in runs.items()
            for result in RESULTS
        ],
    )
    yield gauge(
        "run_position",
        "The position that the last run of a kind got to.",
        [({"kind": kind}, one["last"]["position"]) for kind, one in runs.items()],
    )
    for name, told, which in (
        ("run", "The last run", "last"),
        ("run_last_success", "The last success", "last_success"),
        ("run_last_failure", "The last failure", "last_failure"),
    ):
        known_runs = {kind: one[which] for kind, one in runs.items() if one[which] is not None}
        yield gauge(
            f"{name}_started_timestamp_seconds",
            f"{told} of a kind: when it began.",
            [({"kind": kind}, _timestamp(one["started"])) for kind, one in known_runs.items()],
        )
        yield gauge(
            f"{name}_age_seconds",
            f"{told} of a kind: how long ago it ended, or began where that is unknown.",
            [({"kind": kind}, one["age_seconds"]) for kind, one in known_runs.items()],
        )


def _timestamp(text: str | None) -> int | None:
    """Return an instant as seconds since 1970."""
    return None if text is None else parse_instant(text) // 1_000_000


def _escaped(text: str, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text
