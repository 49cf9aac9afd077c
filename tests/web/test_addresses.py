"""Addresses: each id is one legal segment of its own, which says what the id is unless it was cut."""

import re
from unicodedata import category

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ratings_ledger.web import addresses

# what an id may hold: no control characters, no slash
IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/="), min_size=1, max_size=64)
LEGAL = re.compile(r"[a-z0-9~-]{1,120}")
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}


@given(IDS)
def test_segment_says_its_id(text: str) -> None:
    """A segment is a legal file name on every system, and gives the id back, unless it was cut."""
    segment = addresses.encode_segment(text)
    assert LEGAL.fullmatch(segment)
    assert segment not in DEVICES
    cut = "~~" in segment
    event("cut" if cut else "whole")
    assert addresses.decode_segment(segment) == (None if cut else text)
    assert addresses.is_truncated(segment) == cut
    assert addresses.resolve_truncated(segment, ["another", text]) == text


@given(st.lists(IDS | st.sampled_from(sorted(DEVICES)), unique=True, min_size=2))
def test_no_two_ids_share_a_segment(texts: list[str]) -> None:
    """Ids that differ, by a capital letter or an accent, have segments that differ; also on systems that fold case."""
    assert len({addresses.encode_segment(text).casefold() for text in texts}) == len(texts)


@given(st.text(max_size=40))
def test_only_segments_of_ids_are_read(text: str) -> None:
    """What is no segment of an id gives no id: there is one address for each."""
    segment = addresses.decode_segment(text)
    assert segment is None or addresses.encode_segment(segment) == text


@pytest.mark.parametrize("segment", ["~00", "a~0ab", "~7f", "~c2~85"])
def test_no_id_has_control_characters(segment: str) -> None:
    """What no id may hold is not asked about: PostgreSQL has no text with a NUL in it."""
    assert addresses.decode_segment(segment) is None


def test_long_ids_that_begin_alike_differ() -> None:
    """Ids of 64 letters of other scripts, which differ in the last, keep apart."""
    left, right = "Ж" * 64, "Ж" * 63 + "Ю"
    assert category("Ж") == "Lu"
    assert addresses.encode_segment(left) != addresses.encode_segment(right)
    assert addresses.encode_segment(left).startswith("~d0~96")


PATHS = st.lists(st.sampled_from(["ladders", "elo", "all", "anna", "games", "g-1"]), max_size=4).map(tuple)


@given(PATHS, PATHS, st.sampled_from(["", ".html", ".json"]))
def test_links_lead_where_they_should(start: tuple[str, ...], target: tuple[str, ...], ending: str) -> None:
    """A link, followed from the page that has it, is the address of the other, with a server and in a folder."""
    link = addresses.build_relative_link(start, target, ending)
    at = ["site", *start[:-1]]
    for part in link.split("/"):
        if part == "..":
            at.pop()
        elif part not in ("", "."):
            at.append(part)
    expected = addresses.name_file(target, ending)
    assert "/".join(at) == f"site/{expected}".rstrip("/")
