//! Managing a whole file: content, owner, mode.
//!
//! [`Request`] is everything wanted; [`Request::look`] compares it with the machine and
//! [`Request::perform`] brings the machine there. The state `file.managed` calls the two in turn;
//! the functions of Salt's names below are the same in the shape their callers know.

use std::path::{Path, PathBuf};

use halite_spec::{
    Args, Cx, Error, Rest, Result, Stat, function,
    host::{Kind as FileKind, Write},
    option_group,
};
use halite_value::{Dict, Value, dict, entries};

use super::{
    backup::{self, keep_copy},
    content::{
        Content, Difference, Lenient, Origin, difference, has_folder, mode_of_source, names_of,
        render,
    },
    hashes::{Sum, UNREACHABLE, hash_of},
    paths::{expand_user, parent, real},
    perms::{Label, Mode, Owner, Wanted},
    source::{Signature, choose},
    text::encode,
    tree::make_folders,
};
use crate::hashutil::Kind;

/// What a managed file shall be.
#[derive(Clone, Debug)]
pub struct Request {
    pub origin: Origin,
    /// Given content, instead of a source.
    pub contents: Option<Vec<u8>>,
    pub wanted: Wanted,
    /// The mode shall be the source's.
    pub keep_mode: bool,
    pub follow_symlinks: bool,
    pub show_changes: bool,
    pub new_file_diff: bool,
    pub lenient: Lenient,
    pub backup: String,
    pub makedirs: bool,
    pub dir_mode: Option<Mode>,
}

impl Request {
    /// A request for a file; everything else as `file.managed` has it by default.
    pub fn new(name: &str, saltenv: &str) -> Self {
        Self {
            origin: Origin {
                name: name.to_owned(),
                saltenv: saltenv.to_owned(),
                ..Origin::default()
            },
            contents: None,
            wanted: Wanted::default(),
            keep_mode: false,
            follow_symlinks: true,
            show_changes: true,
            new_file_diff: false,
            lenient: Lenient::default(),
            backup: String::new(),
            makedirs: false,
            dir_mode: None,
        }
    }

    fn name(&self) -> &str {
        &self.origin.name
    }
}

/// What a look at the machine found.
#[derive(Clone, Debug)]
pub struct View {
    content: Content,
    /// The file to be written: the name, or what it links to.
    target: PathBuf,
    /// The file as it is; `None` if it is not there.
    stat: Option<Stat>,
    /// A link stands there and shall not be followed.
    replaces_link: bool,
    /// How the content differs.
    pub difference: Option<Difference>,
    /// How owner, mode and attributes differ.
    pub perms: Dict,
    wanted: Wanted,
}

impl View {
    pub fn is_new(&self) -> bool {
        self.stat.is_none()
    }

    /// The changes that `test=True` tells, as Salt tells them.
    pub fn expected(&self, request: &Request) -> Dict {
        if self.is_new() && !request.new_file_diff {
            return entries! { "newfile" => request.name() };
        }
        let changes = Dict::new();
        if let Some(difference) = &self.difference {
            changes.insert("diff", difference.text.as_str());
        }
        if !self.is_new() {
            changes.update(&self.perms);
        }
        changes
    }

    /// Where some differences do not count, tells whether one is there that does.
    fn counts(&self, request: &Request) -> Option<bool> {
        let counts = self.difference.as_ref().is_some_and(|difference| difference.counts);
        request.lenient.is_on().then_some(counts)
    }

    pub fn changes_content(&self) -> bool {
        self.difference.is_some() || self.replaces_link
    }

    /// The content that will be there.
    pub fn content(&self) -> &Content {
        &self.content
    }
}

/// What was done, in the words of a state's return.
#[derive(Clone, Debug)]
pub struct Done {
    pub changes: Dict,
    pub comment: String,
    pub result: bool,
}

impl Done {
    fn failed(comment: impl Into<String>) -> Self {
        Self { changes: Dict::new(), comment: comment.into(), result: false }
    }
}

impl Request {
    /// Compares what is wanted with the machine.
    pub fn look(&self, cx: &Cx) -> Result<View> {
        let content = match &self.contents {
            Some(bytes) => Content::Bytes(bytes.clone()),
            None => self.origin.content(cx)?,
        };
        let mut wanted = self.wanted.clone();
        if self.keep_mode
            && let Some(source) = &self.origin.source
            && let Some(mode) = mode_of_source(cx, source, &self.origin.saltenv)?
        {
            wanted.mode = Some(Mode::of(mode));
        }
        let name = Path::new(self.name());
        let itself = cx.host.stat_if_there(name, false)?;
        let is_link = itself.as_ref().is_some_and(|stat| stat.kind == FileKind::Link);
        let replaces_link = is_link && !self.follow_symlinks;
        let target = if is_link && self.follow_symlinks {
            PathBuf::from(real(cx, self.name())?)
        } else {
            name.to_owned()
        };
        let stat = if is_link && self.follow_symlinks {
            cx.host.stat_if_there(&target, true)?
        } else {
            itself
        };
        let difference = self.compare(cx, &target, stat.as_ref(), &content)?;
        let perms = match &stat {
            Some(stat) => wanted.differences(cx, &target, stat),
            None => Dict::new(),
        };
        Ok(View { content, target, stat, replaces_link, difference, perms, wanted })
    }

