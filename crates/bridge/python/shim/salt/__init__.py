"""The names of Salt that users' modules and scripts import, on top of Halite.

Used where no genuine `salt` package is importable: inside Halite's Python host, and in scripts by the
pip package `halite-salt`. Functions do what those of the same name do in Salt; what needs a master or
a minion asks Halite for it.
"""

__version__ = "3008.3"
