//! What `stateconf` makes of files, as recorded from genuine Salt (`record_stateconf.py`).

use std::sync::Arc;

use halite_renderers::{
    Data, Error, RenderCx, Renderer, Renderers, Text,
    jinja::{Environment, Files, SaltLoader, Source},
    stateconf::Stateconf,
};
use halite_value::{Dict, Value, json};

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Option<Source>, halite_renderers::jinja::Error> {
        Ok(None)
    }
}

struct Jinja;

impl Renderer for Jinja {
    fn name(&self) -> &str {
        "jinja"
    }

    fn render(&self, input: Data, _: &str, cx: &RenderCx<'_>) -> Result<Data, Error> {
        let Data::Text(text) = input else { return Err(Error::new("no text")) };
        let loader = SaltLoader { files: NoFiles, local: true };
        let rendered = Environment::new().render(text.as_str(), cx.context, &loader);
        let rendered = rendered.map_err(|error| Error::new(error.to_string()))?;
        Ok(Data::Text(text.rendered(rendered.text, None)))
    }
}

fn renderers(extended: &Dict) -> Renderers {
    let mut renderers = Renderers::new();
    renderers.register(Arc::new(Jinja));
    renderers.register(Arc::new(Stateconf::new(renderers.clone(), extended.clone())));
    renderers
}

#[test]
fn files_render_as_in_salt() {
    let cases = json::from_str(include_str!("stateconf.json")).expect("JSON");
    let cases = cases.as_list().expect("a list").to_vec();
    assert!(cases.len() > 15);
    for case in cases {
        // Files of one run know what the others extend.
        let extended = Dict::new();
        for file in case.as_list().expect("files").to_vec() {
            let (sls, text) = (file.get_str("sls"), file.get_str("text").expect("a text"));
            let context = Dict::new();
            let sls = sls.expect("a name");
            let cx = RenderCx { saltenv: "base", sls: &sls, path: None, context: &context };
            let found = renderers(&extended).render(
                Text::new("case.sls", text.as_str()),
                "jinja|yaml",
                &cx,
            );
            let found = match found {
                Ok(rendered) => json::to_string(&rendered.data.into_value()).expect("JSON"),
                Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            };
            let expected = match file.get("error") {
                Some(error) => error.to_str().to_string(),
                None => json::to_string(&file.get("data").unwrap_or(Value::Null)).expect("JSON"),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
