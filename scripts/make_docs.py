"""Generate the reference pages from the code, and update the output on the other pages.

    python scripts/make_docs.py

Tests compare the pages with the output of this script.
"""

import runpy
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from importlib import import_module
from inspect import cleandoc
from itertools import chain
from pathlib import Path
from typing import Any

import click
from completion_table import build_completion_table
from console_blocks import mask_volatile, refresh_page
from notebooks import refresh_notebook
from public_names import KINDS, first_sentence, names_by_kind, other_names, public_members, returned_names

import ratings_ledger
from ratings_ledger.cli.main import ratings
from ratings_ledger.ledger import errors, rejections, verification
from ratings_ledger.projections.contract import COMMON_COLUMNS, NUMBERS, STATE_RULE_COLUMNS, Rule, joined
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.projections.rulesets.registry import BUILT_IN, find_rule
from ratings_ledger.projections.rulesets.templates import describe_values
from ratings_ledger.projections.stored.views import MEANINGS
from ratings_ledger.web.openapi import render_openapi

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs"
TABLE = ROOT / "cli" / "completion" / "table.tsv"
NOTE = "<!-- Written by `make docs` from the code. Changes belong there. -->"
WIDE: dict[str, Any] = {"terminal_width": 80, "max_content_width": 80}


# an option that this many commands share is described once
SHARED_MIN = 3


def build_cli_page() -> str:
    """Return docs/cli.md: the help of every command, in the order of `ratings --help`."""
    parts = [
        "# Commands",
        NOTE,
        "Results go to standard output, everything else to standard error. Exit codes of all commands: 0 done, 1 a "
        "finding or a refusal, 2 usage or configuration, 3 the store cannot be reached, holds no ledger or is busy "
        "past its timeout, 4 another run of the same job is going on. With `--format json` the last line on "
        "standard error says [why a command stopped](rejections.md#why-a-command-stopped).",
        "The option `--db` names the ledger, else the environment variable `RATINGS_DB`, else it is the file "
        "`ratings.db` in the working folder. [The glossary](glossary.md#the-three-axes) describes how `--as-of`, "
        "`--known-at` and `--rules` work together.",
    ]
    with click.Context(ratings, info_name="ratings", **{**ratings.context_settings, **WIDE}) as context:
        commands = [*_list_commands(ratings, context)]
        shared = _list_shared_options(commands)
        formatter = click.HelpFormatter(width=WIDE["terminal_width"])
        formatter.write_dl([*shared])
        parts += [
            "## ratings",
            _format_help(ratings, context),
            "## Options of many commands",
            "They are described here once. Each command below names those that it has. All commands have `-h, --help`.",
            f"```text\n{formatter.getvalue().rstrip()}\n```",
        ]
        for name, command, inner in commands:
            parts += [f"## ratings {name}", *_build_short_help(command, inner, shared)]
    return "\n\n".join(parts) + "\n"


def _list_shared_options(commands: list[tuple[str, click.Command, click.Context]]) -> list[tuple[str, str]]:
    """Return the options with the same help in several commands, most frequent first."""
    records = Counter(record for _, command, inner in commands for _, record in _list_options(command, inner))
    frequent = [record for record, count in records.most_common() if count >= SHARED_MIN]
    names = [_name_shared_option(record) for record in frequent]
    return [record for index, record in enumerate(frequent) if _name_shared_option(record) not in names[:index]]


def _name_shared_option(record: tuple[str, str]) -> str:
    """Return the name of a shared option, such as --by; --format also has its values, which differ between commands."""
    text = record[0].rpartition(", ")[2]
    return text if text.startswith("--format") else text.partition(" ")[0]


def _list_options(command: click.Command, context: click.Context) -> Iterator[tuple[click.Parameter, tuple[str, str]]]:
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            yield option, record


