//! `file.managed`: a whole file, from a source or given contents.

use std::path::Path;

use halite_modules::file::{
    content::{Content, Lenient, names_of, render},
    managed::{Done, Request, View},
    paths::{expand_user, is_abs},
    perms::{Label, Mode, Owner, Wanted},
    source::{Signature, Trust, choose, scheme_of},
    text::{bare_lines, encode},
};
use halite_spec::{
    Applied, Args, Command, Cx, Error, Keys, Plan, Result, State,
    host::{Kind, Write},
    keywords,
};
use halite_value::{Dict, Value, entries, lookup};

use super::{Found, accumulated, texts, unknown_owners};

/// Manage a whole file: its content, owner and mode.
#[derive(Args)]
#[arg(open)]
pub struct Managed {
    /// The file.
    name: String,
    /// Where its content comes from; of a list, the first that exists.
    source: Option<Value>,
    /// The hash of a source from the web: the digest, `kind=digest`, or a file of digests.
    #[default(Value::str(""))]
    source_hash: Value,
    /// The name to look for in a file of digests.
    source_hash_name: Option<String>,
    /// Keep the source in the cache.
    #[default(true)]
    keep_source: bool,
    /// The user that owns the file.
    #[arg(alias = "owner")]
    user: Option<Owner>,
    /// The group that owns the file.
    group: Option<Owner>,
    /// The mode; `keep` takes the source's.
    mode: Option<Mode>,
    /// The attributes, as letters of `chattr`.
    attrs: Option<String>,
    /// The template engine.
    template: Option<String>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// The mode of folders made.
    dir_mode: Option<Mode>,
    /// Names for the template.
    context: Option<Value>,
    /// Replace a file that is there; False leaves its content alone.
    #[default(true)]
    replace: bool,
    /// Names for the template where `context` has none.
    defaults: Option<Value>,
    /// `minion` keeps a copy of the file replaced.
    #[default(String::new())]
    backup: String,
    /// Show the difference.
    #[default(true)]
    show_changes: bool,
    /// Make the file if it is not there.
    #[default(true)]
    create: bool,
    /// The content itself: a text or a list of lines.
    contents: Option<Value>,
    /// Where `check_cmd` finds the new file.
    tmp_dir: Option<String>,
    /// What the name of the new file ends with for `check_cmd`.
    #[default(String::new())]
    tmp_ext: String,
    /// The pillar value that is the content.
    contents_pillar: Option<Value>,
    /// The grain that is the content.
    contents_grains: Option<Value>,
    /// End given contents with a line end.
    #[default(true)]
    contents_newline: bool,
    /// What separates the parts of `contents_pillar` and `contents_grains`.
    #[default(":".to_owned())]
    contents_delimiter: String,
    /// The encoding of given contents.
    encoding: Option<String>,
    /// What to do with characters the encoding lacks.
    #[default("strict".to_owned())]
    encoding_errors: String,
    /// Given contents may be empty.
    #[default(true)]
    allow_empty: bool,
    /// Write through a link; False replaces it.
    #[default(true)]
    follow_symlinks: bool,
    /// A command that must accept the new file, whose path is added to it.
    check_cmd: Option<String>,
    /// Take a source from the web without comparing hashes.
    #[default(false)]
    skip_verify: bool,
    /// Parts of the SELinux label: `seuser`, `serole`, `setype`, `serange`.
    selinux: Option<Dict>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_owner: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_perms: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_deny_perms: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    #[default(true)]
    win_inheritance: bool,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    #[default(false)]
    win_perms_reset: bool,
    /// Check certificates.
    #[default(true)]
    verify_ssl: bool,
    /// Ask the server whether the source changed.
    #[default(false)]
    use_etag: bool,
    /// A detached signature of the source.
    signature: Option<Value>,
    /// A detached signature of the file of digests.
    source_hash_sig: Option<Value>,
    /// Keys one of which must have signed.
    signed_by_any: Option<Value>,
    /// Keys all of which must have signed.
    signed_by_all: Option<Value>,
    /// The keyring.
    keyring: Option<String>,
    /// The home of GnuPG.
    gnupghome: Option<String>,
    /// A change only in the order of lines does not count for requisites.
    #[default(false)]
    ignore_ordering: bool,
    /// A change only in white space does not count for requisites.
    #[default(false)]
    ignore_whitespace: bool,
    /// Changes in comments that begin so do not count for requisites.
    ignore_comment_characters: Option<Vec<String>>,
    /// Show the content of a new file as a difference.
    #[default(false)]
    new_file_diff: bool,
    /// The module that checks signatures.
    #[default("gpg".to_owned())]
    sig_backend: String,
    /// Not an argument of this state; a warning says so.
    #[arg(by_name)]
    file_mode: Option<Value>,
}