    /// As [`Request::look`], where what stands there now will be gone before.
    pub fn look_at_nothing(&self, cx: &Cx) -> Result<View> {
        Ok(View {
            content: self.origin.content(cx)?,
            target: PathBuf::from(self.name()),
            stat: None,
            replaces_link: false,
            difference: Some(Difference { text: "New file".into(), counts: true }),
            perms: Dict::new(),
            wanted: self.wanted.clone(),
        })
    }

    fn compare(
        &self,
        cx: &Cx,
        target: &Path,
        stat: Option<&Stat>,
        content: &Content,
    ) -> Result<Option<Difference>> {
        let shown = |text: &str| Some(Difference { text: text.to_owned(), counts: true });
        let readable = stat.is_some_and(|stat| stat.kind != FileKind::Link);
        if readable {
            if matches!(content, Content::Unknown) || content.is_in(cx, target)? {
                return Ok(None);
            }
        } else if stat.is_none() && !self.new_file_diff {
            return Ok(shown("New file"));
        } else if stat.is_some() && (!cx.host.is_file(target)? || content.is_in(cx, target)?) {
            return Ok(shown("Replace symbolic link with regular file"));
        }
        if cx.opt_bool("obfuscate_templates") {
            return Ok(shown("<Obfuscated Template>"));
        }
        if !self.show_changes {
            return Ok(shown("<show_changes=False>"));
        }
        difference(cx, stat.map(|_| target), content, &self.lenient).map(Some)
    }

    /// Brings the machine there.
    pub fn perform(&self, cx: &Cx, view: View) -> Result<Done> {
        if view.is_new() { self.create(cx, view) } else { self.update(cx, view) }
    }

    fn update(&self, cx: &Cx, view: View) -> Result<Done> {
        let changes = Dict::new();
        if let Some(difference) = &view.difference {
            if view.replaces_link {
                self.replace_link(cx, &view)?;
            } else {
                keep_copy(cx, &view.target, &self.backup)?;
                let how = self.how(cx, &view.wanted)?;
                let mut reader = view.content.open(cx)?;
                if let Err(error) = cx.host.write_from(&view.target, &mut *reader, &how) {
                    return Ok(Done::failed(format!("Failed to commit change: {error}")));
                }
                for (key, value) in &view.perms {
                    let known = match key.to_str().as_str() {
                        "user" => how.uid.is_some(),
                        "group" => how.gid.is_some(),
                        "mode" => how.mode.is_some(),
                        _ => false,
                    };
                    if known {
                        changes.insert(key, value);
                    }
                }
            }
            if !difference.text.is_empty() {
                let perms = std::mem::take(&mut *changes.write());
                changes.insert("diff", difference.text.as_str());
                changes.write().extend(perms);
            }
        }
        let enforced = view.wanted.enforce(cx, Path::new(self.name()), self.follow_symlinks)?;
        changes.update(&enforced.changes);
        let result = enforced.problems.is_empty();
        let comment = if !changes.is_empty() {
            format!("File {} updated", self.name())
        } else if result {
            format!("File {} is in the correct state", self.name())
        } else {
            enforced.problems.join("; ")
        };
        Ok(Done { changes, comment, result })
    }

    /// A new file beside the link takes its name in one step.
    fn replace_link(&self, cx: &Cx, view: &View) -> Result<()> {
        let beside = crate::temp::fresh_path(cx, parent(self.name()), ".salt", "");
        let mut reader = view.content.open(cx)?;
        cx.host.write_from(&beside, &mut *reader, &self.how(cx, &view.wanted)?)?;
        let renamed = cx.host.rename(&beside, Path::new(self.name()));
        if renamed.is_err() {
            let _ = cx.host.remove_file(&beside);
        }
        Ok(renamed?)
    }

    /// Owner and mode that can be set as the file is written.
    fn how(&self, cx: &Cx, wanted: &Wanted) -> Result<Write> {
        Ok(Write {
            mode: wanted.mode.as_ref().and_then(Mode::bits),
            uid: Owner::given(wanted.user.as_ref()).map(|user| user.known_uid(cx)).transpose()?,
            gid: Owner::given(wanted.group.as_ref())
                .map(|group| group.known_gid(cx))
                .transpose()?,
        })
    }

