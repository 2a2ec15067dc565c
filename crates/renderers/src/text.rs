//! The renderer `text`: the text as it is, for files whose reader wants no data.
//!
//! differs: genuine Salt has none; there a pipe that ends with a template renderer gives text.

use crate::pipeline::{Data, Error, RenderCx, Renderer};

/// The renderer `text`.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Renderer for Plain {
    fn name(&self) -> &str {
        "text"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        Ok(input)
    }
}