const SOURCES: &str = "'contents', 'contents_pillar', or 'contents_grains'";

/// What is to be done with the file.
pub struct Work {
    request: Request,
    view: View,
}

impl Managed {
    fn warnings(&self) -> Vec<String> {
        let text = "The 'file_mode' argument will be ignored.  Please use 'mode' instead to set \
                    file permissions.";
        self.file_mode.iter().map(|_| text.to_owned()).collect()
    }

    /// The values of pillar or grain keys; a list of keys becomes lines.
    fn looked_up(&self, data: &Dict, keys: &Value, what: &str) -> Result<Value> {
        let data = Value::from(data);
        let find = |key: &Value| {
            lookup::traverse(&data, &key.to_str(), &self.contents_delimiter).ok_or_else(|| {
                let near = lookup::near_path(&data, &key.to_str(), &self.contents_delimiter)
                    .map(|near| format!("\n   = help: did you mean `{near}`?"));
                let near = near.unwrap_or_default();
                Error::failed(format!("{what} {key} does not exist{near}"))
            })
        };
        match keys.items_of_sequence() {
            None => find(keys),
            Some(keys) => {
                let parts: Result<Vec<String>> =
                    keys.iter().map(|key| find(key).map(|value| value.to_str().into())).collect();
                Ok(parts?.join("\n").into())
            }
        }
    }

    /// The given content, if any.
    fn contents(&self, cx: &Cx) -> Result<Option<Vec<u8>>> {
        let given = [&self.contents, &self.contents_pillar, &self.contents_grains];
        let count = given.iter().filter(|value| value.is_some()).count();
        let has_source = self.source.as_ref().is_some_and(Value::truthy);
        if has_source && count > 0 {
            return Err(Error::failed(format!(
                "'source' cannot be used in combination with {SOURCES}"
            )));
        }
        if self.mode.as_ref().is_some_and(Mode::is_keep) && count > 0 {
            return Err(Error::failed(format!(
                "Mode preservation cannot be used in combination with {SOURCES}"
            )));
        }
        if count > 1 {
            return Err(Error::failed(
                "Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted",
            ));
        }
        let (value, shown) = if let Some(keys) = &self.contents_pillar {
            (self.looked_up(&cx.pillar, keys, "Pillar")?, format!("contents_pillar {keys}"))
        } else if let Some(keys) = &self.contents_grains {
            (self.looked_up(&cx.grains, keys, "Grain")?, format!("contents_grains {keys}"))
        } else if let Some(contents) = &self.contents {
            (contents.clone(), "'contents'".to_owned())
        } else {
            return Ok(None);
        };
        if !self.allow_empty && !value.truthy() {
            return Err(Error::failed(format!(
                "{shown} value would result in empty contents. Set allow_empty to True to allow \
                 the managed file to be empty."
            )));
        }
        if let Value::Bytes(bytes) = &value
            && std::str::from_utf8(bytes).is_err()
        {
            if self.template.is_some() {
                return Err(Error::failed(
                    "Contents specified by contents/contents_pillar/contents_grains appears to be \
                     binary data, and as will not be able to be treated as a Jinja template.",
                ));
            }
            return Ok(Some(bytes.to_vec()));
        }
        let parts = texts(&value);
        if parts.is_empty() {
            return Err(Error::failed(
                "Contents specified by contents/contents_pillar/contents_grains is not a string \
                 or list of strings, and is not binary data. SLS is likely malformed.",
            ));
        }
        let mut text = String::new();
        for line in parts.iter().flat_map(|part| bare_lines(part)) {
            text.push_str(line.trim_end_matches('\n').trim_end_matches('\r'));
            text.push('\n');
        }
        if !self.contents_newline {
            let bare = text.trim_end_matches('\n').trim_end_matches('\r');
            text.truncate(bare.len());
        }
        if let Some(engine) = self.template.as_deref().filter(|engine| !engine.is_empty()) {
            let names = names_of(self.defaults.as_ref(), "Defaults")?.shallow_copy();
            names.update(&names_of(self.context.as_ref(), "Context")?);
            text = render(cx, engine, text, None, &cx.saltenv(), names)?;
        }
        match &self.encoding {
            Some(encoding) => encode(&text, encoding, &self.encoding_errors)
                .map(Some)
                .map_err(|error| Error::failed(format!("Unable to manage file: {error}"))),
            None => Ok(Some(text.into_bytes())),
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            user: self.user.clone(),
            group: self.group.clone(),
            mode: self.mode.clone().filter(|mode| !mode.is_keep()),
            attrs: self.attrs.clone(),
            label: self.selinux.as_ref().map(Label::from_dict).unwrap_or_default(),
        }
    }

