"""Take the screenshots for the documentation: pages of a club in a real browser, and the output of a command.

    make pictures

The club of the examples has a published list and a later correction. The script needs Chromium, and fonts for all
names.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LADDER = "elo-catan/all"
COMMANDS = (
    ("init", "--for", "catan", "--zone", "Europe/Berlin", "--by", "mira"),
    ("import", "examples/winter-league.csv", "--set", "game=catan", "--by", "mira"),
    ("publish", LADDER, "--as-of", "2025-03-31", "--by", "mira"),
    ("correct", "wl-77", "Jürgen", "yusuf", "mira", "María José", "--reason", "two rows swapped", "--by", "mira"),
)
EXPLAIN_ARGUMENTS = ("explain", "wl-83", LADDER)
REPORT_ARGUMENTS = ("report", "player", "yusuf", LADDER, "--as-of", "2025-03-31", "--known-at", "92", "-o")
# the name of the picture, the page, and the width and height in pixels
PAGES = (
    ("ladder", f"ladders/{LADDER}.html", 1280, 570),
    ("player", f"players/yusuf/{LADDER}.html", 1280, 1000),
    ("game", "games/wl-77.html", 1280, 920),
    ("report", "report.html", 1280, 1000),
    ("phone", f"players/yusuf/{LADDER}.html", 380, 1000),
)
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ background: #1c1f22; margin: 0; }}
pre {{ color: #dfe3e6; font: 15px/1.45 "DejaVu Sans Mono", "Noto Sans Mono", "Noto Sans Mono CJK JP", monospace;
  margin: 0; padding: 24px 28px; width: max-content; }}
b {{ color: #8fc1ee; font-weight: 400; }}
</style><pre>{}</pre>"""


def main() -> None:
    """Write all pictures."""
    if CHROMIUM is None:
        sys.exit("Chromium is not installed; run: apt-get install chromium fonts-noto-core fonts-noto-cjk")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = str(Path(folder) / "ratings.db")
        for arguments in COMMANDS:
            run_ratings(database, *arguments)
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        take_terminal_picture(browser, run_ratings(database, *EXPLAIN_ARGUMENTS))
        run_ratings(database, "site", f"{folder}/site", "--title", "Friday Catan")
        run_ratings(database, *REPORT_ARGUMENTS, f"{folder}/site/report.html")
        for name, page, width, height in PAGES:
            tab = browser.new_page(viewport={"width": width, "height": height}, java_script_enabled=False)
            tab.goto((Path(folder) / "site" / page).as_uri())
            tab.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


def run_ratings(database: str, *arguments: str) -> str:
    """Run a command and return its output."""
    command = [sys.executable, "-m", "ratings_ledger", "--db", database, *arguments]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def take_terminal_picture(browser: Browser, output: str) -> None:
    """Take a picture of a command and its output, as in a terminal."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    lines = [f"<b>$ ratings {escape(' '.join(EXPLAIN_ARGUMENTS))}</b>", escape(output)]
    tab.set_content(TERMINAL.format("\n".join(lines).rstrip()))
    tab.locator("pre").screenshot(path=FOLDER / "terminal.png")


if __name__ == "__main__":
    main()
