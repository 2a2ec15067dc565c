//! `archive`: archives unpacked.
//!
//! The archive is listed, and unpacked when something it holds is not on disk. Contents of files are
//! not compared: that is Salt's way, and `overwrite` is for those who want them anew.
//!
//! With `source_hash_update` the hash of what was unpacked is kept below `archive_hash` in the
//! minion's cache, where genuine Salt keeps it, and another hash means that it is unpacked again;
//! `skip_files_list_verify` trusts that record and does not look at the disk at all.
//!
//! differs: a test fetches the archive and tells the changes; genuine Salt tells neither for
//! archives of a server.

use std::path::{Path, PathBuf};

use halite_modules::{
    archive::{self, Contents, Extract, FORMATS, extract, guess_format, strip_of},
    file::{
        hashes::{Sum, sum_for},
        paths::{expand_user, is_abs, joined},
        perms::{Mode, Owner},
        source::{Signature, Trust, choose, parse_salt},
        tree::{make_folders, walk},
    },
};
use halite_spec::{
    Applied, Args, Cx, Error, Fetch, Keys, Plan, Result, State,
    host::{Kind, Write},
    states,
};
use halite_value::{Dict, Value, entries};

states! {
    /// Archives unpacked.
    "archive": "extracted" => Extracted,
}

/// Unpack an archive, unless all it holds is there.
#[derive(Args)]
#[arg(open)]
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
    /// Tell what the program `unzip` says, not the names alone.
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
    /// A detached signature of the archive, or True when it holds its own.
    signature: Option<Value>,
    /// A signature of the file of hashes, or True when that holds its own.
    source_hash_sig: Option<Value>,
    /// Keys one of which must have signed.
    signed_by_any: Option<Value>,
    /// Keys all of which must have signed.
    signed_by_all: Option<Value>,
    /// The keyring to look for keys in.
    keyring: Option<String>,
    /// The home of GnuPG.
    gnupghome: Option<String>,
    /// The module that checks signatures.
    #[default("gpg".to_owned())]
    sig_backend: String,
    /// Keep the cached copy.
    #[default(true)]
    #[arg(by_name)]
    keep_source: bool,
    /// As `keep_source`.
    #[arg(by_name)]
    keep: Option<bool>,
}

/// The hash an archive had when it was unpacked, beside the one it must have.
struct Record {
    place: PathBuf,
    old: Option<String>,
    new: String,
}

fn is_remote(source: &str) -> bool {
    source.contains("://") && !source.starts_with("file://")
}

/// Where the hash of an archive is kept: like the cached copy, below a folder of its own.
fn record_of(cx: &Cx, source: &str) -> PathBuf {
    let cache = cx.opt_str("cachedir").unwrap_or_default();
    let hashes = Path::new(cache.as_str()).join("archive_hash");
    if !is_remote(source) {
        let path = expand_user(cx, source.strip_prefix("file://").unwrap_or(source));
        return hashes.join("local").join(path.trim_start_matches('/'));
    }
    let (path, env) = parse_salt(source);
    let relative = match source.strip_prefix("salt://") {
        Some(_) => format!("files/{}/{path}", env.unwrap_or_else(|| cx.saltenv())),
        None => format!("extrn_files/{}/{}", cx.saltenv(), source.replacen("://", "/", 1)),
    };
    hashes.join(format!("{relative}.hash"))
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
    /// Where the hash of this archive is to be kept, and what is to stand there.
    record: Option<(PathBuf, String)>,
    /// The copy in the cache goes when all is done.
    forget: bool,
    /// Why the archive could not be fetched.
    unreachable: Option<Error>,
}

