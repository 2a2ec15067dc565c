"""Marks functions as Jinja filters, tests and globals."""


class _Mark:
    attribute = ""

    def __init__(self, name=None):
        self.name = name

    def __call__(self, function):
        setattr(function, self.attribute, self.name or function.__name__)
        return function


class JinjaFilter(_Mark):
    attribute = "_halite_jinja_filter"


class JinjaTest(_Mark):
    attribute = "_halite_jinja_test"


class JinjaGlobal(_Mark):
    attribute = "_halite_jinja_global"


jinja_filter = JinjaFilter
jinja_test = JinjaTest
jinja_global = JinjaGlobal
