//! `xml`: values and attributes in XML files.
//!
//! A small reader of documents without external entities (there is nothing to expand, and nothing
//! to fetch), the subset of XPath that Python's ElementTree understands and configuration trees
//! use, and a writer that, as ElementTree does, keeps neither declaration nor comments.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value};

module! {
    /// Values and attributes in XML files.
    "xml": get_value, set_value, get_attribute, set_attribute,
}

/// An element with everything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub tag: String,
    pub attributes: Vec<(String, String)>,
    /// Before the first child.
    pub text: String,
    pub children: Vec<Element>,
    /// Between this element and the next.
    pub tail: String,
}

impl Element {
    fn text_value(&self) -> Value {
        if self.text.is_empty() { Value::Null } else { self.text.as_str().into() }
    }

    /// As `http.query` decodes an element: `{tag: text}`, or its children by name.
    pub fn to_value(&self) -> Value {
        let ret = Dict::new();
        if self.children.is_empty() {
            ret.insert(self.tag.as_str(), self.text_value());
            return ret.into();
        }
        for child in &self.children {
            let name = child.tag.as_str();
            match ret.get(name) {
                // A quirk of Salt: from the second on they keep their name.
                Some(Value::List(list)) => list.push(child.to_value()),
                Some(first) => {
                    ret.insert(name, Value::list([first, child.to_value()]));
                }
                None if child.children.is_empty() => {
                    ret.insert(name, child.text_value());
                }
                None => {
                    ret.insert(name, child.to_value());
                }
            }
        }
        ret.into()
    }

    fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(&self.tag);
        for (name, value) in &self.attributes {
            let value = escaped(value).replace('"', "&quot;").replace('\n', "&#10;");
            out.push_str(&format!(" {name}=\"{value}\""));
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str(" />");
        } else {
            out.push('>');
            out.push_str(&escaped(&self.text));
            for child in &self.children {
                child.write(out);
            }
            out.push_str(&format!("</{}>", self.tag));
        }
        out.push_str(&escaped(&self.tail));
    }

    fn descendants<'a>(&'a self, found: &mut Vec<&'a Element>) {
        for child in &self.children {
            found.push(child);
            child.descendants(found);
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fail<T>(&self, what: &str) -> Result<T, String> {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        Err(format!("{what}: line {line}, column {column}"))
    }

    fn until(&mut self, end: &str) -> Result<&'a str, String> {
        match self.rest().find(end) {
            Some(length) => {
                let part = self.rest().get(..length).unwrap_or_default();
                self.at += length + end.len();
                Ok(part)
            }
            None => self.fail("unclosed token"),
        }
    }

    /// Steps over declarations, comments and a document type.
    fn skip_misc(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.rest();
            if rest.starts_with("<?") {
                self.until("?>")?;
            } else if rest.starts_with("<!--") {
                self.until("-->")?;
            } else if rest.starts_with("<!") {
                self.until(">")?;
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '>' | '=' | '<');
        let length = rest.find(ends).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn element(&mut self, depth: usize) -> Result<Element, String> {
        if !self.rest().starts_with('<') || depth > 500 {
            return self.fail("syntax error");
        }
        self.at += 1;
        let mut element = Element { tag: self.word().to_owned(), ..Element::default() };
        if element.tag.is_empty() {
            return self.fail("not well-formed (invalid token)");
        }
        loop {
            self.space();
            if self.rest().starts_with("/>") {
                self.at += 2;
                return Ok(element);
            }
            if self.rest().starts_with('>') {
                self.at += 1;
                break;
            }
            let name = self.word().to_owned();
            self.space();
            let Some(rest) = self.rest().strip_prefix('=').filter(|_| !name.is_empty()) else {
                return self.fail("not well-formed (invalid token)");
            };
            self.at += 1 + (rest.len() - rest.trim_start().len());
            let quote = if self.rest().starts_with('\'') { "'" } else { "\"" };
            if !self.rest().starts_with(quote) {
                return self.fail("not well-formed (invalid token)");
            }
            self.at += 1;
            let value = unescaped(self.until(quote)?);
            element.attributes.push((name, value));
        }
        self.content(&mut element, depth)?;
        Ok(element)
    }

    fn content(&mut self, element: &mut Element, depth: usize) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let mut add = |text: &str| match element.children.last_mut() {
                Some(child) => child.tail += text,
                None => element.text += text,
            };
            if let Some(rest) = rest.strip_prefix("</") {
                let Some(length) = rest.find('>') else { return self.fail("unclosed token") };
                if rest.get(..length).map(str::trim) != Some(element.tag.as_str()) {
                    return self.fail("mismatched tag");
                }
                self.at += length + 3;
                return Ok(());
            } else if rest.starts_with("<!--") {
                self.until("-->")?;
            } else if rest.starts_with("<![CDATA[") {
                self.at += 9;
                add(self.until("]]>")?);
            } else if rest.starts_with("<?") {
                self.until("?>")?;
            } else if rest.starts_with('<') {
                let child = self.element(depth + 1)?;
                element.children.push(child);
            } else if rest.is_empty() {
                return self.fail("no element found");
            } else {
                let length = rest.find('<').unwrap_or(rest.len());
                add(&unescaped(rest.get(..length).unwrap_or_default()));
                self.at += length;
            }
        }
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out += before;
        let known = after.split_once(';').and_then(|(name, after)| {
            let char = match name {
                "lt" => '<',
                "gt" => '>',
                "amp" => '&',
                "quot" => '"',
                "apos" => '\'',
                _ => {
                    let number = name.strip_prefix('#')?;
                    let code = match number.strip_prefix('x') {
                        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                        None => number.parse().ok()?,
                    };
                    char::from_u32(code)?
                }
            };
            Some((char, after))
        });
        match known {
            Some((char, after)) => {
                out.push(char);
                rest = after;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out + rest
}

/// Reads a document; the error says what and where, as Python's parser does.
pub fn parse(text: &str) -> Result<Element, String> {
    let mut reader = Reader { text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0 };
    reader.skip_misc()?;
    if reader.rest().is_empty() {
        return reader.fail("no element found");
    }
    let root = reader.element(0)?;
    reader.skip_misc()?;
    if reader.rest().is_empty() { Ok(root) } else { reader.fail("junk after document element") }
}

/// Finds the first element of a path: `./a/b`, `.//a`, `*`, `[@k]`, `[@k='v']`, `[2]`, `[tag='v']`.
fn find<'a>(root: &'a Element, path: &str) -> Option<&'a Element> {
    let mut now = vec![root];
    let mut deep = false;
    for step in path.split('/') {
        match step {
            "" => {
                deep = true;
                continue;
            }
            "." => continue,
            _ => {}
        }
        let (tag, tests) = step.split_once('[').unwrap_or((step, ""));
        let mut next: Vec<&Element> = Vec::new();
        for element in now {
            let mut own = Vec::new();
            if deep {
                element.descendants(&mut own);
            } else {
                own.extend(&element.children);
            }
            next.extend(own.into_iter().filter(|own| tag == "*" || own.tag == tag));
        }
        deep = false;
        for test in tests.split('[').filter(|test| !test.is_empty()) {
            let test = test.trim_end_matches(']');
            if let Ok(number) = test.parse::<usize>() {
                next = next.into_iter().skip(number.saturating_sub(1)).take(1).collect();
                continue;
            }
            next.retain(|element| fits(element, test));
        }
        now = next;
    }
    now.into_iter().next()
}

fn fits(element: &Element, test: &str) -> bool {
    let (name, value) = match test.split_once('=') {
        Some((name, value)) => (name, Some(value.trim_matches(['\'', '"']))),
        None => (test, None),
    };
    if let Some(name) = name.strip_prefix('@') {
        let mut own = element.attributes.iter().filter(|(own, _)| own == name);
        return own.any(|(_, own)| value.is_none_or(|value| own == value));
    }
    let mut own = element.children.iter().filter(|child| child.tag == name);
    own.any(|child| value.is_none_or(|value| child.text == value))
}

fn load(cx: &Cx, file: &str) -> Result<Element> {
    parse(&cx.host.read_text(Path::new(file))?).map_err(|text| Error::raised("ParseError", text))
}

fn change(cx: &Cx, file: &str, path: &str, change: &mut dyn FnMut(&mut Element)) -> Result<bool> {
    let root = load(cx, file)?;
    let Some(wanted) = find(&root, path) else {
        return Err(Error::failed(format!("no element matches {path} in {file}")));
    };
    let mut changed = root.clone();
    // The copy has the same shape: the element is found again by its place.
    let mut place = Vec::new();
    place_of(&root, wanted, &mut place);
    let mut at = &mut changed;
    for index in place {
        match at.children.get_mut(index) {
            Some(child) => at = child,
            None => return Ok(false),
        }
    }
    change(at);
    let mut out = String::new();
    changed.write(&mut out);
    cx.host.write(Path::new(file), out.as_bytes(), &Write::default())?;
    Ok(true)
}

