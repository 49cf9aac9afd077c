"""Write an invented year of Catan in two cities: its games, and the resulting lists, computed by plain arithmetic.

    python make_year.py

writes games.csv, events.jsonl and the tables under expected/. It shares no code with the program, so the tables are an
independent check.

Each line of YEAR stands for one monthly list: its city, group and month, then the games in the order of play. A game
has its players in the order of their places, each by the first letter of the name:

    a=bcd      anna and ben are tied for first, cleo is third, dora fourth
    acd/ke     dora left her seat, and käthe finished for her
    ghi!       ida left her seat, and nobody took it
    -edbc      the game was aborted by agreement and does not count
    eabd@...   the game ended at this time (UTC); others end at 19:30 on the 3rd, 5th, 7th ... of the month
"""

import csv
import json
import re
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

FOLDER = Path(__file__).parent
YEAR = """
Bonn basic 01  abcd bacd cabd dbac abdc bacd a=bcd
Bonn basic 02  bacd abdc bcad dabc cbda badc abde
Bonn basic 03  eabd@2010-02-28T23:30:00Z aebd ebad eadb beda eadb adeb
Bonn basic 04  cade acde dcae cdea acd/ke dce/ka cdae acd
Bonn basic 06  cad ca=d dca bad dba abd cbd cd=b ca=b a=cb
Bonn basic 12  bcde cbed ebcd bdce -edbc ecbd cebd becd@2010-12-31T22:59:00Z
Bonn cities-knights 03  ebadf beadf eabfd fedba ebfad abedf efbda
Bonn cities-knights 05  abcdef bacdfe cbadef dcbafe abdcef badcfe acbde=f
Bonn cities-knights 10  fabc afcb fbac bfca fcab cfba fabc
Bonn cities-knights 11  de de ed de ed de d=e
Wien basic 02  gfhi ghif fgih hgfi gifh fghi igfh cghf
Wien basic 07  fgh@2010-06-30T22:15:00Z hfg fhg ghf f=gh hgf fgh
Wien basic 08  ihgf higf ighf fihg ihfg gihf hifg
Wien basic 09  fhi hfi f=h=i ihf fi/kh fih hif fhi
Wien cities-knights 08  ghi gih hgi ghi! igh hgi ghi
Wien cities-knights 11  dghi gdhi hgdi dhgi idgh ghdi hgi
"""
NAMES = {name[0]: name for name in ("anna", "ben", "cleo", "dora", "emil", "fritz", "gabi", "hans", "ida", "käthe")}
# an account is premium until a line here says otherwise
ACCOUNTS = """
2010-01-01T00:00:00Z registered emil free
2010-06-15T12:00:00Z account_changed gabi free
2010-09-01T12:00:00Z account_changed dora free
2010-12-20T12:00:00Z account_changed dora premium
2010-12-31T12:00:00Z account_changed ben free
2010-12-31T23:30:00Z account_changed fritz free
"""
END = "2010-12-31T23:00:00Z"  # midnight in Berlin, where the lists are kept
POINTS = {2: [3, 1], 3: [4, 2, 1], 4: [5, 3, 2, 1], 5: [6, 4, 3, 2, 1], 6: [7, 5, 4, 3, 2, 1]}
GOLD = {1: 2, 2: 1, 3: 1, 4: 1, 5: 1}
MISSING_PLACE = 150  # the place for a month without one


def games():
    """Yield each game as (city, group, month, id, time, aborted, seats).

    A seat is (place, player, substitute, left).
    """
    for line in YEAR.strip().splitlines():
        city, group, month, *played = line.split()
        for number, text in enumerate(played, 1):
            order, _, time = text.lstrip("-").partition("@")
            seats = []
            for index, (tied, letter, substitute, left) in enumerate(re.findall(r"(=?)(\w)(?:/(\w))?(!?)", order), 1):
                place = seats[-1][0] if tied else index
                seats.append((place, NAMES[letter], NAMES.get(substitute), bool(left or substitute)))
            yield (
                city, group, month, f"{city.lower()}-{group}-{month}-{number}",
                time or f"2010-{month}-{2 * number + 1:02d}T19:30:00Z", text.startswith("-"), seats,
            )  # fmt: skip


