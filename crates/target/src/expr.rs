//! Target expressions: from what the user wrote to something that can be evaluated.
//!
//! A compound target is a row of words: operands (`G@os:Debian`, or a bare glob), `and`, `or`,
//! `not`, and parentheses, each a word of its own. `not` binds tightest, then `and`, then `or`; a
//! `not` right after an operand means `and not`. What genuine Salt answers with "no minion" after
//! logging an error is an [`Error`] here; parts that merely can never match are kept as
//! [`Expr::problems`], because the rest of the target still counts.

use std::str::FromStr;

use halite_value::{Dict, SmolStr, Value, suggest};

use crate::{
    error::{Error, Kind},
    fnmatch::Glob,
    net::{Net, NotNet},
    nodegroup,
    path::{How, PathPattern},
    re::Regex,
};

/// The delimiter between the steps of a grain or pillar path when none is given.
pub const DELIMITER: &str = ":";

/// What a target is written in: Salt's `tgt_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetType {
    Glob,
    Pcre,
    List,
    Grain,
    GrainPcre,
    Pillar,
    PillarPcre,
    PillarExact,
    Ipcidr,
    Data,
    Nodegroup,
    Range,
    Compound,
    /// Compound, with pillar compared exactly: what a minion's mine request may use.
    CompoundPillarExact,
    Resource,
    ManagingMinion,
}

impl TargetType {
    pub const ALL: [(&'static str, Self); 16] = [
        ("glob", Self::Glob),
        ("pcre", Self::Pcre),
        ("list", Self::List),
        ("grain", Self::Grain),
        ("grain_pcre", Self::GrainPcre),
        ("pillar", Self::Pillar),
        ("pillar_pcre", Self::PillarPcre),
        ("pillar_exact", Self::PillarExact),
        ("ipcidr", Self::Ipcidr),
        ("data", Self::Data),
        ("nodegroup", Self::Nodegroup),
        ("range", Self::Range),
        ("compound", Self::Compound),
        ("compound_pillar_exact", Self::CompoundPillarExact),
        ("resource", Self::Resource),
        ("managing_minion", Self::ManagingMinion),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, own)| *own == self).map_or("glob", |(name, _)| name)
    }
}

impl FromStr for TargetType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some((_, kind)) = Self::ALL.iter().find(|(own, _)| *own == name) {
            return Ok(*kind);
        }
        let error = Error::new(Kind::Engine(format!("Unknown target type `{name}`")), name);
        Err(match suggest::nearest(name, Self::ALL.iter().map(|(name, _)| *name)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        })
    }
}

/// What else an expression depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    pub nodegroups: Option<&'a Dict>,
    /// For `grain` and `pillar` targets; inside a compound each operand names its own.
    pub delimiter: Option<&'a str>,
}

/// A target, ready to be matched.
#[derive(Debug)]
pub struct Expr {
    pub(crate) node: Node,
    problems: Vec<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bank {
    Grains,
    Pillar,
}

#[derive(Debug)]
pub(crate) enum Node {
    Glob(Glob),
    Pcre(Regex),
    List(Vec<SmolStr>),
    Path(Bank, PathPattern),
    Address(Net),
    Data {
        key: String,
        value: String,
    },
    /// `type` or `type:id`
    Resource(String, Option<String>),
    /// An exact id to a minion, a glob to the master.
    Managing(String),
    Never,
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

impl Expr {
    /// Parses a target: a text, or a list for the kinds that may be one.
    pub fn parse(
        target: &Value,
        target_type: TargetType,
        options: &Options<'_>,
    ) -> Result<Self, Error> {
        let mut parser = Parser { options, pillar_exact: false, problems: Vec::new() };
        let node = parser.target(target, target_type)?;
        Ok(Self { node, problems: parser.problems })
    }

