//! Tests: what may stand after `is`.

use std::{collections::HashMap, sync::LazyLock};

use halite_value::{SmolStr, Value};

use super::{
    ast::Cmp,
    call::{Args, Bound, Signature},
    error::{Class, Error, Subject, type_error},
    eval::{Interp, Result},
    objects::*,
};

type TestFn = fn(&mut Interp<'_>, &mut Bound) -> Result<bool>;

pub(crate) struct Test {
    pub(crate) signature: Signature,
    pub(crate) run: TestFn,
}

/// A test that was found when the template was compiled.
#[derive(Clone)]
pub(crate) enum TestRef {
    Builtin(&'static Test),
    Extra(SmolStr),
}

impl std::fmt::Debug for TestRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Builtin(test) => f.write_str(test.signature.name()),
            Self::Extra(name) => f.write_str(name),
        }
    }
}

const TESTS: &[(&str, &str, TestFn)] = &[
    ("defined", "test_defined(value)", |_, args| Ok(undefined(&args.take(0)).is_none())),
    ("undefined", "test_undefined(value)", |_, args| Ok(undefined(&args.take(0)).is_some())),
    ("none", "test_none(value)", |_, args| Ok(args.take(0).is_null())),
    ("boolean", "test_boolean(value)", |_, args| Ok(matches!(args.take(0), Value::Bool(_)))),
    ("true", "test_true(value)", |_, args| Ok(matches!(args.take(0), Value::Bool(true)))),
    ("false", "test_false(value)", |_, args| Ok(matches!(args.take(0), Value::Bool(false)))),
    ("integer", "test_integer(value)", |_, args| {
        Ok(matches!(args.take(0), Value::Int(_) | Value::BigInt(_)))
    }),
    ("float", "test_float(value)", |_, args| Ok(matches!(args.take(0), Value::Float(_)))),
    ("number", "test_number(value)", |_, args| {
        Ok(matches!(
            args.take(0),
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Bool(_)
        ))
    }),
    ("string", "test_string(value)", |_, args| Ok(text_of(&args.take(0)).is_some())),
    ("mapping", "test_mapping(value)", |_, args| Ok(matches!(args.take(0), Value::Dict(_)))),
    ("list", "is_list(value)", |_, args| Ok(matches!(args.take(0), Value::List(_)))),
    ("sequence", "test_sequence(value)", sequence),
    ("iterable", "test_iterable(value)", |interp, args| match interp.iter(&args.take(0)) {
        Ok(_) => Ok(true),
        Err(error) if *error.class() == Class::TypeError => Ok(false),
        Err(error) => Err(error),
    }),
    ("callable", "callable(obj)", |_, args| Ok(callable(&args.take(0)))),
    ("sameas", "test_sameas(value, other)", |_, args| {
        let (a, b) = (args.take(0), args.take(1));
        // Python keeps one object per small number and per literal text.
        Ok(match (&a, &b) {
            (Value::Float(a), Value::Float(b)) => a == b,
            _ => a.is_same(&b),
        })
    }),
    ("lower", "test_lower(value)", |interp, args| case(interp, &args.take(0), "islower")),
    ("upper", "test_upper(value)", |interp, args| case(interp, &args.take(0), "isupper")),
    ("odd", "test_odd(value)", |interp, args| divisible(interp, &args.take(0), &Value::Int(2), 1)),
    ("even", "test_even(value)", |interp, args| {
        divisible(interp, &args.take(0), &Value::Int(2), 0)
    }),
    ("divisibleby", "test_divisibleby(value, num)", |interp, args| {
        let (value, by) = (args.take(0), args.take(1));
        divisible(interp, &value, &by, 0)
    }),
    ("escaped", "test_escaped(value)", |_, args| Ok(is_markup(&args.take(0)))),
    ("in", "test_in(value, seq)", |interp, args| {
        let (value, container) = (args.take(0), args.take(1));
        interp.contains(&container, &value)
    }),
    ("filter", "test_filter(!env, value)", |interp, args| {
        let name = args.take(0);
        interp.key(name.clone())?;
        Ok(text_of(&name)
            .is_some_and(|name| super::resolve::Names::filter(interp.env, name).is_some()))
    }),
    ("test", "test_test(!env, value)", |interp, args| {
        let name = args.take(0);
        interp.key(name.clone())?;
        Ok(text_of(&name)
            .is_some_and(|name| super::resolve::Names::test(interp.env, name).is_some()))
    }),
    ("match", "test_match(txt, rgx, ignorecase=, multiline=)", super::filters::test_match),
    ("==", "eq(a, b)", |interp, args| compare(interp, args, Cmp::Eq)),
    ("eq", "eq(a, b)", |interp, args| compare(interp, args, Cmp::Eq)),
    ("equalto", "test_equalto(value, other)", |interp, args| compare(interp, args, Cmp::Eq)),
    ("!=", "ne(a, b)", |interp, args| compare(interp, args, Cmp::Ne)),
    ("ne", "ne(a, b)", |interp, args| compare(interp, args, Cmp::Ne)),
    (">", "gt(a, b)", |interp, args| compare(interp, args, Cmp::Gt)),
    ("gt", "gt(a, b)", |interp, args| compare(interp, args, Cmp::Gt)),
    ("greaterthan", "gt(a, b)", |interp, args| compare(interp, args, Cmp::Gt)),
    (">=", "ge(a, b)", |interp, args| compare(interp, args, Cmp::Ge)),
    ("ge", "ge(a, b)", |interp, args| compare(interp, args, Cmp::Ge)),
    ("<", "lt(a, b)", |interp, args| compare(interp, args, Cmp::Lt)),
    ("lt", "lt(a, b)", |interp, args| compare(interp, args, Cmp::Lt)),
    ("lessthan", "lt(a, b)", |interp, args| compare(interp, args, Cmp::Lt)),
    ("<=", "le(a, b)", |interp, args| compare(interp, args, Cmp::Le)),
    ("le", "le(a, b)", |interp, args| compare(interp, args, Cmp::Le)),
];