    fn create(&self, cx: &Cx, view: View) -> Result<Done> {
        let name = self.name();
        if !has_folder(cx, name)? {
            if !self.makedirs {
                return Ok(Done::failed("Parent directory not present"));
            }
            let given = self.dir_mode.clone();
            let mode = given.or_else(|| view.wanted.mode.as_ref().map(Mode::for_folders));
            let owner = (view.wanted.user.as_ref(), view.wanted.group.as_ref());
            make_folders(cx, parent(name), owner, mode.as_ref())?;
        }
        let how = self.how(cx, &view.wanted)?;
        // Salt makes an empty file before it writes contents, and keeps a copy of that.
        if self.contents.is_some() && backup::wanted(cx, &self.backup) {
            cx.host.write(&view.target, b"", &how)?;
            keep_copy(cx, &view.target, &self.backup)?;
        }
        let mut reader = view.content.open(cx)?;
        if let Err(error) = cx.host.write_from(&view.target, &mut *reader, &how) {
            return Ok(Done::failed(format!("Failed to commit change: {error}")));
        }
        let changes = Dict::new();
        let mut comment = format!("File {name} updated");
        if matches!(view.content, Content::Unknown) {
            changes.insert("new", format!("file {name} created"));
            "Empty file".clone_into(&mut comment);
        } else if let Some(difference) = &view.difference {
            changes.insert("diff", difference.text.as_str());
        }
        let stat = cx.host.stat(&view.target, true)?;
        let ours = |id: Option<u32>, own: u32| id.is_some_and(|id| id != own);
        if let Some(user) = &view.wanted.user
            && ours(how.uid, cx.host.uid())
        {
            changes.insert("user", user);
        }
        if let Some(group) = &view.wanted.group
            && ours(how.gid, cx.host.gid())
        {
            changes.insert("group", group);
        }
        // Salt makes a file with no rights for others first, unless nobody asked for a mode and
        // the content was given; the step from there is told as a change.
        let private = self.origin.source.is_some() || view.wanted.mode.is_some();
        if private && stat.mode != 0o600 {
            changes.insert("mode", stat.mode_text());
        }
        let enforced = view.wanted.enforce(cx, &view.target, false)?;
        changes.update(&enforced.changes);
        let result = enforced.problems.is_empty();
        if !result {
            comment = enforced.problems.join("; ");
        }
        Ok(Done { changes, comment, result })
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    value.filter(|value| value.truthy()).map(|value| value.to_str().to_string())
}

/// Who has to have signed, if a signature is given.
fn signature_from(given: &Dict, signature: Option<Value>) -> Option<Signature> {
    let text = |key: &str| text_of(given.get(key).as_ref());
    Some(Signature {
        signature: signature.filter(Value::truthy)?,
        signed_by_any: given.get("signed_by_any"),
        signed_by_all: given.get("signed_by_all"),
        keyring: text("keyring"),
        gnupghome: text("gnupghome"),
        backend: text("sig_backend").unwrap_or_else(|| "gpg".to_owned()),
    })
}

/// The arguments that several functions here share, by Salt's names.
fn request_from(
    cx: &Cx,
    name: &str,
    source: &Value,
    source_hash: &Value,
    given: &Dict,
    saltenv: &str,
) -> Result<Request> {
    let (source, source_hash) = choose(cx, source, source_hash, saltenv)?;
    let mut request = Request::new(&expand_user(cx, name), saltenv);
    let text = |key: &str| text_of(given.get(key).as_ref());
    let flag = |key: &str, default: bool| given.get(key).map_or(default, |value| value.truthy());
    let owner = |key: &str| -> Option<Owner> {
        let value = given.get(key).filter(|value| !value.is_null())?;
        halite_spec::FromArg::from_arg(value).ok()
    };
    request.origin.source = source;
    request.origin.source_hash = text_of(Some(&source_hash));
    request.origin.source_hash_name = text("source_hash_name");
    request.origin.template = text("template");
    request.origin.context = names_of(given.get("context").as_ref(), "Context")?;
    request.origin.defaults = names_of(given.get("defaults").as_ref(), "Defaults")?;
    request.origin.skip_verify = flag("skip_verify", false);
    request.origin.use_etag = flag("use_etag", false);
    request.origin.trust.verify_ssl = flag("verify_ssl", true);
    request.origin.trust.digests = signature_from(given, given.get("source_hash_sig"));
    request.contents = match given.get("contents") {
        None | Some(Value::Null) => None,
        Some(value) => Some(
            value.as_bytes().map_or_else(|| value.to_str().as_bytes().to_vec(), <[u8]>::to_vec),
        ),
    };
    request.keep_mode = flag("keep_mode", false);
    request.wanted = Wanted {
        user: owner("user"),
        group: owner("group"),
        mode: text("mode").map(|mode| Mode::new(&mode)),
        attrs: text("attrs"),
        label: Label::from_dict(given),
    };
    request.follow_symlinks = flag("follow_symlinks", true);
    request.show_changes = flag("show_changes", true);
    request.new_file_diff = flag("new_file_diff", false);
    request.lenient = lenient_of(given);
    request.backup = text("backup").unwrap_or_default();
    request.makedirs = flag("makedirs", false);
    request.dir_mode = text("dir_mode").map(|mode| Mode::new(&mode));
    for (key, value) in [("user", &request.wanted.user), ("group", &request.wanted.group)] {
        request.origin.names.insert(key, value.as_ref().map(Value::from));
    }
    request.origin.names.insert("mode", text("mode"));
    request.origin.names.insert("attrs", text("attrs"));
    Ok(request)
}

option_group! {
    /// The security label a file shall have.
    LabelOptions:
    /// Its SELinux user.
    seuser = Value::Null,
    /// Its SELinux role.
    serole = Value::Null,
    /// Its SELinux type.
    setype = Value::Null,
    /// Its SELinux range.
    serange = Value::Null,
}

option_group! {
    /// Who has to have signed.
    SignerOptions:
    /// One of these keys has to have signed.
    signed_by_any = Value::Null,
    /// All of these keys have to have signed.
    signed_by_all = Value::Null,
    /// The keyring of the keys.
    keyring = Value::Null,
    /// The home of GnuPG.
    gnupghome = Value::Null,
}

option_group! {
    /// What is no difference.
    LenientOptions:
    /// The order of lines does not count.
    ignore_ordering = Value::Bool(false),
    /// White space does not count.
    ignore_whitespace = Value::Bool(false),
    /// Comments that begin so do not count.
    ignore_comment_characters = Value::Null,
}

/// Who a file belongs to and what it may do, as callers have to say.
#[derive(Args, Clone, Debug)]
pub struct OwnerOptions {
    /// The user.
    #[arg(required)]
    user: Option<Value>,
    /// The group.
    #[arg(required)]
    group: Option<Value>,
    /// The mode.
    #[arg(required)]
    mode: Option<Value>,
    /// The attributes, as letters.
    #[arg(required)]
    attrs: Option<Value>,
}

impl OwnerOptions {
    fn put(self, options: &Dict) {
        options.insert("user", self.user);
        options.insert("group", self.group);
        options.insert("mode", self.mode);
        options.insert("attrs", self.attrs);
    }
}

fn lenient_of(given: &Dict) -> Lenient {
    let flag = |key: &str| given.get(key).is_some_and(|value| value.truthy());
    let comments = given.get("ignore_comment_characters").filter(Value::truthy);
    Lenient {
        ordering: flag("ignore_ordering"),
        whitespace: flag("ignore_whitespace"),
        comments: comments
            .map(|given| match given.items_of_sequence() {
                Some(list) => list.iter().map(Value::to_string).collect(),
                None => vec![given.to_string()],
            })
            .unwrap_or_default(),
    }
}

/// Return the file that holds a managed file's content, its digest, and what is wrong with it.
///
/// ```console
/// $ salt '*' file.get_managed /etc/httpd/conf.d/httpd.conf jinja salt://http/httpd.conf '' None root root '755' None base None None
/// ```
#[function]
pub fn get_managed(
    cx: &Cx,
    /// The file to be managed.
    name: String,
    /// The template engine.
    #[arg(required)]
    template: Option<String>,
    /// The source.
    source: Value,
    /// The source's hash.
    #[arg(required)]
    source_hash: Option<Value>,
    /// The line of a file of hashes that counts.
    #[arg(required)]
    source_hash_name: Option<Value>,
    #[group] owner: OwnerOptions,
    /// The environment of `salt://` files.
    #[arg(required)]
    saltenv: Option<String>,
    /// Names for the template.
    #[arg(required)]
    context: Option<Value>,
    /// Names where `context` has none.
    #[arg(required)]
    defaults: Option<Value>,
    /// Do not compare digests.
    #[default(Value::Bool(false))]
    skip_verify: Value,
    /// Check the certificate of a web server.
    #[default(Value::Bool(true))]
    verify_ssl: Value,
    /// Ask a web server only for what changed.
    #[default(Value::Bool(false))]
    use_etag: Value,
    /// A detached signature of the file of digests.
    #[default(Value::Null)]
    source_hash_sig: Value,
    #[group] signers: SignerOptions,
    #[group] lenient: LenientOptions,
    /// The module that checks signatures.
    #[default(Value::str("gpg"))]
    sig_backend: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let given = entries! {
        "template" => template, "source_hash_name" => source_hash_name, "context" => context,
        "defaults" => defaults, "skip_verify" => skip_verify, "verify_ssl" => verify_ssl,
        "use_etag" => use_etag, "source_hash_sig" => source_hash_sig, "sig_backend" => sig_backend,
    };
    owner.put(&given);
    signers.put(&given);
    lenient.put(&given);
    let saltenv = saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| "base".to_owned());
    let hash = source_hash.unwrap_or_default();
    let request = request_from(cx, &name, &source, &hash, &given, &saltenv)?;
    let content = match request.origin.content(cx) {
        Ok(content) => content,
        Err(error) => {
            return Ok(Value::tuple([Value::str(""), Value::dict(), comment_of(error)?.into()]));
        }
    };
    let (path, sum) = match content {
        Content::Served { sum, .. } => (String::new(), (&sum).into()),
        Content::Unknown => (String::new(), Value::dict()),
        Content::File(path) => {
            let digits = Kind::Sha256.of_file(&*cx.host, &path)?;
            (path.display().to_string(), (&Sum { kind: Kind::Sha256, digits }).into())
        }
        Content::Bytes(bytes) => {
            let path = crate::temp::fresh_path(cx, "/tmp", "__salt.tmp.", "");
            cx.host.write(&path, &bytes, &Write { mode: Some(0o600), ..Write::default() })?;
            let sum = Sum { kind: Kind::Sha256, digits: Kind::Sha256.of(&bytes) };
            (path.display().to_string(), (&sum).into())
        }
    };
    Ok(Value::tuple([path.into(), sum, Value::str("")]))
}

