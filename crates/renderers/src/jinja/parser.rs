//! From tokens to a tree.
//!
//! A recursive-descent parser for Jinja's language and for the tags that Salt adds to it
//! (`load_yaml`, `import_yaml`, `profile` …). Precedence, line numbers and the texts of errors are
//! Jinja's, because people search the web for those texts.
//!
//! Surprising: `**` is left-associative, a filter binds tighter than any operator except the unary
//! ones, and a unary minus takes no filter into its operand (`-1 | abs` is `(-1) | abs`).

use halite_value::{SmolStr, Value, str_repr};

use super::{
    ast::*,
    error::{Class, Error, Subject},
    lexer::{Syntax, Tok, Token, lex},
    linemap::line_breaks,
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
        ends: Vec::new(),
    };
    parser.check()?;
    parser.body(None)
}

/// The tags there are.
const TAGS: [&str; 24] = [
    "for",
    "if",
    "block",
    "extends",
    "print",
    "macro",
    "include",
    "from",
    "import",
    "set",
    "with",
    "autoescape",
    "call",
    "filter",
    "do",
    "break",
    "continue",
    "load_yaml",
    "load_json",
    "load_text",
    "import_yaml",
    "import_json",
    "import_text",
    "profile",
];

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    eof_line: u32,
    depth: u32,
    /// The tags being parsed, for messages.
    tags: Vec<SmolStr>,
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
            Tok::Bad(message) => self.fail(message.clone(), self.tokens[self.at].line),
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
        let what = str_repr(what);
        match self.tok() {
            Tok::Eof => {
                self.fail(format!("unexpected end of template, expected {what}."), self.line())
            }
            tok => {
                let got = str_repr(&describe(tok));
                self.fail(format!("expected token {what}, got {got}"), self.line())
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

    // ---- statements

    fn body(&mut self, ends: Option<Ends>) -> Result<Vec<Stmt>> {
        if let Some(ends) = ends {
            self.ends.push(ends);
        }
        let body = self.deeper(|parser| parser.body_inner(ends));
        if ends.is_some() {
            self.ends.pop();
        }
        body
    }

    fn body_inner(&mut self, ends: Option<Ends>) -> Result<Vec<Stmt>> {
        let mut body = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut first_line = 1;
        let flush = |pieces: &mut Vec<Piece>, body: &mut Vec<Stmt>, line| {
            if !pieces.is_empty() {
                let output = Output { pieces: std::mem::take(pieces), when: When::Always };
                body.push(Stmt { line, kind: StmtKind::Output(output) });
            }
        };
        loop {
            let line = self.line();
            if pieces.is_empty() {
                first_line = line;
            }
            match self.tok() {
                Tok::Data(text) => {
                    pieces.push(Piece::Data(SmolStr::new(text), line, line_breaks(text)));
                    self.next()?;
                }
                Tok::VarBegin => {
                    self.next()?;
                    pieces.push(Piece::Expr(self.tuple(true, false)?));
                    self.expect_tok(&Tok::VarEnd)?;
                }
                Tok::BlockBegin => {
                    flush(&mut pieces, &mut body, first_line);
                    self.next()?;
                    if let Some(ends) = ends
                        && ends.iter().any(|end| self.is_name(end))
                    {
                        return Ok(body);
                    }
                    self.statement(&mut body)?;
                    self.expect_tok(&Tok::BlockEnd)?;
                }
                Tok::Eof => {
                    flush(&mut pieces, &mut body, first_line);
                    return Ok(body);
                }
                tok => {
                    let message = format!("unexpected {}", str_repr(&describe(tok)));
                    return self.fail(message, line);
                }
            }
        }
    }

    /// Parses the body of a block tag up to one of its ends, which is left as the current token.
    fn block_body(&mut self, ends: Ends) -> Result<Vec<Stmt>> {
        self.skip_op(":")?;
        self.expect_tok(&Tok::BlockEnd)?;
        let body = self.body(Some(ends))?;
        if *self.tok() == Tok::Eof {
            self.ends.push(ends);
            let error = self.unknown_tag(None, self.line());
            self.ends.pop();
            return error;
        }
        Ok(body)
    }

    fn block_body_to(&mut self, ends: Ends) -> Result<Vec<Stmt>> {
        let body = self.block_body(ends)?;
        self.next()?;
        Ok(body)
    }

    fn unknown_tag<T>(&self, name: Option<&str>, line: u32) -> Result<T> {
        let mut message = match name {
            None => vec!["Unexpected end of template.".to_owned()],
            Some(name) => vec![format!("Encountered unknown tag {}.", str_repr(name))],
        };
        if let Some(wanted) = self.ends.last() {
            let wanted: Vec<String> = wanted.iter().map(|end| str_repr(end)).collect();
            let wanted = wanted.join(" or ");
            let elsewhere =
                name.is_some_and(|name| self.ends.iter().any(|ends| ends.contains(&name)));
            message.push(if elsewhere {
                format!(
                    "You probably made a nesting mistake. Jinja is expecting this tag, but \
                     currently looking for {wanted}."
                )
            } else {
                format!("Jinja was looking for the following tags: {wanted}.")
            });
        }
        if let Some(tag) = self.tags.last() {
            let tag = str_repr(tag);
            message.push(format!("The innermost block that needs to be closed is {tag}."));
        }
        let error = Error::syntax(Class::TemplateSyntaxError, message.join(" "), line);
        Err(match name {
            Some(name) => error.about(Subject::Tag(name.to_owned()), TAGS),
            None => error,
        })
    }

    fn statement(&mut self, body: &mut Vec<Stmt>) -> Result<()> {
        let line = self.line();
        let Tok::Name(tag) = self.tok() else {
            return self.fail("tag name expected", line);
        };
        let tag = tag.clone();
        self.tags.push(tag.clone());
        let result = self.tag(&tag, line, body);
        self.tags.pop();
        result
    }

    fn tag(&mut self, tag: &str, line: u32, body: &mut Vec<Stmt>) -> Result<()> {
        if !TAGS.contains(&tag) {
            self.tags.pop();
            let error = self.unknown_tag(Some(tag), line);
            self.tags.push(SmolStr::default());
            return error;
        }
        self.next()?;
        let kind = match tag {
            "for" => self.for_tag()?,
            "if" => self.if_tag(line)?,
            "block" => self.block_tag()?,
            "extends" => {
                StmtKind::Extends(Extends { template: self.expression()?, after: When::Never })
            }
            "print" => self.print_tag()?,
            "macro" => self.macro_tag()?,
            "include" => self.include_tag()?,
            "from" => self.import_names_tag()?,
            "import" => StmtKind::Import(Box::new(self.import_tag()?)),
            "set" => self.set_tag()?,
            "with" => self.with_tag()?,
            "autoescape" => {
                let value = self.expression()?;
                let body = self.block_body_to(&["endautoescape"])?;
                StmtKind::Autoescape { value, body, scope: Scope::default() }
            }
            "call" => self.call_tag(line)?,
            "filter" => {
                let Some(filter) = self.filters(None, true)? else {
                    return self.expected("name");
                };
                let body = self.block_body_to(&["endfilter"])?;
                StmtKind::FilterBlock { filter, body, scope: Scope::default() }
            }
            "do" => StmtKind::Do(self.tuple(true, false)?),
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "load_yaml" | "load_json" | "load_text" => self.load_tag(tag, line)?,
            "profile" => {
                self.expect_keyword("as")?;
                let label = self.expression()?;
                let inner = self.block_body_to(&["endprofile"])?;
                body.push(Stmt { line, kind: StmtKind::Do(label) });
                body.extend(inner);
                return Ok(());
            }
            _ => return self.import_data_tag(tag, line, body),
        };
        body.push(Stmt { line, kind });
        Ok(())
    }

    fn set_tag(&mut self) -> Result<StmtKind> {
        let target = self.target(true)?;
        if self.skip_op("=")? {
            let value = self.tuple(true, false)?;
            return Ok(StmtKind::Set { target, value, export: Export::No });
        }
        let filter = self.filters(None, false)?;
        let body = self.block_body_to(&["endset"])?;
        Ok(StmtKind::SetBlock(Box::new(SetBlock {
            target,
            filter,
            body,
            scope: Scope::default(),
            export: Export::No,
            is_load: false,
        })))
    }

    fn load_tag(&mut self, tag: &str, line: u32) -> Result<StmtKind> {
        self.expect_keyword("as")?;
        let target = self.target(false)?;
        let body = self.block_body_to(&["endload"])?;
        let filter = self.expr(line, filter_call(None, tag))?;
        Ok(StmtKind::SetBlock(Box::new(SetBlock {
            target,
            filter: Some(filter),
            body,
            scope: Scope::default(),
            export: Export::No,
            is_load: true,
        })))
    }

    /// `import_yaml 'f' as y` imports the file as a module and then reads the module's text.
    fn import_data_tag(&mut self, tag: &str, line: u32, body: &mut Vec<Stmt>) -> Result<()> {
        let import = self.import_tag()?;
        let name = import.target.clone();
        let module = self.expr(line, Kind::Name(name.clone(), Var::Unresolved))?;
        let load = tag.replacen("import_", "load_", 1);
        let value = self.expr(line, filter_call(Some(module), &load))?;
        body.push(Stmt { line, kind: StmtKind::Import(Box::new(import)) });
        let target = Target::Name(name, Var::Unresolved);
        body.push(Stmt { line, kind: StmtKind::Set { target, value, export: Export::No } });
        Ok(())
    }

    fn for_tag(&mut self) -> Result<StmtKind> {
        let target = self.target(false)?;
        self.expect_keyword("in")?;
        let iter = self.tuple(false, false)?;
        let test = if self.skip_name("if")? { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive")?;
        let body = self.block_body(&["endfor", "else"])?;
        let ended = self.is_name("endfor");
        self.next()?;
        let or_else = if ended { Vec::new() } else { self.block_body_to(&["endfor"])? };
        Ok(StmtKind::For(Box::new(For {
            target,
            iter,
            test,
            recursive,
            body,
            or_else,
            loop_var: None,
            scope: Scope::default(),
            else_scope: Scope::default(),
            test_func: None,
        })))
    }

    fn if_tag(&mut self, mut line: u32) -> Result<StmtKind> {
        let mut branches = Vec::new();
        loop {
            let test = self.tuple(false, false)?;
            let body = self.block_body(&["elif", "else", "endif"])?;
            branches.push((line, test, body));
            if self.skip_name("elif")? {
                line = self.line();
                continue;
            }
            let has_else = self.is_name("else");
            self.next()?;
            let or_else = if has_else { self.block_body_to(&["endif"])? } else { Vec::new() };
            return Ok(StmtKind::If(Box::new(If { branches, or_else })));
        }
    }

    fn with_tag(&mut self) -> Result<StmtKind> {
        let mut targets = Vec::new();
        while *self.tok() != Tok::BlockEnd {
            if !targets.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.target(false)?;
            self.expect_op("=")?;
            targets.push((target, self.expression()?));
        }
        let body = self.block_body_to(&["endwith"])?;
        Ok(StmtKind::With { targets, body, scope: Scope::default() })
    }

    fn block_tag(&mut self) -> Result<StmtKind> {
        let name = self.expect_name()?;
        let scoped = self.skip_name("scoped")?;
        let required = self.skip_name("required")?;
        if self.is_op("-") {
            return self.fail(
                "Block names in Jinja have to be valid Python identifiers and may not contain \
                 hyphens, use an underscore instead.",
                self.line(),
            );
        }
        let body = self.block_body_to(&["endblock"])?;
        let blank = |stmt: &Stmt| {
            match &stmt.kind {
            StmtKind::Output(output) => output.pieces.iter().all(
                |piece| matches!(piece, Piece::Data(text, ..) if text.chars().all(char::is_whitespace)),
            ),
            _ => false,
        }
        };
        if required && !body.iter().all(blank) {
            let message = "Required blocks can only contain comments or whitespace";
            return self.fail(message, self.line());
        }
        self.skip_name(&name)?;
        Ok(StmtKind::Block(Box::new(Block {
            name,
            scoped,
            required,
            body,
            when: When::Always,
            visible: Vec::new(),
        })))
    }

    fn print_tag(&mut self) -> Result<StmtKind> {
        let mut pieces = Vec::new();
        while *self.tok() != Tok::BlockEnd {
            if !pieces.is_empty() {
                self.expect_op(",")?;
            }
            pieces.push(Piece::Expr(self.expression()?));
        }
        Ok(StmtKind::Output(Output { pieces, when: When::Always }))
    }

    /// Parses `with context` or `without context`, if it stands here.
    fn context(&mut self) -> Result<Option<bool>> {
        let with = self.is_name("with");
        if (with || self.is_name("without"))
            && matches!(self.peek(), Tok::Name(name) if name == "context")
        {
            self.next()?;
            self.next()?;
            return Ok(Some(with));
        }
        Ok(None)
    }

    fn include_tag(&mut self) -> Result<StmtKind> {
        let template = self.expression()?;
        let ignore_missing =
            self.is_name("ignore") && matches!(self.peek(), Tok::Name(name) if name == "missing");
        if ignore_missing {
            self.next()?;
            self.next()?;
        }
        let with_context = self.context()?.unwrap_or(true);
        let visible = Vec::new();
        Ok(StmtKind::Include(Box::new(Include { template, ignore_missing, with_context, visible })))
    }

    fn import_tag(&mut self) -> Result<Import> {
        if matches!(
            self.tags.last().map(SmolStr::as_str),
            Some("import_yaml" | "import_json" | "import_text")
        ) && *self.tok() == Tok::BlockEnd
        {
            return self
                .fail(format!("unexpected {}", str_repr(&describe(self.tok()))), self.line());
        }
        let template = self.expression()?;
        self.expect_keyword("as")?;
        let target = self.expect_name()?;
        let with_context = self.context()?.unwrap_or(false);
        Ok(Import {
            template,
            target,
            var: Var::Unresolved,
            with_context,
            visible: Vec::new(),
            toplevel: false,
        })
    }

    fn import_names_tag(&mut self) -> Result<StmtKind> {
        let template = self.expression()?;
        self.expect_keyword("import")?;
        let mut names = Vec::new();
        let mut with_context;
        loop {
            if !names.is_empty() {
                self.expect_op(",")?;
            }
            if !matches!(self.tok(), Tok::Name(_)) {
                return self.expected("name");
            }
            with_context = self.context()?;
            if with_context.is_some() {
                break;
            }
            let line = self.line();
            let name = self.expect_name()?;
            if name.starts_with('_') {
                return Err(Error::syntax(
                    Class::TemplateAssertionError,
                    "names starting with an underline can not be imported",
                    line,
                ));
            }
            let alias = if self.skip_name("as")? { self.expect_name()? } else { name.clone() };
            names.push((name, alias, Var::Unresolved));
            with_context = self.context()?;
            if with_context.is_some() || !self.is_op(",") {
                break;
            }
        }
        Ok(StmtKind::FromImport(Box::new(FromImport {
            template,
            names,
            with_context: with_context.unwrap_or(false),
            visible: Vec::new(),
            toplevel: false,
        })))
    }

    fn signature(&mut self) -> Result<Signature> {
        let mut signature = Signature::default();
        self.expect_op("(")?;
        while !self.is_op(")") {
            if !signature.names.is_empty() {
                self.expect_op(",")?;
            }
            let line = self.line();
            let name = self.expect_name()?;
            if signature.names.contains(&name) {
                let message = format!("duplicate argument '{name}' in function definition");
                return Err(Error::syntax(Class::SyntaxError, message, line));
            }
            if self.skip_op("=")? {
                signature.defaults.push(self.expression()?);
            } else if !signature.defaults.is_empty() {
                return self.fail("non-default argument follows default argument", self.line());
            }
            signature.names.push(name);
        }
        self.expect_op(")")?;
        Ok(signature)
    }

    fn macro_tag(&mut self) -> Result<StmtKind> {
        let name = self.expect_name()?;
        let signature = self.signature()?;
        let body = self.block_body_to(&["endmacro"])?;
        Ok(StmtKind::Macro(Box::new(Macro {
            name,
            var: Var::Unresolved,
            signature,
            body,
            func: 0,
            exported: false,
            toplevel: false,
        })))
    }

    fn call_tag(&mut self, line: u32) -> Result<StmtKind> {
        let signature = if self.is_op("(") { self.signature()? } else { Signature::default() };
        let call = self.expression()?;
        if !matches!(call.kind, Kind::Call(..)) {
            return self.fail("expected call", line);
        }
        let body = self.block_body_to(&["endcall"])?;
        Ok(StmtKind::CallBlock(Box::new(CallBlock { call, signature, body, func: 0 })))
    }

    // ---- targets

    fn target(&mut self, namespace: bool) -> Result<Target> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.tuple_ends() {
                break;
            }
            items.push(self.deeper(|parser| parser.target_primary(namespace))?);
            if self.is_op(",") {
                is_tuple = true;
            } else {
                break;
            }
        }
        if !is_tuple {
            return match items.pop() {
                Some(target) => Ok(target),
                None => {
                    let got = str_repr(&describe(self.tok()));
                    self.fail(format!("Expected an expression, got {got}"), self.line())
                }
            };
        }
        Ok(Target::Tuple(items))
    }

    fn target_primary(&mut self, namespace: bool) -> Result<Target> {
        let line = self.line();
        match self.tok().clone() {
            Tok::Name(name) => {
                self.next()?;
                if is_constant(&name) {
                    return self.fail("can't assign to 'const'", line);
                }
                if namespace && self.is_op(".") {
                    self.next()?;
                    let attr = self.expect_name()?;
                    return Ok(Target::Attr(name, Var::Unresolved, attr));
                }
                Ok(Target::Name(name, Var::Unresolved))
            }
            Tok::Op("(") => {
                self.next()?;
                // Inside brackets Jinja parses any expression and looks afterwards.
                let inner = self.tuple(true, true)?;
                self.expect_op(")")?;
                self.target_of(inner, line)
            }
            Tok::Str(_) | Tok::Int(_) | Tok::Float(_) => self.fail("can't assign to 'const'", line),
            Tok::Op("[") => {
                self.primary()?;
                self.fail("can't assign to 'list'", line)
            }
            Tok::Op("{") => {
                self.primary()?;
                self.fail("can't assign to 'dict'", line)
            }
            tok => self.fail(format!("unexpected {}", str_repr(&describe(&tok))), line),
        }
    }

    fn target_of(&self, expr: Expr, line: u32) -> Result<Target> {
        match expr.kind {
            Kind::Name(name, _) => Ok(Target::Name(name, Var::Unresolved)),
            Kind::Tuple(items) => {
                let items: Result<Vec<_>> =
                    items.into_iter().map(|item| self.target_of(item, line)).collect();
                // Jinja names the tuple, not the item in it.
                items.map(Target::Tuple).or_else(|_| self.fail("can't assign to 'tuple'", line))
            }
            kind => {
                let name = match kind {
                    Kind::Const(_) => "const",
                    Kind::List(_) => "list",
                    Kind::Dict(_) => "dict",
                    Kind::Cond(_) => "condexpr",
                    Kind::And(_) => "and",
                    Kind::Or(_) => "or",
                    Kind::Not(_) => "not",
                    Kind::Neg(_) => "neg",
                    Kind::Pos(_) => "pos",
                    Kind::Bin(op, _) => match op {
                        Op::Add => "add",
                        Op::Sub => "sub",
                        Op::Mul => "mul",
                        Op::Div => "div",
                        Op::FloorDiv => "floordiv",
                        Op::Mod => "mod",
                        Op::Pow => "pow",
                    },
                    Kind::Compare(..) => "compare",
                    Kind::Concat(_) => "concat",
                    Kind::Attr(..) => "getattr",
                    Kind::Item(_) => "getitem",
                    Kind::Call(..) => "call",
                    Kind::Filter(_) => "filter",
                    _ => "test",
                };
                self.fail(format!("can't assign to '{name}'"), line)
            }
        }
    }

    // ---- expressions

    fn expression(&mut self) -> Result<Expr> {
        self.deeper(Self::condition)
    }

    fn condition(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut expr = self.or()?;
        while self.skip_name("if")? {
            let test = self.or()?;
            let no = if self.skip_name("else")? { Some(self.expression()?) } else { None };
            expr = self.expr(line, Kind::Cond(Box::new((test, expr, no))))?;
            line = self.line();
        }
        Ok(expr)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.and()?;
        while self.skip_name("or")? {
            let right = self.and()?;
            left = self.expr(line, Kind::Or(Box::new((left, right))))?;
            line = self.line();
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.not()?;
        while self.skip_name("and")? {
            let right = self.not()?;
            left = self.expr(line, Kind::And(Box::new((left, right))))?;
            line = self.line();
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        if self.is_name("not") {
            let line = self.next()?.line;
            let inner = self.deeper(Self::not)?;
            return self.expr(line, Kind::Not(Box::new(inner)));
        }
        self.compare()
    }

    fn compare(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let op = match self.tok() {
                Tok::Op("==") => Cmp::Eq,
                Tok::Op("!=") => Cmp::Ne,
                Tok::Op("<") => Cmp::Lt,
                Tok::Op("<=") => Cmp::Le,
                Tok::Op(">") => Cmp::Gt,
                Tok::Op(">=") => Cmp::Ge,
                Tok::Name(name) if name == "in" => Cmp::In,
                Tok::Name(name)
                    if name == "not" && matches!(self.peek(), Tok::Name(next) if next == "in") =>
                {
                    self.next()?;
                    Cmp::NotIn
                }
                _ => break,
            };
            self.next()?;
            rest.push((op, self.sum()?));
            line = self.line();
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.expr(line, Kind::Compare(Box::new(first), rest))
    }

    fn sum(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.concat()?;
        loop {
            let op = match self.tok() {
                Tok::Op("+") => Op::Add,
                Tok::Op("-") => Op::Sub,
                _ => return Ok(left),
            };
            self.next()?;
            let right = self.concat()?;
            left = self.expr(line, Kind::Bin(op, Box::new((left, right))))?;
            line = self.line();
        }
    }

    fn concat(&mut self) -> Result<Expr> {
        let line = self.line();
        let first = self.product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~")? {
            parts.push(self.product()?);
        }
        self.expr(line, Kind::Concat(parts))
    }

    fn product(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.power()?;
        loop {
            let op = match self.tok() {
                Tok::Op("*") => Op::Mul,
                Tok::Op("/") => Op::Div,
                Tok::Op("//") => Op::FloorDiv,
                Tok::Op("%") => Op::Mod,
                _ => return Ok(left),
            };
            self.next()?;
            let right = self.power()?;
            left = self.expr(line, Kind::Bin(op, Box::new((left, right))))?;
            line = self.line();
        }
    }

    fn power(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.unary(true)?;
        while self.skip_op("**")? {
            let right = self.unary(true)?;
            left = self.expr(line, Kind::Bin(Op::Pow, Box::new((left, right))))?;
            line = self.line();
        }
        Ok(left)
    }

    fn unary(&mut self, with_filter: bool) -> Result<Expr> {
        let line = self.line();
        let node = if self.is_op("-") {
            self.next()?;
            let inner = self.deeper(|parser| parser.unary(false))?;
            self.expr(line, Kind::Neg(Box::new(inner)))?
        } else if self.is_op("+") {
            self.next()?;
            let inner = self.deeper(|parser| parser.unary(false))?;
            self.expr(line, Kind::Pos(Box::new(inner)))?
        } else {
            self.primary()?
        };
        let node = self.postfix(node)?;
        if with_filter { self.filter_expr(node) } else { Ok(node) }
    }

    fn primary(&mut self) -> Result<Expr> {
        let line = self.line();
        let kind = match self.tok().clone() {
            Tok::Name(name) => {
                self.next()?;
                match &*name {
                    "true" | "True" => Kind::Const(Value::Bool(true)),
                    "false" | "False" => Kind::Const(Value::Bool(false)),
                    "none" | "None" => Kind::Const(Value::Null),
                    _ => Kind::Name(name, Var::Unresolved),
                }
            }
            Tok::Str(text) => {
                self.next()?;
                let mut text = text;
                while let Tok::Str(more) = self.tok() {
                    text = format!("{text}{more}").into();
                    self.next()?;
                }
                Kind::Const(Value::Str(text))
            }
            Tok::Int(value) => {
                self.next()?;
                Kind::Const(value)
            }
            Tok::Float(float) => {
                self.next()?;
                Kind::Const(Value::Float(float))
            }
            Tok::Op("(") => {
                self.next()?;
                let inner = self.tuple(true, true)?;
                self.expect_op(")")?;
                return Ok(inner);
            }
            Tok::Op("[") => {
                self.next()?;
                let mut items = Vec::new();
                while !self.is_op("]") {
                    if !items.is_empty() {
                        self.expect_op(",")?;
                    }
                    if self.is_op("]") {
                        break;
                    }
                    items.push(self.expression()?);
                }
                self.expect_op("]")?;
                Kind::List(items)
            }
            Tok::Op("{") => {
                self.next()?;
                let mut items = Vec::new();
                while !self.is_op("}") {
                    if !items.is_empty() {
                        self.expect_op(",")?;
                    }
                    if self.is_op("}") {
                        break;
                    }
                    let key = self.expression()?;
                    self.expect_op(":")?;
                    items.push((key, self.expression()?));
                }
                self.expect_op("}")?;
                Kind::Dict(items)
            }
            tok => return self.fail(format!("unexpected {}", str_repr(&describe(&tok))), line),
        };
        self.expr(line, kind)
    }

    fn tuple_ends(&self) -> bool {
        matches!(self.tok(), Tok::VarEnd | Tok::BlockEnd | Tok::Op(")"))
    }

    /// Parses an expression, or several with commas between them as a tuple.
    fn tuple(&mut self, with_condition: bool, brackets: bool) -> Result<Expr> {
        let mut line = self.line();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.tuple_ends() {
                break;
            }
            items.push(if with_condition { self.expression()? } else { self.deeper(Self::or)? });
            if self.is_op(",") {
                is_tuple = true;
            } else {
                break;
            }
            line = self.line();
        }
        if !is_tuple {
            if let Some(only) = items.pop() {
                return Ok(only);
            }
            if !brackets {
                let got = str_repr(&describe(self.tok()));
                return self.fail(format!("Expected an expression, got {got}"), self.line());
            }
        }
        self.expr(line, Kind::Tuple(items))
    }

    fn postfix(&mut self, mut node: Expr) -> Result<Expr> {
        loop {
            node = match self.tok() {
                Tok::Op("." | "[") => self.subscript(node)?,
                Tok::Op("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn filter_expr(&mut self, mut node: Expr) -> Result<Expr> {
        loop {
            node = match self.tok() {
                Tok::Op("|") => match self.filters(Some(node), false)? {
                    Some(node) => node,
                    None => return self.expected("name"),
                },
                Tok::Name(name) if name == "is" => self.test(node)?,
                Tok::Op("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn subscript(&mut self, node: Expr) -> Result<Expr> {
        let token = self.next()?;
        if token.tok == Tok::Op(".") {
            let attr = self.next()?;
            return match attr.tok {
                Tok::Name(name) => self.expr(token.line, Kind::Attr(Box::new(node), name)),
                Tok::Int(index) => {
                    let index = self.expr(attr.line, Kind::Const(index))?;
                    self.expr(token.line, Kind::Item(Box::new((node, index))))
                }
                _ => self.fail("expected name or number", attr.line),
            };
        }
        let mut args = Vec::new();
        while !self.is_op("]") {
            if !args.is_empty() {
                self.expect_op(",")?;
            }
            args.push(self.subscribed()?);
        }
        self.expect_op("]")?;
        let arg = if args.len() == 1 {
            args.remove(0)
        } else {
            self.expr(token.line, Kind::Tuple(args))?
        };
        self.expr(token.line, Kind::Item(Box::new((node, arg))))
    }

    fn subscribed(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut parts: [Option<Expr>; 3] = [None, None, None];
        if self.is_op(":") {
            self.next()?;
        } else {
            let first = self.expression()?;
            if !self.is_op(":") {
                return Ok(first);
            }
            self.next()?;
            parts[0] = Some(first);
        }
        if !self.is_op(":") && !self.is_op("]") && !self.is_op(",") {
            parts[1] = Some(self.expression()?);
        }
        if self.skip_op(":")? && !self.is_op("]") && !self.is_op(",") {
            parts[2] = Some(self.expression()?);
        }
        self.expr(line, Kind::Slice(Box::new(parts)))
    }

    fn call(&mut self, node: Expr) -> Result<Expr> {
        let line = self.line();
        let args = self.call_args()?;
        self.expr(line, Kind::Call(Box::new(node), Box::new(args)))
    }

    fn call_args(&mut self) -> Result<CallArgs> {
        let line = self.expect_op("(")?.line;
        let mut args = CallArgs::default();
        let ensure = |parser: &Self, fine: bool| {
            if fine {
                Ok(())
            } else {
                parser.fail("invalid syntax for function call expression", line)
            }
        };
        let mut comma = false;
        while !self.is_op(")") {
            if comma {
                self.expect_op(",")?;
                if self.is_op(")") {
                    break;
                }
            }
            if self.is_op("*") {
                ensure(self, args.star.is_none() && args.star_star.is_none())?;
                self.next()?;
                args.star = Some(self.expression()?);
            } else if self.is_op("**") {
                ensure(self, args.star_star.is_none())?;
                self.next()?;
                args.star_star = Some(self.expression()?);
            } else if let Tok::Name(name) = self.tok().clone()
                && *self.peek() == Tok::Op("=")
            {
                ensure(self, args.star_star.is_none())?;
                self.next()?;
                self.next()?;
                args.kw.push((name, self.expression()?));
            } else {
                ensure(
                    self,
                    args.star.is_none() && args.star_star.is_none() && args.kw.is_empty(),
                )?;
                args.pos.push(self.expression()?);
            }
            comma = true;
        }
        self.expect_op(")")?;
        Ok(args)
    }

    /// Parses a chain of filters; with `inline` the first one has no `|` before it.
    fn filters(&mut self, node: Option<Expr>, inline: bool) -> Result<Option<Expr>> {
        let mut node = node;
        let mut inline = inline;
        while inline || self.is_op("|") {
            if !inline {
                self.next()?;
            }
            inline = false;
            let line = self.line();
            let name = self.dotted_name()?;
            let args = if self.is_op("(") { self.call_args()? } else { CallArgs::default() };
            let call = FilterCall { node, name, args, found: None };
            node = Some(self.expr(line, Kind::Filter(Box::new(call)))?);
        }
        Ok(node)
    }

    fn dotted_name(&mut self) -> Result<SmolStr> {
        let mut name = self.expect_name()?;
        while self.skip_op(".")? {
            name = format!("{name}.{}", self.expect_name()?).into();
        }
        Ok(name)
    }

    fn test(&mut self, node: Expr) -> Result<Expr> {
        let line = self.next()?.line;
        let negated = self.skip_name("not")?;
        let name = self.dotted_name()?;
        let mut args = CallArgs::default();
        let takes_argument = match self.tok() {
            Tok::Op("(") => {
                args = self.call_args()?;
                false
            }
            Tok::Name(name) => !matches!(name.as_str(), "else" | "or" | "and"),
            Tok::Str(_) | Tok::Int(_) | Tok::Float(_) | Tok::Op("[" | "{") => true,
            _ => false,
        };
        if takes_argument {
            if self.is_name("is") {
                return self.fail("You cannot chain multiple tests with is", self.line());
            }
            let primary = self.deeper(Self::primary)?;
            args.pos.push(self.postfix(primary)?);
        }
        let call = TestCall { node, name, args, found: None };
        let test = self.expr(line, Kind::Test(Box::new(call)))?;
        if negated { self.expr(line, Kind::Not(Box::new(test))) } else { Ok(test) }
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
