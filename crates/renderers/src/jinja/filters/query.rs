//! The filter `json_query`: JMESPath.
//!
//! A small precedence parser makes a tree, a walker applies it. A projection (`[*]`, `*`, `[]`,
//! `[?…]`) applies everything to its right to each element and drops nulls; it ends at a pipe or a
//! bracket.

use halite_value::{Dict, Value, json};

use super::Row;
use crate::jinja::{
    attrs::slice_list,
    error::Error,
    eval::{Interp, Result},
    iter::char_count,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[("json_query", "json_query(data, expr)", |interp, args| {
    let (data, expression) = (args.take(0), args.take(1));
    let Some(expression) = text_of(&expression).cloned() else {
        return Err(failure(
            "EmptyExpressionError",
            "Invalid JMESPath expression: cannot be empty.",
        ));
    };
    let tokens = lex(&expression)?;
    let mut parser = Parser { tokens, at: 0, depth: 0, text: &expression };
    let tree = parser.expression(0)?;
    if parser.peek() != &Tok::End {
        return Err(parser.unexpected());
    }
    interp.search(&tree, &plain(&data))
})];

fn failure(class: &str, message: impl Into<String>) -> Error {
    Error::other(class, message)
}

#[derive(Clone, Debug, PartialEq)]
enum Tok {
    Name(String),
    Quoted(String),
    Literal(Value),
    Number(i64),
    Op(&'static str),
    End,
}

fn lex(text: &str) -> Result<Vec<Tok>> {
    const OPS: [&str; 25] = [
        "[?", "[]", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "!", ".", "*", "|", "&", "@",
        "[", "]", "{", "}", "(", ")", ",", ":", "=",
    ];
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(c) = rest.chars().next() else { break };
        if c.is_ascii_alphabetic() || c == '_' {
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Tok::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if c.is_ascii_digit()
            || (c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            let end =
                rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| end + 1);
            let number = rest[..end].parse().map_err(|_| bad_token(text, rest))?;
            tokens.push(Tok::Number(number));
            rest = &rest[end..];
        } else if matches!(c, '"' | '\'' | '`') {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, own)| {
                if escaped {
                    escaped = false;
                    return false;
                }
                escaped = *own == '\\';
                *own == c
            });
            let Some((end, _)) = end else { return Err(bad_token(text, rest)) };
            let inner = &rest[1..end];
            tokens.push(match c {
                '"' => match json::from_str(&rest[..=end]) {
                    Ok(Value::Str(name)) => Tok::Quoted(name.to_string()),
                    _ => return Err(bad_token(text, rest)),
                },
                '\'' => Tok::Literal(Value::from(inner.replace("\\'", "'"))),
                _ => {
                    let inner = inner.replace("\\`", "`");
                    let inner = inner.trim_start();
                    // Old style: a word without quotes is a text.
                    Tok::Literal(json::from_str(inner).unwrap_or_else(|_| Value::str(inner)))
                }
            });
            rest = &rest[end + 1..];
        } else if let Some(op) = OPS.iter().find(|op| rest.starts_with(**op)) {
            tokens.push(Tok::Op(op));
            rest = &rest[op.len()..];
        } else {
            return Err(bad_token(text, rest));
        }
    }
    tokens.push(Tok::End);
    Ok(tokens)
}

fn bad_token(text: &str, rest: &str) -> Error {
    let c = rest.chars().next().unwrap_or(' ');
    let at = char_count(text) - char_count(rest);
    failure(
        "LexerError",
        format!("Bad jmespath expression: Unknown token {c}:\n{text}\n{}^", " ".repeat(at)),
    )
}