    /// Returns a target as minions understand it: they know no nodegroups, so the groups' own words
    /// stand in their place. `None` if it names none.
    pub fn without_nodegroups(
        target: &Value,
        target_type: TargetType,
        options: &Options<'_>,
    ) -> Result<Option<String>, Error> {
        let parser = Parser { options, pillar_exact: false, problems: Vec::new() };
        let text = target.to_str();
        let words = match target_type {
            TargetType::Nodegroup => parser.nodegroup(&text, None)?,
            TargetType::Compound => {
                let words = split(&text);
                if !words.iter().any(|word| matches!(engine(&word.text), Some(('N', ..)))) {
                    return Ok(None);
                }
                parser.expanded(words)?
            }
            _ => return Ok(None),
        };
        let texts: Vec<String> = words.into_iter().map(|word| word.text).collect();
        Ok(Some(texts.join(" ")))
    }

    /// Parses a text.
    pub fn of(target: &str, target_type: TargetType) -> Result<Self, Error> {
        Self::parse(&Value::str(target), target_type, &Options::default())
    }

    /// Returns what is wrong with parts that can therefore never match.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }
}

struct Parser<'a> {
    options: &'a Options<'a>,
    pillar_exact: bool,
    problems: Vec<Error>,
}

/// A word of a compound target.
#[derive(Clone, Debug)]
struct Word {
    text: String,
    /// The character at which it (or the nodegroup it came from) stands.
    at: Option<usize>,
}

impl Parser<'_> {
    fn target(&mut self, target: &Value, target_type: TargetType) -> Result<Node, Error> {
        use TargetType as T;
        match target_type {
            T::List => return Ok(list(target)),
            T::CompoundPillarExact => {
                self.pillar_exact = true;
                return self.compound(target);
            }
            T::Compound => return self.compound(target),
            _ => {}
        }
        let text = match target {
            Value::Str(text) => text.as_str(),
            Value::Null => "",
            other => {
                let why = format!(
                    "a {} target is a text, not a {}",
                    target_type.name(),
                    other.type_name()
                );
                return Err(Error::new(Kind::Type(why), other.repr()));
            }
        };
        let delimiter = self.options.delimiter.unwrap_or(DELIMITER);
        Ok(match target_type {
            T::Glob => Node::Glob(Glob::new(text)),
            T::Pcre => pcre(text, text, None)?,
            T::Grain => self.path(Bank::Grains, text, delimiter, How::Glob, None),
            T::GrainPcre => self.path(Bank::Grains, text, delimiter, How::Regex, None),
            T::Pillar => self.path(Bank::Pillar, text, delimiter, How::Glob, None),
            T::PillarPcre => self.path(Bank::Pillar, text, delimiter, How::Regex, None),
            T::PillarExact => self.path(Bank::Pillar, text, delimiter, How::Exact, None),
            T::Ipcidr => self.address(text, None),
            T::Data => match text.split(':').collect::<Vec<_>>()[..] {
                [key, value, ..] => Node::Data { key: key.into(), value: value.into() },
                _ => self.never(Error::new(Kind::NoDelimiter(text.into()), text)),
            },
            T::Nodegroup => {
                let words = self.nodegroup(text, None)?;
                self.words(words, &format!("N@{text}"))?
            }
            T::Range => return Err(Error::new(Kind::Range, text)),
            T::Resource => resource(text),
            T::ManagingMinion => Node::Managing(text.into()),
            T::List | T::Compound | T::CompoundPillarExact => Node::Never,
        })
    }

    fn never(&mut self, problem: Error) -> Node {
        self.problems.push(problem);
        Node::Never
    }

    fn path(
        &mut self,
        bank: Bank,
        text: &str,
        delimiter: &str,
        how: How,
        at: Option<usize>,
    ) -> Node {
        let pattern = PathPattern::new(text, delimiter, how);
        if !pattern.has_value() {
            let problem = Error::new(Kind::NoDelimiter(text.into()), text).at(at);
            return self.never(problem.hint(format!("write `{text}{delimiter}value`")));
        }
        if how == How::Regex
            && let Some(last) = text.rsplit(delimiter).next()
            && let Err(why) = Regex::new(last)
        {
            self.problems.push(Error::new(Kind::Regex(why), text).at(at));
        }
        Node::Path(bank, pattern)
    }

    fn address(&mut self, text: &str, at: Option<usize>) -> Node {
        match text.parse() {
            Ok(net) => Node::Address(net),
            Err(why) => {
                let problem = Error::new(Kind::Address(text.into()), text).at(at);
                self.never(match why {
                    NotNet::HostBits(meant) => problem
                        .hint(format!("a network has no host bits set: did you mean {meant}?")),
                    NotNet::Syntax => problem,
                })
            }
        }
    }

