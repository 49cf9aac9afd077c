"""Implement `serve` and `site`: serve the pages of a ledger, or write them as files."""

from pathlib import Path

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.sites import build_site, names_option
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.web.addresses import GAME_PAGES_MAX
from ratings_ledger.web.workers import PAGE_RULE_SECONDS

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65_535), help="The port; 0 chooses a free one."
)
@click.option("--host-name", "hosts", metavar="NAME", multiple=True, help="A host name of the site; repeatable.")
@click.option(
    "--frame", "frames", metavar="URL", multiple=True, help="A site that may show the pages in a frame; repeatable."
)
@click.option("--title", default="Ratings", show_default=True, help="The title of the pages.")
@names_option
@click.option(
    "--rule-seconds",
    metavar="N",
    type=click.FloatRange(min=0.1),
    default=PAGE_RULE_SECONDS,
    show_default=True,
    help="Seconds of processor time that a rule from a package may take for a page.",
)
@click.pass_obj
def serve(
    db: str,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    frames: tuple[str, ...],
    title: str,
    names: Path | None,
    rule_seconds: float,
) -> None:
    """Show the ledger as pages in a browser. The pages are read-only.

    The server listens only to this machine unless --host says otherwise. Behind a proxy, name the site with
    --host-name.
    """
    site = build_site(title, names, "")
    open_ledger(db).close()  # refuse a missing ledger before the server starts
    from ratings_ledger.web.server import Pages, serve_pages

    host_names = {*LOOPBACK_NAMES, host, *hosts}
    shown_host = f"[{host}]" if ":" in host else host
    frame_sources = " ".join(frames) or "'none'"
    pages = Pages(db, site, host_names, frames=frame_sources, rule_seconds=rule_seconds)
    serve_pages(
        pages, host, port, lambda port_number: render.note(f"Serving pages at http://{shown_host}:{port_number}/")
    )


@command(name="site")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--title", show_default="the title of the pages in FOLDER, or Ratings", help="The title of the pages.")
@names_option
@click.option(
    "--game-pages",
    metavar="N",
    type=click.IntRange(min=0),
    default=GAME_PAGES_MAX,
    show_default=True,
    help="Write a page for each game, if there are at most N games.",
)
@click.pass_obj
def site_(db: str, folder: Path, title: str | None, names: Path | None, game_pages: int) -> int:
    """Write the pages as files into FOLDER, for any web host.

    A folder that this command wrote before is updated: only changed pages are written again. In a ledger with more
    games than --game-pages, a game is only a line on the pages of its players. A ladder that cannot be replayed has a
    page with the reason; the exit code is then 1.
    """
    site = build_site(title or "", names, ".html")
    from ratings_ledger import open as open_session
    from ratings_ledger.web.site import read_title, write_site

    site = site._replace(title=title or read_title(folder))
    with open_session(db) as ledger:
        result = write_site(ledger, folder, site, game_pages)
    render.echo(
        f"{folder}: {render.count(result.files, 'file')}, {result.written:,} written, {result.removed:,} removed; "
        f"open {folder / 'index.html'}"
    )
    for reason in result.failed:
        render.note(f"ratings: {render.plain(reason)}")
    return int(bool(result.failed))