/// Bring a file to what is wanted, from a source already on this machine or given contents.
///
/// ```console
/// $ salt web1 file.manage_file /srv/app/app.conf
/// ```
#[function]
pub fn manage_file(
    cx: &Cx,
    /// The file.
    name: String,
    /// The file that holds the content.
    #[arg(required)]
    sfn: Option<String>,
    /// A state's return to add to.
    #[arg(required)]
    ret: Option<Value>,
    /// The source, if `sfn` is empty.
    #[arg(required)]
    source: Option<Value>,
    /// The digest the content must have.
    #[arg(required)]
    source_sum: Option<Value>,
    /// The user.
    #[arg(required)]
    user: Option<Owner>,
    /// The group.
    #[arg(required)]
    group: Option<Owner>,
    /// The mode.
    #[arg(required)]
    mode: Option<Mode>,
    /// The attributes, as letters.
    #[arg(required)]
    attrs: Option<String>,
    /// The environment of `salt://` files.
    #[arg(required)]
    saltenv: Option<String>,
    /// `minion` keeps a copy of the file replaced.
    #[arg(required)]
    backup: Option<String>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// The template engine; the content is rendered already.
    template: Option<String>,
    /// Show what changed.
    #[default(true)]
    show_changes: bool,
    /// The content itself.
    contents: Option<Value>,
    /// The mode of folders made.
    dir_mode: Option<Mode>,
    /// Write through a link.
    #[default(true)]
    follow_symlinks: bool,
    /// Do not compare digests.
    #[default(false)]
    skip_verify: bool,
    /// Take the source's mode.
    #[default(false)]
    keep_mode: bool,
    /// The encoding of given contents.
    encoding: Option<String>,
    /// What to do with characters the encoding lacks.
    #[default("strict".to_owned())]
    encoding_errors: String,
    #[group] label: LabelOptions,
    /// Check the certificate of a web server.
    #[default(true)]
    verify_ssl: bool,
    /// Ask a web server only for what changed.
    #[default(false)]
    use_etag: bool,
    /// A detached signature of the source.
    #[default(Value::Null)]
    signature: Value,
    /// A detached signature of the file of digests.
    #[default(Value::Null)]
    source_hash_sig: Value,
    #[group] signers: SignerOptions,
    #[group] lenient: LenientOptions,
    /// Show the content of a new file.
    #[default(false)]
    new_file_diff: bool,
    /// The module that checks signatures.
    #[default(Value::str("gpg"))]
    sig_backend: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    // The digests were read, and their signature checked, by whoever made `source_sum`.
    let _ = (template, source_hash_sig, rest);
    let name = expand_user(cx, &name);
    let given = entries! { "sig_backend" => sig_backend };
    label.put(&given);
    signers.put(&given);
    lenient.put(&given);
    let saltenv = saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| "base".to_owned());
    let mut request = Request::new(&name, &saltenv);
    let sfn = sfn.filter(|path| !path.is_empty());
    request.origin.source = sfn.clone().or_else(|| text_of(source.as_ref()));
    request.origin.skip_verify = true;
    request.origin.use_etag = use_etag;
    request.origin.trust.verify_ssl = verify_ssl;
    request.contents = match contents.filter(|value| !value.is_null()) {
        None => None,
        Some(value) => Some(match (&value, &encoding) {
            (Value::Bytes(bytes), _) => bytes.to_vec(),
            (_, Some(encoding)) => encode(&value.to_str(), encoding, &encoding_errors)
                .map_err(|error| Error::raised("UnicodeEncodeError", error.to_string()))?,
            (_, None) => value.to_str().as_bytes().to_vec(),
        }),
    };
    request.wanted = Wanted { user, group, mode, attrs, label: Label::from_dict(&given) };
    request.lenient = lenient_of(&given);
    request.keep_mode = keep_mode;
    request.follow_symlinks = follow_symlinks;
    request.show_changes = show_changes;
    request.new_file_diff = new_file_diff;
    request.backup = backup.unwrap_or_default();
    request.makedirs = makedirs;
    request.dir_mode = dir_mode;
    let ret = ret.as_ref().and_then(Value::as_dict).filter(|ret| !ret.is_empty()).cloned();
    let ret = ret.unwrap_or_else(|| {
        entries! { "name" => &name, "changes" => Value::dict(), "comment" => "", "result" => true }
    });
    if let (false, Some(sfn), Some(sum)) =
        (skip_verify, &sfn, source_sum.as_ref().and_then(Value::as_dict).and_then(Sum::from_dict))
    {
        let actual = sum.kind.of_file(&*cx.host, Path::new(sfn))?;
        if actual != sum.digits {
            ret.insert("result", false);
            ret.insert(
                "comment",
                format!(
                    "Specified {} checksum for {name} ({}) does not match actual checksum \
                     ({actual})",
                    sum.kind.name(),
                    sum.digits
                ),
            );
            return Ok(ret);
        }
    }
    let view = request.look(cx)?;
    if let Some(check) = signature_from(&given, Some(signature))
        && let Content::File(path) = view.content().clone().fetched(cx)?
        && let Err(error) = check.verify(cx, &path, &saltenv)
    {
        ret.insert("result", false);
        ret.insert("comment", format!("Failed checking new file's signature: {error}"));
        return Ok(ret);
    }
    let done = if cx.opt_bool("test") {
        let changes = view.expected(&request);
        let comment = format!("File {name} not updated");
        Done { changes, comment, result: true }
    } else {
        request.perform(cx, view)?
    };
    if let Some(Value::Dict(changes)) = ret.get("changes") {
        changes.update(&done.changes);
    }
    ret.insert("comment", done.comment);
    ret.insert("result", done.result);
    Ok(ret)
}

