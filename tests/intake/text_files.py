"""Tables as text, as people and programs write them, each with the expected result of its import."""

from cases import AFTER, ONE, SET, TWO, csv

CASES = {
    "semicolons and decimal commas": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;7,5\n22.11.2024;ben;7\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna =7.5 ben =7"],
    ),
    "decimal commas in a table of the usual form": csv(
        "game_id;occurred_at;player;score\n7;2024-11-22;anna;7,5\n7;2024-11-22;ben;7\n",
        games=["7 2024-11-22T11:00 anna =7.5 ben =7"],
    ),
    "a comma for thousands in a table of the usual form": csv(
        "game_id;occurred_at;player;score\n7;2024-11-22;anna;1,500\n7;2024-11-22;ben;7\n",
        refused=[("2 bad-decimal", "'1,500' could be a whole number or a fraction; write 1500 or 1.5"), AFTER],
    ),
    "a comma for thousands": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;1,500\n22.11.2024;ben;7\n",
        refused=[("2 bad-decimal", "'1,500' could be a whole number or a fraction; write 1500 or 1.5"), AFTER],
    ),
    "a point for thousands": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;1.000\n22.11.2024;ben;950,5\n",
        refused=[("2 bad-decimal", "'1.000' could be a whole number or a fraction; write 1000 or 1.0"), AFTER],
    ),
    "a point for thousands in a table of the usual form": csv(
        "game_id;occurred_at;player;score\n7;2024-11-22;anna;2.345\n7;2024-11-22;ben;7\n",
        refused=[("2 bad-decimal", "'2.345' could be a whole number or a fraction; write 2345 or 2.3450"), AFTER],
    ),
    "a point for millions": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;1.000.000\n22.11.2024;ben;950,5\n",
        refused=[("2 bad-decimal", "'1.000.000' has separators between thousands; write 1000000"), AFTER],
    ),
    "thousands in a result": csv(
        "Date,Home,Away,Result\n2024-11-22,anna,ben,1.000:950\n",
        refused=[("2 bad-decimal", "result: '1.000' could be a whole number or a fraction; write 1000 or 1.0")],
    ),
    "fractions with points that are no thousands": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;0.125\n22.11.2024;ben;12.5\n22.11.2024;cleo;1.2500\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna =0.125 ben =12.5 cleo =1.25"],
    ),
    "three places behind the point where commas separate cells": csv(
        "game_id,occurred_at,player,score\n7,2024-11-22,anna,1.125\n7,2024-11-22,ben,1\n",
        games=["7 2024-11-22T11:00 anna =1.125 ben =1"],
    ),
    "games as people write them, in a table of the usual form": csv(
        "game_id,occurred_at,game,player,place\n7,2024-11-22,Catan,anna,1\n7,2024-11-22,catan,ben,2\n", options=(),
        games=["7" + ONE[0][12:]], notes=["games: Catan = catan"],
    ),
    "a column of the usual form that one value replaces": csv(
        "game_id,occurred_at,game,player,place\n7,2024-11-22,Chess,anna,1\n7,2024-11-22,Chess,ben,2\n",
        games=["7" + ONE[0][12:]], notes=["game=catan replaces column game (Chess)"],
    ),
    "a column for places that one value replaces": csv(
        "game_id,occurred_at,game,1st,2nd\n7,2024-11-22,Chess,anna,ben\n\n",
        games=["7" + ONE[0][12:]], notes=["game=catan replaces column game (Chess)"],
    ),
    "errors of formulas": csv(
        "Date;1st;2nd;3rd\n22.11.2024;#BEZUG!;ben;\n23.11.2024;ben;anna;#N/A\n24.11.2024;ben;anna\n",
        refused=[
            ("2 bad-cell", "column B: the error #BEZUG!; correct it in a spreadsheet program"),
            ("3 bad-cell", "column D: the error #N/A"),
        ],
    ),
    "errors of formulas in a table of the usual form": csv(
        "game_id,occurred_at,player,place\n7,2024-11-22,anna,1\n7,2024-11-22,ben,2\n7,2024-11-22,Err:502,3\n",
        refused=[("4 bad-cell", "column C: the error Err:502")],
    ),
    "an error for the name of a player": csv(
        "Date,anna,ben,#REF!\n2024-11-22,1,2,3\n", refused=[("1 bad-cell", "column D: the error #REF!; correct it")],
    ),
    "errors in a dropped column, and a name that looks like one": csv(
        "Date,1st,2nd,x\n2024-11-22,#1,ben,#NAME?\n", options=(*SET, "--map", "x="),
        games=[ONE[0].replace("anna", "#1")],
    ),
    "a column of dates and times of day": csv(
        "Datum/Zeit;1.;2.\n22.11.2024 12:00;anna;ben\n", games=ONE, notes=["Datum/Zeit = occurred_at"]
    ),
    "a column of dates and times of day, in words": csv(
        "Datum und Uhrzeit;Platz 1;Platz 2\n22.11.2024 12:00;anna;ben\n", games=ONE,
        notes=["Datum und Uhrzeit = occurred_at"],
    ),
    "a column that says how dates are typed": csv(
        "Datum (TT.MM.JJJJ);1.;2.\n22.11.2024;anna;ben\n", games=ONE, notes=["Datum (TT.MM.JJJJ) = occurred_at"]
    ),
    "a column of times in another zone": csv(
        "Date (UTC),1st,2nd\n2024-11-22 12:00,anna,ben\n",
        refused=[("1 missing-column", "there is no column 'occurred_at', and 'Date (UTC)' is unknown; if it is")],
    ),
    "an unknown column after the places": csv(
        "Date,1st,2nd,Drei\n2024-11-22,anna,ben,cleo\n",
        refused=[("1 unknown-column", "drop it with --map 'Drei=' if it contains no players and no results (known:")],
    ),
    "slips in results": csv(
        "Datum;Spieler 1;Spieler 2;Sätze\n22.11.2024;anna;ben;11:7 111:3 11:9\n23.11.2024;anna;ben;11:7 11:11 11:9\n"
        + "".join(f"{day}.11.2024;anna;ben;11:7 11:3 13:11\n" for day in range(24, 31)),
        games=[f"2024-11-{day}-1 2024-11-{day}T11:00 anna ={2 if day == 23 else 3} ben =0" for day in range(22, 31)],
        notes=["errors: 1 set to 111, most others to about 11 (line 2); 1 set that neither side won (line 3)"],
    ),
    "a result that is won with fewer games than the others": csv(
        "Date,Home,Away,Result\n2024-11-21,anna,ben,2:1\n"
        + "".join(f"2024-11-{day},anna,ben,3:1\n" for day in range(22, 31)),
        games=[f"2024-11-{day}-1 2024-11-{day}T11:00 anna ={2 if day == 21 else 3} ben =1" for day in range(21, 31)],
        notes=["possible typing errors: 1 game won with 2, most others with 3 (line 2)"],
    ),
    "goals without a usual number": csv(
        "Date,Home,Away,Result\n" + "".join(f"2024-11-{day},anna,ben,{day % 7 + 1}:0\n" for day in range(11, 31)),
        games=[f"2024-11-{day}-1 2024-11-{day}T11:00 anna ={day % 7 + 1} ben =0" for day in range(11, 31)],
    ),
    "tabs": csv("Date\t1st\t2nd\n22.11.2024\tanna\tben\n", games=ONE, name="results.tsv"),
    "text in a file with another name": csv("Date;1st;2nd\n22.11.2024;anna;ben\n", games=ONE, name="results.txt"),
    "Excel in Western Europe": csv(
        "Datum;1.;2.\n22.11.2024;Müller;Jörg\n", "cp1252",
        notes=["read as cp1252 (Western Europe), with texts such as Müller, Jörg"],
        games=["2024-11-22-1 2024-11-22T11:00 Müller 1 Jörg 2"],
    ),
    "a word without end, in Western Europe": csv(
        f"Datum;1.;2.\n22.11.2024;{'x' * 300_000};Jörg\n", "cp1252",
        refused=[("2 bad-csv", "a cell has more than 131,072 characters; check its quotation marks and")],
    ),
    "blanks without end between two names": csv(
        f"Date,1st,2nd\n2024-11-22,a{' ' * 130_000}b/c,d\n", refused=[("2 tied-players", "looks like more than one")],
    ),
    "Excel in Poland": csv(
        "Data;1.;2.\n22.11.2024;Łukasz;Żaneta\n", "cp1250", refused=[("2 bad-utf8", "is not UTF-8"), ]
    ),
    "Excel in Poland, with its encoding": csv(
        "Data;1.;2.\n22.11.2024;Łukasz;Żaneta\n", "cp1250", options=(*SET, "--encoding", "cp1250"),
        games=["2024-11-22-1 2024-11-22T11:00 Łukasz 1 Żaneta 2"],
    ),
    "an encoding without the letters of the file": csv(
        "Data;1.;2.\n22.11.2024;Łukasz;ben\n", options=(*SET, "--encoding", "ascii"),
        refused=[("2 bad-utf8", "byte 23 is not ascii; name another encoding with --encoding")],
    ),
    "Unicode text of Excel": csv(
        "Date\t1st\t2nd\r\n22.11.2024\tanna\tben\r\n", "utf-16", games=ONE, name="results.txt"
    ),
    "ends of lines as old Macs write them": csv("Date,1st,2nd\r22/11/2024,anna,ben\r23/11/2024,ben,anna\r", games=TWO),
    "all three ends of lines": csv("Date,1st,2nd\r\n22/11/2024,anna,ben\r23/11/2024,ben,anna\n", games=TWO),
    "mixed ends of lines": csv("Date,1st,2nd\r\n22/11/2024,anna,ben\n23/11/2024,ben,anna\r\n", games=TWO),
    "NUL bytes": csv("Date,1st,2nd\n22/11/2024,an\0na,ben\n", refused=[("2 bad-identifier", "")]),
    "NUL bytes in the header": csv(
        "Da\0te,1st,2nd\n22/11/2024,anna,ben\n", refused=[("1 bad-csv", "the file is neither text nor a spreadsheet")]
    ),
    "names with the delimiter in them": csv(
        'Date,1st,2nd\n2024-11-22,"van Dam, Jan","O""Neill"\n',
        games=['2024-11-22-1 2024-11-22T11:00 van Dam, Jan 1 O"Neill 2'],
    ),
    "a quotation mark within a name": csv('Date,1st,2nd\n2024-11-22,an"na,ben\n', games=[ONE[0].replace("an", 'an"')]),
    "text after a closing quotation mark": csv(
        'Date,1st,2nd\n2024-11-22,"anna"x,ben\n',
        refused=[("2 bad-csv", "',' expected after '\"'; check its quotation")],
    ),
    "another delimiter further down": csv(
        "Date;1st;2nd\n22.11.2024;anna;ben\n23.11.2024,ben,anna\n",
        refused=[("3 bad-time", "'23.11.2024,ben,anna' is not a time like")],
    ),
    "UTF-8 as Excel saves it": csv("Date;1st;2nd\r\n22.11.2024;anna;ben\r\n", "utf-8-sig", games=ONE),
    "UTF-16 without a byte order mark": csv(
        "Date,1st,2nd\n22/11/2024,anna,ben\n", "utf-16-le",
        refused=[("1 bad-csv", "the file is neither text nor a spreadsheet; save its table as .xlsx or as CSV UTF-8")],
    ),
    "a quotation mark that is never closed": csv(
        'Date,1st,2nd\n22/11/2024,"anna,ben\n23/11/2024,ben,anna\n',
        refused=[("2 bad-csv", "the row cannot be split into cells: unexpected end of data; check its quotation")],
    ),
    "a row with more cells than the header": csv(
        "Date,1st,2nd\n22/11/2024,anna,ben,x\n", refused=[("2 row-length", "4 cells, but the header only 3")]
    ),
    "an export of Google Sheets": csv('Date,1st,2nd\r\n"11/22/2024","anna","ben"\r\n', games=ONE),
}  # fmt: skip
