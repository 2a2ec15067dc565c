//! A Jinja engine with Python's semantics.