def _build_short_help(command: click.Command, context: click.Context, shared: list[tuple[str, str]]) -> list[str]:
    """Return the help of a command without its shared options, and the names of the shared options."""
    omitted = [(option, record) for option, record in _list_options(command, context) if record in shared]
    lines = [option for option in command.params if option not in [option for option, _ in omitted]]
    short = copy(command)
    short.params, short.add_help_option = lines, False
    names = [f"`{_name_shared_option(record)}`" for _, record in omitted]
    return [_format_help(short, context), *([f"Also: {', '.join(names)}."] if names else [])]


def _list_commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, **WIDE)
        path = inner.command_path.removeprefix("ratings ")
        yield path, command, inner
        if isinstance(command, click.Group):
            yield from _list_commands(command, inner)


def build_table() -> str:
    """Return cli/completion/table.tsv: the table of commands and options for completion in a shell."""
    with click.Context(ratings, info_name="ratings", **ratings.context_settings) as context:
        commands = [
            ("ratings", ratings),
            *((f"ratings {path}", command) for path, command, _ in _list_commands(ratings, context)),
        ]
        return build_completion_table(commands)


def _format_help(command: click.Command, context: click.Context) -> str:
    return f"```text\n{command.get_help(context)}\n```"


def build_rejections_page() -> str:
    """Return docs/rejections.md: the codes of refused input and of findings."""
    return "\n".join(
        [
            "# Codes of refusals and findings",
            "",
            NOTE,
            "",
            "A code is stable: it is never renamed and never used for anything else. Messages may change.",
            "",
            "## Refusals",
            "",
            "Input that `ratings import`, `record`, `rules publish` and the commands of "
            "[corrections](corrections.md) do not accept. With `--format json` each is listed in `rejected` with its "
            "code and message, and for a file its name and line.",
            "",
            "| code | meaning |",
            "|---|---|",
            *(f"| `{code}` | {meaning} |" for code, meaning in rejections.CODES.items()),
            "",
            "## Findings",
            "",
            "What `ratings verify` reports. Without findings it exits with 0 and prints only a summary, at a terminal.",
            "",
            "| code | meaning |",
            "|---|---|",
            *(f"| `{code}` | {meaning} |" for code, meaning in verification.CODES.items()),
            "",
            "## Why a command stopped",
            "",
            "Anything but a result goes to standard error. With `--format json` its last line is an object when a "
            "command could not do its work: `reason`, one of these or the code of a refusal; `message`; `exit_code`. "
            "A result with findings or refusals in it is still a result, and a plain no to a question, such as an "
            "unknown player, is just the message.",
            "",
            "| reason | exit code | meaning |",
            "|---|---|---|",
            *(f"| `{reason}` | {code} | {meaning} |" for reason, (code, meaning) in errors.REASONS.items()),
            "",
        ]
    )


PARAGRAPH = "\n\n"
FRACTION = 'a whole number or a fraction in quotes (`"64/3"`)'
# a parameter with the same values and default in this many rules is described once
USUAL_MIN = 6


def build_rules_page() -> str:
    """Return docs/rules.md: the registered rules with their parameters."""
    registered = {name: rule for name in BUILT_IN if (rule := find_rule(name))}
    rows = {name: [*map(_create_row_formatter(rule), rule.params.model_fields)] for name, rule in registered.items()}
    usual = [row for row, count in Counter(chain(*rows.values())).items() if count >= USUAL_MIN]
    parts = [
        "# Rules",
        NOTE,
        "A rule is a scoring function with a number. A [ruleset](rulesets.md) names a rule and sets its parameters. "
        "Each rule links to the page with its formula, its source and examples. "
        "[Add a rule](adding-a-rule.md) shows how to write one in a package of your own.",
        'Ranges are of whole numbers. A fraction is a whole number or a fraction in quotes, such as `"64/3"`.',
        "The tables leave out a parameter whose values and default are the usual ones:",
        _format_table(usual),
        "[Parameters](rulesets.md#parameters) and [lists](rulesets.md#lists) describe them. `active_games`, "
        "`active_days`, `best_of` and `tie_break` belong to rules whose list is a table.",
    ]
    for name, rule in registered.items():
        module = import_module(BUILT_IN[name].partition(":")[0])
        unusual = [row for row in rows[name] if row not in usual]
        parts += [
            f"## Rule `{name}`",
            f"{cleandoc(module.__doc__ or '').partition(PARAGRAPH)[0]} See {_link_system_pages(name)}.",
            f"{_describe_unit(rule.scale)} Columns: " + ", ".join(f"`{column}`" for column in rule.columns) + ".",
            *([_format_table(unusual)] if unusual else []),
            _format_docstring(rule.params.__doc__),
        ]
    return "\n\n".join(parts) + "\n"


