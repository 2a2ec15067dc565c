//! What people read about a function: `sys.doc`, `-d`, and the usage after a wrong call.
//!
//! It is made of the declaration: the doc comment, what each argument is, and how it is called. An
//! example in the doc comment (a `console` block) is shown as it stands; where there is none, the
//! line that shows the call is made from the arguments, so it cannot be wrong.

use std::fmt::Write as _;

use crate::{Function, Param};

/// As many optional arguments are written out; the others are listed above anyway.
const SHOWN: usize = 3;

impl Function {
    /// Returns the help text; `program` is what stands before the name, as in `salt '*'`.
    pub fn help(&self, program: &str, name: &str) -> String {
        let (about, example) = split(self.doc);
        let mut text = about.trim().to_owned();
        for param in self.params.iter().filter(|param| !param.doc.trim().is_empty()) {
            let _ = write!(text, "\n\n{}", param.name);
            for line in param.doc.trim().lines() {
                let _ = write!(text, "\n    {}", line.trim());
            }
        }
        text.push_str("\n\nCLI Example:\n");
        if example.is_empty() {
            let _ = write!(text, "\n    {program} {name}{}", usage(self.params));
        }
        // The example of a function that has another name here shows that name.
        let own = name.rsplit_once('.').map(|(module, _)| format!("{module}.{}", self.own_name));
        let own = own.filter(|_| self.own_name != self.name);
        for line in example {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = match &own {
                Some(own) => line.replacen(own.as_str(), name, 1),
                None => line.to_owned(),
            };
            let _ = write!(text, "\n    {line}");
        }
        text
    }
}

/// Takes the lines of the `console` blocks out of a doc comment.
fn split(doc: &str) -> (String, Vec<&str>) {
    let (mut about, mut example, mut inside) = (String::new(), Vec::new(), false);
    for line in doc.lines() {
        let line = line.strip_prefix(' ').unwrap_or(line);
        match (inside, line.trim()) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, _) => example.push(line),
            (false, _) => {
                about.push_str(line);
                about.push('\n');
            }
        }
    }
    (about, example)
}

/// Writes the arguments of a call: those it needs, then some of those it may have.
fn usage(params: &[Param]) -> String {
    let mut text = String::new();
    for param in params.iter().filter(|param| param.default.is_none() && !param.rest) {
        let _ = write!(text, " <{}>", param.name);
    }
    let optional: Vec<_> = params.iter().filter(|param| param.default.is_some()).collect();
    for param in optional.iter().take(SHOWN) {
        let _ = write!(text, " [{}=…]", param.name);
    }
    if optional.len() > SHOWN || params.iter().any(|param| param.rest) {
        text.push_str(" […]");
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::{Cx, Rest, Result, function};

    /// Count things.
    ///
    /// In any unit.
    #[function]
    fn count(
        _: &Cx,
        /// Which.
        things: String,
        /// In what.
        unit: Option<String>,
        more: Rest,
    ) -> Result<bool> {
        let _ = (things, unit, more);
        Ok(true)
    }

    /// Count all.
    ///
    /// ```console
    /// $ salt-run shelf.all now=True
    /// ```
    #[function]
    fn all(_: &Cx, now: bool) -> Result<bool> {
        Ok(now)
    }

    #[test]
    fn a_call_is_shown() {
        let expected = "Count things.\n\nIn any unit.\n\nthings\n    Which.\n\nunit\n    In what.\n\n\
                        CLI Example:\n\n    salt '*' shelf.count <things> [unit=…] […]";
        assert_eq!(count::SPEC.help("salt '*'", "shelf.count"), expected);
        let expected = "Count all.\n\nCLI Example:\n\n    salt-run shelf.all now=True";
        assert_eq!(all::SPEC.help("salt-run", "shelf.all"), expected);
    }

    #[test]
    fn another_name_is_shown_in_the_example() {
        let other = all::SPEC.named("every");
        assert!(other.help("salt-run", "shelf.every").ends_with("salt-run shelf.every now=True"));
    }
}
