//! `keyboard`: the layout of the keyboard, on the console and in X.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};

use crate::file::text::read_to_edit_if_there;

module! {
    /// The layout of the keyboard.
    "keyboard": get_sys, set_sys, get_x, set_x,
}

/// The file that keeps the layout, and the name of the setting in it.
fn setting(cx: &Cx) -> (&'static str, &'static str) {
    match cx.grain_str("os_family").as_str() {
        "RedHat" => ("/etc/vconsole.conf", "KEYMAP"),
        "Debian" => ("/etc/default/keyboard", "XKBLAYOUT"),
        "Gentoo" => ("/etc/conf.d/keymaps", "keymap"),
        _ => ("/etc/sysconfig/keyboard", "LAYOUT"),
    }
}

fn checked(layout: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || ",-_()".contains(c);
    if !layout.is_empty() && !layout.starts_with('-') && layout.chars().all(fine) {
        return Ok(());
    }
    Err(Error::invalid(format!("'{layout}' cannot be a layout")))
}

/// Return the layout of the console.
///
/// ```console
/// $ salt web1 keyboard.get_sys
/// ```
#[function]
pub fn get_sys(cx: &Cx) -> Result<String> {
    let (file, name) = setting(cx);
    if cx.host.which("localectl").is_some() {
        let text = cx.host.run(&Command::line(["localectl"]).query())?.stdout_text();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("VC Keymap:"));
        if let Some(layout) =
            line.map(str::trim).filter(|layout| !layout.is_empty() && *layout != "n/a")
        {
            return Ok(layout.to_owned());
        }
    }
    let text = cx.host.read_text_if_there(Path::new(file))?.unwrap_or_default();
    let begin = format!("{name}=");
    let line = text.lines().find_map(|line| line.trim().strip_prefix(begin.as_str()));
    Ok(line.unwrap_or_default().trim_matches('"').to_owned())
}

/// Set the layout of the console.
///
/// ```console
/// $ salt web1 keyboard.set_sys de
/// ```
#[function]
pub fn set_sys(
    cx: &Cx,
    /// The layout.
    layout: String,
) -> Result<String> {
    checked(&layout)?;
    let (file, name) = setting(cx);
    if cx.host.which("localectl").is_some() {
        cx.host.run(&Command::line(["localectl", "set-keymap", &layout]))?;
        return Ok(layout);
    }
    let path = Path::new(file);
    let text = read_to_edit_if_there(cx, path)?.unwrap_or_default();
    let (mut new, mut placed) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        if line.starts_with(&format!("{name}=")) {
            new += &format!("{name}=\"{layout}\"\n");
            placed = true;
        } else {
            new += line;
        }
    }
    if !placed {
        new += &format!("{name}=\"{layout}\"\n");
    }
    cx.host.write(path, new.as_bytes(), &Write::default())?;
    Ok(layout)
}

/// Return the layout of X.
///
/// ```console
/// $ salt web1 keyboard.get_x
/// ```
#[function]
pub fn get_x(cx: &Cx) -> Result<String> {
    let text = cx.host.run(&Command::line(["setxkbmap", "-query"]).query())?.stdout_text();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("layout:"));
    Ok(line.map(str::trim).unwrap_or_default().to_owned())
}

/// Set the layout of X.
///
/// ```console
/// $ salt web1 keyboard.set_x de
/// ```
#[function]
pub fn set_x(
    cx: &Cx,
    /// The layout.
    layout: String,
) -> Result<String> {
    checked(&layout)?;
    cx.host.run(&Command::line(["setxkbmap", &layout]))?;
    Ok(layout)
}