    fn nodegroup(&self, name: &str, at: Option<usize>) -> Result<Vec<Word>, Error> {
        let none = Dict::new();
        let groups = self.options.nodegroups.unwrap_or(&none);
        let words = nodegroup::expand(name, groups).map_err(|error| error.at(at))?;
        Ok(words.into_iter().map(|text| Word { text, at }).collect())
    }

    fn compound(&mut self, target: &Value) -> Result<Node, Error> {
        match target {
            Value::Str(text) => self.words(split(text), text),
            Value::List(_) | Value::Tuple(_) => {
                let items = target.items_of_sequence().unwrap_or_default();
                let texts: Vec<String> =
                    items.iter().map(|item| item.to_str().to_string()).collect();
                let whole = texts.join(" ");
                self.words(texts.into_iter().map(|text| Word { text, at: None }).collect(), &whole)
            }
            other => {
                let why = format!("a compound target is a text or a list, not {}", other.repr());
                Err(Error::new(Kind::Type(why), other.repr()))
            }
        }
    }

    fn words(&mut self, words: Vec<Word>, whole: &str) -> Result<Node, Error> {
        let words = self.expanded(words)?;
        let mut reader = Words { words: &words, next: 0, whole, parser: self, depth: 0 };
        let node = reader.or()?;
        match reader.peek() {
            None => Ok(node),
            Some(")") => Err(reader.error("unexpected right parenthesis")),
            Some(_) => Err(reader.side_by_side()),
        }
    }

    /// Puts the words of nodegroups in the place of their names.
    fn expanded(&self, words: Vec<Word>) -> Result<Vec<Word>, Error> {
        let mut expanded = Vec::with_capacity(words.len());
        for word in words {
            match engine(&word.text) {
                Some(('N', _, name)) => expanded.extend(self.nodegroup(name, word.at)?),
                _ => expanded.push(word),
            }
        }
        Ok(expanded)
    }

    fn operand(&mut self, word: &Word, whole: &str) -> Result<Node, Error> {
        let Some((letter, delimiter, pattern)) = engine(&word.text) else {
            if let [letter @ b'A'..=b'Z', b'@', ..] = word.text.as_bytes() {
                let letter = char::from(*letter);
                let why = format!("`{letter}@` is no target engine, so `{}` is a glob", word.text);
                self.problems.push(Error::new(Kind::Engine(why), whole).at(word.at));
            }
            return Ok(Node::Glob(Glob::new(&word.text)));
        };
        let delimiter = delimiter.map_or_else(|| DELIMITER.to_owned(), String::from);
        let pillar = |how| if self.pillar_exact { How::Exact } else { how };
        Ok(match letter {
            'G' => self.path(Bank::Grains, pattern, &delimiter, How::Glob, word.at),
            'P' => self.path(Bank::Grains, pattern, &delimiter, How::Regex, word.at),
            'I' => self.path(Bank::Pillar, pattern, &delimiter, pillar(How::Glob), word.at),
            'J' => self.path(Bank::Pillar, pattern, &delimiter, pillar(How::Regex), word.at),
            'L' => list(&Value::str(pattern)),
            'S' => self.address(pattern, word.at),
            'E' => pcre(pattern, whole, word.at)?,
            'T' => resource(pattern),
            'M' => Node::Managing(pattern.into()),
            'R' => return Err(Error::new(Kind::Range, whole).at(word.at)),
            // A nodegroup that names a list holding `N@…` in a way expansion does not see.
            _ => return Err(Error::new(Kind::Nodegroup(format!("stray `{}`", word.text)), whole)),
        })
    }
}

/// Reads words by precedence.
struct Words<'a, 'b, 'c> {
    words: &'a [Word],
    next: usize,
    whole: &'a str,
    parser: &'b mut Parser<'c>,
    depth: usize,
}

/// Parentheses nested deeper than this are refused; the stack is finite.
const MAX_DEPTH: usize = 100;

