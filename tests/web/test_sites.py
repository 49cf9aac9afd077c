"""A site in a folder: its links lead to files, it equals the server's pages, and updates write only affected pages."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from asking import get, serve, share_pages, write_pages
from club import HOSTILE, LADDER, LATE, run_ok
from sqlalchemy import event

import ratings_ledger
from ratings_ledger import BadArgument
from ratings_ledger.web import site
from ratings_ledger.web.addresses import GAME_PAGES_MAX

Ratings = Callable[..., Any]
BeginSite = Callable[[Path], dict[str, bytes]]
CLUB: dict[str, Any] = {"title": "The club", "names": {"anna": "Anna Ö."}}


def write_site(url: str, folder: Path, game_pages: int = GAME_PAGES_MAX) -> dict[str, bytes]:
    write_pages(url, folder, **CLUB, game_pages_max=game_pages)
    return read_tree(folder)


@pytest.fixture(scope="module")
def originals() -> dict[str, Path]:
    """Return the folders of the club's original sites by kind of store, which `begin_site` fills."""
    return {}


@pytest.fixture
def begin_site(
    store_kind: str, url: str, originals: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> BeginSite:
    """Return a function that writes the club's first site; for a copy of the ledger it copies the site."""

    def copy_site(folder: Path) -> dict[str, bytes]:
        if store_kind not in originals:
            originals[store_kind] = tmp_path_factory.mktemp("original") / "site"
            write_site(url, originals[store_kind])
        shutil.copytree(originals[store_kind], folder)
        return read_tree(folder)

    return copy_site


def read_tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Links(HTMLParser):
    """The links, form targets, elements and ids of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[str] = []
        self.elements: list[str] = []
        self.ids: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.forms += [value or "" for name, value in attrs if name == "action"]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def list_html_names(files: dict[str, bytes]) -> Iterator[str]:
    return (name for name in files if name.endswith(".html"))


def find_linked_files(files: dict[str, bytes]) -> set[str]:
    """Return the files that pages link to, and assert that each file and fragment exists."""
    linked = {"index.html"}
    for name in list_html_names(files):
        page = Links(files[name])
        assert len({*page.ids}) == len(page.ids), name
        for link in (*page.links, *page.forms):
            target = urlsplit(urljoin(f"http://site/{name}", link))
            assert target.netloc == "site", link
            if link.startswith("#"):
                assert unquote(link[1:]) in page.ids, (name, link)
            else:
                linked_name = unquote(target.path)[1:]
                assert linked_name in files, (name, link)
                assert not target.fragment or unquote(target.fragment) in Links(files[linked_name]).ids, (name, link)
                linked.add(linked_name)
    return linked


@pytest.mark.slow
@pytest.mark.parametrize("game_pages", [GAME_PAGES_MAX, 1])
def test_every_file_is_linked(game_pages: int, url: str, tmp_path: Path) -> None:
    """Every file is linked from a page, and no link leads outside the site or to a missing file."""
    files = write_site(url, tmp_path / "site", game_pages)
    assert find_linked_files(files) == files.keys() - {"MANIFEST.json"}
    assert len(files) > 40


@pytest.mark.slow
def test_player_outside_a_ladder_has_no_link(ruled_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game's page names a player who does not count on a ladder without a link to the ladder's page of that
    player."""
    game = {
        "game_id": "g-1",
        "game": "catan",
        "group": "basic",
        "city": "Bonn",
        "participants": [
            {"player": player, "place": place} for place, player in enumerate(("anna", "ben", "cleo", "emil"), 1)
        ],
    }
    events = [
        {"type": "player.registered", "data": {"player": "emil", "account": "free"}},
        {"type": "game.recorded", "data": game},
    ]
    (tmp_path / "e.jsonl").write_text(
        "".join(json.dumps(event | {"occurred_at": "2010-01-03T19:30Z"}) + "\n" for event in events)
    )
    run_ok(ratings, "import", tmp_path / "e.jsonl", "--by", "mira", db=ruled_url)
    files = write_site(ruled_url, tmp_path / "site")
    assert find_linked_files(files) == files.keys() - {"MANIFEST.json"}
    page = files["games/g-1.html"].decode()
    assert '<h3>3. <a href="../players/cleo/catan-elo/basic.html"><bdi>cleo</bdi></a></h3>' in page
    assert "<h3>4. <bdi>emil</bdi></h3>" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["", "as_of=2025-02-10", "as_of=2025-01-01", "as_of=2025-02-28&known_at=9", "rules=elo-catan%401"]
)
def test_every_server_link_leads_to_a_page(query: str, url: str) -> None:
    """At any coordinates, every link of a page leads to a page, and pages link to published lists."""
    pages = serve(url, **CLUB)
    visited, open_addresses = set[str](), ["/?" + query, "/lists?" + query, f"/ladders/{LADDER}?{query}"]
    while open_addresses:
        address = open_addresses.pop()
        if address in visited:
            continue
        response = get(pages, address)
        assert response.status == 200, (address, response.text)
        visited.add(address)
        parts = urlsplit(address)
        if parts.query != query or not response.headers["content-type"].startswith("text/html"):
            continue
        for link in Links(response.body).links:
            target = urlsplit(urljoin(f"http://localhost{address}", link))
            open_addresses.append(target.path + (f"?{target.query}" if target.query else ""))
    assert [address for address in visited if address.startswith(f"/lists/{LADDER}")]