/// What both functions that look at a managed file have to be told.
#[derive(Args, Clone, Debug)]
pub struct CheckOptions {
    /// The source.
    source: Value,
    /// The source's hash.
    #[arg(required)]
    source_hash: Option<Value>,
    /// The line of a file of hashes that counts.
    #[arg(required)]
    source_hash_name: Option<Value>,
    #[group]
    owner: OwnerOptions,
    /// The template engine.
    #[arg(required)]
    template: Option<Value>,
    /// Names for the template.
    #[arg(required)]
    context: Option<Value>,
    /// Names where `context` has none.
    #[arg(required)]
    defaults: Option<Value>,
    /// The environment of `salt://` files.
    #[arg(required)]
    saltenv: Option<Value>,
    /// The content itself.
    #[default(Value::Null)]
    contents: Value,
    /// Do not compare digests.
    #[default(Value::Bool(false))]
    skip_verify: Value,
}

fn checked(
    cx: &Cx,
    name: &str,
    options: CheckOptions,
    given: &Dict,
) -> Result<std::result::Result<(Dict, Option<bool>), String>> {
    let saltenv = text_of(options.saltenv.as_ref()).unwrap_or_else(|| "base".to_owned());
    let hash = options.source_hash.unwrap_or_default();
    options.owner.put(given);
    for (name, value) in [
        ("source_hash_name", options.source_hash_name),
        ("template", options.template),
        ("context", options.context),
        ("defaults", options.defaults),
        ("contents", Some(options.contents)),
        ("skip_verify", Some(options.skip_verify)),
    ] {
        given.insert(name, value);
    }
    let source = &options.source;
    let request = request_from(cx, name, source, &hash, given, &saltenv)?;
    Ok(match request.look(cx) {
        Ok(view) => {
            let changes = with_blanks(view.expected(&request), &view, given);
            Ok((changes, view.counts(&request)))
        }
        Err(error) => Err(comment_of(error)?),
    })
}

