//! Expressions, from the loosest operator to the tightest.

use halite_value::{SmolStr, Value, str_repr};

use super::{Parser, Result, describe};
use crate::jinja::{ast::*, lexer::Tok};

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.deeper(Self::condition)
    }

    pub(super) fn condition(&mut self) -> Result<Expr> {
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

    pub(super) fn or(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.and()?;
        while self.skip_name("or")? {
            let right = self.and()?;
            left = self.expr(line, Kind::Or(Box::new((left, right))))?;
            line = self.line();
        }
        Ok(left)
    }

    pub(super) fn and(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.not()?;
        while self.skip_name("and")? {
            let right = self.not()?;
            left = self.expr(line, Kind::And(Box::new((left, right))))?;
            line = self.line();
        }
        Ok(left)
    }

    pub(super) fn not(&mut self) -> Result<Expr> {
        if self.is_name("not") {
            let line = self.next()?.line;
            let inner = self.deeper(Self::not)?;
            return self.expr(line, Kind::Not(Box::new(inner)));
        }
        self.compare()
    }

    pub(super) fn compare(&mut self) -> Result<Expr> {
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

    pub(super) fn sum(&mut self) -> Result<Expr> {
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

    pub(super) fn concat(&mut self) -> Result<Expr> {
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

    pub(super) fn product(&mut self) -> Result<Expr> {
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

    pub(super) fn power(&mut self) -> Result<Expr> {
        let mut line = self.line();
        let mut left = self.unary(true)?;
        while self.skip_op("**")? {
            let right = self.unary(true)?;
            left = self.expr(line, Kind::Bin(Op::Pow, Box::new((left, right))))?;
            line = self.line();
        }
        Ok(left)
    }

    pub(super) fn unary(&mut self, with_filter: bool) -> Result<Expr> {
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

    pub(super) fn primary(&mut self) -> Result<Expr> {
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

    pub(super) fn tuple_ends(&self) -> bool {
        matches!(self.tok(), Tok::VarEnd | Tok::BlockEnd | Tok::Op(")"))
    }

    /// Parses an expression, or several with commas between them as a tuple.
    pub(super) fn tuple(&mut self, with_condition: bool, brackets: bool) -> Result<Expr> {
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

    pub(super) fn postfix(&mut self, mut node: Expr) -> Result<Expr> {
        loop {
            node = match self.tok() {
                Tok::Op("." | "[") => self.subscript(node)?,
                Tok::Op("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    pub(super) fn filter_expr(&mut self, mut node: Expr) -> Result<Expr> {
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

    pub(super) fn subscript(&mut self, node: Expr) -> Result<Expr> {
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

    pub(super) fn subscribed(&mut self) -> Result<Expr> {
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

    pub(super) fn call(&mut self, node: Expr) -> Result<Expr> {
        let line = self.line();
        let args = self.call_args()?;
        self.expr(line, Kind::Call(Box::new(node), Box::new(args)))
    }

    pub(super) fn call_args(&mut self) -> Result<CallArgs> {
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
    pub(super) fn filters(&mut self, node: Option<Expr>, inline: bool) -> Result<Option<Expr>> {
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

    pub(super) fn dotted_name(&mut self) -> Result<SmolStr> {
        let mut name = self.expect_name()?;
        while self.skip_op(".")? {
            name = format!("{name}.{}", self.expect_name()?).into();
        }
        Ok(name)
    }

    pub(super) fn test(&mut self, node: Expr) -> Result<Expr> {
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