@pytest.mark.slow
def test_games_of_large_ledgers_are_lines_of_player_pages(begin_site: BeginSite, url: str, tmp_path: Path) -> None:
    """In a ledger with too many games for pages of their own, a game is a line on its players' pages, and charts
    link there.

    Below the limit each game has a page again.
    """
    with_pages = begin_site(tmp_path / "site")
    without_pages = write_site(url, tmp_path / "site", 4)
    assert {name for name in with_pages if name.startswith("games/")} == with_pages.keys() - without_pages.keys()
    page = Links(without_pages["players/ben/elo-catan/all.html"])  # this is ben's only game since the published list
    assert [name for name in page.ids if name.startswith("game-")] == ["game-g-5"]
    assert "#game-g-5" in page.links
    with_pages_again = write_site(url, tmp_path / "site")
    del with_pages_again["MANIFEST.json"], with_pages["MANIFEST.json"]
    assert with_pages_again == with_pages


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", [b"", b'{"type":"x"}\n', None])
def test_games_file_is_continued_only_if_unchanged(
    spoilt: bytes | None, begin_site: BeginSite, url: str, ratings: Ratings, tmp_path: Path
) -> None:
    """New games are appended to the file of all games; a changed or missing file is written anew."""
    games = tmp_path / "site" / "games.jsonl"
    first_content = begin_site(tmp_path / "site")["games.jsonl"]
    if spoilt is None:
        games.unlink()
        assert write_site(url, tmp_path / "site")["games.jsonl"] == first_content
        games.unlink()
    else:
        games.write_bytes(first_content + spoilt)
    run_ok(ratings, *LATE, db=url)
    second_content = write_site(url, tmp_path / "site")["games.jsonl"]
    assert second_content == write_site(url, tmp_path / "new")["games.jsonl"]
    assert second_content.startswith(first_content)
    assert second_content.count(b"\n") == first_content.count(b"\n") + 1


@pytest.mark.slow
def test_server_and_folder_have_the_same_pages(begin_site: BeginSite, url: str, tmp_path: Path) -> None:
    """A file equals the response of the server at its address, apart from links and parts that only a server has."""
    files = begin_site(tmp_path / "site")
    pages = serve(url, **CLUB)
    compared = 0
    # the status changes with time
    for name in files.keys() - {"MANIFEST.json", "status.html", "status.json"}:
        address = "/" + name.removesuffix(".html").removesuffix("index")
        response = get(
            pages, "/index.json" if name == "index.json" else "/index.csv" if name == "index.csv" else address
        )
        assert response.status == 200, (name, response.body)
        if name.endswith(".html"):
            assert strip_server_parts(response.text) == strip_server_parts(files[name].decode()), name
        else:
            assert response.body == files[name], name
        compared += 1
    assert compared > 40


