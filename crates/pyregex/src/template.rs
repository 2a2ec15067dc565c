//! The replacement text of `re.sub`: `\1`, `\g<name>` and escapes.

use crate::{Error, Match};

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Group(usize),
}

/// A replacement text, ready to be filled in.
#[derive(Clone, Debug)]
pub struct Template(Vec<Part>);

impl Template {
    pub fn new(text: &str, groups: usize, names: &[(String, usize)]) -> Result<Self, Error> {
        let chars: Vec<char> = text.chars().collect();
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut at = 0;
        let group = |number: usize, position: usize, plain: &mut String, parts: &mut Vec<Part>| {
            if number > groups {
                return Err(Error::at(format!("invalid group reference {number}"), position));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(plain)));
            }
            parts.push(Part::Group(number));
            Ok(())
        };
        while at < chars.len() {
            if chars[at] != '\\' {
                plain.push(chars[at]);
                at += 1;
                continue;
            }
            let start = at;
            let Some(c) = chars.get(at + 1).copied() else {
                return Err(Error::at("bad escape (end of pattern)", start));
            };
            at += 2;
            match c {
                'g' => {
                    if chars.get(at) != Some(&'<') {
                        return Err(Error::at("missing <", at));
                    }
                    let Some(length) = chars[at + 1..].iter().position(|c| *c == '>') else {
                        return Err(Error::at("missing >, unterminated name", at + 1));
                    };
                    let name: String = chars[at + 1..at + 1 + length].iter().collect();
                    let position = at + 1;
                    at += length + 2;
                    if name.is_empty() {
                        return Err(Error::at("missing group name", position));
                    }
                    let number = match name.parse::<usize>() {
                        Ok(number) => number,
                        Err(_) => match names.iter().find(|(own, _)| *own == name) {
                            Some((_, number)) => *number,
                            // Python raises IndexError here.
                            None => {
                                return Err(Error::Refused(format!("unknown group name '{name}'")));
                            }
                        },
                    };
                    group(number, position, &mut plain, &mut parts)?;
                }
                '0' => {
                    let length =
                        chars[at..].iter().take(2).take_while(|c| ('0'..='7').contains(*c)).count();
                    plain.push(octal(&chars[at - 1..at + length]));
                    at += length;
                }
                '1'..='9' => {
                    let digit = |at: usize| chars.get(at).filter(|c| c.is_ascii_digit()).copied();
                    let octal_here = ('1'..='3').contains(&c)
                        && [at, at + 1].iter().all(|at| digit(*at).is_some_and(|c| c < '8'));
                    if octal_here {
                        plain.push(octal(&chars[at - 1..at + 2]));
                        at += 2;
                        continue;
                    }
                    let mut number = c.to_digit(10).unwrap_or(0) as usize;
                    if let Some(next) = digit(at) {
                        number = number * 10 + next.to_digit(10).unwrap_or(0) as usize;
                        at += 1;
                    }
                    group(number, start + 1, &mut plain, &mut parts)?;
                }
                '\\' => plain.push('\\'),
                'a' => plain.push('\x07'),
                'b' => plain.push('\x08'),
                'f' => plain.push('\x0c'),
                'n' => plain.push('\n'),
                'r' => plain.push('\r'),
                't' => plain.push('\t'),
                'v' => plain.push('\x0b'),
                c if c.is_ascii_alphabetic() => {
                    return Err(Error::at(format!("bad escape \\{c}"), start));
                }
                c => {
                    plain.push('\\');
                    plain.push(c);
                }
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }

    /// Appends the replacement for a match. A group that took no part is empty.
    pub fn expand(&self, found: &Match<'_>, out: &mut String) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => out.push_str(found.group(*group).unwrap_or_default()),
            }
        }
    }
}

fn octal(digits: &[char]) -> char {
    let text: String = digits.iter().collect();
    u32::from_str_radix(&text, 8).ok().and_then(|code| char::from_u32(code & 0xff)).unwrap_or('\0')
}
