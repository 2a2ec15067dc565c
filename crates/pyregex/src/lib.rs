//! Python's regular expressions.
