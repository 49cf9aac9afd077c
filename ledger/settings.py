"""A setting of a store, read back: what `doctor` prints."""

from typing import NamedTuple


class Setting(NamedTuple):
    """A setting's name, what it is, and what it should be (None: any value is fine)."""

    name: str
    value: str
    wanted: str | None

    @property
    def fine(self) -> bool:
        """Whether the value is the wanted one."""
        return self.wanted is None or self.value == self.wanted