def wide_rows():
    """Yield the rows of games.csv: the games that no player left."""
    yield ["game_id", "occurred_at", "game", "group", "city", "aborted", "1st", "2nd", "3rd", "4th", "5th", "6th"]
    for city, group, _, game_id, time, aborted, seats in games():
        if not any(left for *_, left in seats):
            cells = ["=".join(name for at, name, *_ in seats if at == place) for place in range(1, 7)]
            yield [game_id, time, "catan", group, city, "yes" if aborted else "", *cells]


def events():
    """Yield the lines of events.jsonl: accounts, and the games that a player left."""
    for line in ACCOUNTS.strip().splitlines():
        time, kind, player, account = line.split()
        yield {"type": f"player.{kind}", "occurred_at": time, "data": {"player": player, "account": account}}
    for city, group, _, game_id, time, _, seats in games():
        if any(left for *_, left in seats):
            players = []
            for place, name, substitute, left in seats:
                players.append({"player": name, "place": place, **({"status": "abandoned"} if left else {})})
                if substitute:
                    players.append({"player": substitute, "place": place, "status": "substitute", "replaces": name})
            data = {"game_id": game_id, "game": "catan", "group": group, "city": city, "participants": players}
            yield {"type": "game.recorded", "occurred_at": time, "data": data}


def points_of(seats):
    """Return the points by player, without the seats that a substitute took over.

    Tied seats share the points of their places.
    """
    points = {}
    for place, name, substitute, _ in seats:
        if not substitute:
            tied = [index for index, seat in enumerate(seats) if seat[0] == place]
            points[name] = Fraction(sum(POINTS[len(seats)][index] for index in tied), len(tied))
    return points


def group_games_by_list():
    """Return the games of each monthly list in the order of play, as (id, points by player)."""
    games_by_list = defaultdict(list)
    for city, group, month, game_id, _, aborted, seats in games():
        if not aborted:
            for name in (f"catan-monthly/{city}/{group}/2010-{month}", f"catan-open/{group}/2010-{month}"):
                games_by_list[name].append((game_id, points_of(seats)))
    return games_by_list


def ranked(values):
    """Return the places by player for {player: value}, the greatest value first; equal values share a place."""
    return {player: 1 + sum(other > value for other in values.values()) for player, value in values.items()}


def compute_monthly_lists():
    """Return for each monthly list its games, and rows of (place or None, player, mean, games, gold)."""
    lists = {}
    for name, played in group_games_by_list().items():
        gains = defaultdict(list)
        for _, points in played:
            for player, gained in points.items():
                gains[player].append(gained)
        means = {player: sum(gained) / len(gained) for player, gained in gains.items()}
        places = ranked({player: mean for player, mean in means.items() if len(gains[player]) >= 7})
        rows = [
            (places.get(player), player, mean, len(gains[player]), GOLD.get(places.get(player), 0))
            for player, mean in means.items()
        ]
        lists[name] = (played, sorted(rows, key=lambda row: (row[0] or 999, -row[2], row[1])))
    return lists


def find_free_players():
    """Return the players with a free account at the end of the year."""
    changes = [line.split() for line in ACCOUNTS.strip().splitlines()]
    accounts = {player: account for time, _, player, account in changes if time < END}
    return {player for player, account in accounts.items() if account == "free"}


def compute_annual_lists():
    """Return for each annual list rows of (place or None, player, {month: place}, the best four places)."""
    by_month = defaultdict(lambda: defaultdict(dict))
    for name, (_, rows) in compute_monthly_lists().items():
        kind, *_, month = name.split("/")
        if kind == "catan-monthly":
            for place, player, *_ in rows:
                if place:
                    by_month[name.replace("monthly", "annual").removesuffix(month[4:])][player][month[5:]] = place
    lists = {}
    for name, players in sorted(by_month.items()):
        best = {player: sorted([*places.values(), *[MISSING_PLACE] * 4])[:4] for player, places in players.items()}
        excluded = set() if "/basic/" in name else find_free_players()
        places = ranked({player: -sum(four) for player, four in best.items() if player not in excluded})
        rows = [(places.get(player), player, players[player], four) for player, four in best.items()]
        lists[name] = sorted(rows, key=lambda row: (row[0] or 999, sum(row[3]), row[1]))
    return lists


