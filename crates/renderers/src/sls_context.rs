//! The variables that tell a template where it is: `slspath`, `tpldir`, `tplfile` …

use halite_value::Dict;

/// Returns the variables for a template, from where it is on this machine (`None` for a template
/// without a file) and the name of the SLS.
///
/// A file that is not the SLS itself (a template of `file.managed`) gets only `tplpath`, `tplfile`
/// and `tpldir`; for it, `sls` is its path in the file roots.
pub fn sls_context(path: Option<&str>, sls: &str) -> Dict {
    let context = Dict::new();
    let mut sls_path = sls.replace('.', "/").trim_end_matches('/').to_owned();
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        let clean = posix(path);
        let names = [format!("{sls_path}.sls"), format!("{sls_path}/init.sls")];
        let template = if sls.is_empty() {
            clean.rsplit('/').next().unwrap_or_default().to_owned()
        } else if let Some(name) = names.into_iter().find(|name| clean.ends_with(name.as_str())) {
            name
        } else {
            context.insert("tplpath", path);
            context.insert("tplfile", sls);
            context.insert("tpldir", parent(&posix(sls)));
            return context;
        };
        sls_path = template.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        context.insert("tplpath", path);
        context.insert("tplfile", template);
        context.insert("tpldir", if sls_path.is_empty() { "." } else { &sls_path });
        context.insert("tpldot", sls_path.replace('/', "."));
        // differs: formulas set it themselves, from `tpldir`; here it is set.
        context.insert("tplroot", first_of(&sls_path));
    }
    context.insert("slspath", &sls_path);
    context.insert("slsdotpath", sls_path.replace('/', "."));
    context.insert("slscolonpath", sls_path.replace('/', ":"));
    context.insert("sls_path", sls_path.replace('/', "_"));
    context
}

/// Returns the first component of a folder in the file roots, as `tpldir.split('/')[0]` would.
pub(crate) fn first_of(folder: &str) -> &str {
    match folder.split('/').next() {
        None | Some("") => ".",
        Some(first) => first,
    }
}

/// Writes a path as Python's `pathlib` does: no empty and no `.` components.
fn posix(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{root}{}", parts.join("/"))
}

fn parent(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) => "/".into(),
        Some((folder, _)) => folder.into(),
        None => ".".into(),
    }
}