/// Turns an error into the comment it becomes, unless it ends the function.
fn comment_of(error: Error) -> Result<String> {
    match error {
        Error::Cancelled => Err(error),
        Error::Raised { ref class, .. } if class == UNREACHABLE => Err(error),
        error => Ok(error.to_string()),
    }
}

/// The changes; where some differences do not count, beside whether one is there that does.
fn weighed(changes: Dict, counts: Option<bool>) -> Value {
    match counts {
        Some(counts) => Value::tuple([Value::Bool(counts), changes.into()]),
        None => changes.into(),
    }
}

/// Tell whether a managed file would change, in words.
///
/// ```console
/// $ salt web1 file.check_managed /srv/app/app.conf salt://app/app.conf
/// ```
#[function]
pub fn check_managed(
    cx: &Cx,
    /// The file.
    name: String,
    #[group] options: CheckOptions,
    #[group] label: LabelOptions,
    /// Look at what a link points to.
    #[default(Value::Bool(false))]
    follow_symlinks: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let given = entries! { "follow_symlinks" => follow_symlinks };
    label.put(&given);
    let changes = match checked(cx, &name, options, &given)? {
        Ok((changes, _)) => changes,
        Err(comment) => return Ok(Value::tuple([Value::Bool(false), comment.into()])),
    };
    if name.starts_with("/tmp") {
        for key in ["user", "group", "mode"] {
            changes.remove(key);
        }
    }
    Ok(if changes.is_empty() {
        Value::tuple([Value::Bool(true), format!("The file {name} is in the correct state").into()])
    } else {
        let lines: String =
            changes.into_iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let comment = format!("The following values are set to be changed:\n{lines}");
        Value::tuple([Value::Null, comment.into()])
    })
}

