//! `archive`: archives unpacked.
//!
//! The archive is listed, and unpacked when something it holds is not on disk. Contents of files are
//! not compared: that is Salt's way, and `overwrite` is for those who want them anew.
//!
//! differs: a test fetches the archive and tells the changes; genuine Salt tells neither for
//! archives of a server.

use std::path::Path;

use halite_modules::{
    archive::{self, Contents, FORMATS, extract, guess_format, strip_of},
    file::{
        hashes::sum_for,
        paths::{expand_user, is_abs, joined},
        perms::{Mode, Owner},
        source::choose,
        tree::{make_folders, walk},
    },
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, Strings, host::Kind, states};
use halite_value::{Dict, Value};

states! {
    /// Archives unpacked.
    "archive": "extracted" => Extracted,
}

/// Unpack an archive, unless all it holds is there.
// differs: `source_hash_update`, `skip_files_list_verify`, `keep_source`, `keep`, `use_cmd_unzip`,
// `extract_perms` and `use_etag` are taken and not acted on: what the archive holds is compared with
// the disk every time.
#[derive(Args)]
#[allow(dead_code)]
pub struct Extracted {
    /// The folder to unpack into.
    name: String,
    /// The archive: a path, an address, or a list of which the first that is there is taken.
    source: Value,
    /// The hash of the archive, or a file of hashes.
    #[default(Value::Null)]
    source_hash: Value,
    /// The name to look for in a file of hashes.
    source_hash_name: Option<String>,
    /// Unpack again when the hash changed.
    #[default(false)]
    source_hash_update: bool,
    /// Do not compare what the archive holds with the disk when its hash is unchanged.
    #[default(false)]
    skip_files_list_verify: bool,
    /// Take an archive of a server without a hash.
    #[default(false)]
    skip_verify: bool,
    /// Keep the cached copy.
    #[default(true)]
    keep_source: bool,
    /// As `keep_source`.
    keep: Option<bool>,
    /// The password of an encrypted archive.
    password: Option<String>,
    /// Options of `tar` or `unzip`.
    options: Option<String>,
    /// Options of `tar` for listing.
    list_options: Option<String>,
    /// Remove what is of another kind than in the archive.
    #[default(false)]
    force: bool,
    /// Unpack even if all is there.
    #[default(false)]
    overwrite: bool,
    /// Remove the archive's top folders and files first.
    #[default(false)]
    clean: bool,
    /// Remove the whole folder first.
    #[default(false)]
    clean_parent: bool,
    /// The owner of what is unpacked.
    user: Option<Owner>,
    /// The group of what is unpacked.
    group: Option<Owner>,
    /// Do nothing if this path is there.
    if_missing: Option<String>,
    /// Tell at most this many names; True: 100.
    #[default(Value::Bool(false))]
    trim_output: Value,
    /// Use the program `unzip`; it is always used.
    use_cmd_unzip: Option<bool>,
    /// Keep the modes of a zip file.
    #[default(true)]
    extract_perms: bool,
    /// Refuse an archive with more than one name at its top.
    #[default(true)]
    enforce_toplevel: bool,
    /// Set the owner of this path instead of all that was unpacked.
    enforce_ownership_on: Option<String>,
    /// `tar`, `zip` or `rar`; guessed by the name if not given.
    archive_format: Option<String>,
    /// Ask the server whether the archive changed.
    #[default(false)]
    use_etag: bool,
    /// A detached signature; not supported yet.
    signature: Option<Value>,
    /// Keys that count for the signature.
    signed_by_any: Option<Strings>,
    /// Keys that must all have signed.
    signed_by_all: Option<Strings>,
}

/// What is to be done.
#[derive(Default)]
pub struct Work {
    plan: Plan,
    name: String,
    source: String,
    path: String,
    format: String,
    contents: Contents,
    remove: Vec<String>,
    is_new: bool,
    unpack: bool,
    why: &'static str,
    wrong_owner: Vec<String>,
}

const MISSING: &str = ", due to absence of one or more files/dirs";

impl Extracted {
    fn done(comment: impl Into<String>) -> Work {
        Work { plan: Plan::nothing(comment), ..Work::default() }
    }

