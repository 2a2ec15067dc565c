//! `salt_version`: the release of Salt by its code name.
//!
//! Releases are named after the chemical elements in their order. What is compared is the release of
//! Salt this program stands in for.

use std::cmp::Ordering;

use halite_spec::{Cx, Result, function, module};

module! {
    /// The release of Salt by its code name.
    "salt_version": get_release_number, equal, greater_than, less_than,
}

/// The years before releases were counted.
const OLD: [(&str, &str); 9] = [
    ("hydrogen", "2014.1"),
    ("helium", "2014.7"),
    ("lithium", "2015.5"),
    ("beryllium", "2015.8"),
    ("boron", "2016.3"),
    ("carbon", "2016.11"),
    ("nitrogen", "2017.7"),
    ("oxygen", "2018.3"),
    ("fluorine", "2019.2"),
];

/// From 3000 on, one by one.
const NEW: &[&str] = &[
    "neon",
    "sodium",
    "magnesium",
    "aluminium",
    "silicon",
    "phosphorus",
    "sulfur",
    "chlorine",
    "argon",
    "potassium",
    "calcium",
    "scandium",
    "titanium",
    "vanadium",
    "chromium",
    "manganese",
    "iron",
    "cobalt",
    "nickel",
    "copper",
    "zinc",
    "gallium",
    "germanium",
    "arsenic",
    "selenium",
    "bromine",
    "krypton",
    "rubidium",
    "strontium",
    "yttrium",
    "zirconium",
    "niobium",
    "molybdenum",
    "technetium",
    "ruthenium",
    "rhodium",
    "palladium",
    "silver",
    "cadmium",
    "indium",
    "tin",
    "antimony",
    "tellurium",
    "iodine",
    "xenon",
];

/// The release we stand in for.
const OWN: u32 = 3008;

fn number(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    if let Some((_, number)) = OLD.iter().find(|(own, _)| *own == name) {
        return Some((*number).to_owned());
    }
    let at = NEW.iter().position(|own| *own == name)?;
    Some((3000 + at).to_string())
}

/// How our release compares with a named one; nothing when there is no such name.
fn compared(name: &str) -> Option<Ordering> {
    let number = number(name)?;
    // The old ones are years, and every year is below 3000.
    let major: u32 = number.split('.').next().and_then(|major| major.parse().ok())?;
    Some(OWN.cmp(&major))
}

/// Return the number of a release, or nothing.
///
/// ```console
/// $ salt web1 salt_version.get_release_number Argon
/// ```
#[function]
pub fn get_release_number(
    _cx: &Cx,
    /// The code name.
    name: String,
) -> Result<Option<String>> {
    Ok(number(&name))
}

/// Tell whether this is a release.
///
/// ```console
/// $ salt web1 salt_version.equal Argon
/// ```
#[function]
pub fn equal(
    _cx: &Cx,
    /// The code name.
    name: String,
) -> Result<bool> {
    Ok(compared(&name) == Some(Ordering::Equal))
}

/// Tell whether this is a later release than another.
///
/// ```console
/// $ salt web1 salt_version.greater_than Argon
/// ```
#[function]
pub fn greater_than(
    _cx: &Cx,
    /// The code name.
    name: String,
) -> Result<bool> {
    Ok(compared(&name) == Some(Ordering::Greater))
}

/// Tell whether this is an earlier release than another.
///
/// ```console
/// $ salt web1 salt_version.less_than Argon
/// ```
#[function]
pub fn less_than(
    _cx: &Cx,
    /// The code name.
    name: String,
) -> Result<bool> {
    Ok(compared(&name) == Some(Ordering::Less))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_numbers() {
        assert_eq!(number("Argon").as_deref(), Some("3008"));
        assert_eq!(number("Oxygen").as_deref(), Some("2018.3"));
        assert_eq!(number("Nope"), None);
        assert_eq!(compared("Chlorine"), Some(Ordering::Greater));
        assert_eq!(compared("Potassium"), Some(Ordering::Less));
    }
}
