"""Several processes publish the same list at once, each from the same state of the ledger: it is published once."""

import json
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import append_games, build_numbered_game, fork_child, list_findings, wait_for_exits
from interleaving import act_before_each
from ledgers import read_all_records, run_command

WAIT_SECONDS = 60
PUBLISHERS = 4


def publish(url: str, barrier: Barrier, out: Path) -> int:
    """Publish the list, but append it only when all other publishers have computed theirs."""
    with pytest.MonkeyPatch.context() as patch, out.open("w", encoding="utf-8") as stdout:
        act_before_each(patch, "committed", lambda: barrier.wait(WAIT_SECONDS))
        patch.setattr("sys.stdout", stdout)
        return run_command("publish", "club-catan-elo/all", "--by", str(os.getpid()), "--format", "json", db=url)


@pytest.mark.slow_cases
def test_one_of_several_publishers_appends(ruled_url: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """When several publish the same list at once, one appends it and the others get `list-exists`."""
    append_games(ruled_url, [build_numbered_game(number) for number in range(5)])
    before = len(read_all_records(ruled_url))
    barrier = multiprocessing.get_context("fork").Barrier(PUBLISHERS)
    outputs = [tmp_path / f"{number}.json" for number in range(PUBLISHERS)]
    codes = wait_for_exits([fork_child(publish, ruled_url, barrier, out) for out in outputs])

    reports = [json.loads(out.read_text(encoding="utf-8")) for out in outputs]
    assert sorted(codes) == [0] + [1] * (PUBLISHERS - 1)
    assert sorted(rejection["code"] for report in reports for rejection in report["rejected"]) == ["list-exists"] * (
        PUBLISHERS - 1
    )
    assert {report["digest"] for report in reports} == {reports[0]["digest"]}
    new_events = [json.loads(record) for position, record in read_all_records(ruled_url).items() if position > before]
    assert [(event["type"], event["position"]) for event in new_events] == [
        ("list.rows", before + 1),
        ("list.published", before + 2),
    ]
    assert list_findings(ruled_url) == []
    assert ratings("verify", db=ruled_url).exit_code == 0
