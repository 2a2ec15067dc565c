//! Rendering by the renderer pipe: what most [`Renderer`](crate::Renderer)s are made of.

use halite_renderers::{RenderCx, Renderers, Text};
use halite_spec::{Error, Result};
use halite_value::Value;

use crate::Source;

/// Runs a text through its pipe (`#!jinja|yaml`, or the configured one). The caller brings the
/// renderers, with a `jinja` that knows the minion's functions, grains and the pillar so far.
pub fn render(renderers: &Renderers, source: &Source<'_>) -> Result<Value> {
    let path = source.path.to_string_lossy();
    let cx = RenderCx {
        saltenv: source.saltenv,
        sls: source.sls,
        path: Some(&path),
        context: source.defaults,
    };
    let text = Text::new(&*path, source.text);
    match renderers.render(text, source.renderer, &cx) {
        Ok(rendered) => {
            rendered.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            rendered.errors.iter().for_each(|error| tracing::error!("{error}"));
            Ok(rendered.data.into_value())
        }
        Err(error) => Err(Error::Source {
            message: error.to_string(),
            class: error.accident().map(str::to_owned),
            place: error.place().cloned(),
            excerpt: error.source_line().map(str::to_owned),
            help: error.hint().map(str::to_owned),
        }),
    }
}
