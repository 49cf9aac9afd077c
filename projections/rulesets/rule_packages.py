"""Create a package with a rule: copy the files of the template and fill in a chosen name."""

import keyword
import os
import shutil
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.rulesets.registry import rule_names

_TEMPLATE_FOLDER = resources.files("ratings_ledger.projections").joinpath("rulesets", "package_template")
_TEMPLATE_SUFFIX = ".txt"


def find_package_name_problem(name: str) -> str | None:
    """Return the reason why a slug cannot be the name of a rule package, or None if it can."""
    module = _to_module_name(name)
    if not module.isidentifier() or keyword.iskeyword(module):
        return f"{quote(name)} cannot be the name of a Python module; choose another name, such as my-{name}"
    if f"{name}/1" in rule_names():
        return f"rule {name}/1 already exists; choose another name"
    if find_spec(module) is not None:
        return f"a Python module {module} is already installed; choose another name"
    return None


def write_rule_package(name: str, folder: str, game: str, time_zone: str) -> list[str]:
    """Write a package with a rule of this name into a new folder. Return the names of the files.

    Raises `BadArgument` for a name that cannot be used, and `FileExistsError` if the folder exists.
    """
    if reason := find_package_name_problem(name):
        raise BadArgument(reason, "name")
    placeholders = {"NAME": name, "MODULE": _to_module_name(name), "CLASS": name.title().replace("-", "")}
    placeholders |= {"GAME": game, "ZONE": time_zone}
    os.mkdir(folder)
    files = []
    try:
        for file in sorted(_TEMPLATE_FOLDER.iterdir(), key=lambda file: file.name):
            target = _fill_in(file.name.removesuffix(_TEMPLATE_SUFFIX), placeholders)
            with open(os.path.join(folder, target), "x", encoding="utf-8") as output:
                output.write(_fill_in(file.read_text(encoding="utf-8"), placeholders))
            files.append(target)
    except OSError:
        # The folder is new, so deleting a partial package loses nothing.
        with suppress(OSError):
            shutil.rmtree(folder)
        raise
    return files


def _to_module_name(name: str) -> str:
    return name.replace("-", "_")


def _fill_in(text: str, placeholders: dict[str, str]) -> str:
    for placeholder, value in placeholders.items():
        text = text.replace(placeholder, value)
    return text