fn place_of(root: &Element, wanted: &Element, place: &mut Vec<usize>) -> bool {
    if std::ptr::eq(root, wanted) {
        return true;
    }
    for (index, child) in root.children.iter().enumerate() {
        place.push(index);
        if place_of(child, wanted, place) {
            return true;
        }
        place.pop();
    }
    false
}

/// Return the text of an element, or False when there is none.
///
/// ```console
/// $ salt web1 xml.get_value /srv/app/app.xml .//server
/// ```
#[function]
pub fn get_value(
    cx: &Cx,
    /// The file.
    file: String,
    /// The path of the element, in XPath.
    element: String,
) -> Result<Value> {
    let root = load(cx, &file)?;
    Ok(find(&root, &element).map_or(Value::Bool(false), Element::text_value))
}

/// Set the text of an element.
///
/// ```console
/// $ salt web1 xml.set_value /srv/app/app.xml .//server db1
/// ```
#[function]
pub fn set_value(
    cx: &Cx,
    /// The file.
    file: String,
    /// The path of the element, in XPath.
    element: String,
    /// The text.
    value: String,
) -> Result<bool> {
    change(cx, &file, &element, &mut |element| element.text.clone_from(&value))
}

/// Return the attributes of an element, or False when there is none.
///
/// ```console
/// $ salt web1 xml.get_attribute /srv/app/app.xml .//server
/// ```
#[function]
pub fn get_attribute(
    cx: &Cx,
    /// The file.
    file: String,
    /// The path of the element, in XPath.
    element: String,
) -> Result<Value> {
    let root = load(cx, &file)?;
    Ok(find(&root, &element).map_or(Value::Bool(false), |element| {
        let ret = Dict::new();
        for (name, value) in &element.attributes {
            ret.insert(name.as_str(), value.as_str());
        }
        ret.into()
    }))
}

/// Set an attribute of an element.
///
/// ```console
/// $ salt web1 xml.set_attribute /srv/app/app.xml .//server port 8443
/// ```
#[function]
pub fn set_attribute(
    cx: &Cx,
    /// The file.
    file: String,
    /// The path of the element, in XPath.
    element: String,
    /// The attribute.
    key: String,
    /// Its value.
    value: String,
) -> Result<bool> {
    change(cx, &file, &element, &mut |element| match element
        .attributes
        .iter_mut()
        .find(|(name, _)| *name == key)
    {
        Some((_, own)) => own.clone_from(&value),
        None => element.attributes.push((key.clone(), value.clone())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- c -->\n\
        <root><a id=\"1\">t1</a><a id=\"2\"/><n><a id=\"3\">&lt;x</a>tail</n></root>\n";

    #[test]
    fn reads_and_writes_as_elementtree() {
        let root = parse(SAMPLE).unwrap();
        let mut out = String::new();
        root.write(&mut out);
        let expected =
            "<root><a id=\"1\">t1</a><a id=\"2\" /><n><a id=\"3\">&lt;x</a>tail</n></root>";
        assert_eq!(out, expected);
    }

    #[test]
    fn finds_by_path() {
        let root = parse(SAMPLE).unwrap();
        let id = |path: &str| find(&root, path).and_then(|e| Some(e.attributes.first()?.1.clone()));
        assert_eq!(id(".//a").as_deref(), Some("1"));
        assert_eq!(id(".//a[@id='2']").as_deref(), Some("2"));
        assert_eq!(id("./n/a").as_deref(), Some("3"));
        assert_eq!(id("a[2]").as_deref(), Some("2"));
        assert_eq!(id(".//zz"), None);
    }

    #[test]
    fn mistakes_are_placed() {
        assert_eq!(parse("a: 1").unwrap_err(), "syntax error: line 1, column 0");
        assert_eq!(parse("<a><b></a>").unwrap_err(), "mismatched tag: line 1, column 6");
        assert_eq!(parse("").unwrap_err(), "no element found: line 1, column 0");
    }

    #[test]
    fn decodes_as_http_query_does() {
        let root = parse("<r><a k=\"1\">t</a><b><c>1</c><c>2</c><d x=\"y\"/></b></r>").unwrap();
        let values: Vec<String> =
            root.children.iter().map(|child| child.to_value().repr()).collect();
        assert_eq!(values, ["{'a': 't'}", "{'c': ['1', {'c': '2'}], 'd': None}"]);
    }
}
