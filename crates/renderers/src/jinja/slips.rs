//! What people write in templates by habit, from other languages or older Pythons, and the words
//! that a template itself brings: for hints beside an error, never for rendering.

use halite_value::SmolStr;

use super::lexer::{Syntax, Tok, Token, lex};

/// The attributes of `loop`.
pub(crate) const LOOP: [&str; 13] = [
    "changed",
    "cycle",
    "depth",
    "depth0",
    "first",
    "index",
    "index0",
    "last",
    "length",
    "nextitem",
    "previtem",
    "revindex",
    "revindex0",
];

/// The word for a variable that other languages have under this name.
pub(crate) fn name(word: &str) -> Option<&'static str> {
    match word {
        "null" | "nil" | "NULL" | "Null" => Some("none"),
        "TRUE" => Some("true"),
        "FALSE" => Some("false"),
        _ => None,
    }
}

/// What a method of Python 2 is called now.
pub(crate) fn method(word: &str) -> Option<&'static str> {
    match word {
        "iteritems" | "viewitems" => Some("items"),
        "iterkeys" | "viewkeys" => Some("keys"),
        "itervalues" | "viewvalues" => Some("values"),
        _ => None,
    }
}

/// What to write for a character that is none of Jinja's.
pub(crate) fn character(message: &str) -> Option<&'static str> {
    let c = message.strip_prefix("unexpected char '")?.chars().next()?;
    Some(match c {
        '&' => "`and` joins two conditions in Jinja, not `&&`",
        '!' => "`not` turns a condition round in Jinja, not `!`",
        '?' => "Jinja's choice is `a if condition else b`",
        '\u{2018}'..='\u{201f}' => "only the quotes ' and \" count, not typographic ones",
        '\u{a0}' => "this is a no-break space; write an ordinary one",
        _ => return None,
    })
}

/// What to write where a statement ought to end and this token stands.
pub(crate) fn end_of_statement(got: &str) -> Option<&'static str> {
    Some(match got {
        "=" => "`==` compares; a single `=` sets",
        "if" => "a further condition begins with `elif`",
        "}" => "a statement ends with `%}`",
        "with" | "without" => "an import ends with `with context` or `without context`",
        _ => return None,
    })
}

/// Returns the names that loops, macros, `set` and `with` bring up to a line of a template.
pub(crate) fn declared(source: &str, line: u32) -> Vec<SmolStr> {
    let tokens = lex(source, &Syntax::default());
    let tokens = tokens.split(|token| token.tok == Tok::BlockBegin).skip(1);
    let statements = tokens.take_while(|tokens| tokens.first().is_some_and(|own| own.line <= line));
    statements.flat_map(brought).collect()
}

/// The names that one statement brings; its tokens may go on with the text behind it.
fn brought(tokens: &[Token]) -> Vec<SmolStr> {
    let end = tokens.iter().position(|token| token.tok == Tok::BlockEnd).unwrap_or(tokens.len());
    let [first, rest @ ..] = &tokens[..end] else { return Vec::new() };
    let Tok::Name(word) = &first.tok else { return Vec::new() };
    let names = |tokens: &[Token]| {
        tokens.iter().filter_map(|token| as_name(token).cloned()).collect::<Vec<_>>()
    };
    match word.as_str() {
        "for" => names(
            rest.split(|token| as_name(token).is_some_and(|own| own == "in"))
                .next()
                .unwrap_or(rest),
        ),
        "set" => names(rest.split(|token| token.tok == Tok::Op("=")).next().unwrap_or(rest)),
        // Arguments, with their defaults.
        "macro" | "call" | "with" => rest
            .windows(2)
            .filter(|pair| matches!(pair[1].tok, Tok::Op("," | ")" | "=")))
            .filter_map(|pair| as_name(&pair[0]).cloned())
            .collect(),
        _ => Vec::new(),
    }
}

fn as_name(token: &Token) -> Option<&SmolStr> {
    match &token.tok {
        Tok::Name(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_bring_names() {
        let text = "{% for key, item in all.items() %}\n{% set a, b = 1, c %}\n{% macro m(x, y=z()) %}\n\
                    {% with one = 1, two = 2 %}{{ other }}\n{% set late = 1 %}";
        assert_eq!(declared(text, 4), ["key", "item", "a", "b", "x", "y", "one", "two"]);
        assert_eq!(declared(text, 1), ["key", "item"]);
        assert_eq!(declared("{% for", 9), Vec::<SmolStr>::new());
        assert_eq!(declared("{{ 'open", 9), Vec::<SmolStr>::new());
    }
}