    fn request(&self, cx: &Cx, name: &str, contents: Option<Vec<u8>>) -> Result<Request> {
        let saltenv = cx.saltenv();
        let mut request = Request::new(name, &saltenv);
        let context = names_of(self.context.as_ref(), "Context")?.shallow_copy();
        if let Some(texts) = accumulated::collected(cx, name) {
            context.insert("accumulator", texts);
        }
        let origin = &mut request.origin;
        origin.template = self.template.clone().filter(|engine| !engine.is_empty());
        origin.context = context;
        origin.defaults = names_of(self.defaults.as_ref(), "Defaults")?;
        origin.source_hash_name.clone_from(&self.source_hash_name);
        origin.skip_verify = self.skip_verify;
        origin.use_etag = self.use_etag;
        origin.trust = Trust {
            verify_ssl: self.verify_ssl,
            digests: self.signed(self.source_hash_sig.as_ref()),
        };
        // What an author wrote beside the arguments (often by indenting `context` too little).
        origin.names = keywords::strays(&cx.low, Self::PARAMS);
        origin.names.update(&entries! {
            "user" => self.user.as_ref().map(Value::from),
            "group" => self.group.as_ref().map(Value::from),
            "mode" => self.mode.as_ref().map(|mode| Value::str(mode.as_str())),
            "attrs" => self.attrs.clone(),
        });
        request.contents = contents;
        request.wanted = self.wanted();
        request.keep_mode = self.mode.as_ref().is_some_and(Mode::is_keep);
        request.follow_symlinks = self.follow_symlinks;
        request.show_changes = self.show_changes;
        request.new_file_diff = self.new_file_diff;
        request.lenient = Lenient {
            ordering: self.ignore_ordering,
            whitespace: self.ignore_whitespace,
            comments: self.ignore_comment_characters.clone().unwrap_or_default(),
        };
        request.backup.clone_from(&self.backup);
        request.makedirs = self.makedirs;
        request.dir_mode.clone_from(&self.dir_mode);
        Ok(request)
    }

    /// The content is left alone: only owner and mode count.
    fn only_perms(&self, cx: &Cx, name: &str, mut request: Request) -> Result<Found<Option<Work>>> {
        request.contents = None;
        request.origin.source = None;
        let view = request.look(cx)?;
        let mut plan = Plan::changes(view.perms.clone());
        let lmode = cx.host.stat(Path::new(name), self.follow_symlinks)?.mode_text();
        plan.pending = match &request.wanted.mode {
            Some(mode) if mode.as_str() != lmode => format!(
                "File {name} will be updated with permissions {mode} from its current state of \
                 {lmode}"
            ),
            _ => format!("File {name} not updated"),
        };
        if view.perms.is_empty() {
            plan.done = format!("File {name} exists with proper permissions. No changes made.");
        }
        plan.warnings = self.warnings();
        Ok(Found::todo(plan, Some(Work { request, view })))
    }