    fn format_of(&self, source: &str) -> Result<String> {
        let known = FORMATS.join(", ");
        match self.archive_format.as_deref().filter(|format| !format.is_empty()) {
            Some(format) if FORMATS.contains(&format.to_lowercase().as_str()) => {
                Ok(format.to_lowercase())
            }
            Some(format) => Err(Error::failed(format!(
                "Invalid archive_format '{format}'. Either set it to a supported value ({known}) \
                 or remove this argument and the archive format will be guessed based on file \
                 extension."
            ))),
            None => guess_format(source).map(str::to_owned).ok_or_else(|| {
                Error::failed(format!(
                    "Could not guess archive_format from the value of the 'source' argument. \
                     Please set this archive_format to one of the following: {known}"
                ))
            }),
        }
    }

    /// Fetches the archive; returns its path here.
    fn fetch(&self, cx: &Cx, name: &str, source: &str, hash: &Value) -> Result<String> {
        let saltenv = cx.saltenv();
        let remote = source.contains("://") && !source.starts_with("file://");
        let hash = Some(hash.to_str()).filter(|_| hash.truthy());
        if remote && hash.is_none() && !self.skip_verify && !source.starts_with("salt://") {
            return Err(Error::failed(format!(
                "Unable to verify upstream hash of source file {source}, please set source_hash or \
                 set skip_verify to True"
            )));
        }
        let path = if remote {
            let failed = || {
                Error::failed(format!(
                    "Failed to cache {source}, check minion log for more information"
                ))
            };
            cx.files.cache(source, &saltenv)?.ok_or_else(failed)?.display().to_string()
        } else {
            let path = expand_user(cx, source.strip_prefix("file://").unwrap_or(source));
            if !cx.host.is_file(Path::new(&path))? {
                return Err(Error::failed(format!("Source file '{path}' does not exist")));
            }
            path
        };
        if let Some(hash) = hash.filter(|_| !self.skip_verify) {
            let hash_name = self.source_hash_name.as_deref();
            let sum = sum_for(cx, name, source, &hash, hash_name, &saltenv)?;
            if sum.kind.of_file(&*cx.host, Path::new(&path))? != sum.digits {
                return Err(Error::failed(format!(
                    "{source} does not match the desired source_hash {}",
                    sum.digits
                )));
            }
        }
        Ok(path)
    }

    fn check_top(&self, name: &str, contents: &Contents) -> Result<()> {
        let others = Contents::top(&contents.files).len() + Contents::top(&contents.links).len();
        if !self.enforce_toplevel || (Contents::top(&contents.dirs).len() == 1 && others == 0) {
            return Ok(());
        }
        let word = if contents.all().is_empty() { "any" } else { "a single" };
        Err(Error::failed(format!(
            "Archive does not have {word} top-level directory. To allow this archive to be \
             extracted, set 'enforce_toplevel' to False. To avoid a 'tar-bomb' it may also be \
             advisable to set a top-level directory by adding it to the 'name' value (for example, \
             setting 'name' to {name}some_dir instead of {name})."
        )))
    }

    /// What of the archive is missing, and what is of the wrong kind.
    fn compare(&self, cx: &Cx, work: &Work) -> Result<(bool, Vec<String>)> {
        let (mut missing, mut wrong) = (false, Vec::new());
        let kinds = [
            (&work.contents.dirs, Kind::Dir),
            (&work.contents.files, Kind::File),
            (&work.contents.links, Kind::Link),
        ];
        for (names, kind) in kinds {
            for name in names {
                let path = joined(&work.name, name.trim_end_matches('/'));
                match cx.host.stat_if_there(Path::new(&path), false)? {
                    None => missing = true,
                    Some(stat) if stat.kind == kind => {}
                    // A folder may well be a link to one.
                    Some(_) if kind == Kind::Dir && cx.host.is_dir(Path::new(&path))? => {}
                    Some(_) => wrong.push(name.clone()),
                }
            }
        }
        Ok((missing, wrong))
    }

