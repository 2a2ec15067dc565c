//! Tags and what stands between them, and the targets of assignments.

use halite_value::{SmolStr, str_repr};

use super::{Ends, Parser, Result, describe, filter_call, is_constant};
use crate::jinja::{
    ast::*,
    error::{Class, Error, Subject},
    lexer::Tok,
    linemap::line_breaks,
};

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

impl Parser {
    pub(super) fn body(&mut self, ends: Option<Ends>) -> Result<Vec<Stmt>> {
        if let Some(ends) = ends {
            self.ends.push(ends);
        }
        let body = self.deeper(|parser| parser.body_inner(ends));
        if ends.is_some() {
            self.ends.pop();
        }
        body
    }

    pub(super) fn body_inner(&mut self, ends: Option<Ends>) -> Result<Vec<Stmt>> {
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
    pub(super) fn block_body(&mut self, ends: Ends) -> Result<Vec<Stmt>> {
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

    pub(super) fn block_body_to(&mut self, ends: Ends) -> Result<Vec<Stmt>> {
        let body = self.block_body(ends)?;
        self.next()?;
        Ok(body)
    }

    pub(super) fn unknown_tag<T>(&self, name: Option<&str>, line: u32) -> Result<T> {
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
            Some(name) => {
                let ends = self.ends.iter().flat_map(|ends| ends.iter().copied());
                error.about(Subject::Tag(name.to_owned()), ends.chain(TAGS))
            }
            None => match self.tags.last().zip(self.tag_lines.last()) {
                Some((tag, line)) => {
                    error.with_note(format!("the `{tag}` of line {line} is not closed"))
                }
                None => error,
            },
        })
    }

    pub(super) fn statement(&mut self, body: &mut Vec<Stmt>) -> Result<()> {
        let line = self.line();
        let Tok::Name(tag) = self.tok() else {
            return self.fail("tag name expected", line);
        };
        let tag = tag.clone();
        self.tags.push(tag.clone());
        self.tag_lines.push(line);
        let result = self.tag(&tag, line, body);
        self.tag_lines.pop();
        self.tags.pop();
        result
    }

    pub(super) fn tag(&mut self, tag: &str, line: u32, body: &mut Vec<Stmt>) -> Result<()> {
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

    pub(super) fn set_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn load_tag(&mut self, tag: &str, line: u32) -> Result<StmtKind> {
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
    pub(super) fn import_data_tag(
        &mut self,
        tag: &str,
        line: u32,
        body: &mut Vec<Stmt>,
    ) -> Result<()> {
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

    pub(super) fn for_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn if_tag(&mut self, mut line: u32) -> Result<StmtKind> {
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

    pub(super) fn with_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn block_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn print_tag(&mut self) -> Result<StmtKind> {
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
    pub(super) fn context(&mut self) -> Result<Option<bool>> {
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

    pub(super) fn include_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn import_tag(&mut self) -> Result<Import> {
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

    pub(super) fn import_names_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn signature(&mut self) -> Result<Signature> {
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

    pub(super) fn macro_tag(&mut self) -> Result<StmtKind> {
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

    pub(super) fn call_tag(&mut self, line: u32) -> Result<StmtKind> {
        let signature = if self.is_op("(") { self.signature()? } else { Signature::default() };
        let call = self.expression()?;
        if !matches!(call.kind, Kind::Call(..)) {
            return self.fail("expected call", line);
        }
        let body = self.block_body_to(&["endcall"])?;
        Ok(StmtKind::CallBlock(Box::new(CallBlock { call, signature, body, func: 0 })))
    }

    // ---- targets

    pub(super) fn target(&mut self, namespace: bool) -> Result<Target> {
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

    pub(super) fn target_primary(&mut self, namespace: bool) -> Result<Target> {
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

    pub(super) fn target_of(&self, expr: Expr, line: u32) -> Result<Target> {
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
}
