//! A block between two marker lines: `file.blockreplace`.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function};
use halite_value::Value;

use super::{
    diff,
    paths::expand_user,
    regex::Re,
    replace::{Backup, bad_pattern, binary_refused, commit},
    text::{decode, is_binary, utf8},
};

/// The block and where it goes.
#[derive(Clone, Debug)]
pub struct Block {
    pub marker_start: String,
    pub marker_end: String,
    pub content: String,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    /// `None`: only if the content has no line end of its own.
    pub append_newline: Option<bool>,
    pub insert_before_match: Option<String>,
    pub insert_after_match: Option<String>,
}

impl Block {
    /// Checks what needs no file.
    pub fn check(&self) -> Result<()> {
        let ways = [
            self.append_if_not_found,
            self.prepend_if_not_found,
            self.insert_before_match.is_some(),
            self.insert_after_match.is_some(),
        ];
        if ways.into_iter().filter(|way| *way).count() > 1 {
            return Err(Error::invalid(
                "Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and \
                 insert_after_match is permitted",
            ));
        }
        Ok(())
    }

    /// The lines of the block; the start marker only where it is not there already.
    fn lines(&self, line_end: &str, with_start: bool, last: &str) -> Vec<String> {
        let newline = match self.append_newline {
            Some(given) => given,
            None => !self.content.ends_with('\n'),
        };
        let mut lines = Vec::new();
        if with_start {
            lines.push(format!("{}{line_end}", self.marker_start));
        }
        let last = format!("{}{line_end}", last.trim_end_matches(['\r', '\n']));
        let content = self.content.replace("\r\n", "\n");
        let parts: Vec<&str> = content.split('\n').collect();
        for (at, part) in parts.iter().enumerate() {
            if at + 1 < parts.len() || newline {
                lines.push(format!("{part}{line_end}"));
            } else {
                lines.push(format!("{part}{last}"));
            }
        }
        if newline {
            lines.push(last);
        }
        lines
    }

    /// Returns the file's new lines.
    pub fn run(&self, old: &[String]) -> Result<Vec<String>> {
        self.check()?;
        let line_end = match old.first() {
            Some(line) if line.ends_with("\r\n") => "\r\n",
            _ => "\n",
        };
        let mut new: Vec<String> = Vec::new();
        let (mut inside, mut found) = (false, false);
        for line in old {
            if line.contains(&self.marker_start) {
                inside = true;
                new.push(line.clone());
            } else if inside {
                if let Some(at) = line.find(&self.marker_end) {
                    inside = false;
                    found = true;
                    new.extend(self.lines(line_end, false, &line[at..]));
                }
            } else {
                new.push(line.clone());
            }
        }
        if inside {
            return Err(Error::failed(
                "Unterminated marked block. End of file reached before marker_end.",
            ));
        }
        if found {
            return Ok(new);
        }
        let missing = || Error::failed("Cannot edit marked block. Markers were not found in file.");
        let block = self.lines(line_end, true, &self.marker_end);
        if self.prepend_if_not_found {
            new.splice(0..0, block);
        } else if self.append_if_not_found {
            if let Some(last) = new.last_mut()
                && !last.ends_with(line_end)
            {
                last.push_str(line_end);
            }
            new.extend(block);
        } else {
            let before = self.insert_before_match.as_deref();
            let expression = before.or(self.insert_after_match.as_deref()).ok_or_else(missing)?;
            let re = Re::new(expression, 0).map_err(bad_pattern)?;
            let mut at = None;
            for (index, line) in old.iter().enumerate() {
                if re.found_in(line).map_err(bad_pattern)? {
                    at = Some(index);
                    break;
                }
            }
            let at = at.ok_or_else(missing)? + usize::from(before.is_none());
            new.splice(at..at, block);
        }
        Ok(new)
    }

