//! Differences between two texts, the same hunks as Python's `difflib.unified_diff`.
//!
//! Salt prints these, and people compare them; another algorithm would give other hunks. So the
//! rules are Python's: the longest run of equal lines comes first (the leftmost of several), then
//! the same to its left and right; and in a text of 200 lines or more, a line that makes up more
//! than a hundredth of it does not begin such a run (it may lengthen one).
//!
//! Python's way is quadratic at worst. A budget of steps bounds it: what is left when it is spent
//! counts as changed as a whole, which is still a right answer, only a longer one.

use std::collections::HashMap;

/// Steps spent on one comparison before the rest counts as changed.
const BUDGET: u64 = 400_000_000;

/// One run of equal lines: where it begins in each text, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    a: usize,
    b: usize,
    size: usize,
}

/// A piece of the way from one text to the other: lines `a` become lines `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

struct Matcher<'x> {
    a: &'x [u32],
    b: &'x [u32],
    /// Where each line stands in `b`; without those that are too frequent.
    places: Vec<Vec<usize>>,
    budget: u64,
}

impl<'x> Matcher<'x> {
    fn new(a: &'x [u32], b: &'x [u32], kinds: usize) -> Self {
        let mut places = vec![Vec::new(); kinds];
        for (at, &line) in b.iter().enumerate() {
            places[line as usize].push(at);
        }
        if b.len() >= 200 {
            let frequent = b.len() / 100 + 1;
            for list in &mut places {
                if list.len() > frequent {
                    list.clear();
                }
            }
        }
        Self { a, b, places, budget: BUDGET }
    }

    /// Finds the longest run within two ranges.
    fn longest(&mut self, a: (usize, usize), b: (usize, usize)) -> Run {
        let mut best = Run { a: a.0, b: b.0, size: 0 };
        // Lengths of the runs that end in the line before, by their place in `b`.
        let mut ending: HashMap<usize, usize> = HashMap::new();
        let mut next: HashMap<usize, usize> = HashMap::new();
        for i in a.0..a.1 {
            let all = &self.places[self.a[i] as usize];
            let from = all.partition_point(|&j| j < b.0);
            let mut steps = 1;
            for &j in all[from..].iter().take_while(|&&j| j < b.1) {
                steps += 1;
                let before = if j == 0 { 0 } else { ending.get(&(j - 1)).copied().unwrap_or(0) };
                let size = before + 1;
                next.insert(j, size);
                if size > best.size {
                    best = Run { a: i + 1 - size, b: j + 1 - size, size };
                }
            }
            std::mem::swap(&mut ending, &mut next);
            next.clear();
            self.budget = self.budget.saturating_sub(steps);
            if self.budget == 0 {
                break;
            }
        }
        // Frequent lines do not begin a run, but they lengthen it.
        while best.a > a.0 && best.b > b.0 && self.a[best.a - 1] == self.b[best.b - 1] {
            best = Run { a: best.a - 1, b: best.b - 1, size: best.size + 1 };
        }
        while best.a + best.size < a.1
            && best.b + best.size < b.1
            && self.a[best.a + best.size] == self.b[best.b + best.size]
        {
            best.size += 1;
        }
        best
    }

    fn runs(&mut self) -> Vec<Run> {
        let mut found = Vec::new();
        let mut pending = vec![((0, self.a.len()), (0, self.b.len()))];
        while let Some((a, b)) = pending.pop() {
            if self.budget == 0 {
                continue;
            }
            let run = self.longest(a, b);
            if run.size == 0 {
                continue;
            }
            found.push(run);
            if a.0 < run.a && b.0 < run.b {
                pending.push(((a.0, run.a), (b.0, run.b)));
            }
            if run.a + run.size < a.1 && run.b + run.size < b.1 {
                pending.push(((run.a + run.size, a.1), (run.b + run.size, b.1)));
            }
        }
        found.sort_unstable();
        // Neighbours are one run.
        let mut joined: Vec<Run> = Vec::new();
        for run in found {
            match joined.last_mut() {
                Some(last) if last.a + last.size == run.a && last.b + last.size == run.b => {
                    last.size += run.size;
                }
                _ => joined.push(run),
            }
        }
        joined.push(Run { a: self.a.len(), b: self.b.len(), size: 0 });
        joined
    }

    fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        let (mut i, mut j) = (0, 0);
        for run in self.runs() {
            if i < run.a || j < run.b {
                steps.push(Step { equal: false, a: (i, run.a), b: (j, run.b) });
            }
            (i, j) = (run.a + run.size, run.b + run.size);
            if run.size > 0 {
                steps.push(Step { equal: true, a: (run.a, i), b: (run.b, j) });
            }
        }
        steps
    }
}