static BY_NAME: LazyLock<HashMap<&'static str, Test>> = LazyLock::new(|| {
    TESTS
        .iter()
        .map(|(name, signature, run)| {
            (*name, Test { signature: Signature::new(signature), run: *run })
        })
        .collect()
});

pub(crate) fn find(name: &str) -> Option<TestRef> {
    BY_NAME.get(name).map(TestRef::Builtin)
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BY_NAME.keys().copied()
}

impl Interp<'_> {
    pub(crate) fn apply_test(&mut self, test: &TestRef, args: Args) -> Result<bool> {
        self.step()?;
        match test {
            TestRef::Builtin(test) => {
                // Functions of the module `operator` count their arguments in other words.
                let name = test.signature.name();
                if matches!(name, "eq" | "ne" | "gt" | "ge" | "lt" | "le")
                    && args.positional.len() != 2
                {
                    let given = args.positional.len();
                    return Err(type_error(format!("{name} expected 2 arguments, got {given}")));
                }
                let mut bound = test.signature.bind(args)?;
                (test.run)(self, &mut bound)
            }
            TestRef::Extra(name) => match self.env.tests.get(name).cloned() {
                Some(callable) => {
                    let result = callable.call(super::filters::plain_args(args))?;
                    self.truthy(&result)
                }
                None => Err(no_test(self, name)),
            },
        }
    }

    /// Applies a test that is named at run time, as `select` does.
    pub(crate) fn apply_test_named(&mut self, name: &Value, args: Args) -> Result<bool> {
        let shown = name.to_str();
        match text_of(name).and_then(|name| super::resolve::Names::test(self.env, name)) {
            Some(test) => self.apply_test(&test, args),
            None => Err(no_test(self, &shown)),
        }
    }
}

fn no_test(interp: &Interp<'_>, name: &str) -> Error {
    let message = format!("No test named {}.", halite_value::str_repr(name));
    Error::new(Class::TemplateRuntimeError, message)
        .about(Subject::Test(name.to_owned()), super::resolve::Names::test_names(interp.env))
}

fn sequence(interp: &mut Interp<'_>, args: &mut Bound) -> Result<bool> {
    let value = args.take(0);
    if undefined(&value).is_some() {
        return Ok(interp.length(&value)?.is_some());
    }
    Ok(match &value {
        Value::Str(_) | Value::Bytes(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) => true,
        Value::Object(object) => {
            let any = object.as_any();
            any.is::<Markup>() || any.is::<Range>() || any.is::<Group>()
        }
        _ => false,
    })
}

pub(crate) fn callable(value: &Value) -> bool {
    let Value::Object(object) = value else { return false };
    let any = object.as_any();
    any.is::<Macro>()
        || any.is::<HostFunction>()
        || any.is::<BoundMethod>()
        || any.is::<Builtin>()
        || any.is::<BlockReference>()
        || any.is::<Loop>()
        || any.is::<Joiner>()
        // Even an undefined has a `__call__`: it raises.
        || any.is::<Undefined>()
}

fn case(interp: &mut Interp<'_>, value: &Value, method: &str) -> Result<bool> {
    let text = Value::Str(interp.str_of(value)?);
    let result = super::methods::call(interp, &text, method, Args::default())?;
    Ok(result.truthy())
}

fn divisible(interp: &mut Interp<'_>, value: &Value, by: &Value, rest: i64) -> Result<bool> {
    let remainder = interp.binary(super::ast::Op::Mod, value, by)?;
    Ok(remainder == Value::Int(rest))
}

fn compare(interp: &mut Interp<'_>, args: &mut Bound, op: Cmp) -> Result<bool> {
    let (a, b) = (args.take(0), args.take(1));
    interp.compare(op, &a, &b)
}
