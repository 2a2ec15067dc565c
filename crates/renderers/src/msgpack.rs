//! The renderer `msgpack`: packed data to data.
//!
//! It takes bytes, so it stands behind a renderer that gives some; a text is refused in Python's
//! words, as Salt refuses it.

use halite_value::{Value, msgpack};

use crate::pipeline::{Data, Error, RenderCx, Renderer};

/// The renderer `msgpack`.
#[derive(Clone, Copy, Debug)]
pub struct MsgPack;

impl Renderer for MsgPack {
    fn name(&self) -> &str {
        "msgpack"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        let Data::Value(Value::Bytes(bytes)) = &input else {
            let found = match &input {
                Data::Text(_) => "str".into(),
                Data::Value(value) => value.type_name(),
            };
            let message = format!("a bytes-like object is required, not '{found}'");
            return Err(Error::of_class("TypeError", message));
        };
        match msgpack::from_slice(bytes, msgpack::Text::Typed) {
            Ok(value) if value.truthy() => Ok(Data::Value(value)),
            Ok(_) => Ok(Data::Value(Value::dict())),
            Err(error) => Err(Error::of_class("ValueError", error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{Dict, entries, msgpack::Dialect};

    use super::*;
    use crate::Text;

    fn rendered(input: Data) -> Result<String, String> {
        let context = Dict::new();
        let cx = RenderCx { saltenv: "base", sls: "", path: None, context: &context };
        let made = MsgPack.render(input, "", &cx).map_err(|error| error.to_string())?;
        Ok(made.into_value().repr())
    }

    #[test]
    fn bytes_only() {
        let data = Value::from(entries! { "a" => 1 });
        let packed = msgpack::to_vec(&data, Dialect::Modern).unwrap();
        let input = Data::Value(Value::bytes(packed));
        assert_eq!(rendered(input).as_deref(), Ok("{'a': 1}"));
        let text = Data::Text(Text::new("x", "hello"));
        assert_eq!(rendered(text).unwrap_err(), "a bytes-like object is required, not 'str'");
        assert!(rendered(Data::Value(Value::bytes(vec![0x81]))).is_err());
    }
}