def _format_table(rows: Iterable[str]) -> str:
    return "\n".join(["| parameter | values | default |", "|---|---|---|", *rows])


def _link_system_pages(rule: str) -> str:
    """Return links to the pages of the systems that a rule scores."""
    pages = {page.name: page.read_text("utf-8") for page in sorted((FOLDER / "systems").glob("*.md"))}
    titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in pages.items() if f"[`{rule}`]" in text}
    return joined([f"[{title}](systems/{name})" for name, title in titles.items()])


def _format_docstring(text: str | None) -> str:
    """Return a docstring as Markdown: indented text is code."""
    paragraphs = cleandoc(text or "").split(PARAGRAPH)
    return "\n\n".join(f"```text\n{_dedent(part)}\n```" if part.startswith("    ") else part for part in paragraphs)


def _dedent(part: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in part.splitlines())


def _describe_unit(scale: int) -> str:
    return "Points are whole." if scale == 1 else f"Points are counted in units of 1/{scale:,}."


def _create_row_formatter(rule: Rule) -> Callable[[str], str]:
    model = rule.params.model_json_schema()
    properties, needed = model["properties"], model.get("required", ())

    def format_row(name: str) -> str:
        default = properties[name].get("default")
        if isinstance(default, dict):
            default = "the usual ones" if default else None
        text = str(default).lower() if isinstance(default, bool) else default
        shown = "needed" if name in needed else "none" if default is None else f"`{text}`"
        values = (
            " or ".join(describe_values(rule, name)).replace("a whole number from ", "").replace(FRACTION, "fraction")
        )
        return f"| `{name}` | {values} | {shown} |"

    return format_row


# the page with the columns that rules can use, generated from the code
ADDING_A_RULE = FOLDER / "adding-a-rule.md"
COLUMNS_FROM, COLUMNS_TO = "<!-- columns: written by `make docs` from the code -->\n", "<!-- end of columns -->\n"


def build_column_tables() -> str:
    """Return all columns as tables by game type."""
    kinds = {"Every game type": COMMON_COLUMNS} | {
        f"Kind `{name}`": columns for name, columns in COLUMNS_OF.items() if columns
    }
    custom = "the number NAME that the game or the participant declares, within what the ruleset says of it"
    kinds["Rules with state, every game type"] = {**STATE_RULE_COLUMNS, f"{NUMBERS}NAME": custom}
    parts = []
    for title, meanings in kinds.items():
        rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in meanings.items())
        parts.append(f"| {title} | what it is |\n|---|---|\n{rows}\n")
    return "\n" + "\n".join(parts) + "\n"


def replace_columns(text: str) -> str:
    """Return a page with the current columns of the code."""
    before, _, rest = text.partition(COLUMNS_FROM)
    _, _, after = rest.partition(COLUMNS_TO)
    return f"{before}{COLUMNS_FROM}{build_column_tables()}{COLUMNS_TO}{after}"


# the page with the views for SQL and their columns, generated from the code
SQL = FOLDER / "sql.md"
VIEWS_FROM, VIEWS_TO = "<!-- views: written by `make docs` from the code -->\n", "<!-- end of views -->\n"


def build_view_tables() -> str:
    """Return all views with their columns, as tables."""
    parts = []
    for name, (meaning, columns) in MEANINGS.items():
        rows = "\n".join(f"| `{column}` | {description} |" for column, description in columns.items())
        parts.append(f"### {name}\n\nA row is {meaning}.\n\n| column | meaning |\n|---|---|\n{rows}\n")
    return "\n" + "\n".join(parts) + "\n"