/// Return what would change in a managed file.
///
/// ```console
/// $ salt web1 file.check_managed_changes /srv/app/app.conf salt://app/app.conf
/// ```
#[function]
pub fn check_managed_changes(
    cx: &Cx,
    /// The file.
    name: String,
    #[group] options: CheckOptions,
    /// The mode shall be the source's.
    #[default(Value::Bool(false))]
    keep_mode: Value,
    #[group] label: LabelOptions,
    /// Check the certificate of a web server.
    #[default(Value::Bool(true))]
    verify_ssl: Value,
    /// Look at what a link points to.
    #[default(Value::Bool(false))]
    follow_symlinks: Value,
    #[group] lenient: LenientOptions,
    /// Show the content of a new file.
    #[default(Value::Bool(false))]
    new_file_diff: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let given = entries! {
        "keep_mode" => keep_mode, "verify_ssl" => verify_ssl,
        "follow_symlinks" => follow_symlinks, "new_file_diff" => new_file_diff,
    };
    label.put(&given);
    lenient.put(&given);
    Ok(match checked(cx, &name, options, &given)? {
        Ok((changes, counts)) => weighed(changes, counts),
        Err(comment) => Value::tuple([Value::Bool(false), comment.into()]),
    })
}

/// Return what differs between a file and what is wanted of it.
///
/// ```console
/// $ salt web1 file.check_file_meta /srv/app/app.conf
/// ```
#[function]
pub fn check_file_meta(
    cx: &Cx,
    /// The file.
    name: String,
    /// The file that holds the content.
    #[arg(required)]
    sfn: Option<String>,
    /// The source, if `sfn` is empty.
    #[arg(required)]
    source: Option<Value>,
    /// The digest the content has.
    #[arg(required)]
    source_sum: Option<Value>,
    #[group] owner: OwnerOptions,
    /// The environment of `salt://` files.
    #[arg(required)]
    saltenv: Option<String>,
    /// The content itself.
    #[default(Value::Null)]
    contents: Value,
    #[group] label: LabelOptions,
    /// Check the certificate of a web server.
    #[default(Value::Bool(true))]
    verify_ssl: Value,
    /// Look at what a link points to.
    #[default(Value::Bool(false))]
    follow_symlinks: Value,
    #[group] lenient: LenientOptions,
    /// Show the content of a new file.
    #[default(Value::Bool(false))]
    new_file_diff: Value,
) -> Result<Value> {
    let given = entries! {
        "contents" => contents, "verify_ssl" => verify_ssl, "follow_symlinks" => follow_symlinks,
        "new_file_diff" => new_file_diff, "skip_verify" => true,
    };
    owner.put(&given);
    label.put(&given);
    lenient.put(&given);
    let saltenv = saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| "base".to_owned());
    let source_sum = source_sum.and_then(|sum| sum.as_dict().cloned());
    // Without a digest Salt does not look at the content, whatever the source is.
    let source_sum = source_sum.unwrap_or_default();
    let path = expand_user(cx, &name);
    let differs = match source_sum.get("hsum") {
        Some(wanted) if cx.host.is_file(Path::new(&path))? => {
            let form = text_of(source_sum.get("hash_type").as_ref());
            wanted.to_str() != hash_of(cx, &path, form.as_deref().unwrap_or("sha256"))?
        }
        Some(_) => true,
        None => false,
    };
    let source = match sfn.filter(|path| !path.is_empty()) {
        _ if !differs => Value::Null,
        Some(path) => path.into(),
        None => source.filter(Value::truthy).unwrap_or_default(),
    };
    let look = |source: &Value| -> Result<(bool, Option<bool>, Dict)> {
        let request = request_from(cx, &name, source, &Value::Null, &given, &saltenv)?;
        let view = request.look(cx)?;
        let changes = with_blanks(view.expected(&request), &view, &given);
        Ok((view.is_new(), view.counts(&request), changes))
    };
    if !source.is_null() {
        match look(&source) {
            Ok((_, counts, changes)) => return Ok(weighed(changes, counts)),
            Err(error @ Error::Cancelled) => return Err(error),
            // A server that fails is an error; a file that is not there is told as any other.
            Err(error) if is_on_a_server(&source) => return Err(error),
            Err(error) => tracing::error!("{error}"),
        }
    }
    let (is_new, counts, changes) = look(&Value::Null)?;
    if differs && !is_new {
        changes.insert("sum", "Checksum differs");
    }
    Ok(weighed(changes, counts))
}

