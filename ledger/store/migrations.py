"""Run the migrations that come with this program; only this module runs alembic's commands."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

_FOLDER = Path(__file__).parents[2] / "migrations"


def build_config() -> Config:
    """Build alembic's configuration for the migrations that come with this program."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def make_tables(connection: Connection) -> None:
    """Run the migrations that a database lacks, which creates or upgrades its tables."""
    config = build_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