    fn ids(&self, cx: &Cx) -> Result<(Option<u32>, Option<u32>)> {
        let user = Owner::given(self.user.as_ref());
        let group = Owner::given(self.group.as_ref());
        let uid = match user {
            Some(user) => Some(
                user.look_up_uid(cx)?
                    .ok_or_else(|| Error::failed(format!("User {user} does not exist")))?,
            ),
            None => None,
        };
        let gid = match group {
            Some(group) => Some(
                group
                    .look_up_gid(cx)?
                    .ok_or_else(|| Error::failed(format!("Group {group} does not exist")))?,
            ),
            None => None,
        };
        Ok((uid, gid))
    }

    /// The paths whose owner is to be set.
    fn owned(&self, cx: &Cx, work: &Work) -> Result<Vec<String>> {
        if let Some(path) = &self.enforce_ownership_on {
            let mut paths = vec![path.clone()];
            for visited in walk(cx, Path::new(path), &|_| true)? {
                let names = visited.dirs.iter().chain(&visited.files);
                paths.extend(names.map(|name| visited.path.join(name).display().to_string()));
            }
            return Ok(paths);
        }
        let names = work.contents.all();
        Ok(names.iter().map(|name| joined(&work.name, name.trim_end_matches('/'))).collect())
    }

    fn wrong_owner(&self, cx: &Cx, work: &Work) -> Result<Vec<String>> {
        let (uid, gid) = self.ids(cx)?;
        let mut wrong = Vec::new();
        if uid.is_none() && gid.is_none() {
            return Ok(wrong);
        }
        for path in self.owned(cx, work)? {
            let Some(stat) = cx.host.stat_if_there(Path::new(&path), false)? else { continue };
            if uid.is_some_and(|uid| uid != stat.uid) || gid.is_some_and(|gid| gid != stat.gid) {
                wrong.push(path);
            }
        }
        Ok(wrong)
    }

    fn most(&self) -> Option<usize> {
        match &self.trim_output {
            Value::Bool(true) => Some(100),
            Value::Int(most) => usize::try_from(*most).ok().filter(|most| *most > 0),
            _ => None,
        }
    }
}

impl State for Extracted {
    type Seen = Work;

    fn observe(&self, cx: &Cx) -> Result<Work> {
        let name = expand_user(cx, &self.name);
        if !is_abs(&name) {
            return Err(Error::failed(format!("{name} is not an absolute path")));
        }
        let name = format!("{}/", name.trim_end_matches('/'));
        self.ids(cx)?;
        if self.signature.as_ref().is_some_and(Value::truthy)
            || self.signed_by_any.is_some()
            || self.signed_by_all.is_some()
        {
            return Err(Error::failed("signatures of archives are not supported yet"));
        }
        if let Some(path) = &self.if_missing
            && cx.host.exists(Path::new(path))?
        {
            return Ok(Self::done(format!("Path {path} exists")));
        }
        let at = Path::new(name.trim_end_matches('/'));
        let there = cx.host.stat_if_there(at, true)?;
        if there.as_ref().is_some_and(|stat| stat.kind != Kind::Dir) {
            return Err(Error::failed(format!("{} exists and is not a directory", at.display())));
        }
        let chosen = choose(cx, &self.source, &self.source_hash, &cx.saltenv());
        let (source, hash) = match chosen {
            Ok((Some(source), hash)) => (source, hash),
            Ok((None, _)) => {
                return Err(Error::failed("Unable to manage file: no source is given"));
            }
            Err(error) => return Err(error),
        };
        let format = self.format_of(&source)?;
        let path = self.fetch(cx, &name, &source, &hash)?;
        let options = self.options.as_deref().unwrap_or_default();
        let strip = if format == "tar" { strip_of(options) } else { 0 };
        let listing = self.list_options.as_deref();
        let contents =
            archive::contents(cx, &path, &format, listing, strip, self.password.as_deref())
                .map_err(|error| {
                    Error::failed(format!(
                        "{error} Additional info follows:\n\narchive location:\n    {path}"
                    ))
                })?;
        self.check_top(&name, &contents)?;
        let mut work = Work {
            name,
            source,
            path,
            format,
            contents,
            is_new: there.is_none(),
            ..Work::default()
        };
        let (missing, wrong) = self.compare(cx, &work)?;
        if !wrong.is_empty() && !self.force {
            let list: Vec<String> = wrong.iter().map(|path| format!("- {path}")).collect();
            return Err(Error::failed(format!(
                "The below paths (relative to {}) exist, but are the incorrect type (file instead \
                 of directory, symlink instead of file, etc.). To proceed with extraction, set \
                 'force' to True. Note that this will remove these paths before extracting.\n\n{}",
                work.name,
                list.join("\n")
            )));
        }
        work.why = if missing { MISSING } else { "" };
        work.unpack = missing || !wrong.is_empty() || self.overwrite;
        if work.unpack {
            work.remove = wrong.iter().map(|path| joined(&work.name, path)).collect();
            if self.clean_parent && !work.is_new {
                work.remove = vec![work.name.clone()];
            } else if self.clean {
                let tops = [&work.contents.dirs[..], &work.contents.files, &work.contents.links];
                for path in tops.iter().flat_map(|names| Contents::top(names)) {
                    let path = joined(&work.name, &path);
                    if cx.host.is_there(Path::new(path.trim_end_matches('/')))? {
                        work.remove.push(path);
                    }
                }
            }
        }
        work.wrong_owner = self.wrong_owner(cx, &work)?;
        work.plan = self.planned(&work);
        Ok(work)
    }

