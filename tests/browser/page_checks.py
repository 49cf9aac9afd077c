"""Inspect pages: list them, and find content that is cut off, inaccessible, or fetched from elsewhere."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from axe_playwright_python.sync_playwright import Axe
from club import HOSTILE
from playwright.sync_api import Browser, Page

from ratings_ledger.web.addresses import encode_segment

PHONE, DESK = 380, 1280  # widths of the window in pixels
# names as hostile as ids can be, and from many scripts; 64 code points are the most that an id has
ODD_NAMES = (
    "W" * 64, "<script>alert(1)<!--", "'\"><svg onload", "{{ 7*7 }}", "%3Cb%3E", "..", "con", "-- ' OR 1", "نرگس محمدی",
    "नमस्ते", "ภาษาไทย", "한국어", "𝕬𝖓𝖓𝖆", "🦊 12", "Z̷̢͝a̶͘l̸g̴o", "עברית (ab) 12",
)  # fmt: skip
# the tags of all rules of axe except the deprecated ones; axe runs some rules only if one of their tags is named
AXE_TAGS = [
    "wcag2a",
    "wcag2aa",
    "wcag2aaa",
    "wcag21a",
    "wcag21aa",
    "wcag22aa",
    "best-practice",
    "experimental",
]


class Club(NamedTuple):
    """A club's ledger and its pages: the beginning and ending of their addresses, and each page's size by path."""

    ledger: str
    base: str
    ending: str
    sizes: Mapping[str, int]

    def format_address(self, path: str) -> str:
        """Return the address of a page."""
        if path == "index" and not self.ending:
            return self.base
        return f"{self.base}{path}{self.ending}"

    def list_sample_paths(self) -> list[str]:
        """Return the paths of the largest page of every kind, and of all pages about the player `HOSTILE`."""
        largest: dict[tuple[str, ...], str] = {}
        for path in sorted(self.sizes, key=self.sizes.__getitem__):
            largest[classify_path(path)] = path
        return sorted({*largest.values(), *(path for path in self.sizes if encode_segment(HOSTILE) in path)})


def classify_path(path: str) -> tuple[str, ...]:
    """Return the kind of a page: a key that the paths of pages with the same template and ruleset share."""
    first, *ids = path.split("/")
    if first == "players" and len(ids) > 1:
        return first, ids[1], ids[-1] if ids[-1].startswith("_") else ""
    return (first, ids[0]) if first == "ladders" else (first, str(len(ids)))


@contextmanager
def open_tab(
    chromium: Browser, club: Club, width: int = DESK, scheme: Any = "light", scripts: bool = False
) -> Iterator[tuple[Page, list[str]]]:
    """Open a tab, and provide its page and a list of faults: requests that leave the club's pages, failures, console
    messages, dialogs.

    By default, pages in the tab run no scripts; axe is a script and needs a tab with scripts.
    """
    faults: list[str] = []
    size: Any = {"width": width, "height": 900}
    context = chromium.new_context(viewport=size, color_scheme=scheme, java_script_enabled=scripts)
    page = context.new_page()

    def block_foreign_requests(route: Any) -> None:
        if route.request.url.startswith(club.base):
            route.continue_()
        else:
            faults.append(f"requests {route.request.url}")
            route.abort()

    page.route("**/*", block_foreign_requests)
    page.on("requestfailed", lambda request: faults.append(f"did not get {request.url}"))
    page.on("console", lambda message: faults.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
    yield page, faults
    context.close()


LIST_CUT_OFF = """() => {
  const width = document.documentElement.clientWidth, faults = []
  if (document.documentElement.scrollWidth > width) faults.push(`scrolls to ${document.documentElement.scrollWidth}`)
  for (const element of document.body.querySelectorAll('*')) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element)
    if (!box.width || element.matches('.skip, .hidden, .hidden *')) continue
    const clips = style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1
    if (box.left < -1 || box.right > width + 1 || clips)
      faults.push(`${element.localName} ${box.left} to ${box.right}: ${element.textContent.slice(0, 30)}`)
  }
  return faults.slice(0, 5)
}"""


def list_cut_off(page: Page) -> list[str]:
    """Return the first five faults of a page that does not fit: elements that the window or they themselves cut off."""
    return list(page.evaluate(LIST_CUT_OFF))


def list_violations(page: Page) -> list[str]:
    """Return the violations that axe reports: the rule, and the first elements that break it."""
    run_only = {"type": "tag", "values": AXE_TAGS}
    axe_results = Axe().run(page, options={"runOnly": run_only, "resultTypes": ["violations"]})
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in axe_results.response["violations"]
        for node in rule["nodes"][:3]
    ]


LIST_STOPS = """() =>
  [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(
    element => element.tabIndex >= 0 && element.checkVisibility())"""


def count_stops(page: Page) -> int:
    """Return the number of elements that the keyboard should reach."""
    return int(page.evaluate(f"() => ({LIST_STOPS})().length"))


DESCRIBE_FOCUS = f"""() => {{
  const element = document.activeElement, box = element.getBoundingClientRect(), style = getComputedStyle(element)
  const front = document.elementFromPoint(box.left + Math.min(box.width / 2, 4), box.top + box.height / 2)
  const visible = box.width > 0 && box.height > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight + 1
    && box.right <= document.documentElement.clientWidth + 1
  return {{
    number: ({LIST_STOPS})().indexOf(element), text: element.outerHTML.slice(0, 120), visible: visible,
    box: Object.values(box.toJSON()),
    marked: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && element.matches(':focus-visible'),
    covered: !front || !(element.contains(front) || front.contains(element)),
  }}
}}"""


def read_focus(page: Page) -> dict[str, Any]:
    """Return the focused element: its index among the stops, and whether it is in the window, marked or covered."""
    return dict(page.evaluate(DESCRIBE_FOCUS))


def parse_number(text: str) -> float:
    """Return a number as pages write it.

    >>> parse_number("−1,042.55"), parse_number("+7"), parse_number("±0")
    (-1042.55, 7.0, 0.0)
    """
    return float(re.sub(r"[,+±\s]", "", text).replace("−", "-"))
