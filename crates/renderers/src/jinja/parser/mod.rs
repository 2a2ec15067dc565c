//! From tokens to a tree.
//!
//! A recursive-descent parser for Jinja's language and for the tags that Salt adds to it
//! (`load_yaml`, `import_yaml`, `profile` …). Precedence, line numbers and the texts of errors are
//! Jinja's, because people search the web for those texts.
//!
//! Surprising: `**` is left-associative, a filter binds tighter than any operator except the unary
//! ones, and a unary minus takes no filter into its operand (`-1 | abs` is `(-1) | abs`).

mod expressions;
mod statements;

use halite_value::{SmolStr, str_repr};

use super::{
    ast::*,
    error::{Class, Error},
    lexer::{Syntax, Tok, Token, lex},
    slips,
};

/// Nesting of brackets and of blocks. Genuine Jinja runs out of Python's stack near 70.
const MAX_DEPTH: u32 = 100;
/// Height of an expression's tree: also of long chains such as `a + b + c …`.
const MAX_HEIGHT: u16 = 400;

type Result<T> = std::result::Result<T, Error>;

/// What a block's body ends with.
type Ends = &'static [&'static str];

pub(crate) fn parse(source: &str, syntax: &Syntax) -> Result<Vec<Stmt>> {
    let mut parser = Parser {
        tokens: lex(source, syntax),
        at: 0,
        eof_line: 1,
        depth: 0,
        tags: Vec::new(),
        tag_lines: Vec::new(),
        ends: Vec::new(),
    };
    parser.check()?;
    parser.body(None)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    eof_line: u32,
    depth: u32,
    /// The tags being parsed, for messages.
    tags: Vec<SmolStr>,
    /// The lines on which they begin.
    tag_lines: Vec<u32>,
    ends: Vec<Ends>,
}

impl Parser {
    fn tok(&self) -> &Tok {
        &self.tokens[self.at].tok
    }

    fn line(&self) -> u32 {
        match self.tok() {
            Tok::Eof => self.eof_line,
            _ => self.tokens[self.at].line,
        }
    }

    fn fail<T>(&self, message: impl Into<String>, line: u32) -> Result<T> {
        Err(Error::syntax(Class::TemplateSyntaxError, message, line))
    }

    /// Fails if the lexer did not understand the current token.
    fn check(&self) -> Result<()> {
        match self.tok() {
            Tok::Bad(message) => {
                let failed = self.fail(message.clone(), self.tokens[self.at].line);
                noted(failed, slips::character(message))
            }
            _ => Ok(()),
        }
    }

    /// Moves to the next token; returns the one left behind.
    fn next(&mut self) -> Result<Token> {
        let line = self.tokens[self.at].line;
        if *self.tok() == Tok::Eof {
            return Ok(Token { line, tok: Tok::Eof });
        }
        // Taken, not cloned: the parser never goes back.
        let tok = std::mem::replace(&mut self.tokens[self.at].tok, Tok::Eof);
        self.eof_line = line;
        self.at += 1;
        self.check()?;
        Ok(Token { line, tok })
    }

    fn peek(&self) -> &Tok {
        self.tokens.get(self.at + 1).map_or(&Tok::Eof, |token| &token.tok)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.tok(), Tok::Name(own) if own == name)
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.tok(), Tok::Op(own) if *own == op)
    }

    fn skip_name(&mut self, name: &str) -> Result<bool> {
        let found = self.is_name(name);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    fn skip_op(&mut self, op: &str) -> Result<bool> {
        let found = self.is_op(op);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let quoted = str_repr(what);
        match self.tok() {
            Tok::Eof => {
                self.fail(format!("unexpected end of template, expected {quoted}."), self.line())
            }
            tok => {
                let got = describe(tok);
                let message = format!("expected token {quoted}, got {}", str_repr(&got));
                let is_end = what == "end of statement block";
                let note = slips::end_of_statement(&got).filter(|_| is_end);
                noted(self.fail(message, self.line()), note)
            }
        }
    }

    fn expect_op(&mut self, op: &str) -> Result<Token> {
        if self.is_op(op) { self.next() } else { self.expected(op) }
    }

    fn expect_keyword(&mut self, name: &str) -> Result<Token> {
        if self.is_name(name) { self.next() } else { self.expected(name) }
    }

    fn expect_name(&mut self) -> Result<SmolStr> {
        match self.tok() {
            Tok::Name(name) => {
                let name = name.clone();
                self.next()?;
                Ok(name)
            }
            _ => self.expected("name"),
        }
    }

    fn expect_tok(&mut self, tok: &Tok) -> Result<Token> {
        if self.tok() == tok { self.next() } else { self.expected(&describe(tok)) }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail("too many levels of nesting", self.line());
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn expr(&self, line: u32, kind: Kind) -> Result<Expr> {
        let mut expr = Expr { line, height: 0, kind };
        let mut height = 0;
        each_child(&expr, &mut |child| height = height.max(child.height + 1));
        if height > MAX_HEIGHT {
            return self.fail("expression too long", line);
        }
        expr.height = height;
        Ok(expr)
    }
}

fn filter_call(node: Option<Expr>, name: &str) -> Kind {
    Kind::Filter(Box::new(FilterCall {
        node,
        name: SmolStr::new(name),
        args: CallArgs::default(),
        found: None,
    }))
}

fn is_constant(name: &str) -> bool {
    matches!(name, "true" | "True" | "false" | "False" | "none" | "None")
}

fn noted<T>(failed: Result<T>, note: Option<&'static str>) -> Result<T> {
    match note {
        Some(note) => failed.map_err(|error| error.with_note(note)),
        None => failed,
    }
}

/// Names a token as Jinja's messages do.
fn describe(tok: &Tok) -> String {
    match tok {
        Tok::Op(op) => *op,
        Tok::Name(name) => name.as_str(),
        Tok::Str(_) => "string",
        Tok::Int(_) => "integer",
        Tok::Float(_) => "float",
        Tok::Data(_) => "template data / text",
        Tok::BlockBegin => "begin of statement block",
        Tok::BlockEnd => "end of statement block",
        Tok::VarBegin => "begin of print statement",
        Tok::VarEnd => "end of print statement",
        Tok::Eof | Tok::Bad(_) => "end of template",
    }
    .to_owned()
}
