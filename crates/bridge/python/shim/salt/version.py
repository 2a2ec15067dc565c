"""The release whose behaviour Halite has."""

__version__ = "3008.3"
__version_info__ = (3008, 3)


class SaltStackVersion:
    def __init__(self, major=3008, minor=3):
        self.major, self.minor = major, minor
        self.info = (major, minor)
        self.string = "{}.{}".format(major, minor)

    @classmethod
    def from_name(cls, name):
        return cls()

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
