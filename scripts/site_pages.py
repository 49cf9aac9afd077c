"""Extend Sphinx for the documentation site, so that it reads the pages, which are plain Markdown.

- The lists of links on the index pages (`INDEXES`) are the navigation; there is no second list.
- Blocks with a title show the title, links to a folder lead to the folder's page, and `docs/api.md` has the docstrings
  instead of its tables.
- Notebooks are pages with their stored outputs; `scripts/notebooks.py` runs them.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from public_names import names_by_kind, public_members
from sphinx.application import Sphinx

import ratings_ledger

ROOT = Path(__file__).parent.parent
API = "docs/api"
# pages whose links form the navigation
INDEXES = ("docs/README", "docs/decisions/README", "docs/systems/README", "examples/README")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)([^)#\s]+)\)")
_TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)
_GENERATED = re.compile(r"<!-- names: .*?-->\n.*<!-- end of names -->\n", re.DOTALL)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", prepare_page)
    app.connect("autodoc-process-docstring", prepare_docstring)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("builder-inited", claim_public_names)
    app.connect("build-finished", write_first_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def claim_public_names(app: Sphinx) -> None:
    """Set the module of public classes to the public package, so that types in signatures become links."""
    for names in names_by_kind().values():
        for name in names:
            getattr(ratings_ledger, name).__module__ = "ratings_ledger"


def prepare_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Convert a page of plain Markdown to a page of the site."""
    if app.env.doc2path(page, base=False).suffix != ".md":
        return
    text = _TITLED.sub(r"```{code-block} \1\n:caption: \2", source[0])
    text = re.sub(r"\]\((?!\w+:)([^)#\s]+)\)", lambda link: f"]({_find_page_of_folder(page, link[1])})", text)
    if page == API:
        text = _GENERATED.sub(lambda _: build_api_directives(), text)
    if page in INDEXES:
        text += build_navigation(page, text)
    source[0] = text


def build_navigation(page: str, text: str) -> str:
    """Return a hidden table of contents for each heading of an index, with the linked pages."""
    parts = _HEADING.split(text)
    tables = []
    for heading, section in zip(["", *parts[1::2]], parts[::2], strict=True):
        entries = []
        for title, target in _LINK.findall(section):
            name, suffix = posixpath.splitext(posixpath.normpath(posixpath.join(posixpath.dirname(page), target)))
            # pages of systems and decisions have their own titles in the navigation
            entry = f"/{name}" if page != INDEXES[0] else f"{title} </{name}>"
            if suffix in (".md", ".ipynb") and name not in INDEXES[: page != INDEXES[0]] and entry not in entries:
                entries.append(entry)
        if entries:
            caption = f":caption: {heading}\n" if page == INDEXES[0] else ""
            tables.append("\n```{toctree}\n:hidden:\n" + caption + "\n" + "\n".join(entries) + "\n```\n")
    return "\n" + "".join(tables)


def build_api_directives() -> str:
    """Return the directives that build the reference of the public names from their docstrings."""
    parts = []
    for kind, names in names_by_kind().items():
        parts.append(f"## {kind}\n\n```{{eval-rst}}\n.. currentmodule:: ratings_ledger\n\n")
        for name in names:
            directive = {"Functions": "autofunction", "Exceptions": "autoexception"}.get(kind, "autoclass")
            parts.append(f".. {directive}:: ratings_ledger.{name}\n")
            if kind == "The ledger":
                parts += [
                    f"\n   .. {_choose_directive(name, member)}:: {name}.{member}\n" for member in public_members(name)
                ]
            elif kind == "Answers":
                parts.append("   :members:\n")
            parts.append("\n")
        parts.append("```\n\n")
    return "".join(parts)


def _choose_directive(name: str, member: str) -> str:
    is_property = isinstance(getattr(getattr(ratings_ledger, name), member), property)
    return "autoproperty" if is_property else "automethod"


def prepare_docstring(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Prepare a docstring for the site: its exceptions get a separate paragraph."""
    text = re.sub(r"(?<=[.:] )Raises (?=`)|^Raises (?=`)", "\n\n**Raises** ", "\n".join(lines), flags=re.MULTILINE)
    if what == "attribute" or text.startswith("Alias for field"):
        text = ""
    # an id with its version is not a mail address
    lines[:] = text.replace("@", "\\@").splitlines()


def hide_constructor(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returns: str | None
) -> tuple[str, None] | None:
    """Hide the constructors of objects that programs get only from functions and methods."""
    return ("", None) if name.removeprefix("ratings_ledger.") in names_by_kind()["The ledger"] else None


def _find_page_of_folder(page: str, target: str) -> str:
    folder = ROOT / posixpath.dirname(page) / target
    return posixpath.join(target, "README.md") if folder.is_dir() else target


class NotebookParser(MystParser):
    """A parser that reads a notebook as Markdown: its text, its code and its outputs."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        parts = []
        for cell in json.loads(inputstring)["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
            else:
                parts += [f"```python\n{source}\n```", *map(_format_output, cell["outputs"])]
        super().parse("\n\n".join(parts) + "\n", document)


def _format_output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        table = "".join(data["text/html"])
        return f'````{{raw}} html\n<div class="notebook-table">{table}</div>\n````'
    text = "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n")
    return f"````{{code-block}} text\n:class: notebook-output\n\n{text}\n````"


def write_first_page(app: Sphinx, error: Exception | None) -> None:
    """Redirect the address of the site to its first page."""
    if error is None and app.builder.name == "html":
        first = app.builder.get_target_uri(app.config.root_doc)
        (Path(app.outdir) / "index.html").write_text(
            f"<!doctype html>\n<title>{app.config.html_title}</title>\n"
            f'<meta http-equiv="refresh" content="0; url={first}">\n<a href="{first}">Documentation</a>\n',
            encoding="utf-8",
        )
