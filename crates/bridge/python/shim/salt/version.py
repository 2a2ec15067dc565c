"""The release whose behaviour Halite has."""

__version__ = "3008.3"
__version_info__ = (3008, 3)


# From 3000 on each release is an element of the periodic table; before, years and months.
NAMES = {
    "hydrogen": (2014, 1), "helium": (2014, 7), "lithium": (2015, 5), "beryllium": (2015, 8), "boron": (2016, 3),
    "carbon": (2016, 11), "nitrogen": (2017, 7), "oxygen": (2018, 3), "fluorine": (2019, 2), "neon": 3000,
    "sodium": 3001, "magnesium": 3002, "aluminium": 3003, "silicon": 3004, "phosphorus": 3005, "sulfur": 3006,
    "chlorine": 3007, "argon": 3008, "potassium": 3009, "calcium": 3010,
}


class SaltStackVersion:
    def __init__(self, major=3008, minor=3):
        self.major, self.minor = major, minor
        self.info = (major, minor)
        self.string = "{}.{}".format(major, minor)

    @classmethod
    def from_name(cls, name):
        """A release by its element; those before 3000 have years."""
        number = NAMES.get(name.lower())
        if number is None:
            raise ValueError("Named version '{}' is not known".format(name))
        return cls(*number) if isinstance(number, tuple) else cls(number, 0)

    @classmethod
    def parse(cls, text):
        parts = [int(part) for part in str(text).lstrip("v").split(".")[:2] if part.isdigit()]
        return cls(*(parts + [0])[:2])

    def __str__(self):
        return self.string

    def __ge__(self, other):
        return self.info >= getattr(other, "info", (0, 0))

    def __lt__(self, other):
        return not self >= other


__saltstack_version__ = SaltStackVersion()