    fn signed(&self, signature: Option<&Value>) -> Option<Signature> {
        Some(Signature {
            signature: signature.filter(|signature| signature.truthy())?.clone(),
            signed_by_any: self.signed_by_any.clone(),
            signed_by_all: self.signed_by_all.clone(),
            keyring: self.keyring.clone(),
            gnupghome: self.gnupghome.clone(),
            backend: self.sig_backend.clone(),
        })
    }

    /// Checks the signature of the source, if one is given.
    fn verify(&self, cx: &Cx, work: &Work) -> Result<()> {
        let Some(check) = self.signed(self.signature.as_ref()) else { return Ok(()) };
        let Content::File(path) = work.view.content().clone().fetched(cx)? else { return Ok(()) };
        check.verify(cx, &path, &cx.saltenv()).map_err(|error| {
            Error::failed(format!("Failed checking new file's signature: {error}"))
        })
    }

    /// Runs `check_cmd` on the new content, in a file of its own.
    fn check(&self, cx: &Cx, work: &Work) -> Result<Option<Applied>> {
        let Some(command) = &self.check_cmd else { return Ok(None) };
        if !work.view.is_new() && !work.view.changes_content() && work.view.perms.is_empty() {
            return Ok(None);
        }
        let folder = self.tmp_dir.clone();
        let path =
            halite_modules::temp::file(cx, self.tmp_ext.clone(), "__salt.tmp.".to_owned(), folder)?;
        let at = Path::new(&path);
        let written = work.view.content().open(cx).and_then(|mut reader| {
            let how = Write { mode: Some(0o600), ..Write::default() };
            Ok(cx.host.write_from(at, &mut *reader, &how)?)
        });
        let output = written.and_then(|()| {
            let shell = cx.grain("shell").map_or_else(|| "/bin/sh".into(), |shell| shell.to_str());
            Ok(cx.host.run(&Command::shell(shell.as_str(), format!("{command} {path}")))?)
        });
        cx.host.remove_file(at)?;
        let output =
            output.map_err(|error| Error::failed(format!("Unable to check_cmd file: {error}")))?;
        if output.ok() {
            return Ok(None);
        }
        let mut comment = "check_cmd execution failed".to_owned();
        for text in [output.stdout_text(), output.stderr_text()] {
            let text = text.trim_end();
            if !text.is_empty() {
                comment.push('\n');
                comment.push_str(text);
            }
        }
        Ok(Some(Applied {
            extra: entries! { "skip_watch" => true },
            ..Applied::failed(Dict::new(), comment)
        }))
    }
}