fn is_on_a_server(source: &Value) -> bool {
    let source = source.to_str();
    ["http://", "https://", "ftp://"].iter().any(|scheme| source.starts_with(scheme))
}

/// An owner or mode given as empty text is nobody's: to Salt it always differs.
fn with_blanks(changes: Dict, view: &View, given: &Dict) -> Dict {
    let is_blank = |name: &str| given.get(name).is_some_and(|value| value == *"");
    if !view.is_new() {
        for (name, shown) in [("user", ""), ("group", ""), ("mode", "0000")] {
            if is_blank(name) {
                changes.insert(name, shown);
            }
        }
    }
    changes
}

/// Render a text as a template.
///
/// ```console
/// $ salt web1 file.apply_template_on_contents 'port=8080' jinja '{}'
/// ```
#[function]
pub fn apply_template_on_contents(
    cx: &Cx,
    /// The text.
    contents: String,
    /// The template engine.
    template: String,
    /// Names for the template.
    #[arg(required)]
    context: Option<Value>,
    /// Names where `context` has none.
    #[arg(required)]
    defaults: Option<Value>,
    /// The environment.
    saltenv: String,
) -> Result<Value> {
    let names = names_of(defaults.as_ref(), "Defaults")?.shallow_copy();
    names.update(&names_of(context.as_ref(), "Context")?);
    match render(cx, &template, contents, None, &saltenv, names) {
        Ok(text) => Ok(text.into()),
        Err(Error::Failed(comment)) => Ok(dict! { "result" => false, "comment" => comment }),
        Err(other) => Err(other),
    }
}

/// Return the difference of two files as a unified diff.
///
/// ```console
/// $ salt web1 file.get_diff /srv/app/a.conf /srv/app/b.conf
/// ```
#[function]
pub fn get_diff(
    cx: &Cx,
    /// One file; `salt://` and other addresses are fetched.
    file1: String,
    /// The other.
    file2: String,
    /// The environment of `salt://` files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Name the files in the header.
    #[default(true)]
    show_filenames: bool,
    /// Show the difference, not only that there is one.
    #[default(true)]
    show_changes: bool,
    /// The files are templates, which may be secret.
    #[default(false)]
    template: bool,
    /// The hash of the first.
    source_hash_file1: Option<String>,
    /// The hash of the second.
    source_hash_file2: Option<String>,
    /// The order of lines does not count.
    #[default(false)]
    ignore_ordering: bool,
    /// White space does not count.
    #[default(false)]
    ignore_whitespace: bool,
    /// Comments that begin so do not count.
    ignore_comment_characters: Option<Vec<String>>,
) -> Result<Value> {
    let _ = (source_hash_file1, source_hash_file2);
    let mut paths = Vec::new();
    for file in [&file1, &file2] {
        if Path::new(file).is_absolute() {
            if let Err(error) = cx.host.read(Path::new(file)) {
                let text = error.to_string();
                let reason = text.rsplit_once(": ").map_or(text.as_str(), |(_, reason)| reason);
                return Err(Error::failed(format!("Failed to read {file}: {reason}")));
            }
            paths.push(PathBuf::from(file));
            continue;
        }
        match cx.files.cache(file, &saltenv)? {
            Some(path) if cx.host.is_file(&path)? => paths.push(path),
            _ => {
                return Err(Error::failed(format!(
                    "Failed to cache one or more files\nFile {file} not found"
                )));
            }
        }
    }
    let [first, second] = paths.as_slice() else {
        return Err(Error::failed("Failed to cache one or more files"));
    };
    let lenient = Lenient {
        ordering: ignore_ordering,
        whitespace: ignore_whitespace,
        comments: ignore_comment_characters.unwrap_or_default(),
    };
    let new = Content::File(second.clone());
    let found = if new.is_in(cx, first)? {
        Difference::default()
    } else if template && cx.opt_bool("obfuscate_templates") {
        Difference { text: "<Obfuscated Template>".into(), counts: true }
    } else if show_changes {
        let mut found = difference(cx, Some(first), &new, &lenient)?;
        if show_filenames && let Some(rest) = found.text.strip_prefix("--- \n+++ \n") {
            found.text = format!("--- {}\n+++ {}\n{rest}", first.display(), second.display());
        }
        found
    } else {
        Difference { text: "<show_changes=False>".into(), counts: true }
    };
    Ok(if lenient.is_on() {
        Value::tuple([Value::Bool(found.counts), found.text.into()])
    } else {
        found.text.into()
    })
}