impl Words<'_, '_, '_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(|word| word.text.as_str())
    }

    fn error(&self, why: &str) -> Error {
        let at = match self.words.get(self.next) {
            Some(word) => word.at,
            None => Some(self.whole.trim_end().chars().count()),
        };
        Error::new(Kind::Compound(why.to_owned()), self.whole).at(at)
    }

    /// The error where an operator ought to stand; a word that is nearly one was meant as one.
    fn side_by_side(&self) -> Error {
        let word = self.peek().unwrap_or_default();
        let near = ["and", "or"].into_iter().find(|meant| suggest::is_one_slip(word, meant));
        let error = self.error("two operands side by side");
        match near {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("put `and` or `or` between"),
        }
    }

    fn or(&mut self) -> Result<Node, Error> {
        let mut nodes = vec![self.and()?];
        while self.peek() == Some("or") {
            self.next += 1;
            nodes.push(self.and()?);
        }
        Ok(one_or(nodes, Node::Or))
    }

    fn and(&mut self) -> Result<Node, Error> {
        let mut nodes = vec![self.not()?];
        loop {
            match self.peek() {
                Some("and") => self.next += 1,
                Some("not") => {}
                _ => return Ok(one_or(nodes, Node::And)),
            }
            nodes.push(self.not()?);
        }
    }

    fn not(&mut self) -> Result<Node, Error> {
        if self.peek() != Some("not") {
            return self.primary();
        }
        self.next += 1;
        if self.peek() == Some("not") {
            return Err(self.error("`not` after `not`").hint("write `not ( not … )`"));
        }
        Ok(Node::Not(Box::new(self.primary()?)))
    }

    fn primary(&mut self) -> Result<Node, Error> {
        let Some(word) = self.words.get(self.next) else {
            let why = if self.words.is_empty() { "it is empty" } else { "an operand is missing" };
            return Err(self.error(why));
        };
        match word.text.as_str() {
            "(" => self.parenthesis(),
            ")" => Err(self.error("unexpected right parenthesis")),
            "and" | "or" if self.next == 0 => Err(self.error("it begins with a binary operator")),
            "and" | "or" => Err(self.error("an operand is missing before this operator")),
            _ => {
                self.next += 1;
                self.parser.operand(word, self.whole)
            }
        }
    }

    fn parenthesis(&mut self) -> Result<Node, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("parentheses are nested too deeply"));
        }
        let open = self.words.get(self.next).and_then(|word| word.at);
        self.next += 1;
        if self.peek() == Some(")") {
            self.next += 1;
            return Ok(Node::Never);
        }
        self.depth += 1;
        let node = self.or()?;
        self.depth -= 1;
        // differs: genuine masters close what was left open, genuine minions match nothing then.
        match self.peek() {
            Some(")") => {
                self.next += 1;
                Ok(node)
            }
            Some(_) => Err(self.side_by_side()),
            None => Err(self.error("this parenthesis is not closed").at(open)),
        }
    }
}

fn one_or(mut nodes: Vec<Node>, make: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        Some(last) => {
            nodes.push(last);
            make(nodes)
        }
        None => Node::Never,
    }
}

/// Splits at white space, keeping where each word stands.
fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    for (at, c) in text.chars().enumerate() {
        if c.is_whitespace() {
            words.extend(word.take());
        } else {
            word.get_or_insert_with(|| Word { text: String::new(), at: Some(at) }).text.push(c);
        }
    }
    words.extend(word);
    words
}

/// Takes a word apart: `G!@a!b` is engine `G`, delimiter `!`, pattern `a!b`. `None` for a glob.
fn engine(word: &str) -> Option<(char, Option<char>, &str)> {
    let mut chars = word.chars();
    let letter = chars.next().filter(|letter| "GPIJLNSERTM".contains(*letter))?;
    let after_letter = chars.as_str();
    if "GPIJ".contains(letter)
        && let Some(delimiter) = chars.next().filter(|c| *c != '\n')
        && let Some(pattern) = chars.as_str().strip_prefix('@').filter(|rest| !rest.is_empty())
    {
        return Some((letter, Some(delimiter), pattern));
    }
    let pattern = after_letter.strip_prefix('@').filter(|rest| !rest.is_empty())?;
    Some((letter, None, pattern))
}

