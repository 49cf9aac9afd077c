"""A site as a folder: all links lead to files, the server says the same, and one game changes what it concerns."""

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
from club import HOSTILE, LADDER, LATE, ok
from sqlalchemy import event

import ratings_ledger
from ratings_ledger import BadArgument
from ratings_ledger.web import site
from ratings_ledger.web.addresses import GAME_PAGES

Ratings = Callable[..., Any]
Begun = Callable[[Path], dict[str, bytes]]
CLUB: dict[str, Any] = {"title": "The club", "names": {"anna": "Anna Ö."}}


def written(url: str, folder: Path, game_pages: int = GAME_PAGES) -> dict[str, bytes]:
    write_pages(url, folder, **CLUB, game_pages=game_pages)
    return tree(folder)


@pytest.fixture(scope="module")
def originals() -> dict[str, Path]:
    """The club's site from each kind of store, once it was made."""
    return {}


@pytest.fixture
def begun(store_kind: str, url: str, originals: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """A function that does what `written` does for the first time; a copy of the ledger gives a copy of the site."""

    def begin(folder: Path) -> dict[str, bytes]:
        if store_kind not in originals:
            originals[store_kind] = tmp_path_factory.mktemp("original") / "site"
            written(url, originals[store_kind])
        shutil.copytree(originals[store_kind], folder)
        return tree(folder)

    return begin


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Links(HTMLParser):
    """The links of a page, where its forms lead, and its elements."""

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


def pages_of(files: dict[str, bytes]) -> Iterator[str]:
    return (name for name in files if name.endswith(".html"))


def linked_files(files: dict[str, bytes]) -> set[str]:
    """The files to which the pages link, all of which are there, with the places in them."""
    linked = {"index.html"}
    for name in pages_of(files):
        found = Links(files[name])
        assert len({*found.ids}) == len(found.ids), name
        for link in (*found.links, *found.forms):
            target = urlsplit(urljoin(f"http://site/{name}", link))
            assert target.netloc == "site", link
            if link.startswith("#"):
                assert unquote(link[1:]) in found.ids, (name, link)
            else:
                there = unquote(target.path)[1:]
                assert there in files, (name, link)
                assert not target.fragment or unquote(target.fragment) in Links(files[there]).ids, (name, link)
                linked.add(there)
    return linked


@pytest.mark.slow
@pytest.mark.parametrize("game_pages", [GAME_PAGES, 1])
def test_every_link_leads_to_a_file(game_pages: int, url: str, tmp_path: Path) -> None:
    """From index.html every page can be reached; no link leads elsewhere, or to what is not there."""
    files = written(url, tmp_path / "site", game_pages)
    assert linked_files(files) == files.keys() - {"MANIFEST.json"}
    assert len(files) > 40


@pytest.mark.slow
def test_who_does_not_count_is_no_link(ruled_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game names who takes part and does not count on a ladder, though no page is theirs there."""
    game = {"game_id": "g-1", "game": "catan", "group": "basic", "city": "Bonn", "participants": [
        {"player": player, "place": place} for place, player in enumerate(("anna", "ben", "cleo", "emil"), 1)
    ]}  # fmt: skip
    events = [
        {"type": "player.registered", "data": {"player": "emil", "account": "free"}},
        {"type": "game.recorded", "data": game},
    ]
    (tmp_path / "e.jsonl").write_text(
        "".join(json.dumps(one | {"occurred_at": "2010-01-03T19:30Z"}) + "\n" for one in events)
    )
    ok(ratings, "import", tmp_path / "e.jsonl", "--by", "mira", db=ruled_url)
    files = written(ruled_url, tmp_path / "site")
    assert linked_files(files) == files.keys() - {"MANIFEST.json"}
    page = files["games/g-1.html"].decode()
    assert '<h3>3. <a href="../players/cleo/catan-elo/basic.html"><bdi>cleo</bdi></a></h3>' in page
    assert "<h3>4. <bdi>emil</bdi></h3>" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["", "as_of=2025-02-10", "as_of=2025-01-01", "as_of=2025-02-28&known_at=9", "rules=elo-catan%401"]
)
def test_every_link_of_a_server_leads_to_a_page(query: str, url: str) -> None:
    """At any coordinates each page links to what is there at them, and to published lists, which have their own."""
    pages = serve(url, **CLUB)
    there, waiting = dict[str, int](), ["/?" + query, "/lists?" + query, f"/ladders/{LADDER}?{query}"]
    while waiting:
        address = waiting.pop()
        if address in there:
            continue
        told = get(pages, address)
        assert told.status == 200, (address, told.text)
        there[address] = told.status
        asked = urlsplit(address)
        if asked.query != query or not told.headers["content-type"].startswith("text/html"):
            continue
        for link in Links(told.body).links:
            target = urlsplit(urljoin(f"http://localhost{address}", link))
            waiting.append(target.path + (f"?{target.query}" if target.query else ""))
    assert [address for address in there if address.startswith(f"/lists/{LADDER}")]


@pytest.mark.slow
def test_games_of_large_ledgers_are_lines(begun: Begun, url: str, tmp_path: Path) -> None:
    """With more games than have pages of their own, a game is a line on its players' pages, to which the charts lead;
    with fewer it has its page again.
    """
    with_pages = begun(tmp_path / "site")
    without = written(url, tmp_path / "site", 4)
    assert {name for name in with_pages if name.startswith("games/")} == with_pages.keys() - without.keys()
    page = Links(without["players/ben/elo-catan/all.html"])  # whose only game since the published list is this
    assert [name for name in page.ids if name.startswith("game-")] == ["game-g-5"]
    assert "#game-g-5" in page.links
    again = written(url, tmp_path / "site")
    del again["MANIFEST.json"], with_pages["MANIFEST.json"]
    assert again == with_pages


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", [b"", b'{"type":"x"}\n', None])
def test_games_file_is_continued_only_as_it_was_made(
    spoilt: bytes | None, begun: Begun, url: str, ratings: Ratings, tmp_path: Path
) -> None:
    """After more games their lines are added to the file of all games; one that was changed or taken is made anew."""
    games = tmp_path / "site" / "games.jsonl"
    made = begun(tmp_path / "site")["games.jsonl"]
    if spoilt is None:
        games.unlink()
        assert written(url, tmp_path / "site")["games.jsonl"] == made
        games.unlink()
    else:
        games.write_bytes(made + spoilt)
    ok(ratings, *LATE, db=url)
    found = written(url, tmp_path / "site")["games.jsonl"]
    assert found == written(url, tmp_path / "new")["games.jsonl"]
    assert found.startswith(made)
    assert found.count(b"\n") == made.count(b"\n") + 1


@pytest.mark.slow
def test_server_and_folder_say_the_same(begun: Begun, url: str, tmp_path: Path) -> None:
    """A file has the bytes of its address on a server, once links and what only a server can do are taken out."""
    files = begun(tmp_path / "site")
    pages = serve(url, **CLUB)
    compared = 0
    # the status is that of the moment
    for name in files.keys() - {"MANIFEST.json", "status.html", "status.json"}:
        address = "/" + name.removesuffix(".html").removesuffix("index")
        told = get(pages, "/index.json" if name == "index.json" else "/index.csv" if name == "index.csv" else address)
        assert told.status == 200, (name, told.body)
        if name.endswith(".html"):
            assert without_server(told.text) == without_server(files[name].decode()), name
        else:
            assert told.body == files[name], name
        compared += 1
    assert compared > 40


def without_server(page: str) -> str:
    """A page without the forms and lists of moments that a folder does not have, and without the endings of links."""
    several = [("<details", "</details>\n"), ('<ul class="axes">', "</ul>\n"), ('<a class="server"', "</a>\n"),
               ('<section class="server"', "</section>\n")]  # fmt: skip
    for opening, closing in several:
        while opening in page:
            before, _, rest = page.partition(opening)
            page = before + rest.partition(closing)[2]
    return page.replace("index.html", "").replace('.html"', '"').replace('"./"', '""')


@pytest.mark.slow
def test_title_stays(url: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """A site keeps its title until another is given; a new one is headed Ratings."""
    folder = tmp_path / "site"
    for options, title in (((), "Ratings"), (("--title", "The Club"), "The Club"), ((), "The Club")):
        assert ratings("site", folder, *options, db=url).exit_code == 0
        heading = (folder / "index.html").read_text().partition("</header>")[0]
        assert title in heading


def test_manifest_names_every_file(begun: Begun, url: str, tmp_path: Path) -> None:
    """The manifest has each file's hash and the head; writing again writes nothing."""
    files = begun(tmp_path / "site")
    manifest = json.loads(files.pop("MANIFEST.json"))
    assert manifest["files"] == {name: sha256(content).hexdigest() for name, content in files.items()}
    with ratings_ledger.open(url) as ledger:
        assert manifest["head"] == str(ledger.head)
        again = write_pages(ledger, tmp_path / "site", **CLUB)
    assert (again.files, again.written, again.removed) == (len(files), 0, 0)


@pytest.mark.slow_cases
def test_one_game_changes_what_it_concerns(begun: Begun, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """After a game of anna and ben, their pages, those of their ladders and the first have changed, and no others."""
    before = begun(tmp_path / "site")
    ok(ratings, *LATE, db=url)
    after = written(url, tmp_path / "site")
    changed = {name.rpartition(".")[0] for name in after if after[name] != before.get(name)} - {"MANIFEST"}
    assert changed >= {"index", "games/g-6", f"players/anna/{LADDER}", f"players/ben/{LADDER}", f"ladders/{LADDER}"}
    elsewhere = [name for name in changed if name.startswith("games/") and name != "games/g-6"]
    assert elsewhere == []
    assert not any(name.startswith("rules") for name in changed)
    others = {name for name in changed if name.startswith("players/") and name.split("/")[1] not in ("anna", "ben")}
    # whose rank has changed, or who is on a ladder of which they have a row
    for name in others:
        assert ranks(after, name) != ranks(before, name) or name.count("/") == 1, name


def ranks(files: dict[str, bytes], name: str) -> Any:
    told = json.loads(files[f"{name}.json"])
    if name.endswith("/_ranks"):
        return told["rows"]
    return told.get("standing", {}) and (told["standing"]["rank"], told["ranked"], told["players"])


def test_csv_has_the_rows_of_json(begun: Begun, tmp_path: Path) -> None:
    """Each CSV has the rows of the JSON beside it: a column for every member, those inside by dots."""
    files = begun(tmp_path / "site")
    compared = 0
    for name in (name for name in files if name.endswith(".csv")):
        told = json.loads(files[f"{name.removesuffix('.csv')}.json"])
        rows = told if isinstance(told, list) else told.get("rows") or told.get("course") or []
        found = list(csv.DictReader(io.StringIO(files[name].decode(), newline="")))
        assert len(found) == len(rows)
        for row, line in zip(rows, found, strict=True):
            compared += 1
            for member, value in row.items():
                if not isinstance(value, dict | list | bool):
                    cell = line[member].removeprefix("'")
                    assert cell == ("" if value is None else str(value)), (name, member)
    assert compared > 30


@pytest.mark.slow
def test_csv_has_no_formulas(url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A name that a spreadsheet would take for a formula has an apostrophe before it in every CSV."""
    names = ["＝1+1", "+a", "－b", "@c", "-5 x"]
    for number, name in enumerate(names, 7):
        ok(ratings, "record", "-q", "--game", "catan", "--game-id", f"g-{number}", "--at", "2025-03-20T20:00Z",
           "--by", "mira", "--new-names", "accept", "--", name, "anna", db=url)  # fmt: skip
    files = written(url, tmp_path / "site")
    rows = list(csv.reader(io.StringIO(files[f"ladders/{LADDER}.csv"].decode(), newline="")))
    for name in names:
        assert [row for row in rows if f"'{name}" in row]
        assert not [row for row in rows if name in row]


def test_hostile_names_are_text(begun: Begun, tmp_path: Path) -> None:
    """A name full of markup brings no element into any page, and is shown."""
    files = begun(tmp_path / "site")
    shown = 0
    for name in pages_of(files):
        assert "img" not in Links(files[name]).elements
        assert "script" not in Links(files[name]).elements
        shown += b"&lt;img" in files[name]
    assert shown > 5
    assert HOSTILE not in "".join(files[name].decode() for name in pages_of(files))


def test_names_are_shown_for_ids(begun: Begun, tmp_path: Path) -> None:
    """The file of names decides what people read; addresses and JSON keep the ids."""
    files = begun(tmp_path / "site")
    page = files[f"players/anna/{LADDER}.html"].decode()
    assert "<h1><bdi>Anna Ö.</bdi></h1>" in page
    assert json.loads(files[f"players/anna/{LADDER}.json"])["player"] == "anna"


@pytest.mark.slow
def test_gone_pages_are_removed(begun: Begun, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """What is no page any more is removed, unless somebody has changed it; other files are left alone."""
    folder = tmp_path / "site"
    begun(folder)
    (folder / "notes.txt").write_text("mine")
    ok(ratings, "void", "g-5", "--reason", "never played", "--by", "mira", db=url)
    gone = f"players/~{HOSTILE.encode()[0]:02x}"
    changed = next(path for path in folder.glob("players/*.html") if path.name.startswith("~3cimg"))
    changed.write_text("by hand")
    files = written(url, folder)
    assert files["notes.txt"] == b"mine"
    assert files[changed.relative_to(folder).as_posix()] == b"by hand"
    left = [name for name in files if name.startswith(gone) and name != changed.relative_to(folder).as_posix()]
    assert left == []


@pytest.mark.slow
def test_process_count_does_not_change_a_site(
    url: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes write the same files as one, and of one more game the same ones again."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for late in (False, True):
        if late:
            ok(ratings, *LATE, db=url)
        found = []
        for cores, folder in enumerate(folders, 1):
            share_pages(monkeypatch, cores)
            found.append(write_pages(url, folder, **CLUB))
        assert found[0] == found[1]
        assert found[0].written < found[0].files if late else found[0].written == found[0].files
        assert tree(folders[0]) == tree(folders[1])


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_what_is_interrupted_is_made_again(
    cores: int, begun: Begun, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that could not be finished is finished the next time, with what was written by half written again."""
    folder, whole = tmp_path / "site", begun(tmp_path / "whole")
    made = site.build_game_page
    share_pages(monkeypatch, cores)

    def full_disk(visit: Any, story: Any) -> Any:
        if story.game_id == "g-4":
            (folder / "games" / "g-4.html").write_bytes(b"<!doct")
            raise OSError(28, "No space left on device")
        return made(visit, story)

    monkeypatch.setattr(site, "build_game_page", full_disk)
    with pytest.raises(OSError, match="No space left"):
        written(url, folder)
    monkeypatch.setattr(site, "build_game_page", made)
    assert written(url, folder) == whole


@pytest.mark.parametrize("what", ["files", "a manifest of something else", "a file"])
def test_other_folders_are_refused(what: str, url: str, tmp_path: Path) -> None:
    """A folder with something else in it stays as it is."""
    folder = tmp_path / "site"
    if what == "a file":
        folder.write_text("mine")
    else:
        folder.mkdir()
        name, text = ("index.html", "mine") if what == "files" else ("MANIFEST.json", "[]")
        (folder / name).write_text(text)
    with ratings_ledger.open(url) as ledger, pytest.raises(BadArgument):
        write_pages(ledger, folder, **CLUB)
    assert folder.is_file() or [path.name for path in folder.iterdir()] in (["index.html"], ["MANIFEST.json"])


@pytest.mark.slow
@pytest.mark.parametrize("linked", ["players", "players/anna", ".index.html.new", ".games.jsonl.new"])
def test_links_in_a_site_are_not_followed(
    linked: str, begun: Begun, url: str, ratings: Ratings, tmp_path: Path
) -> None:
    """No file behind a link in the folder is overwritten: a linked folder is refused, and where a file is written
    beside, a link is replaced or refused."""
    folder, victim = tmp_path / "site", tmp_path / "victim"
    begun(folder)
    if linked.startswith("."):
        victim.write_text("mine")
    else:
        shutil.move(folder / linked, victim)
    (folder / linked).symlink_to(victim)
    before = victim.read_text() if victim.is_file() else tree(victim)
    ok(ratings, *LATE, db=url)
    told = ratings("site", folder, db=url)
    assert (victim.read_text() if victim.is_file() else tree(victim)) == before
    if linked.startswith(".index"):
        assert told.exit_code == 0
    else:
        assert (told.exit_code in (2, 3), f"{folder / linked}" in told.stderr) == (True, True), told
        (folder / linked).unlink(missing_ok=True)
        ok(ratings, "site", folder, db=url)


def test_manifest_cannot_name_files_elsewhere(begun: Begun, url: str, tmp_path: Path) -> None:
    """A manifest that names files outside of the folder, or behind a link, removes none of them."""
    folder = tmp_path / "site"
    begun(folder)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "diary.html").write_text("dear diary")
    (folder / "linked").symlink_to(victim)
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    found = sha256(b"dear diary").hexdigest()
    manifest["files"] |= dict.fromkeys(
        ["../victim/diary.html", str(victim / "diary.html"), "linked/diary.html"], found
    )  # fmt: skip
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    written(url, folder)
    assert (victim / "diary.html").read_text() == "dear diary"


@pytest.mark.slow_cases
def test_home_zone_is_read_once_on_each_connection(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be made is found on one connection, and each part of the pages is made on one; each asks once which
    zone is home, however many pages show times."""
    monkeypatch.setattr(site, "available_cores", lambda: 1)
    connections, read = list[Any](), list[str]()
    with ratings_ledger.open(url) as ledger:
        engine = ledger.at().ledger.engine
        event.listen(engine, "connect", lambda *told: connections.append(told))
        event.listen(engine, "before_cursor_execute", lambda *told: read.append(str(told[3])))
        write_pages(ledger, tmp_path / "site", **CLUB)
    pages = sum(name.endswith(".html") for name in tree(tmp_path / "site"))
    zones = sum("ledger.zone_set" in asked for asked in read)
    # one finds what must be made, one is for games, and the status of the ledger is asked for on one of its own
    assert 1 < zones <= len(connections) <= 4 + pages // site.UNIT_PAGES