def people():
    """Yield (player, games started, finished, taken over from others, stars, gold) for each player."""
    started, finished, taken_over, gold = (defaultdict(int) for _ in range(4))
    for *_, aborted, seats in games():
        for _, name, substitute, left in seats if not aborted else ():
            started[name] += 1
            finished[name] += not left
            taken_over[substitute] += 1
    for name, (_, rows) in compute_monthly_lists().items():
        for _, player, _, _, paid in rows if name.startswith("catan-monthly/") else ():
            gold[player] += paid
    for name in sorted(NAMES.values()):
        stars = "-"
        if started[name] >= 20:  # no player has more than 99 games, so all of them count
            percent = Fraction(100 * finished[name], started[name])
            stars = "3 golden" if percent >= 95 else str((percent >= 50) + (percent >= 65) + (percent >= 80))
        yield name, started[name], finished[name], taken_over[name], stars, gold[name]


def month_text(name, played, rows):
    """Return the table of a month: a column for each game, then the sum and the mean."""
    gold = name.startswith("catan-monthly")
    ids = [game_id[0].upper() + game_id.rpartition("-")[2] for game_id, _ in played]  # bonn-basic-01-7 is B7
    lines = [name, "", f"place  player {''.join(f'{game_id:>5}' for game_id in ids)}    sum  games    mean"]
    lines[-1] += "  gold" * gold
    for place, player, mean, count, paid in rows:
        cells = "".join(f"{points.get(player, '.')!s:>5}" for _, points in played)
        line = f"{place or '-':>5}  {player:<6} {cells}  {mean * count!s:>5}  {count:>5}  {mean!s:>6}"
        lines.append(line + f"  {paid or '':>4}" * gold)
    return "\n".join(line.rstrip() for line in lines)


def year_text(name, rows):
    """Return the table of a year: the places by month, the best four, and their sum."""
    numbers = [f"{month:02d}" for month in range(1, 13)]
    lines = [name, "", "place  player  " + "".join(f"{month:>3}" for month in numbers) + "   the best four        sum"]
    for place, player, places, four in rows:
        cells = "".join(f"{places.get(month, '.'):>3}" for month in numbers)
        lines.append(f"{place or '-':>5}  {player:<6}  {cells}   {' + '.join(map(str, four)):<19} {sum(four):>4}")
    return "\n".join(lines)


def people_text(rows):
    """Return the table of the players' games, stars and gold."""
    form = "{:<6}  {:>7}  {:>8}  {:>10}  {:<8}  {:>4}"
    return "\n".join(
        form.format(*row) for row in (("player", "started", "finished", "taken over", "stars", "gold"), *rows)
    )


def build_expected_files():
    """Return the texts of the files under expected/, by name."""
    lists = compute_monthly_lists()
    texts = {
        f"{kind}.txt": [month_text(name, *lists[name]) for name in sorted(lists) if name.startswith(f"catan-{kind}/")]
        for kind in ("monthly", "open")
    }
    texts["annual.txt"] = [year_text(name, rows) for name, rows in compute_annual_lists().items()]
    texts["people.txt"] = [people_text(people())]
    return {name: "\n\n\n".join(parts) + "\n" for name, parts in texts.items()}


if __name__ == "__main__":
    with (FOLDER / "games.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(wide_rows())
    lines = [json.dumps(event, ensure_ascii=False) + "\n" for event in events()]
    (FOLDER / "events.jsonl").write_text("".join(lines), encoding="utf-8")
    (FOLDER / "expected").mkdir(exist_ok=True)
    for name, text in build_expected_files().items():
        (FOLDER / "expected" / name).write_text(text, encoding="utf-8")