/// Cuts the steps into hunks with up to `around` equal lines on both sides.
fn hunks(mut steps: Vec<Step>, around: usize) -> Vec<Vec<Step>> {
    if steps.is_empty() {
        return Vec::new();
    }
    if let Some(first) = steps.first_mut()
        && first.equal
    {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(around));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(around));
    }
    if let Some(last) = steps.last_mut()
        && last.equal
    {
        last.a.1 = last.a.1.min(last.a.0 + around);
        last.b.1 = last.b.1.min(last.b.0 + around);
    }
    let mut hunks = Vec::new();
    let mut hunk: Vec<Step> = Vec::new();
    for step in steps {
        let mut step = step;
        if step.equal && step.a.1 - step.a.0 > 2 * around {
            hunk.push(Step {
                equal: true,
                a: (step.a.0, step.a.1.min(step.a.0 + around)),
                b: (step.b.0, step.b.1.min(step.b.0 + around)),
            });
            hunks.push(std::mem::take(&mut hunk));
            step.a.0 = step.a.0.max(step.a.1.saturating_sub(around));
            step.b.0 = step.b.0.max(step.b.1.saturating_sub(around));
        }
        hunk.push(step);
    }
    if !(hunk.is_empty() || hunk.len() == 1 && hunk[0].equal) {
        hunks.push(hunk);
    }
    hunks
}

fn range_text((start, stop): (usize, usize)) -> String {
    match stop - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// What the header says, the hunk lines end with, and how much is shown.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'x> {
    pub from: &'x str,
    pub to: &'x str,
    pub line_end: &'x str,
    /// Lines shown around each change.
    pub around: usize,
}

impl Default for Layout<'_> {
    fn default() -> Self {
        Self { from: "", to: "", line_end: "\n", around: 3 }
    }
}

/// Returns the lines of a unified diff; none if equal.
pub fn unified_lines<L: AsRef<str>>(a: &[L], b: &[L], layout: Layout<'_>) -> Vec<String> {
    let mut kinds: HashMap<&str, u32> = HashMap::new();
    let mut ids = Vec::with_capacity(a.len() + b.len());
    for line in a.iter().chain(b) {
        let next = kinds.len() as u32;
        ids.push(*kinds.entry(line.as_ref()).or_insert(next));
    }
    let (left, right) = ids.split_at(a.len());
    let steps = Matcher::new(left, right, kinds.len()).steps();
    let mut out = Vec::new();
    for hunk in hunks(steps, layout.around) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let Layout { from, to, line_end, .. } = layout;
        if out.is_empty() {
            out.push(format!("--- {from}{line_end}"));
            out.push(format!("+++ {to}{line_end}"));
        }
        let from = range_text((first.a.0, last.a.1));
        let to = range_text((first.b.0, last.b.1));
        out.push(format!("@@ -{from} +{to} @@{line_end}"));
        for step in hunk {
            if step.equal {
                out.extend(a[step.a.0..step.a.1].iter().map(|line| format!(" {}", line.as_ref())));
                continue;
            }
            out.extend(a[step.a.0..step.a.1].iter().map(|line| format!("-{}", line.as_ref())));
            out.extend(b[step.b.0..step.b.1].iter().map(|line| format!("+{}", line.as_ref())));
        }
    }
    out
}

/// Returns the unified diff of lines that bring their own ends.
pub fn unified<L: AsRef<str>>(a: &[L], b: &[L]) -> String {
    unified_lines(a, b, Layout::default()).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &[&str], b: &[&str], expected: &str) {
        assert_eq!(unified(a, b), expected);
    }

    #[test]
    fn small_ones() {
        check(&[], &[], "");
        check(&["a\n"], &["a\n"], "");
        check(&["a\n"], &["b\n"], "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n");
        check(&[], &["b\n"], "--- \n+++ \n@@ -0,0 +1 @@\n+b\n");
        check(&["a\n", "b\n"], &["a\n"], "--- \n+++ \n@@ -1,2 +1 @@\n a\n-b\n");
    }

    #[test]
    fn a_spent_budget_is_a_longer_answer() {
        let (a, b) = (vec![0, 1, 2, 3], vec![3, 2, 1, 0]);
        let mut matcher = Matcher::new(&a, &b, 4);
        matcher.budget = 1;
        let steps = matcher.steps();
        let covered: usize = steps.iter().map(|step| step.a.1 - step.a.0).sum();
        assert_eq!(covered, 4);
    }
}
