//! "Did you mean": the nearest known word to a misspelt one.

/// Returns the candidate most like `word`, if any is near enough to be a plausible slip.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        n => n / 3,
    };
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the line that helps with a misspelt word, for the end of a message; empty if none is near.
pub fn help<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(word, candidates);
    near.map(|near| format!("\n   = help: did you mean `{near}`?")).unwrap_or_default()
}

/// Tells whether a word differs from another by one edit.
pub fn is_one_slip(word: &str, meant: &str) -> bool {
    distance(word, meant) == 1
}

/// Counts edits between two words; a swap of neighbours is one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len().abs_diff(b.len()) > a.len().max(b.len()) / 2 + 1 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_slip() {
        let words = ["contents", "context", "source", "require", "managed"];
        for (slip, meant) in [
            ("contnts", "contents"),
            ("requre", "require"),
            ("managd", "managed"),
            ("sorce", "source"),
        ] {
            assert_eq!(nearest(slip, words), Some(meant));
        }
        assert_eq!(nearest("zebra", words), None);
        assert!(is_one_slip("unles", "unless") && is_one_slip("run_as", "runas"));
        assert!(!is_one_slip("unless", "unless") && !is_one_slip("unls", "unless"));
    }
}
