//! `config`: the master's configuration.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value, yaml};

module! {
    /// The master's configuration.
    "config": values, apply, update_config,
}

/// Return the master's configuration.
///
/// ```console
/// $ curl … -d client=wheel -d fun=config.values
/// ```
#[function]
pub fn values(cx: &Cx) -> Result<Dict> {
    Ok(cx.opts.clone())
}

/// Set an option in the master's configuration file. It counts from the next start on.
///
/// ```console
/// $ curl … -d client=wheel -d fun=config.apply -d key=timeout -d value=10
/// ```
#[function]
pub fn apply(
    cx: &Cx,
    /// The option.
    key: String,
    /// Its value.
    value: Value,
) -> Result<Value> {
    let file = conf_file(cx)?;
    // differs: Salt writes all options with their defaults into the file; here the one is changed,
    // and comments are lost as they are there.
    let text = if cx.host.is_file(&file)? { cx.host.read(&file)? } else { Vec::new() };
    let text = String::from_utf8_lossy(&text).into_owned();
    let before = yaml::load(&text, &yaml::LoadOptions::default())
        .map_err(|error| Error::failed(error.to_string()))?;
    let options = before.as_dict().cloned().unwrap_or_default();
    options.insert(key.as_str(), value);
    save(cx, &file, &options)?;
    Ok(Value::Null)
}

/// Write a file of options beside the master's configuration, in the folder `default_include` names.
///
/// ```console
/// $ curl … -d client=wheel -d fun=config.update_config -d file_name=gitfs -d yaml_contents='…'
/// ```
#[function]
pub fn update_config(
    cx: &Cx,
    /// The name of the file, without its ending.
    file_name: String,
    /// What it says.
    yaml_contents: Value,
) -> Result<String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if file_name.is_empty() || file_name.starts_with('.') || !file_name.chars().all(plain) {
        return Ok("Invalid path".into());
    }
    let options = match &yaml_contents {
        Value::Dict(options) => options.clone(),
        other => {
            let read = yaml::load(&other.to_str(), &yaml::LoadOptions::default())
                .map_err(|error| Error::failed(error.to_string()))?;
            read.as_dict().cloned().ok_or_else(|| Error::invalid("yaml_contents must be a dict"))?
        }
    };
    let include = cx.opt_str("default_include").unwrap_or_default();
    let folder = Path::new(include.as_str()).parent().unwrap_or_else(|| Path::new(""));
    let conf = conf_file(cx)?;
    let folder = conf.parent().unwrap_or_else(|| Path::new("/")).join(folder);
    cx.host.create_dirs(&folder, None)?;
    save(cx, &folder.join(format!("{file_name}.conf")), &options)?;
    Ok(format!("Wrote {file_name}.conf"))
}

fn conf_file(cx: &Cx) -> Result<PathBuf> {
    let file = cx.opt_str("conf_file").filter(|file| !file.is_empty());
    file.map(|file| PathBuf::from(file.as_str()))
        .ok_or_else(|| Error::failed("the master has no configuration file"))
}

fn save(cx: &Cx, file: &Path, options: &Dict) -> Result<()> {
    let text = yaml::dump(&options.into(), &yaml::DumpOptions::block())
        .map_err(|error| Error::failed(error.to_string()))?;
    cx.host.write(file, text.as_bytes(), &Write::default())?;
    Ok(())
}
