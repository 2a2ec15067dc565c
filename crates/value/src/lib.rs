//! The one data type of Halite.
