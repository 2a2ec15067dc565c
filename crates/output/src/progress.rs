//! `progress`: how many minions have answered so far, as a bar on one line.
//!
//! The data is a count, `{"minion_count": 4, "return_count": 1}`; the program redraws the line. A
//! real return is left to `nested`, as genuine Salt leaves it.

use std::fmt::Write as _;

use halite_value::Value;

use crate::{Style, Unfit};

const BAR: usize = 40;

pub(crate) fn render(ret: &Value, _: &Style, out: &mut String) -> Result<(), Unfit> {
    let count = |name| ret.get(name).and_then(|value| value.to_int()).map(|n| n.max(0));
    let total = count("minion_count").ok_or(Unfit)?;
    let done = count("return_count").unwrap_or(0);
    // Minions behind a syndic are not in the count of the master of masters.
    let total = total.max(done);
    let share = if total == 0 { 1.0 } else { done as f64 / total as f64 };
    let filled = (share * BAR as f64) as usize;
    write!(
        out,
        "{:>3}% |{}{}| Returns: [{done}/{total}]",
        (share * 100.0) as i64,
        "#".repeat(filled),
        " ".repeat(BAR.saturating_sub(filled))
    )
    .map_err(|_| Unfit)
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn a_quarter() {
        let mut out = String::new();
        let ret = dict! { "minion_count" => 4, "return_count" => 1 };
        render(&ret, &Style::default(), &mut out).expect("a count");
        assert_eq!(out, format!(" 25% |{}{}| Returns: [1/4]", "#".repeat(10), " ".repeat(30)));
        assert_eq!(render(&dict! { "m" => true }, &Style::default(), &mut out), Err(Unfit));
    }
}