#[derive(Debug)]
enum Node {
    Current,
    Field(String),
    Literal(Value),
    Sub(Box<Node>, Box<Node>),
    Pipe(Box<Node>, Box<Node>),
    Index(Box<Node>, i64),
    Slice(Box<Node>, [Option<i64>; 3]),
    /// Of a list; of an object's values; of a list whose lists are opened; filtered.
    Project(Box<Node>, Kind, Box<Node>),
    Or(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Compare(&'static str, Box<Node>, Box<Node>),
    List(Vec<Node>),
    Hash(Vec<(String, Node)>),
    Call(String, Vec<Node>),
    Reference(Box<Node>),
}

#[derive(Debug)]
enum Kind {
    List,
    Values,
    Flatten,
    Filter(Box<Node>),
}

struct Parser<'a> {
    tokens: Vec<Tok>,
    at: usize,
    depth: usize,
    text: &'a str,
}

impl Parser<'_> {
    fn peek(&self) -> &Tok {
        self.tokens.get(self.at).unwrap_or(&Tok::End)
    }

    fn next(&mut self) -> Tok {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn eat(&mut self, op: &str) -> bool {
        let found = matches!(self.peek(), Tok::Op(own) if *own == op);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, op: &str) -> Result<()> {
        if self.eat(op) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Error {
        let shown = match self.peek() {
            Tok::End => {
                return failure(
                    "IncompleteExpressionError",
                    format!(
                        "Invalid jmespath expression: Incomplete expression:\n\"{}\"",
                        self.text
                    ),
                );
            }
            Tok::Name(name) | Tok::Quoted(name) => name.clone(),
            Tok::Literal(value) => value.to_str().to_string(),
            Tok::Number(number) => number.to_string(),
            Tok::Op(op) => (*op).to_owned(),
        };
        failure(
            "ParserError",
            format!("Invalid jmespath expression: Unexpected token: {shown}: in \"{}\"", self.text),
        )
    }

    /// How strongly the current token binds what stands to its left.
    fn power(&self) -> u8 {
        match self.peek() {
            Tok::Op(op) => match *op {
                "|" => 1,
                "||" => 2,
                "&&" => 3,
                "==" | "!=" | "<" | ">" | "<=" | ">=" => 5,
                "[]" => 9,
                "[?" => 21,
                "." => 40,
                "[" => 55,
                _ => 0,
            },
            _ => 0,
        }
    }

    fn expression(&mut self, power: u8) -> Result<Node> {
        self.depth += 1;
        if self.depth > 60 {
            return Err(failure("ParserError", "Invalid jmespath expression: nested too deeply"));
        }
        let mut left = self.prefix()?;
        let mut count = 0;
        while power < self.power() {
            count += 1;
            if count > 400 {
                return Err(failure("ParserError", "Invalid jmespath expression: too long"));
            }
            left = self.infix(left)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Node> {
        match self.next() {
            Tok::Name(name) if self.eat("(") => {
                let mut args = Vec::new();
                while !self.eat(")") {
                    if !args.is_empty() {
                        self.expect(",")?;
                    }
                    args.push(self.expression(0)?);
                }
                Ok(Node::Call(name, args))
            }
            Tok::Name(name) | Tok::Quoted(name) => Ok(Node::Field(name)),
            Tok::Literal(value) => Ok(Node::Literal(value)),
            Tok::Op("@") => Ok(Node::Current),
            Tok::Op("*") => self.projection(Node::Current, Kind::Values),
            Tok::Op("[]") => self.projection(Node::Current, Kind::Flatten),
            Tok::Op("[?") => self.filter(Node::Current),
            Tok::Op("!") => Ok(Node::Not(Box::new(self.expression(45)?))),
            Tok::Op("&") => Ok(Node::Reference(Box::new(self.expression(0)?))),
            Tok::Op("(") => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Tok::Op("{") => self.hash(),
            Tok::Op("[") => match self.peek() {
                Tok::Number(_) | Tok::Op(":") => self.bracket(Node::Current),
                Tok::Op("*") if self.tokens.get(self.at + 1) == Some(&Tok::Op("]")) => {
                    self.at += 2;
                    self.projection(Node::Current, Kind::List)
                }
                _ => self.list(),
            },
            _ => {
                self.at -= 1;
                Err(self.unexpected())
            }
        }
    }

    fn infix(&mut self, left: Node) -> Result<Node> {
        let Tok::Op(op) = self.next() else { return Err(self.unexpected()) };
        let left_box = Box::new(left);
        Ok(match op {
            "." if self.eat("*") => return self.projection(*left_box, Kind::Values),
            "." => {
                let right = self.after_dot()?;
                Node::Sub(left_box, Box::new(right))
            }
            "|" => Node::Pipe(left_box, Box::new(self.expression(1)?)),
            "||" => Node::Or(left_box, Box::new(self.expression(2)?)),
            "&&" => Node::And(left_box, Box::new(self.expression(3)?)),
            "[]" => return self.projection(*left_box, Kind::Flatten),
            "[?" => return self.filter(*left_box),
            "[" => match self.peek() {
                Tok::Op("*") => {
                    self.at += 1;
                    self.expect("]")?;
                    return self.projection(*left_box, Kind::List);
                }
                _ => return self.bracket(*left_box),
            },
            op => Node::Compare(op, left_box, Box::new(self.expression(5)?)),
        })
    }

    /// Parses what may follow a dot.
    fn after_dot(&mut self) -> Result<Node> {
        match self.peek().clone() {
            Tok::Name(_) | Tok::Quoted(_) | Tok::Op("*") => self.expression(40),
            Tok::Op("[") => {
                self.at += 1;
                self.list()
            }
            Tok::Op("{") => {
                self.at += 1;
                self.hash()
            }
            _ => Err(self.unexpected()),
        }
    }

    fn projection(&mut self, left: Node, kind: Kind) -> Result<Node> {
        let power = match kind {
            Kind::Flatten => 9,
            Kind::Filter(_) => 21,
            _ => 20,
        };
        let right = self.rest_of_projection(power)?;
        Ok(Node::Project(Box::new(left), kind, Box::new(right)))
    }

    fn rest_of_projection(&mut self, power: u8) -> Result<Node> {
        if self.power() < 10 {
            return Ok(Node::Current);
        }
        match self.peek() {
            Tok::Op("[" | "[?") => self.expression_after_current(power),
            Tok::Op(".") => {
                self.at += 1;
                let first = if self.eat("*") {
                    self.projection(Node::Current, Kind::Values)?
                } else {
                    self.after_dot()?
                };
                let mut left = first;
                while power < self.power() {
                    left = self.infix(left)?;
                }
                Ok(left)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn expression_after_current(&mut self, power: u8) -> Result<Node> {
        let mut left = Node::Current;
        while power < self.power() {
            left = self.infix(left)?;
        }
        Ok(left)
    }

    fn filter(&mut self, left: Node) -> Result<Node> {
        let condition = self.expression(0)?;
        self.expect("]")?;
        self.projection(left, Kind::Filter(Box::new(condition)))
    }

    /// Parses an index or a slice, after its bracket.
    fn bracket(&mut self, left: Node) -> Result<Node> {
        let mut parts = [None, None, None];
        let mut at = 0;
        loop {
            match self.next() {
                Tok::Number(number) if parts[at].is_none() => parts[at] = Some(number),
                Tok::Op(":") if at < 2 => at += 1,
                Tok::Op("]") => break,
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
            }
        }
        if at == 0 {
            return match parts[0] {
                Some(index) => Ok(Node::Index(Box::new(left), index)),
                None => Err(self.unexpected()),
            };
        }
        self.projection(Node::Slice(Box::new(left), parts), Kind::List)
    }

    fn list(&mut self) -> Result<Node> {
        let mut items = Vec::new();
        loop {
            items.push(self.expression(0)?);
            if self.eat("]") {
                return Ok(Node::List(items));
            }
            self.expect(",")?;
        }
    }

    fn hash(&mut self) -> Result<Node> {
        let mut items = Vec::new();
        loop {
            let (Tok::Name(name) | Tok::Quoted(name)) = self.next() else {
                self.at -= 1;
                return Err(self.unexpected());
            };
            self.expect(":")?;
            items.push((name, self.expression(0)?));
            if self.eat("}") {
                return Ok(Node::Hash(items));
            }
            self.expect(",")?;
        }
    }
}

/// What JMESPath holds for true: zero is, the empty is not.
fn truth(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Float(_) | Value::BigInt(_) => true,
        other => other.truthy(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) | Value::BigInt(_) | Value::Float(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Tuple(_) => "unknown",
        Value::Dict(_) => "object",
        _ => "expref",
    }
}

impl Interp<'_> {
    fn search(&mut self, node: &Node, data: &Value) -> Result<Value> {
        self.step()?;
        Ok(match node {
            Node::Current => data.clone(),
            Node::Field(name) => data.get(name).unwrap_or_default(),
            Node::Literal(value) => value.clone(),
            Node::Sub(left, right) | Node::Pipe(left, right) => {
                let left = self.search(left, data)?;
                if left.is_null() && matches!(node, Node::Sub(..)) {
                    return Ok(Value::Null);
                }
                self.search(right, &left)?
            }
            Node::Index(left, index) => {
                let items = self.search(left, data)?.items_of_sequence().unwrap_or_default();
                let at = if *index < 0 { index + items.len() as i64 } else { *index };
                usize::try_from(at).ok().and_then(|at| items.get(at).cloned()).unwrap_or_default()
            }
            Node::Slice(left, parts) => {
                let left = self.search(left, data)?;
                match left.items_of_sequence() {
                    Some(items) => {
                        slice_list(&items, &parts.map(|part| part.map_or(Value::Null, Value::Int)))?
                    }
                    None => Value::Null,
                }
            }
            Node::Project(left, kind, right) => self.project(left, kind, right, data)?,
            Node::Or(left, right) => {
                let left = self.search(left, data)?;
                if truth(&left) { left } else { self.search(right, data)? }
            }
            Node::And(left, right) => {
                let left = self.search(left, data)?;
                if truth(&left) { self.search(right, data)? } else { left }
            }
            Node::Not(inner) => Value::Bool(!truth(&self.search(inner, data)?)),
            Node::Compare(op, left, right) => {
                let (left, right) = (self.search(left, data)?, self.search(right, data)?);
                compare(op, &left, &right)
            }
            Node::List(items) => {
                if data.is_null() {
                    return Ok(Value::Null);
                }
                let items: Result<Vec<Value>> =
                    items.iter().map(|item| self.search(item, data)).collect();
                Value::from(items?)
            }
            Node::Hash(items) => {
                if data.is_null() {
                    return Ok(Value::Null);
                }
                let dict = Dict::new();
                for (name, item) in items {
                    dict.insert(name, self.search(item, data)?);
                }
                Value::Dict(dict)
            }
            Node::Call(name, args) => self.call_query(name, args, data)?,
            Node::Reference(_) => Value::Null,
        })
    }

    fn project(&mut self, left: &Node, kind: &Kind, right: &Node, data: &Value) -> Result<Value> {
        let left = self.search(left, data)?;
        let items = match (kind, &left) {
            (Kind::Values, Value::Dict(dict)) => dict.values(),
            (Kind::Values, _) => return Ok(Value::Null),
            (_, Value::List(_)) => left.items_of_sequence().unwrap_or_default(),
            _ => return Ok(Value::Null),
        };
        let mut out = Vec::new();
        for item in items {
            match (kind, &item) {
                (Kind::Flatten, Value::List(_)) => {
                    for inner in item.items_of_sequence().unwrap_or_default() {
                        let found = self.search(right, &inner)?;
                        if !found.is_null() {
                            out.push(found);
                        }
                    }
                    continue;
                }
                (Kind::Filter(condition), _) if !truth(&self.search(condition, &item)?) => continue,
                _ => {}
            }
            let found = self.search(right, &item)?;
            if !found.is_null() {
                out.push(found);
            }
        }
        Ok(Value::from(out))
    }

    fn call_query(&mut self, name: &str, args: &[Node], data: &Value) -> Result<Value> {
        let mut values = Vec::new();
        let mut reference = None;
        for arg in args {
            match arg {
                Node::Reference(inner) => {
                    reference = Some(&**inner);
                    values.push(Value::Null);
                }
                other => values.push(self.search(other, data)?),
            }
        }
        let count = values.len();
        let wanted = match name {
            "contains" | "ends_with" | "starts_with" | "join" | "map" | "max_by" | "min_by"
            | "sort_by" => 2,
            "abs" | "avg" | "ceil" | "floor" | "keys" | "length" | "max" | "min" | "reverse"
            | "sort" | "sum" | "to_array" | "to_number" | "to_string" | "type" | "values" => 1,
            "merge" | "not_null" => count.max(1),
            _ => {
                return Err(failure("UnknownFunctionError", format!("Unknown function: {name}()")));
            }
        };
        if count != wanted {
            let noun = if wanted == 1 { "argument" } else { "arguments" };
            return Err(failure(
                "ArityError",
                format!("Expected {wanted} {noun} for function {name}(), received {count}"),
            ));
        }
        let wrong = |value: &Value, expected: &str| {
            failure(
                "JMESPathTypeError",
                format!(
                    "In function {name}(), invalid type for value: {}, expected one of: {expected}, \
                     received: \"{}\"",
                    value.to_str(),
                    kind_of(value)
                ),
            )
        };
        let list =
            |value: &Value| value.items_of_sequence().ok_or_else(|| wrong(value, "['array']"));
        let numbers = |value: &Value| -> Result<Vec<f64>> {
            let items = list(value)?;
            let numbers = items.iter().map(|item| match item {
                Value::Bool(_) => None,
                other => other.as_float(),
            });
            numbers.collect::<Option<Vec<f64>>>().ok_or_else(|| wrong(value, "['array-number']"))
        };
        let first = values.first().cloned().unwrap_or_default();
        let second = values.get(1).cloned().unwrap_or_default();
        Ok(match name {
            "abs" | "ceil" | "floor" => match &first {
                Value::Int(int) if name == "abs" => Value::Int(int.saturating_abs()),
                Value::Int(_) | Value::BigInt(_) => first,
                Value::Float(float) => match name {
                    "abs" => Value::Float(float.abs()),
                    "ceil" => Value::Int(float.ceil() as i64),
                    _ => Value::Int(float.floor() as i64),
                },
                other => return Err(wrong(other, "['number']")),
            },
            "avg" => {
                let numbers = numbers(&first)?;
                if numbers.is_empty() {
                    return Ok(Value::Null);
                }
                Value::Float(numbers.iter().sum::<f64>() / numbers.len() as f64)
            }
            "sum" => {
                numbers(&first)?;
                let mut total = Value::Int(0);
                for item in list(&first)? {
                    total = self.binary(crate::jinja::ast::Op::Add, &total, &item)?;
                }
                total
            }
            "contains" => match (&first, &second) {
                (Value::Str(text), Value::Str(part)) => Value::Bool(text.contains(part.as_str())),
                (Value::Str(_), _) => Value::Bool(false),
                _ => Value::Bool(list(&first)?.contains(&second)),
            },
            "starts_with" | "ends_with" => match (&first, &second) {
                (Value::Str(text), Value::Str(part)) if name == "starts_with" => {
                    Value::Bool(text.starts_with(part.as_str()))
                }
                (Value::Str(text), Value::Str(part)) => Value::Bool(text.ends_with(part.as_str())),
                (Value::Str(_), other) | (other, _) => return Err(wrong(other, "['string']")),
            },
            "join" => {
                let items = list(&second)?;
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                let texts = texts.ok_or_else(|| wrong(&second, "['array-string']"))?;
                Value::from(texts.join(first.as_str().ok_or_else(|| wrong(&first, "['string']"))?))
            }
            "keys" => match &first {
                Value::Dict(dict) => Value::list(dict.keys()),
                other => return Err(wrong(other, "['object']")),
            },
            "values" => match &first {
                Value::Dict(dict) => Value::from(dict.values()),
                other => return Err(wrong(other, "['object']")),
            },
            "length" => match &first {
                Value::Str(text) => Value::from(char_count(text)),
                Value::Dict(dict) => Value::from(dict.len()),
                other => Value::from(
                    other
                        .items_of_sequence()
                        .ok_or_else(|| wrong(other, "['string', 'array', 'object']"))?
                        .len(),
                ),
            },
            "merge" => {
                let merged = Dict::new();
                for value in &values {
                    match value {
                        Value::Dict(dict) => merged.update(dict),
                        other => return Err(wrong(other, "['object']")),
                    }
                }
                Value::Dict(merged)
            }
            "not_null" => values.into_iter().find(|value| !value.is_null()).unwrap_or_default(),
            "reverse" => match &first {
                Value::Str(text) => Value::from(text.chars().rev().collect::<String>()),
                other => {
                    let mut items = list(other)?;
                    items.reverse();
                    Value::from(items)
                }
            },
            "to_array" => match first {
                Value::List(_) => first,
                other => Value::from(vec![other]),
            },
            "to_number" => match &first {
                Value::Int(_) | Value::Float(_) | Value::BigInt(_) => first,
                Value::Str(text) => super::words::parse_int(text, 10)
                    .or_else(|| super::words::parse_float(text).map(Value::Float))
                    .unwrap_or_default(),
                _ => Value::Null,
            },
            "to_string" => match &first {
                Value::Str(_) => first,
                other => {
                    let style = json::Style {
                        item_separator: ",",
                        key_separator: ":",
                        ..json::Style::default()
                    };
                    let text = json::to_string_styled(other, &style);
                    Value::from(text.map_err(|error| failure("TypeError", error.to_string()))?)
                }
            },
            "type" => Value::str(kind_of(&first)),
            "map" => {
                let Some(reference) = args.first().and(reference) else {
                    return Err(wrong(&first, "['expref']"));
                };
                let mut out = Vec::new();
                for item in list(&second)? {
                    out.push(self.search(reference, &item)?);
                }
                Value::from(out)
            }
            // What is left orders the items, by themselves or by an expression.
            _ => {
                let mut keyed = Vec::new();
                for item in list(&first)? {
                    let key = match reference {
                        Some(reference) if count == 2 => self.search(reference, &item)?,
                        _ => item.clone(),
                    };
                    keyed.push((key, item));
                }
                let kinds: Vec<&str> = keyed.iter().map(|(key, _)| kind_of(key)).collect();
                let uniform = kinds.iter().all(|kind| *kind == "number")
                    || kinds.iter().all(|kind| *kind == "string");
                if !uniform {
                    return Err(wrong(&first, "['array-string', 'array-number']"));
                }
                if name.starts_with("max") {
                    let mut best: Option<(Value, Value)> = None;
                    for pair in keyed {
                        let better = match &best {
                            Some(own) => self.less(&own.0, &pair.0)?,
                            None => true,
                        };
                        if better {
                            best = Some(pair);
                        }
                    }
                    return Ok(best.map(|(_, item)| item).unwrap_or_default());
                }
                let sorted = self.sort(keyed, false)?;
                if name.starts_with("min") {
                    return Ok(sorted.into_iter().next().unwrap_or_default());
                }
                Value::from(sorted)
            }
        })
    }
}

fn compare(op: &str, left: &Value, right: &Value) -> Value {
    // True is not 1 here.
    let same = kind_of(left) == kind_of(right) && left == right;
    match op {
        "==" => return Value::Bool(same),
        "!=" => return Value::Bool(!same),
        _ => {}
    }
    if kind_of(left) != "number" || kind_of(right) != "number" {
        return Value::Null;
    }
    let Some(ordering) = left.compare(right) else { return Value::Null };
    Value::Bool(match op {
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        ">" => ordering.is_gt(),
        _ => ordering.is_ge(),
    })
}
