//! Arguments of calls, and how Python binds them to parameters.

use halite_value::{SmolStr, Value, str_repr};
use smallvec::SmallVec;

use super::{
    ast::CallArgs,
    error::{Error, type_error},
};

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Args {
    pub positional: Vec<Value>,
    pub keyword: Vec<(SmolStr, Value)>,
}

impl Args {
    pub fn new(positional: Vec<Value>) -> Self {
        Self { positional, keyword: Vec::new() }
    }

    /// Takes a keyword argument out.
    pub fn take_keyword(&mut self, name: &str) -> Option<Value> {
        let at = self.keyword.iter().position(|(own, _)| own == name)?;
        Some(self.keyword.remove(at).1)
    }

    pub fn is_empty(&self) -> bool {
        self.positional.is_empty() && self.keyword.is_empty()
    }
}

#[derive(Clone, Debug)]
struct Param {
    name: SmolStr,
    required: bool,
}

/// The parameters of a function, written as in Python: `sort(value, reverse=, *rest, key=, **more)`.
///
/// `!name` is a parameter that the engine fills; it counts in messages only. A default is not
/// written: whoever binds decides what an absent argument means.
#[derive(Clone, Debug)]
pub struct Signature {
    name: SmolStr,
    hidden: usize,
    params: Vec<Param>,
    keyword_only: Vec<Param>,
    rest: bool,
    more: bool,
    /// How many positional arguments must be given.
    least: usize,
}

impl Signature {
    pub fn new(text: &str) -> Self {
        let (name, params) = text.split_once('(').unwrap_or((text, ""));
        let mut signature = Self {
            name: SmolStr::new(name.trim()),
            hidden: 0,
            params: Vec::new(),
            keyword_only: Vec::new(),
            rest: false,
            more: false,
            least: 0,
        };
        let mut keyword_only = false;
        for param in
            params.trim_end_matches(')').split(',').map(str::trim).filter(|p| !p.is_empty())
        {
            if param.starts_with('!') {
                signature.hidden += 1;
            } else if param.starts_with("**") {
                signature.more = true;
            } else if let Some(name) = param.strip_prefix('*') {
                signature.rest = !name.is_empty();
                keyword_only = true;
            } else {
                let name = param.trim_end_matches('=');
                let param = Param { name: SmolStr::new(name), required: name.len() == param.len() };
                if keyword_only { &mut signature.keyword_only } else { &mut signature.params }
                    .push(param);
            }
        }
        signature.least = signature.params.iter().filter(|param| param.required).count();
        signature
    }