const MISSING: &str = ", due to absence of one or more files/dirs";
const UPDATED: &str = ", due to source_hash update";

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
    /// A source from elsewhere must come with a hash, unless the author does without.
    fn must_have_hash(&self, source: &str, sum: Option<&Sum>) -> Result<()> {
        let is_free = self.skip_verify || self.use_etag || source.starts_with("salt://");
        if sum.is_some() || is_free || !is_remote(source) {
            return Ok(());
        }
        Err(Error::failed(format!(
            "Unable to verify upstream hash of source file {source}, please set source_hash or set \
             skip_verify or use_etag to True"
        )))
    }

    fn fetch(&self, cx: &Cx, source: &str, sum: Option<&Sum>) -> Result<String> {
        let saltenv = cx.saltenv();
        let path = if is_remote(source) {
            let failed = || {
                Error::failed(format!(
                    "Failed to cache {source}, check minion log for more information"
                ))
            };
            let how = Fetch {
                source_hash: sum.map(|sum| sum.digits.clone()),
                use_etag: self.use_etag,
                ..Fetch::default()
            };
            let path = cx.files.cache_with(source, &saltenv, &how)?.ok_or_else(failed)?;
            path.display().to_string()
        } else {
            let path = expand_user(cx, source.strip_prefix("file://").unwrap_or(source));
            if !cx.host.is_file(Path::new(&path))? {
                return Err(Error::failed(format!("Source file '{path}' does not exist")));
            }
            path
        };
        if let Some(sum) = sum.filter(|_| !self.skip_verify) {
            let found = sum.kind.of_file(&*cx.host, Path::new(&path))?;
            if found != sum.digits {
                return Err(Error::failed(match is_remote(source) {
                    true => format!(
                        "File is cached to {path}, but the hash ({found}) does not match the \
                         specified hash ({})",
                        sum.digits
                    ),
                    false => {
                        format!("{source} does not match the desired source_hash {}", sum.digits)
                    }
                }));
            }
        }
        if let Some(signature) = self.signature.clone().filter(Value::truthy) {
            self.signed(signature).verify(cx, Path::new(&path), &saltenv).map_err(|error| {
                Error::failed(format!("Failed verifying the source file's signature: {error}"))
            })?;
        }
        Ok(path)
    }

    fn signed(&self, signature: Value) -> Signature {
        Signature {
            signature,
            signed_by_any: self.signed_by_any.clone(),
            signed_by_all: self.signed_by_all.clone(),
            keyring: self.keyring.clone(),
            gnupghome: self.gnupghome.clone(),
            backend: self.sig_backend.clone(),
        }
    }

    /// The hash the archive must have.
    fn expected(&self, cx: &Cx, name: &str, source: &str, hash: &Value) -> Result<Option<Sum>> {
        if !hash.truthy() {
            return Ok(None);
        }
        let (hash, saltenv) = (hash.to_str(), cx.saltenv());
        let signature = self.source_hash_sig.clone().filter(Value::truthy);
        let digests = signature.map(|signature| self.signed(signature));
        let trust = Trust { digests, ..Trust::default() };
        let hash_name = self.source_hash_name.as_deref();
        sum_for(cx, name, source, &hash, hash_name, &saltenv, &trust).map(Some)
    }

    /// What the record of an archive's hash says, and what it should say.
    fn recorded(&self, cx: &Cx, source: &str, sum: Option<&Sum>) -> Result<Option<Record>> {
        let Some(sum) = sum.filter(|_| self.source_hash_update || self.skip_files_list_verify)
        else {
            return Ok(None);
        };
        let place = record_of(cx, source);
        let old = cx.host.read_text_if_there(&place)?.map(|text| text.trim().to_owned());
        Ok(Some(Record { place, old, new: format!("{}:{}", sum.kind.name(), sum.digits) }))
    }

    /// What is said of an archive nobody can look into.
    fn unlisted(&self, error: &Error, format: &str, path: &str) -> Error {
        let said = error.to_string();
        let said = said.trim_end_matches('.');
        let mut text = format!("{said}. Additional info follows:\n\narchive location:\n    {path}");
        if format != "tar" && self.if_missing.is_none() {
            text += &format!(
                "\n\nThe following workarounds must be used for this state to proceed (assuming the \
                 source file is a valid {format} archive):\n\n- 'if_missing' must be set"
            );
        }
        Error::failed(text)
    }

    /// What is told of what was taken away first.
    fn removed(&self, work: &Work) -> Value {
        match work.remove.as_slice() {
            [folder] if self.clean_parent && *folder == work.name => {
                format!("Directory {folder} was removed prior to the extraction").into()
            }
            paths => paths.to_vec().into(),
        }
    }

    fn check_top(&self, name: &str, format: &str, contents: &Contents) -> Result<()> {
        let others = Contents::top(&contents.files).len() + Contents::top(&contents.links).len();
        if !self.enforce_toplevel || (contents.top_dirs().len() == 1 && others == 0) {
            return Ok(());
        }
        let word = if contents.all().is_empty() { "any" } else { "a single" };
        Err(Error::failed(format!(
            "Archive does not have {word} top-level directory. To allow this archive to be \
             extracted, set 'enforce_toplevel' to False. To avoid a '{format}-bomb' it may also be \
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
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Work> {
        let name = expand_user(cx, &self.name);
        if !is_abs(&name) {
            return Err(Error::failed(format!("{name} is not an absolute path")));
        }
        let name = format!("{}/", name.trim_end_matches('/'));
        self.ids(cx)?;
        if let Some(path) = &self.enforce_ownership_on
            && !format!("{path}/").starts_with(&name)
        {
            let text = format!("Value for 'enforce_ownership_on' must be within {name}");
            return Err(Error::failed(text));
        }
        if self.use_cmd_unzip == Some(false) && self.options.is_some() {
            return Err(Error::failed(
                "'use_cmd_unzip' cannot be set to False if CLI options are being specified (via \
                 the 'options' argument). Either remove 'use_cmd_unzip', or set it to True.",
            ));
        }
        if self.clean && self.clean_parent {
            return Err(Error::failed("Only one of 'clean' and 'clean_parent' can be set to True"));
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
        if self.password.is_some() && format != "zip" {
            return Err(Error::failed(
                "The 'password' argument is only supported for zip archives",
            ));
        }
        let sum = self.expected(cx, &name, &source, &hash)?;
        let record = self.recorded(cx, &source, sum.as_ref())?;
        let same = record.as_ref().is_some_and(|record| record.old.as_ref() == Some(&record.new));
        if same && self.skip_files_list_verify {
            return Ok(Self::done(format!(
                "Archive {source} existing source sum is the same as the expected one and \
                 skip_files_list_verify argument was set to True. Extraction is not needed"
            )));
        }
        self.must_have_hash(&source, sum.as_ref())?;
        let path = match self.fetch(cx, &source, sum.as_ref()) {
            Ok(path) => path,
            // Without the archive nobody can tell what would change; a run will fail.
            Err(error) if is_remote(&source) => {
                return Ok(Work {
                    plan: would_be_cached(&source),
                    unreachable: Some(error),
                    source,
                    ..Work::default()
                });
            }
            Err(error) => return Err(error),
        };
        let options = self.options.as_deref().unwrap_or_default();
        let strip = if format == "tar" { strip_of(options) } else { 0 };
        let listing = self.list_options.as_deref();
        let contents = archive::contents(cx, &path, &format, listing, strip)
            .map_err(|error| self.unlisted(&error, &format, &path))?;
        if contents.encrypted && self.password.is_none() {
            return Err(Error::failed(format!(
                "Archive {source} is password-protected, but no password was specified. Please \
                 set the 'password' argument."
            )));
        }
        self.check_top(&name, &format, &contents)?;
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
        let updated = self.source_hash_update
            && record.as_ref().is_some_and(|record| record.old.is_some() && !same);
        work.why = match (missing, updated) {
            (true, _) => MISSING,
            (false, true) => UPDATED,
            (false, false) => "",
        };
        work.unpack = missing || updated || !wrong.is_empty() || self.overwrite;
        work.forget = is_remote(&work.source) && !self.keep.unwrap_or(self.keep_source);
        work.record = record
            .filter(|_| self.source_hash_update && !same)
            .map(|record| (record.place, record.new));
        if work.unpack {
            work.remove = wrong.iter().map(|path| joined(&work.name, path)).collect();
            if self.clean_parent && !work.is_new {
                work.remove = vec![work.name.clone()];
            } else if self.clean {
                let mut tops = work.contents.top_dirs();
                tops.extend(Contents::top(&work.contents.files));
                tops.extend(Contents::top(&work.contents.links));
                // `./` is the folder itself, which may hold what others put there.
                for path in tops.into_iter().filter(|path| path != "./") {
                    let path = joined(&work.name, &path);
                    if cx.host.is_there(Path::new(path.trim_end_matches('/')))? {
                        work.remove.push(path);
                    }
                }
            }
        }
        work.wrong_owner = self.wrong_owner(cx, &work)?;
        work.plan = self.planned(&work);
        if self.source_hash_update && !self.source_hash.truthy() {
            let text = "The 'source_hash_update' argument is ignored when 'source_hash' is not also \
                        specified.";
            work.plan.warnings.push(text.to_owned());
        }
        Ok(work)
    }

    fn plan(&self, work: &Work) -> Result<Plan> {
        Ok(work.plan.clone())
    }

    fn apply(&self, cx: &Cx, work: Work) -> Result<Applied> {
        if let Some(error) = work.unreachable {
            // Salt hands on what the state that fetches returned, under its name.
            let failed = Applied::failed(Dict::new(), error.to_string());
            return Ok(Applied { extra: entries! { "name" => work.source }, ..failed });
        }
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
                changes.insert("removed", self.removed(&work));
            }
            if !cx.host.is_dir(Path::new(&work.name))? {
                let owner = (self.user.as_ref(), self.group.as_ref());
                make_folders(cx, &work.name, owner, Some(&Mode::of(0o755)))?;
                changes.insert("directories_created", vec![work.name.clone()]);
            }
            let how = Extract {
                options: self.options.as_deref().unwrap_or_default(),
                password: self.password.as_deref(),
                perms: self.extract_perms,
                as_told: self.use_cmd_unzip == Some(true),
            };
            let mut names = match extract(cx, &work.path, &work.format, &work.name, &how) {
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
        if let Some((place, hash)) = &work.record {
            if let Some(folder) = place.parent() {
                cx.host.create_dirs(folder, None)?;
            }
            cx.host.write(place, format!("{hash}\n").as_bytes(), &Write::default())?;
        }
        if work.forget {
            match cx.host.remove_file(Path::new(&work.path)) {
                Err(error) if !error.is_missing() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(Applied::changes(changes).comment(comment))
    }
}

fn would_be_cached(source: &str) -> Plan {
    Plan::unknown().pending(format!(
        "Archive {source} would be cached (if necessary) and checked to discover if extraction is \
         needed"
    ))
}

impl Extracted {
    fn planned(&self, work: &Work) -> Plan {
        if !work.unpack && work.wrong_owner.is_empty() && work.record.is_some() {
            return would_be_cached(&work.source);
        }
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
            changes.insert("removed", self.removed(work));
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