fn list(target: &Value) -> Node {
    Node::List(match target {
        Value::Str(text) => text.split(',').filter(|id| !id.is_empty()).map(SmolStr::new).collect(),
        other => {
            let items = other.items_of_sequence().unwrap_or_default();
            items.iter().map(Value::to_str).collect()
        }
    })
}

fn pcre(pattern: &str, whole: &str, at: Option<usize>) -> Result<Node, Error> {
    let error = |why| Error::new(Kind::Regex(why), whole).at(at);
    Regex::new(pattern).map(Node::Pcre).map_err(error)
}

fn resource(text: &str) -> Node {
    match text.split_once(':') {
        Some((kind, id)) => Node::Resource(kind.into(), Some(id.into())),
        None => Node::Resource(text.into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, expected: &str) {
        let error = Expr::of(target, TargetType::Compound).expect_err("invalid");
        assert_eq!(error.pointed(), expected);
    }

    #[test]
    fn minions_are_told_no_nodegroups() {
        let groups = halite_value::entries! {
            "web" => "L@w1,w2 or N@edge", "edge" => halite_value::list!["E@e.*", "and", "G@os:Debian"],
        };
        let options = Options { nodegroups: Some(&groups), delimiter: None };
        let wire = |text: &str, kind| {
            Expr::without_nodegroups(&text.into(), kind, &options)
                .map_err(|error| error.to_string())
        };
        let expanded = wire("web", TargetType::Nodegroup).unwrap().unwrap();
        assert!(!expanded.contains("N@") && expanded.contains("G@os:Debian"), "{expanded}");
        assert!(Expr::of(&expanded, TargetType::Compound).is_ok(), "{expanded}");
        let expanded = wire("x and not N@edge", TargetType::Compound).unwrap().unwrap();
        assert!(expanded.starts_with("x and not ") && !expanded.contains("N@"), "{expanded}");
        assert_eq!(wire("a or b", TargetType::Compound).unwrap(), None);
        assert_eq!(wire("a", TargetType::Glob).unwrap(), None);
        assert!(wire("nosuch", TargetType::Nodegroup).is_err());
    }

    #[test]
    fn errors_point() {
        check(
            "web1 web2",
            "Invalid compound target: web1 web2: two operands side by side\n  web1 web2\n       ^\n\
             help: put `and` or `or` between",
        );
        check(
            "web1 adn web2",
            "Invalid compound target: web1 adn web2: two operands side by side\n  web1 adn web2\n       \
             ^\nhelp: did you mean `and`?",
        );
        check(
            "( web1 or web2",
            "Invalid compound target: ( web1 or web2: this parenthesis is not closed\n  \
             ( web1 or web2\n  ^",
        );
        check(
            "web1 and",
            "Invalid compound target: web1 and: an operand is missing\n  web1 and\n          ^",
        );
        check(
            "web1 or R@%x",
            "Range matcher unavailable: range targets need a range server, which is not supported\n  \
             web1 or R@%x\n          ^",
        );
        check("", "Invalid compound target: : it is empty\n  \n  ^");
    }

    #[test]
    fn misspelt_names_get_a_suggestion() {
        let groups = Dict::new();
        groups.insert("webservers", "web*");
        let options = Options { nodegroups: Some(&groups), delimiter: None };
        let error = Expr::parse(&Value::str("N@webserver"), TargetType::Compound, &options);
        assert_eq!(
            error.expect_err("unknown").to_string(),
            "Failed nodegroup expansion: unknown nodegroup \"webserver\"; did you mean `webservers`?"
        );
        let error = "grian".parse::<TargetType>().expect_err("unknown");
        assert_eq!(error.to_string(), "Unknown target type `grian`; did you mean `grain`?");
    }

    #[test]
    fn parts_that_never_match_are_told() {
        let expr = Expr::of("S@10.0.0.5/24 or G@os or X@y", TargetType::Compound).expect("valid");
        let told: Vec<_> = expr.problems().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].ends_with("did you mean 10.0.0.0/24?"), "{}", told[0]);
    }

    #[test]
    fn deep_parentheses_are_refused() {
        let deep = format!("{} a {}", "( ".repeat(50_000), ") ".repeat(50_000));
        assert!(Expr::of(&deep, TargetType::Compound).is_err());
    }
}
