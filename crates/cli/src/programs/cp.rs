//! `salt-cp`: copy files to minions.

use std::{
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use halite_client::{Client, Job};
use halite_config::Machine as _;
use halite_value::{Dict, Value};

use crate::{
    diagnostics::Report,
    display, fleet,
    machine::Real,
    optparse::{Action, Group, Program, flag},
    programs::{Context, Early, check_output, check_targets, id_list, shared},
    terminal,
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/master'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static FILES: Group = Group {
    title: "File Options",
    about: None,
    flags: &[
        flag(
            &["-C", "--chunked"],
            "chunked",
            Action::True,
            "Send files in pieces: for large files, and for whole folders.",
        ),
        flag(&["-n", "--no-compression"], "gzip", Action::False, "Do not compress."),
    ],
};

pub static PROGRAM: Program = Program {
    name: "salt-cp",
    usage: "[options] '<target>' SOURCE DEST",
    about: Some(
        "Copies files from the master to minions. Meant for small files, such as configuration.",
    ),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        &[shared::timeout(5)],
        shared::HARD_CRASH,
    ],
    groups: &[shared::TARGET_GROUP, shared::DELIMITER_GROUP, shared::OUTPUT_GROUP, FILES, LOGGING],
};

/// Looks at target, sources and destination.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    check_targets(cx, shared::TARGETS)?;
    let [target, sources @ .., destination] = cx.parsed.args.as_slice() else {
        return Err(Early::HelpThen("Insufficient arguments".into()));
    };
    let by_list = cx.parsed.bool("list");
    cx.opts.set("tgt", if by_list { id_list(target, true) } else { Value::from(target.as_str()) });
    let sources = sources.iter().map(|source| {
        let real = std::fs::canonicalize(source).map(|path| path.to_string_lossy().into_owned());
        real.unwrap_or_else(|_| halite_config::abspath(source, &Real.current_dir()))
    });
    cx.opts.set("src", Value::list(sources));
    cx.opts.set("dest", destination.as_str());
    Ok(())
}

/// Copies the files and prints where they arrived.
pub fn run(cx: &mut Context) -> u8 {
    let sources: Vec<PathBuf> =
        cx.opts.str_list("src").iter().map(|path| PathBuf::from(path.as_str())).collect();
    let result =
        if cx.parsed.bool("chunked") { chunked(cx, &sources) } else { at_once(cx, &sources) };
    match result {
        Ok(returns) => match display::show(cx, &returns.into(), "", Some("nested"), 0) {
            Ok(()) => 0,
            Err(error) => {
                cx.report(&Report::error(format!("cannot write the result: {error}")).exit(1))
            }
        },
        Err(code) => code,
    }
}

/// Runs one job on the targeted minions and returns what they return.
fn ask(cx: &Context, client: &mut Client, fun: &str, arg: Vec<Value>) -> Result<Dict, u8> {
    let tgt = cx.opts.get("tgt").unwrap_or_default();
    let job = Job { arg, user: fleet::user(), ..Job::new(tgt, &fleet::target_type(cx), fun) };
    let outcome =
        client.run(&job, fleet::patience(cx)).map_err(|error| fleet::refused(cx, &error))?;
    if outcome.published.jid.is_empty() {
        terminal::out(fleet::NOBODY);
    }
    Ok(outcome.returns())
}

/// All files in one job, as texts.
fn at_once(cx: &Context, sources: &[PathBuf]) -> Result<Dict, u8> {
    let files = Dict::new();
    for path in sources {
        if path.is_dir() {
            terminal::out(&format!(
                "{} is a directory, only files are supported in non-chunked mode. Use \
                 \"--chunked\" command line argument.\n",
                path.display()
            ));
            return Err(1);
        }
        let Ok(bytes) = std::fs::read(path) else { continue };
        let text = String::from_utf8(bytes).map_err(|_| {
            let why = format!("{} is no text; use --chunked", path.display());
            cx.report(&Report::error(why).exit(1))
        })?;
        files.insert(path.to_string_lossy().into_owned(), text);
    }
    let mut client = fleet::connect(cx)?;
    ask(cx, &mut client, "cp.recv", vec![files.into(), cx.opts.str("dest").into()])
}