impl State for Managed {
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);
    /// No work means that the file cannot be had.
    type Seen = Found<Option<Work>>;

    fn refusal(&self, cx: &Cx) -> Result<Option<String>> {
        let Some(text) = unknown_owners(cx, self.user.as_ref(), self.group.as_ref()) else {
            return Ok(None);
        };
        // Salt looks for the owner after the content, and before the path.
        let name = expand_user(cx, &self.name);
        let is_asked = !name.is_empty()
            && self.contents(cx).is_ok()
            && (self.create || cx.host.is_file(Path::new(&name))?);
        Ok(is_asked.then_some(text))
    }

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = expand_user(cx, &self.name);
        if name.is_empty() {
            return Err(Error::failed("Destination file name is required"));
        }
        let contents = self.contents(cx)?;
        let at = Path::new(&name);
        if !self.create && !cx.host.is_file(at)? {
            return Ok(Found::right(format!(
                "File {name} is not present and is not set for creation"
            )));
        }
        if !is_abs(&name) {
            return Err(Error::failed(format!("Specified file {name} is not an absolute path")));
        }
        let stat = cx.host.stat_if_there(at, true)?;
        if stat.as_ref().is_some_and(|stat| stat.kind == Kind::Dir) {
            return Err(Error::failed(format!("Specified target {name} is a directory")));
        }
        // An empty list is a list of which none was found.
        let is_list = |source: &Value| source.items_of_sequence().is_some();
        let source = self.source.clone().filter(|source| source.truthy() || is_list(source));
        let mut request = self.request(cx, &name, contents)?;
        let mut replace = self.replace && (source.is_some() || request.contents.is_some());
        let chosen = match &source {
            Some(source) if replace || stat.is_none() => {
                let chosen = choose(cx, source, &self.source_hash, &request.origin.saltenv);
                let (source, hash) = chosen
                    .map_err(|error| Error::failed(format!("Unable to manage file: {error}")))?;
                request.origin.source_hash =
                    Some(hash.to_str().to_string()).filter(|_| hash.truthy());
                source
            }
            _ => None,
        };
        request.origin.source = chosen;
        if replace && stat.is_some() && self.is_current(cx, &name, &request) {
            replace = false;
        }
        if !replace && stat.is_some() {
            return self.only_perms(cx, &name, request);
        }
        let view = match request.look(cx) {
            Ok(view) => view,
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => return Ok(Found::todo(impossible(&error), None)),
        };
        let changes = view.expected(&request);
        let mut found = if changes.is_empty() {
            let (test, real) = (
                format!("The file {name} is in the correct state"),
                format!("File {name} is in the correct state"),
            );
            Found::right_but(test, real)
        } else {
            let plan = Plan::changes(changes).pending(format!(
                "The file {name} is set to be changed\nNote: No changes made, actual changes may\n\
                 be different due to other states."
            ));
            Found::todo(plan, Some(Work { request, view }))
        };
        found.plan.warnings = self.warnings();
        Ok(found)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(work) = seen.work else { return Ok(Applied::as_planned()) };
        let Some(work) = work else { return Err(unable(&seen.plan.pending)) };
        self.verify(cx, &work)?;
        if let Some(refused) = self.check(cx, &work)? {
            return Ok(refused);
        }
        let counts = work.view.difference.as_ref().is_none_or(|difference| difference.counts);
        let lenient = work.request.lenient.is_on();
        let source = work.request.origin.source.clone();
        let saltenv = work.request.origin.saltenv.clone();
        let only_perms = work.request.contents.is_none() && source.is_none();
        let was_there = !work.view.is_new();
        let done =
            work.request.perform(cx, work.view).map_err(|error| unable(&error.python_words()))?;
        if !self.keep_source
            && let Some(source) = source
            && let Some(cached) = halite_modules::cp::cached_path(cx, &source, &saltenv)?
        {
            cx.host.remove_file(&cached)?;
        }
        let mut applied = applied(done);
        if only_perms && was_there && applied.result == Some(true) {
            // Salt says nothing when it only had to change the owner or the mode.
            applied.comment = Some(String::new());
        }
        if lenient && !counts {
            applied.extra.insert("skip_req", true);
        }
        Ok(applied)
    }
}

impl Managed {
    /// The file has the hash its source from the web shall have: no need to fetch that.
    fn is_current(&self, cx: &Cx, name: &str, request: &Request) -> bool {
        let origin = &request.origin;
        let (Some(source), Some(hash)) = (&origin.source, &origin.source_hash) else {
            return false;
        };
        if request.contents.is_some() || origin.template.is_some() || self.skip_verify {
            return false;
        }
        if matches!(scheme_of(source).as_str(), "salt" | "file" | "") {
            return false;
        }
        let sum = halite_modules::file::hashes::sum_for(
            cx,
            name,
            source,
            hash,
            origin.source_hash_name.as_deref(),
            &origin.saltenv,
            &origin.trust,
        );
        sum.is_ok_and(|sum| {
            sum.kind.of_file(&*cx.host, Path::new(name)).is_ok_and(|digits| digits == sum.digits)
        })
    }
}

/// The source cannot be had: a test says so in other words than the work.
fn impossible(error: &Error) -> Plan {
    let mut plan = Plan::unknown().pending(error.python_words());
    plan.test_result = Some(false);
    plan
}

fn unable(text: &str) -> Error {
    if text.starts_with("Specified ") && text.contains(" checksum for ") {
        return Error::failed(text);
    }
    Error::failed(format!("Unable to manage file: {text}"))
}

/// The work done as a state's return.
pub(super) fn applied(done: Done) -> Applied {
    Applied {
        changes: Some(done.changes),
        comment: Some(done.comment),
        result: Some(done.result),
        extra: Dict::new(),
    }
}
