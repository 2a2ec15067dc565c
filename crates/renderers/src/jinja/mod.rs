//! A Jinja engine with Python's semantics: the one that renders SLS, pillar and template files.
//!
//! Text goes through [`lexer`], [`parser`] and [`resolve`] to compiled code, which is kept by
//! content and shared between threads; [`eval`] walks it. Around the evaluator stand Python's
//! operators ([`ops`]), attribute look-up ([`attrs`]), methods ([`methods`]), formatting ([`format`])
//! and the filters, tests and globals of Jinja and of Salt.
//!
//! What an embedding program does:
//! - makes an [`Environment`] once: options, limits, additional filters and tests, a [`Host`];
//! - gives a [`Loader`] that finds templates by name, mostly a [`SaltLoader`] over [`Files`];
//! - calls [`Environment::render_salt`] with the variables. Functions go in as
//!   [`HostFunction`]s, the `salt` object as a [`HostLookup`].
//!
//! Surprising, and all of it relied upon by formulas: values are shared (a list given to a template
//! can be changed by it), `.` prefers methods and `[]` items, undefined values are strict, dicts print
//! as YAML reads them. No host object is reachable from a template, and everything costs fuel.

mod ast;
mod attrs;
mod call;
mod error;
mod eval;
mod filters;
mod format;
mod globals;
mod host;
mod iter;
mod lexer;
mod linemap;
mod loader;
mod methods;
mod objects;
mod ops;
mod parser;
mod print;
mod resolve;
mod salt;
mod slips;
mod tests;

use std::{collections::HashMap, sync::Arc};

pub use call::{Args, Bound, Signature};
pub use error::{Class, Error, SaltError, Spot, Subject, Within, excerpt};
use filters::FilterRef;
use halite_value::{Dict, SmolStr, Value};
pub use host::Host;
pub use lexer::Syntax;
pub use linemap::LineMap;
pub use loader::{Files, Globals, Loader, NoLoader, SaltLoader, Source};
pub use objects::{Callable, HostFunction, HostLookup, Lookup, use_of_undefined};
use parking_lot::Mutex;
pub use salt::OPTIONS;
use tests::TestRef;

use self::{
    ast::Code,
    eval::{Interp, Template, Vars},
};

/// What one rendering may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps: roughly, values looked at.
    pub fuel: u64,
    /// Bytes written, also into variables.
    pub output_bytes: usize,
    /// Bytes of one text or list.
    pub object_bytes: usize,
    /// Macros and recursive loops inside each other. Genuine Jinja ends near 200.
    pub calls: u32,
    /// Levels of evaluation inside each other.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 200_000_000,
            output_bytes: 256 << 20,
            object_bytes: 64 << 20,
            calls: 220,
            depth: 4000,
        }
    }
}

/// The result of a rendering.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub text: String,
    /// Where each line of the text came from.
    pub lines: LineMap,
}

/// How templates are rendered; made once and used for many.
#[derive(Clone)]
pub struct Environment {
    syntax: Syntax,
    strict: bool,
    limits: Limits,
    filters: HashMap<SmolStr, Arc<dyn Callable>>,
    tests: HashMap<SmolStr, Arc<dyn Callable>>,
    globals: Arc<Vars>,
    host: Option<Arc<dyn Host>>,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    codes: HashMap<(u64, u64), Arc<Code>>,
    bytes: usize,
}

/// Source text kept in compiled form; then everything is forgotten.
const CACHE_BYTES: usize = 32 << 20;

impl Default for Environment {
    fn default() -> Self {
        Self {
            syntax: Syntax::default(),
            strict: true,
            limits: Limits::default(),
            filters: HashMap::new(),
            tests: HashMap::new(),
            globals: Arc::new(globals::globals().clone()),
            host: None,
            cache: Arc::default(),
        }
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("syntax", &self.syntax)
            .field("strict", &self.strict)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Environment {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_syntax(mut self, syntax: Syntax) -> Self {
        self.syntax = syntax;
        self
    }

    pub fn syntax(&self) -> &Syntax {
        &self.syntax
    }

    /// Makes undefined values print as nothing instead of failing: Salt's `allow_undefined`.
    #[must_use]
    pub fn allow_undefined(mut self, allow: bool) -> Self {
        self.strict = !allow;
        self
    }

    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    #[must_use]
    pub fn with_host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// Adds a filter, or replaces one; it gets the value as its first argument.
    #[must_use]
    pub fn with_filter(mut self, name: &str, filter: Arc<dyn Callable>) -> Self {
        self.filters.insert(name.into(), filter);
        // Compiled code knows where it found its filters.
        self.cache = Arc::default();
        self
    }

    /// Adds a test, or replaces one.
    #[must_use]
    pub fn with_test(mut self, name: &str, test: Arc<dyn Callable>) -> Self {
        self.tests.insert(name.into(), test);
        self.cache = Arc::default();
        self
    }

    /// Adds a variable that every template sees, also imported ones.
    #[must_use]
    pub fn with_global(mut self, name: &str, value: Value) -> Self {
        Arc::make_mut(&mut self.globals).insert(name.into(), value);
        self
    }

    /// Renders a text.
    pub fn render(
        &self,
        text: &str,
        context: &Dict,
        loader: &dyn Loader,
    ) -> Result<Rendered, Error> {
        let code = self.compile(text).map_err(|error| {
            let line = error.syntax_line().unwrap_or(1);
            error.at(Spot {
                template: None,
                file: None,
                line,
                within: Within::Template,
                source: text.into(),
            })
        })?;
        let mut vars = (*self.globals).clone();
        for (name, value) in context {
            vars.insert(value_name(&name), value);
        }
        let template = Arc::new(Template { name: None, file: None, code });
        let mut interp = Interp::new(self, loader, Arc::new(vars));
        let (text, lines) = interp.render(&template)?;
        Ok(Rendered { text, lines })
    }

    /// Compiles a text, or finds the code that was compiled from the same text before.
    fn compile(&self, text: &str) -> Result<Arc<Code>, Error> {
        use std::hash::BuildHasher;
        let hasher = foldhash::fast::FixedState::default();
        let key = (hasher.hash_one(text), hasher.hash_one(&self.syntax));
        let known = self.cache.lock().codes.get(&key).cloned();
        if let Some(code) = known
            && *code.source == *text
        {
            return Ok(code);
        }
        let body = parser::parse(text, &self.syntax)?;
        let code = Arc::new(resolve::resolve(body, text, self)?);
        let mut cache = self.cache.lock();
        if cache.bytes > CACHE_BYTES {
            *cache = Cache::default();
        }
        cache.bytes += text.len() + 1024;
        cache.codes.insert(key, code.clone());
        Ok(code)
    }
}

fn value_name(name: &Value) -> SmolStr {
    name.to_str()
}

impl resolve::Names for Environment {
    fn filter(&self, name: &str) -> Option<FilterRef> {
        if !self.filters.is_empty() && self.filters.contains_key(name) {
            return Some(FilterRef::Extra(name.into()));
        }
        filters::find(name)
    }

    fn test(&self, name: &str) -> Option<TestRef> {
        if !self.tests.is_empty() && self.tests.contains_key(name) {
            return Some(TestRef::Extra(name.into()));
        }
        tests::find(name)
    }

    fn filter_names(&self) -> Vec<&str> {
        filters::names()
            .map(|name| -> &str { name })
            .chain(self.filters.keys().map(SmolStr::as_str))
            .collect()
    }

    fn test_names(&self) -> Vec<&str> {
        tests::names()
            .map(|name| -> &str { name })
            .chain(self.tests.keys().map(SmolStr::as_str))
            .collect()
    }
}
