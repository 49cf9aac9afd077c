"""The rows of the table, by the names `--rows` takes, in the order they run.

A row yields its lines as they are measured, and reports those that cannot be measured here.
"""

from collections.abc import Callable, Iterator

from benchmarks.results import Line, Skipped
from benchmarks.rows import (
    appending,
    asking,
    cluster,
    codeforces,
    growing,
    ladders,
    libraries,
    long_logs,
    naming,
    pages,
    postgres,
    rebuilding,
    replaying,
    sheets,
    single,
    starting,
    systems,
)
from benchmarks.setting import Setting

Row = Callable[[Setting], Iterator[Line | Skipped]]

ROWS: dict[str, Row] = {
    "rebuild": lambda setting: rebuilding.rebuild(setting, setting.sqlite),
    "replay": replaying.replay,
    "libraries": libraries.libraries,
    "systems": systems.systems,
    "append": lambda setting: appending.append(setting, setting.sqlite, 200_000),
    "sheets": lambda setting: sheets.sheets(setting, setting.sqlite),
    "single": lambda setting: single.single(setting, setting.sqlite),
    "questions": asking.questions,
    "corrections": asking.corrections,
    "whatif": asking.whatif,
    "names": naming.names,
    "start": starting.start,
    "pages": pages.pages,
    "ladders": lambda setting: ladders.small_ladders(setting, setting.sqlite),
    "postgres": postgres.postgres,
    "cluster": cluster.cluster,
    "growth": growing.growth,
    "log": long_logs.log,
    "codeforces": codeforces.codeforces,
}