/// Piece by piece: any size, any content, whole folders.
fn chunked(cx: &Context, sources: &[PathBuf]) -> Result<Dict, u8> {
    let (mut files, mut empty) = (Vec::new(), Vec::new());
    for source in sources {
        if std::fs::symlink_metadata(source).is_err() {
            terminal::err(&format!("{} does not exist\n", source.display()));
            return Err(42);
        }
        collect(source, &mut files, &mut empty);
    }
    let dest = cx.opts.str("dest");
    let into_folder = !empty.is_empty() || files.len() > 1 || dest.ends_with(['/', '\\']);
    let size = usize::try_from(cx.opts.int("salt_cp_chunk_size")).unwrap_or(0).max(1024);
    let gzip = cx.parsed.get("gzip").as_bool().unwrap_or(true);
    let mut client = fleet::connect(cx)?;
    let all = Dict::new();
    for path in &files {
        let remote = remote_path(sources, path, &dest, into_folder);
        let read = |error: std::io::Error| {
            cx.report(&Report::error(format!("{}: {error}", path.display())).exit(1))
        };
        let mode = std::fs::metadata(path).map_err(read)?.permissions().mode() & 0o7777;
        let mut file = std::fs::File::open(path).map_err(read)?;
        let mut index = 0;
        loop {
            let mut piece = Vec::new();
            (&mut file).take(size as u64).read_to_end(&mut piece).map_err(read)?;
            if piece.is_empty() && index > 0 {
                break;
            }
            let packed = if gzip { packed(&piece).map_err(read)? } else { piece };
            let text = Value::from(base64(&packed));
            let arg =
                vec![remote.as_str().into(), text, (index > 0).into(), gzip.into(), mode.into()];
            let returns = ask(cx, &mut client, "cp.recv_chunked", arg)?;
            note(&all, &remote, &returns);
            if returns.is_empty() {
                return Ok(all);
            }
            index += 1;
        }
    }
    for folder in &empty {
        let remote = remote_path(sources, folder, &dest, into_folder);
        let arg = vec![remote.as_str().into(), Value::Null];
        let returns = ask(cx, &mut client, "cp.recv_chunked", arg)?;
        note(&all, &remote, &returns);
    }
    Ok(all)
}

/// Notes what minions said of a piece. The first complaint about a file stays.
fn note(all: &Dict, remote: &str, returns: &Dict) {
    for (minion, ret) in returns.entries() {
        if let Value::Dict(own) = all.get_or_insert_with(minion, Value::dict)
            && own.get(remote).is_none_or(|before| before == Value::Bool(true))
        {
            own.insert(remote, ret);
        }
    }
}

/// Finds all files below a path, and the folders without any.
fn collect(path: &Path, files: &mut Vec<PathBuf>, empty: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    let mut entries: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    entries.sort();
    if entries.is_empty() {
        empty.push(path.to_owned());
    }
    entries.iter().for_each(|entry| collect(entry, files, empty));
}

/// Where a file goes: a named one to the destination (or into it), one of a folder below it.
fn remote_path(sources: &[PathBuf], path: &Path, dest: &str, into_folder: bool) -> String {
    let name = |path: &Path| path.file_name().map(PathBuf::from).unwrap_or_default();
    let dest_path = Path::new(dest);
    if sources.iter().any(|source| source == path) {
        return match into_folder {
            true => dest_path.join(name(path)).to_string_lossy().into_owned(),
            false => dest.to_owned(),
        };
    }
    let below = sources.iter().find_map(|source| {
        Some(dest_path.join(name(source)).join(path.strip_prefix(source).ok()?))
    });
    below.unwrap_or_else(|| dest_path.join(name(path))).to_string_lossy().into_owned()
}

fn packed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes)?;
    packer.finish()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { letter.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn where_files_go() {
        let sources = [PathBuf::from("/a/tree"), PathBuf::from("/b/one")];
        let check = |path: &str, into: bool, expected: &str| {
            assert_eq!(remote_path(&sources, Path::new(path), "/d", into), expected);
        };
        check("/b/one", false, "/d");
        check("/b/one", true, "/d/one");
        check("/a/tree/x/y", true, "/d/tree/x/y");
    }
}
