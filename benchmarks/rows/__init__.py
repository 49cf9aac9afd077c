"""The rows of the table by the names that `--rows` accepts, in the order of measurement.

A row yields each line when it is measured, or the reason why the line cannot be measured.
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
    "rebuild": lambda setting: rebuilding.measure_rebuild(setting, setting.sqlite),
    "replay": replaying.measure_replay,
    "libraries": libraries.measure_libraries,
    "systems": systems.measure_systems,
    "append": lambda setting: appending.measure_append(setting, setting.sqlite, 200_000),
    "sheets": lambda setting: sheets.measure_sheets(setting, setting.sqlite),
    "single": lambda setting: single.measure_single(setting, setting.sqlite),
    "questions": asking.measure_questions,
    "corrections": asking.measure_corrections,
    "whatif": asking.measure_whatif,
    "names": naming.measure_names,
    "start": starting.measure_start,
    "pages": pages.measure_pages,
    "ladders": lambda setting: ladders.measure_small_ladders(setting, setting.sqlite),
    "postgres": postgres.measure_postgres,
    "cluster": cluster.measure_cluster,
    "growth": growing.measure_growth,
    "log": long_logs.measure_log,
    "codeforces": codeforces.measure_codeforces,
}
