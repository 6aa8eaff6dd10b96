"""How much of a run a page shows, so that a browser (of a phone, too) can open it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Limits:
    """Shares of the videos; those that failed come first, then those with the worst values.

    Attributes:
        listed: most videos that get a line in the table.
        pictured: most videos that get pictures and curves.
        picture_bytes: most bytes of pictures on the page.
    """

    listed: int = 2000
    pictured: int = 500
    picture_bytes: int = 16 << 20

    def shared(self, runs: int) -> Limits:
        """The share of each of ``runs``."""
        return replace(
            self,
            listed=max(1, self.listed // runs),
            pictured=max(1, self.pictured // runs),
            picture_bytes=self.picture_bytes // runs,
        )
