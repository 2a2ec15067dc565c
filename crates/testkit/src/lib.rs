//! Fixtures for tests.
