"""The published scale of ratings, in one place: what every rating method takes when nobody says otherwise."""

import math

INITIAL = 1000.0
"""Mean of the ratings (of Elo: the rating before the first vote), points."""

BASE = 10.0
"""The odds are ``BASE`` to 1 ..."""

SCALE = 400.0
"""... at a difference of so many points."""

POINTS = SCALE / math.log(BASE)
"""Points of one natural logarithm of the odds."""

__all__ = ["BASE", "INITIAL", "POINTS", "SCALE"]