def replace_views(text: str) -> str:
    """Return a page with the current views of the code."""
    before, _, rest = text.partition(VIEWS_FROM)
    _, _, after = rest.partition(VIEWS_TO)
    return f"{before}{VIEWS_FROM}{build_view_tables()}{VIEWS_TO}{after}"


def build_openapi() -> str:
    """Return docs/openapi.json: the interface of the pages for programs."""
    return render_openapi().decode()


def build_api_page() -> str:
    """Return docs/api.md: the public names of the library. The documentation site has their docstrings instead."""
    parts = [
        "# API reference",
        NOTE,
        "The public names of `ratings_ledger`, which is imported as `rl`; [From Python](library.md) shows how they are "
        "used.",
        "<!-- names: the site has the docstrings between these two lines -->",
        "The documentation site, which `make docs-site` builds, has the complete docstrings with all types here; so "
        "has `help(rl.Ledger)` in Python.",
    ]
    returned = returned_names()
    for kind, names in names_by_kind().items():
        described = [name for name in names if kind != "Answers" or name in returned]
        rows = [f"| `{name}` | {_describe_name(name)} |" for name in described]
        parts += [f"## {kind}", KINDS[kind], "\n".join(["| name | what it is or does |", "|---|---|", *rows])]
        for name in names if kind == "The ledger" else ():
            owner = getattr(ratings_ledger, name)
            rows = [
                f"| `{member}` | {_format_cell(getattr(owner, member).__doc__)} |" for member in public_members(name)
            ]
            parts += [f"### `{name}`", "\n".join(["| member | what it does |", "|---|---|", *rows])]
        if names != described:
            parted = {name: "".join(f" (also `{other}`)" for other in other_names(name)) for name in names}
            listed = ", ".join(f"`{name}`{others}" for name, others in parted.items() if name not in described)
            parts += ["### Parts of answers", f"{listed}. Each has its members in `help`, such as `help(rl.Standing)`."]
    return "\n\n".join([*parts, "<!-- end of names -->"]) + "\n"


def _describe_name(name: str) -> str:
    others = "".join(f" Also called `{other}`." for other in other_names(name))
    return _format_cell(getattr(ratings_ledger, name).__doc__) + others


def _format_cell(docstring: str | None) -> str:
    return first_sentence(docstring).replace("|", "\\|")


PAGES = {
    "api.md": build_api_page,
    "cli.md": build_cli_page,
    "rejections.md": build_rejections_page,
    "rules.md": build_rules_page,
    "openapi.json": build_openapi,
}


def list_pages_with_commands() -> list[Path]:
    """Return the pages with console blocks."""
    pages = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted(FOLDER.rglob("*.md"))]
    return [page for page in pages if "```console" in page.read_text(encoding="utf-8")]


# the commands of this page need the games of a real club, which are not part of this project
RULE_FIX = FOLDER / "rule-fix.md"
CLUB_GAMES = ROOT.parent / "shared" / "data" / "catan-league" / "games.csv"


def write_club_games(folder: Path) -> None:
    """Convert the club's games into the file that the page imports."""
    convert = runpy.run_path(str(ROOT / "examples" / "convert_catan_league.py"))["convert"]
    with CLUB_GAMES.open(encoding="utf-8", newline="") as games, (folder / "club.csv").open("w") as converted:
        convert(games, converted)


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def main() -> None:
    """Write all pages and tables."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
    TABLE.write_text(build_table(), encoding="utf-8")
    for path, written in ((ADDING_A_RULE, replace_columns), (SQL, replace_views)):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in NOTEBOOKS:
        _write_changed(path, refresh_notebook(path))
    for path in list_pages_with_commands():
        if path == RULE_FIX and not CLUB_GAMES.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            if path == RULE_FIX:
                write_club_games(Path(folder))
            text = refresh_page(path, Path(folder), ROOT)
        _write_changed(path, text)


def _write_changed(path: Path, text: str) -> None:
    """Write the text of a page, unless it differs only in hashes and times."""
    if mask_volatile(text) != mask_volatile(path.read_text(encoding="utf-8")):
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
