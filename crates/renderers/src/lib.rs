//! Renderers: from the text of an SLS, pillar or template file to data.

pub mod gpg;
pub mod jinja;
pub mod json;
pub mod msgpack;
pub mod pipeline;
mod sls_context;
pub mod stateconf;
pub mod text;
pub mod toml;
pub mod yaml;

pub use pipeline::{Data, Error, Lines, Pipe, RenderCx, Rendered, Renderer, Renderers, Step, Text};
pub use sls_context::sls_context;
