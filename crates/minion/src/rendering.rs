//! How this minion renders: the pipe of renderers, with Jinja that can call functions.

use halite_renderers::{Data, RenderCx, Renderers, Text};
use halite_spec::{Cx, Error, Result, Template};
use halite_value::Value;

use crate::Rendering;

/// Renders with everything this binary has.
#[derive(Default)]
pub struct Pipes;

impl Pipes {
    fn renderers(cx: &Cx) -> Renderers {
        let names = |option: &str| -> Vec<String> {
            let list = cx.opt(option).and_then(|list| list.items_of_sequence()).unwrap_or_default();
            list.iter().map(Value::to_string).collect()
        };
        let mut renderers = Renderers::new();
        renderers.allow(names("renderer_whitelist"), names("renderer_blacklist"));
        renderers
    }

    fn run(&self, cx: &Cx, template: &Template) -> Result<Data> {
        let name = template.source.clone().unwrap_or_else(|| "<template>".to_owned());
        let text = Text::new(name.as_str(), template.text.clone());
        let sls = template.sls.clone().unwrap_or_default();
        let render = RenderCx {
            saltenv: &template.saltenv,
            sls: &sls,
            path: template.source.as_deref(),
            context: &template.context,
        };
        let rendered = Self::renderers(cx).render(text, &template.engine, &render);
        let rendered = rendered.map_err(source_error)?;
        for warning in &rendered.warnings {
            tracing::warn!("{warning}");
        }
        Ok(rendered.data)
    }
}

impl Rendering for Pipes {
    fn render(&self, cx: &Cx, template: &Template) -> Result<String> {
        match self.run(cx, template)? {
            Data::Text(text) => Ok(text.as_str().to_owned()),
            Data::Value(value) => Ok(value.to_string()),
        }
    }

    fn compile(&self, cx: &Cx, template: &Template) -> Result<Value> {
        self.run(cx, template).map(Data::into_value)
    }
}

fn source_error(error: halite_renderers::Error) -> Error {
    Error::Source {
        message: error.to_string(),
        place: error.place().cloned(),
        excerpt: error.source_line().map(str::to_owned),
        help: error.hint().map(str::to_owned),
    }
}