    /// Tells whether a value and these arguments can be bound as they stand, one after the other.
    pub(crate) fn takes(&self, args: &CallArgs) -> bool {
        args.is_plain()
            && (self.least..=self.params.len()).contains(&(args.pos.len() + 1))
            && !self.keyword_only.iter().any(|param| param.required)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Binds arguments to parameters, or fails with Python's words.
    pub fn bind(&self, args: Args) -> Result<Bound, Error> {
        let name = &self.name;
        let total = self.params.len();
        let given = args.positional.len();
        let mut values = Values::with_capacity(total + self.keyword_only.len());
        let mut rest = Vec::new();
        for (index, value) in args.positional.into_iter().enumerate() {
            if index < total { values.push(Some(value)) } else { rest.push(value) }
        }
        values.resize(total + self.keyword_only.len(), None);
        let mut more = Vec::new();
        for (keyword, value) in args.keyword {
            let all = self.params.iter().chain(&self.keyword_only);
            match all.map(|param| &param.name).position(|own| *own == keyword) {
                Some(index) if values[index].is_some() => {
                    let keyword = str_repr(&keyword);
                    return Err(type_error(format!(
                        "{name}() got multiple values for argument {keyword}"
                    )));
                }
                Some(index) => values[index] = Some(value),
                None if self.more => more.push((keyword, value)),
                None => {
                    let keyword = str_repr(&keyword);
                    return Err(type_error(format!(
                        "{name}() got an unexpected keyword argument {keyword}"
                    )));
                }
            }
        }
        if !rest.is_empty() && !self.rest {
            return Err(self.too_many(given));
        }
        let absent = |params: &[Param], from: usize| -> Vec<String> {
            params
                .iter()
                .enumerate()
                .filter(|(index, param)| param.required && values[from + index].is_none())
                .map(|(_, param)| str_repr(&param.name))
                .collect()
        };
        let missing = absent(&self.params, 0);
        if !missing.is_empty() {
            return Err(self.missing(&missing, "positional"));
        }
        let missing = absent(&self.keyword_only, total);
        if !missing.is_empty() {
            return Err(self.missing(&missing, "keyword-only"));
        }
        Ok(Bound { values, rest, more })
    }

    fn too_many(&self, given: usize) -> Error {
        let (given, most) = (given + self.hidden, self.params.len() + self.hidden);
        let least = self.least + self.hidden;
        let takes =
            if least == most { most.to_string() } else { format!("from {least} to {most}") };
        let noun = if most == 1 && least == most { "argument" } else { "arguments" };
        let were = if given == 1 { "was" } else { "were" };
        type_error(format!(
            "{}() takes {takes} positional {noun} but {given} {were} given",
            self.name
        ))
    }

    fn missing(&self, names: &[String], kind: &str) -> Error {
        let list = match names {
            [one] => one.clone(),
            [one, two] => format!("{one} and {two}"),
            [start @ .., last] => format!("{}, and {last}", start.join(", ")),
            [] => String::new(),
        };
        let noun = if names.len() == 1 { "argument" } else { "arguments" };
        let count = names.len();
        type_error(format!("{}() missing {count} required {kind} {noun}: {list}", self.name))
    }
}

/// Most functions take no more than this many: no memory is asked for then.
type Values = SmallVec<[Option<Value>; 3]>;

/// Arguments, each in the place of its parameter.
#[derive(Debug)]
pub struct Bound {
    values: Values,
    /// What `*rest` takes.
    pub rest: Vec<Value>,
    /// What `**more` takes.
    pub more: Vec<(SmolStr, Value)>,
}

impl Bound {
    /// Starts with the first argument; only where [`Signature::takes`] said so.
    pub(crate) fn with(first: Value) -> Self {
        let mut values = Values::new();
        values.push(Some(first));
        Self { values, rest: Vec::new(), more: Vec::new() }
    }

    pub(crate) fn push(&mut self, value: Value) {
        self.values.push(Some(value));
    }

    /// Takes what `*rest` and `**more` hold, to be handed on to another function.
    pub(crate) fn others(&mut self) -> Args {
        Args { positional: std::mem::take(&mut self.rest), keyword: std::mem::take(&mut self.more) }
    }

    /// Takes an argument; `None` if it was not given.
    pub fn opt(&mut self, index: usize) -> Option<Value> {
        self.values.get_mut(index).and_then(Option::take)
    }

    /// Takes an argument; null if it was not given.
    pub fn take(&mut self, index: usize) -> Value {
        self.opt(index).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(signature: &str, positional: usize, keywords: &[&str], expected: &str) {
        let args = Args {
            positional: vec![Value::Null; positional],
            keyword: keywords.iter().map(|name| (SmolStr::new(name), Value::Null)).collect(),
        };
        let error = Signature::new(signature).bind(args).err();
        assert_eq!(error.map(|error| error.message().to_owned()).unwrap_or_default(), expected);
    }

    #[test]
    fn messages_are_pythons() {
        check("f(a)", 1, &[], "");
        check("f(a)", 0, &[], "f() missing 1 required positional argument: 'a'");
        check(
            "f(a, b, c)",
            0,
            &[],
            "f() missing 3 required positional arguments: 'a', 'b', and 'c'",
        );
        check("f(a)", 2, &[], "f() takes 1 positional argument but 2 were given");
        check(
            "f(!e, a, b=)",
            3,
            &[],
            "f() takes from 2 to 3 positional arguments but 4 were given",
        );
        check("f()", 1, &[], "f() takes 0 positional arguments but 1 was given");
        check("f(a)", 1, &["a"], "f() got multiple values for argument 'a'");
        check("f(a)", 1, &["z"], "f() got an unexpected keyword argument 'z'");
        check("f(a, *rest, **more)", 5, &["z"], "");
    }
}