def strip_server_parts(page: str) -> str:
    """Return a page without the forms and lists that a folder does not have, and without the endings of links."""
    parts = [
        ("<details", "</details>\n"),
        ('<ul class="axes">', "</ul>\n"),
        ('<a class="server"', "</a>\n"),
        ('<section class="server"', "</section>\n"),
    ]
    for opening, closing in parts:
        while opening in page:
            before, _, rest = page.partition(opening)
            page = before + rest.partition(closing)[2]
    return page.replace("index.html", "").replace('.html"', '"').replace('"./"', '""')


@pytest.mark.slow
def test_title_is_kept(url: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """A site keeps its title until another one is passed; a new site has the title Ratings."""
    folder = tmp_path / "site"
    for options, title in (((), "Ratings"), (("--title", "The Club"), "The Club"), ((), "The Club")):
        assert ratings("site", folder, *options, db=url).exit_code == 0
        heading = (folder / "index.html").read_text().partition("</header>")[0]
        assert title in heading


def test_manifest_names_every_file(begin_site: BeginSite, url: str, tmp_path: Path) -> None:
    """The manifest has the hash of each file and the head; a second update writes nothing."""
    files = begin_site(tmp_path / "site")
    manifest = json.loads(files.pop("MANIFEST.json"))
    assert manifest["files"] == {name: sha256(content).hexdigest() for name, content in files.items()}
    with ratings_ledger.open(url) as ledger:
        assert manifest["head"] == str(ledger.head)
        summary = write_pages(ledger, tmp_path / "site", **CLUB)
    assert (summary.files, summary.written, summary.removed) == (len(files), 0, 0)


@pytest.mark.slow_cases
def test_game_changes_only_related_pages(begin_site: BeginSite, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game of anna and ben changes their pages, their ladders' pages and the first page.

    Of other players, it changes only pages that show ranks or a changed ladder.
    """
    before = begin_site(tmp_path / "site")
    run_ok(ratings, *LATE, db=url)
    after = write_site(url, tmp_path / "site")
    changed = {name.rpartition(".")[0] for name in after if after[name] != before.get(name)} - {"MANIFEST"}
    assert changed >= {"index", "games/g-6", f"players/anna/{LADDER}", f"players/ben/{LADDER}", f"ladders/{LADDER}"}
    elsewhere = [name for name in changed if name.startswith("games/") and name != "games/g-6"]
    assert elsewhere == []
    assert not any(name.startswith("rules") for name in changed)
    other_players = {
        name for name in changed if name.startswith("players/") and name.split("/")[1] not in ("anna", "ben")
    }
    # their rank has changed, or it is their own page, which has a row for each ladder
    for name in other_players:
        assert read_ranks(after, name) != read_ranks(before, name) or name.count("/") == 1, name


def read_ranks(files: dict[str, bytes], name: str) -> Any:
    output = json.loads(files[f"{name}.json"])
    if name.endswith("/_ranks"):
        return output["rows"]
    return output.get("standing", {}) and (output["standing"]["rank"], output["ranked"], output["players"])


def test_csv_has_the_rows_of_json(begin_site: BeginSite, tmp_path: Path) -> None:
    """Each CSV file has the rows of the JSON file beside it, with a column for every simple member."""
    files = begin_site(tmp_path / "site")
    compared = 0
    for name in (name for name in files if name.endswith(".csv")):
        output = json.loads(files[f"{name.removesuffix('.csv')}.json"])
        rows = output if isinstance(output, list) else output.get("rows") or output.get("course") or []
        csv_rows = list(csv.DictReader(io.StringIO(files[name].decode(), newline="")))
        assert len(csv_rows) == len(rows)
        for row, line in zip(rows, csv_rows, strict=True):
            compared += 1
            for member, value in row.items():
                if not isinstance(value, dict | list | bool):
                    cell = line[member].removeprefix("'")
                    assert cell == ("" if value is None else str(value)), (name, member)
    assert compared > 30


@pytest.mark.slow
def test_csv_escapes_formulas(url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A name that a spreadsheet would read as a formula has an apostrophe before it in every row of the CSV file."""
    names = ["＝1+1", "+a", "－b", "@c", "-5 x"]
    for number, name in enumerate(names, 7):
        run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", f"g-{number}", "--at", "2025-03-20T20:00Z",
           "--by", "mira", "--new-names", "accept", "--", name, "anna", db=url)  # fmt: skip
    files = write_site(url, tmp_path / "site")
    rows = list(csv.reader(io.StringIO(files[f"ladders/{LADDER}.csv"].decode(), newline="")))
    for name in names:
        assert [row for row in rows if f"'{name}" in row]
        assert not [row for row in rows if name in row]


def test_hostile_names_are_escaped(begin_site: BeginSite, tmp_path: Path) -> None:
    """A name full of markup adds no element to any page and is shown as text."""
    files = begin_site(tmp_path / "site")
    pages_with_name = 0
    for name in list_html_names(files):
        assert "img" not in Links(files[name]).elements
        assert "script" not in Links(files[name]).elements
        pages_with_name += b"&lt;img" in files[name]
    assert pages_with_name > 5
    assert HOSTILE not in "".join(files[name].decode() for name in list_html_names(files))


def test_display_names_replace_ids_in_pages(begin_site: BeginSite, tmp_path: Path) -> None:
    """Pages show the names from the file of names; addresses and JSON keep the ids."""
    files = begin_site(tmp_path / "site")
    page = files[f"players/anna/{LADDER}.html"].decode()
    assert "<h1><bdi>Anna Ö.</bdi></h1>" in page
    assert json.loads(files[f"players/anna/{LADDER}.json"])["player"] == "anna"


@pytest.mark.slow
def test_obsolete_pages_are_removed(begin_site: BeginSite, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A page that no longer exists is removed unless it was edited by hand; other files are left alone."""
    folder = tmp_path / "site"
    begin_site(folder)
    (folder / "notes.txt").write_text("mine")
    run_ok(ratings, "void", "g-5", "--reason", "never played", "--by", "mira", db=url)
    removed_prefix = f"players/~{HOSTILE.encode()[0]:02x}"
    changed = next(path for path in folder.glob("players/*.html") if path.name.startswith("~3cimg"))
    changed.write_text("by hand")
    files = write_site(url, folder)
    assert files["notes.txt"] == b"mine"
    assert files[changed.relative_to(folder).as_posix()] == b"by hand"
    remaining = [
        name for name in files if name.startswith(removed_prefix) and name != changed.relative_to(folder).as_posix()
    ]
    assert remaining == []


@pytest.mark.slow
def test_process_count_does_not_change_a_site(
    url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes write the same files as one, for a new site and after one more game."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for late in (False, True):
        if late:
            run_ok(ratings, *LATE, db=url)
        summaries = []
        for cores, folder in enumerate(folders, 1):
            share_pages(monkeypatch, cores)
            summaries.append(write_pages(url, folder, **CLUB))
        assert summaries[0] == summaries[1]
        assert summaries[0].written < summaries[0].files if late else summaries[0].written == summaries[0].files
        assert read_tree(folders[0]) == read_tree(folders[1])


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_interrupted_site_is_completed(
    cores: int, begin_site: BeginSite, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted site is completed by the next run, which also replaces partly written files."""
    folder, complete_site = tmp_path / "site", begin_site(tmp_path / "whole")
    build_timeline_page = site.build_timeline_page
    share_pages(monkeypatch, cores)

    def full_disk(visit: Any, timeline: Any) -> Any:
        if timeline.game_id == "g-4":
            (folder / "games" / "g-4.html").write_bytes(b"<!doct")
            raise OSError(28, "No space left on device")
        return build_timeline_page(visit, timeline)

    monkeypatch.setattr(site, "build_timeline_page", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_site(url, folder)
    monkeypatch.setattr(site, "build_timeline_page", build_timeline_page)
    assert write_site(url, folder) == complete_site


@pytest.mark.parametrize("content", ["files", "a manifest of something else", "a file"])
def test_foreign_folders_are_refused(content: str, url: str, tmp_path: Path) -> None:
    """A folder with foreign files, or a file, is refused and left unchanged."""
    folder = tmp_path / "site"
    if content == "a file":
        folder.write_text("mine")
    else:
        folder.mkdir()
        name, text = ("index.html", "mine") if content == "files" else ("MANIFEST.json", "[]")
        (folder / name).write_text(text)
    before = folder.read_text() if folder.is_file() else read_tree(folder)
    with ratings_ledger.open(url) as ledger, pytest.raises(BadArgument):
        write_pages(ledger, folder, **CLUB)
    assert (folder.read_text() if folder.is_file() else read_tree(folder)) == before


@pytest.mark.slow
@pytest.mark.parametrize("linked", ["players", "players/anna", ".index.html.new", ".games.jsonl.new"])
def test_links_in_a_site_are_not_followed(
    linked: str, begin_site: BeginSite, url: str, ratings: Ratings, tmp_path: Path
) -> None:
    """No file behind a link in the folder is overwritten: a linked folder is refused, a linked file replaced or
    refused."""
    folder, victim = tmp_path / "site", tmp_path / "victim"
    begin_site(folder)
    if linked.startswith("."):
        victim.write_text("mine")
    else:
        shutil.move(folder / linked, victim)
    (folder / linked).symlink_to(victim)
    before = victim.read_text() if victim.is_file() else read_tree(victim)
    run_ok(ratings, *LATE, db=url)
    result = ratings("site", folder, db=url)
    assert (victim.read_text() if victim.is_file() else read_tree(victim)) == before
    if linked.startswith(".index"):
        assert result.exit_code == 0
    else:
        assert (result.exit_code in (2, 3), f"{folder / linked}" in result.stderr) == (True, True), result
        (folder / linked).unlink(missing_ok=True)
        run_ok(ratings, "site", folder, db=url)


def test_manifest_cannot_remove_files_elsewhere(begin_site: BeginSite, url: str, tmp_path: Path) -> None:
    """A manifest that names files outside the folder or behind a link does not remove them."""
    folder = tmp_path / "site"
    begin_site(folder)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "diary.html").write_text("dear diary")
    (folder / "linked").symlink_to(victim)
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    diary_hash = sha256(b"dear diary").hexdigest()
    manifest["files"] |= dict.fromkeys(
        ["../victim/diary.html", str(victim / "diary.html"), "linked/diary.html"], diary_hash
    )
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    write_site(url, folder)
    assert (victim / "diary.html").read_text() == "dear diary"


@pytest.mark.slow_cases
def test_home_zone_is_read_once_per_connection(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever a connection is borrowed, it reads the home zone at most once, however many pages show times."""
    monkeypatch.setattr(site, "available_cores", lambda: 1)
    connections, statements = list[Any](), list[str]()
    with ratings_ledger.open(url) as ledger:
        engine = ledger.at().ledger.engine
        event.listen(engine, "checkout", lambda *arguments: connections.append(arguments))
        event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(str(arguments[3])))
        write_pages(ledger, tmp_path / "site", **CLUB)
    pages = sum(name.endswith(".html") for name in read_tree(tmp_path / "site"))
    zones = sum("ledger.zone_set" in statement for statement in statements)
    # one connection finds the pages to write, one reads games, and the status has one of its own
    assert 1 < zones <= len(connections) <= 4 + pages // site.UNIT_PAGES