    fn plan(&self, work: &Work) -> Result<Plan> {
        Ok(work.plan.clone())
    }

    fn apply(&self, cx: &Cx, work: Work) -> Result<Applied> {
        let changes = Dict::new();
        let (uid, gid) = self.ids(cx)?;
        let mut comment = "All files in archive are already present".to_owned();
        if work.unpack {
            for path in &work.remove {
                match cx.host.remove_all(Path::new(path.trim_end_matches('/'))) {
                    Err(error) if !error.is_missing() => return Err(error.into()),
                    _ => {}
                }
            }
            if !work.remove.is_empty() {
                changes.insert("removed", work.remove.clone());
            }
            if !cx.host.is_dir(Path::new(&work.name))? {
                let owner = (self.user.as_ref(), self.group.as_ref());
                make_folders(cx, &work.name, owner, Some(&Mode::of(0o755)))?;
                changes.insert("directories_created", vec![work.name.clone()]);
            }
            let (options, password) = (self.options.as_deref(), self.password.as_deref());
            let mut names =
                match extract(cx, &work.path, &work.format, &work.name, options, password) {
                    Ok(names) => names,
                    Err(error) => return Ok(Applied::failed(changes, error.to_string())),
                };
            comment = format!("{} extracted to {}{}", work.source, work.name, work.why);
            if let Some(most) = self.most() {
                names.truncate(most);
                comment.push_str(&format!(". Output was trimmed to {most} number of lines"));
            }
            changes.insert("extracted_files", names);
        }
        let wrong = self.wrong_owner(cx, &work)?;
        for path in &wrong {
            cx.host.set_owner(Path::new(path), uid, gid, false)?;
        }
        if !wrong.is_empty() || !work.wrong_owner.is_empty() {
            changes.insert("updated ownership", true);
        }
        Ok(Applied::changes(changes).comment(comment))
    }
}

impl Extracted {
    fn planned(&self, work: &Work) -> Plan {
        if !work.unpack && work.wrong_owner.is_empty() {
            return Plan::nothing("All files in archive are already present");
        }
        if !work.unpack {
            return Plan::change("updated ownership", true)
                .pending("Ownership of files from the archive would be updated");
        }
        let cleaning = if self.clean || self.clean_parent {
            ", after cleaning destination path(s)"
        } else {
            ""
        };
        let changes = Dict::new();
        if !work.remove.is_empty() {
            changes.insert("removed", work.remove.clone());
        }
        if work.is_new {
            changes.insert("directories_created", vec![work.name.clone()]);
        }
        let mut names: Vec<String> = work.contents.all();
        if work.format == "tar" && self.options.is_none() {
            names = names.iter().map(|name| name.trim_end_matches('/').to_owned()).collect();
        }
        if let Some(most) = self.most() {
            names.truncate(most);
        }
        changes.insert("extracted_files", names);
        let comment = format!(
            "Archive {} would be extracted to {}{cleaning}{}",
            work.source, work.name, work.why
        );
        Plan::changes(changes).pending(comment)
    }
}
