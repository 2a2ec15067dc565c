//! Renderers: from the text of an SLS, pillar or template file to data.

pub mod jinja;
