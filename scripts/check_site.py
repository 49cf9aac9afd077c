"""Check a built documentation site: every link has a target, and nothing is loaded from another host.

    python scripts/check_site.py build/docs-site

Sphinx checks only links between its sources; this script reads the written pages, and thus also plain HTML tables.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# elements whose source a browser loads when it shows a page
_LOADED_TAGS = {"script", "img", "iframe", "source", "audio", "video", "embed"}
_LOADING_STYLE = re.compile(r"""(?:url\(|@import )["']?(?:https?:)?//""")


class _Page(HTMLParser):
    """The anchors of a page, its links, and the addresses that a browser loads with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        target = values.get("href" if tag in ("a", "link") else "src")
        if target:
            is_loaded = tag in _LOADED_TAGS or (tag == "link" and values.get("rel") != "canonical")
            (self.loaded if is_loaded else self.links).append(target)


def find_problems(site: Path) -> list[str]:
    """Return the problems of a site's pages, one per line."""
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    problems = [] if pages else [f"{site}: there are no pages; run: make docs-site"]
    for path, page in pages.items():
        name = path.relative_to(site)
        problems += [f"{name}: loads {target} from another host" for target in page.loaded if _is_foreign(target)]
        for target in (*page.links, *page.loaded):
            if not urlsplit(target).scheme and not _is_foreign(target) and not _has_target(target, path, pages):
                problems.append(f"{name}: {target} has no target")
    for style in (*pages, *sorted(site.rglob("*.css"))):
        if _LOADING_STYLE.search(style.read_text(encoding="utf-8")):
            problems.append(f"{style.relative_to(site)}: loads something from another host")
    return problems


def _is_foreign(target: str) -> bool:
    return bool(urlsplit(target).netloc)


def _has_target(target: str, path: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(target)
    linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not linked.exists():
        return False
    page = pages.get(linked)
    return page is None or not parts.fragment or unquote(parts.fragment) in page.anchors


def main() -> int:
    problems = find_problems(Path(sys.argv[1]).resolve())
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
