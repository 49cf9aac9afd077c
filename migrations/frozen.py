"""The SQL of the migrations, frozen when they were written, because the program's own SQL may change later."""

from pathlib import Path

from alembic import op

_FOLDER = Path(__file__).parent / "sql"
_NAME = "\n-- name: "


def read_statements(file: str, kind: str) -> dict[str, str]:
    """Return a file's statements of a kind, by the names of the objects that they create, in the order of the file.

    Args:
        file: The name of the file in `sql`, without its suffix; `{}` stands for the kind of store.
        kind: The kind of object: view, guard, function, append or comment.
    """
    text = (_FOLDER / f"{file.format(op.get_bind().dialect.name)}.sql").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in text.split(_NAME)[1:])
    named = ((heading.partition(" "), sql.strip()) for heading, _, sql in sections)
    return {name: sql for (kind_of_object, _, name), sql in named if kind_of_object == kind}


def execute(*texts: str) -> None:
    """Execute statements exactly as they are written."""
    for text in texts:
        # PostgreSQL's driver reads % as a placeholder, SQLite's does not
        is_plain = op.get_bind().dialect.name == "sqlite"
        op.get_bind().exec_driver_sql(text if is_plain else text.replace("%", "%%"))


def replace_functions(*functions: str) -> None:
    """Replace existing functions of a database."""
    execute(*(text.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) for text in functions))