    /// Reads a file's lines, with their ends.
    pub fn read(cx: &Cx, path: &str) -> Result<Vec<String>> {
        if !cx.host.exists(Path::new(path))? {
            return Err(Error::invalid(format!("File not found: {path}")));
        }
        let content = cx.host.read(Path::new(path)).map_err(|error| {
            let words = Error::from(error).python_words();
            Error::failed(format!("Failed to read from {path}: {words}"))
        })?;
        if is_binary(&content[..content.len().min(2048)]) {
            return Err(binary_refused(path));
        }
        let content = utf8(content)?;
        let lines = super::text::byte_lines(content.as_bytes()).into_iter();
        Ok(lines.map(|line| decode(line).into_owned()).collect())
    }
}

/// Put a text between two marker lines of a file; returns the difference.
///
/// ```console
/// $ salt web1 file.blockreplace /srv/app/app.conf '# begin' '# end' 'port=8080'
/// ```
#[function]
pub fn blockreplace(
    cx: &Cx,
    /// The file.
    path: String,
    /// The line before the block.
    #[default("#-- start managed zone --".to_owned())]
    marker_start: String,
    /// The line after the block.
    #[default("#-- end managed zone --".to_owned())]
    marker_end: String,
    /// The text.
    #[default(String::new())]
    content: String,
    /// Add markers and block at the end if they are not there.
    #[default(false)]
    append_if_not_found: bool,
    /// Add markers and block at the start if they are not there.
    #[default(false)]
    prepend_if_not_found: bool,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
    /// Write nothing.
    #[default(false)]
    dry_run: bool,
    /// Return the difference, not only whether there is one.
    #[default(true)]
    show_changes: bool,
    /// End the text with a line end; None: if it has none.
    #[default(Value::Bool(false))]
    append_newline: Value,
    /// Add markers and block before the first line that matches, if they are not there.
    insert_before_match: Option<Value>,
    /// Add markers and block after the first line that matches, if they are not there.
    insert_after_match: Option<Value>,
) -> Result<Value> {
    let expression = |value: Option<Value>, name: &str| match value.filter(Value::truthy) {
        None => Ok(None),
        Some(Value::Str(text)) => Ok(Some(text.to_string())),
        Some(_) => Err(Error::failed(format!("RegEx expected in {name} parameter."))),
    };
    let block = Block {
        marker_start,
        marker_end,
        content,
        append_if_not_found,
        prepend_if_not_found,
        append_newline: (!append_newline.is_null()).then(|| append_newline.truthy()),
        insert_before_match: expression(insert_before_match, "insert_before_match")?,
        insert_after_match: expression(insert_after_match, "insert_after_match")?,
    };
    block.check()?;
    let path = expand_user(cx, &path);
    let old = Block::read(cx, &path)?;
    let new = block.run(&old)?;
    if old != new && !dry_run {
        commit(cx, &path, new.concat().as_bytes(), backup.0.as_deref())?;
    }
    Ok(if show_changes { diff::unified(&old, &new).into() } else { (old != new).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(content: &str) -> Block {
        Block {
            marker_start: "# start".into(),
            marker_end: "# end".into(),
            content: content.into(),
            append_if_not_found: false,
            prepend_if_not_found: false,
            append_newline: None,
            insert_before_match: None,
            insert_after_match: None,
        }
    }

    fn check(block: &Block, old: &str, new: &str) {
        let old: Vec<String> = old.split_inclusive('\n').map(str::to_owned).collect();
        assert_eq!(block.run(&old).unwrap().concat(), new);
    }

    #[test]
    fn blocks() {
        check(&block("x"), "a\n# start\nold\n# end\nb\n", "a\n# start\nx\n# end\nb\n");
        check(&block("x\n"), "# start\n# end\n", "# start\nx\n# end\n");
        let append = Block { append_if_not_found: true, ..block("x\ny") };
        check(&append, "a", "a\n# start\nx\ny\n# end\n");
        let prepend = Block { prepend_if_not_found: true, ..block("x") };
        check(&prepend, "a\n", "# start\nx\n# end\na\n");
        let after = Block { insert_after_match: Some("^a".into()), ..block("x") };
        check(&after, "a\nb\n", "a\n# start\nx\n# end\nb\n");
        let joined = Block { append_newline: Some(false), ..block("x") };
        check(&joined, "# start\n# end\n", "# start\nx# end\n");
        assert!(block("x").run(&["# start\n".to_owned()]).is_err());
    }
}
