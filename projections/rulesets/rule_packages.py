"""Write a package with a rule to start from: working files under a chosen name."""

import keyword
import os
import shutil
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.rulesets.registry import rule_names

_FOLDER = resources.files("ratings_ledger.projections").joinpath("rulesets", "package_template")
_ENDING = ".txt"


def refuse_package_name(name: str) -> str | None:
    """Return why a package with a rule cannot have this name, a slug, or None."""
    module = _to_module_name(name)
    if not module.isidentifier() or keyword.iskeyword(module):
        return f"{quote(name)} cannot be the name of a Python module; begin with a letter, as in my-{name}"
    if f"{name}/1" in rule_names():
        return f"there is a rule {name}/1 already; take another name"
    if find_spec(module) is not None:
        return f"a Python module {module} is installed already; take another name"
    return None


def write_rule_package(name: str, folder: str, game: str, time_zone: str) -> list[str]:
    """Write a package with a rule of this name into a new folder, and return the names of its files.

    Raises `BadArgument` for a name that cannot be used, `FileExistsError` if the folder exists.
    """
    if reason := refuse_package_name(name):
        raise BadArgument(reason, "name")
    words = {"NAME": name, "MODULE": _to_module_name(name), "CLASS": name.title().replace("-", "")}
    words |= {"GAME": game, "ZONE": time_zone}
    os.mkdir(folder)
    files = []
    try:
        for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name):
            target = _fill_in(file.name.removesuffix(_ENDING), words)
            with open(os.path.join(folder, target), "x", encoding="utf-8") as written:
                written.write(_fill_in(file.read_text(encoding="utf-8"), words))
            files.append(target)
    except OSError:
        # The folder is new, so half a package can be deleted.
        with suppress(OSError):
            shutil.rmtree(folder)
        raise
    return files


def _to_module_name(name: str) -> str:
    return name.replace("-", "_")


def _fill_in(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
