//! What `x509` and `ssh_pki` keep in files: keys, requests, certificates, lists.
//!
//! What has to be made is decided by a [`Made`]; the file is `file.managed`'s business, which gets
//! all arguments the state does not know (`user`, `mode`, `makedirs`, `backup` …). What is there is
//! compared with what the arguments would make. A file that is not there is not made for a test: its
//! key may be another state's, still to come.

use std::path::Path;

use halite_modules::x509::source::Encoding;
use halite_spec::{
    Applied, Args, Binder, Call, Cx, Error, Outcome, Param, Plan, Rest, Result, State, host::Write,
};
use halite_value::{Dict, Value, dict, entries};

use crate::file::Managed;

/// Something made from arguments that a file holds.
pub(crate) trait Made: Args {
    /// With `test=True` the file is looked at although its content would be made anew.
    const REHEARSES_FILE: bool = true;

    fn target(&self) -> Target<'_>;

    /// Tells the user of what is said in words of old times.
    fn warn(&self) {}

    /// The same for arguments that are looked at only when something is made anew, in a test too.
    fn warn_of_making(&self) {}

    /// Compares what the file has with what is wanted.
    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen>;

    fn plan(&self, seen: &Seen) -> Plan {
        self.target().plan(seen)
    }

    /// Makes the content anew.
    fn make(&self, cx: &Cx, seen: &Seen) -> Result<(Vec<u8>, Encoding)>;
}

/// The state that keeps it in its file.
pub(crate) struct Kept<M>(M);

impl<M: Made> Args for Kept<M> {
    const DOC: &'static str = M::DOC;
    const PARAMS: &'static [Param] = M::PARAMS;
    const OPEN: bool = false;

    fn bind(binder: &mut Binder) -> Result<Self> {
        M::bind(binder).map(Self)
    }
}

impl<M: Made> State for Kept<M> {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        self.0.warn();
        let seen = match self.0.target().content(cx)? {
            Ok(own) => self.0.compare(cx, &own)?,
            Err(seen) => seen,
        };
        // What is only written in another encoding was made before.
        if matches!(seen, Seen::Make { .. }) && !seen.only(&["encoding"]) {
            self.0.warn_of_making();
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(self.0.plan(seen))
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let seen = self.observe(&cx.looking_only())?;
        if !M::REHEARSES_FILE && matches!(seen, Seen::Make { .. }) {
            return Ok(None);
        }
        self.0.target().rehearsed(cx, self.0.plan(&seen)).map(Some)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let target = self.0.target();
        let Seen::Make { .. } = seen else { return target.keep(cx) };
        let (made, encoding) = self.0.make(cx, &seen).map_err(|error| match error {
            // What is no key at all is a plain failure.
            Error::Raised { class, message, .. } if class == "PrivDeserializationError" => {
                Error::failed(message)
            }
            other => other,
        })?;
        target.write(cx, &made, encoding)
    }
}

/// The arguments of `file.managed` among those given.
fn file_arguments(given: &Dict) -> Dict {
    let mine = ["name", "contents", "source", "replace", "show_changes", "text"];
    let kept = Dict::new();
    for param in Managed::PARAMS.iter().filter(|param| !param.rest && !mine.contains(&param.name)) {
        if let Some(value) = given.get(param.name) {
            kept.insert(param.name, value);
        }
    }
    kept
}

/// `file.managed` with this content; without one it keeps what is there and sees to the rest.
pub(crate) fn managed(
    name: &str,
    content: Option<&str>,
    given: &Dict,
    mode: Option<&str>,
) -> Result<Managed> {
    let kwargs = file_arguments(given);
    kwargs.insert("name", name);
    if let Some(mode) = mode {
        // `mode: null` says nothing, either.
        let given = kwargs.get("mode").filter(|given| !given.is_null());
        kwargs.insert("mode", given.unwrap_or_else(|| mode.into()));
    }
    match content {
        Some(content) => {
            kwargs.insert("contents", content);
            kwargs.insert("show_changes", false);
        }
        None => {
            kwargs.insert("replace", false);
        }
    }
    let mut binder = Binder::new(Call { args: Vec::new(), kwargs }, Managed::PARAMS);
    Managed::bind(&mut binder)
}

/// A file that holds something made, and the arguments for it.
pub(crate) struct Target<'a> {
    /// What it holds: `certificate`.
    pub(crate) what: &'static str,
    pub(crate) name: &'a str,
    pub(crate) given: &'a Dict,
    pub(crate) mode: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// `given` are arguments of `file.managed`, and others.
    pub(crate) fn of(what: &'static str, name: &'a str, given: &'a Rest) -> Self {
        Self { what, name, given: &given.kwargs, mode: None }
    }

    fn flag(&self, name: &str) -> bool {
        self.given.get(name).is_none_or(|flag| flag.truthy())
    }

    /// Sees to the file, with this content or whatever it has; the return tells of it as a part
    /// of the state, as Salt's does.
    fn part(&self, cx: &Cx, content: Option<&str>, test: bool) -> Result<(Outcome, Dict)> {
        let file = managed(self.name, content, self.given, self.mode)?;
        let outcome = match halite_spec::run(&file, cx, test) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => Outcome::failed(error.to_string()),
            Ok(outcome) => outcome,
        };
        let id = cx.low.get("__id__").unwrap_or_else(|| self.name.into());
        let low = dict! {
            "name" => self.name, "state" => "file", "__id__" => id.clone(), "fun" => "managed",
        };
        let part = dict! {
            "changes" => outcome.changes.clone(), "comment" => outcome.comment.as_str(),
            "name" => self.name, "result" => outcome.result,
            "__sls__" => cx.low.get("__sls__").unwrap_or_default(), "__id__" => id, "low" => low,
        };
        Ok((outcome, entries! { "sub_state_run" => Value::list([part]) }))
    }

    fn is_right(&self) -> String {
        format!("The {} is in the correct state", self.what)
    }

    /// What is in the file, or what is to be done since it cannot be kept.
    fn content(&self, cx: &Cx) -> Result<std::result::Result<Vec<u8>, Seen>> {
        let path = Path::new(self.name);
        if !path.is_absolute() || cx.host.is_dir(path)? {
            return Err(Error::failed(
                "Problem while testing file.managed changes, see its output",
            ));
        }
        let created = || Seen::Make { changes: entries! { "created" => self.name }, new: true };
        if !self.flag("follow_symlinks") && cx.host.is_link(path)? {
            return Ok(Err(created()));
        }
        let own = cx.host.read_if_there(path)?;
        Ok(own.ok_or_else(|| if self.flag("create") { created() } else { Seen::Right }))
    }

    pub(crate) fn plan(&self, seen: &Seen) -> Plan {
        match seen {
            // The file's owner and mode are seen to in any case.
            Seen::Right => Plan::unknown().pending(self.is_right()).done(self.is_right()),
            Seen::Make { changes, new } => {
                let verb = if *new { "created" } else { "recreated" };
                Plan::changes(changes.clone())
                    .pending(format!("The {} would have been {verb}", self.what))
                    .done(format!("The {} has been {verb}", self.what))
            }
        }
    }

    /// The return of a test.
    fn rehearsed(&self, cx: &Cx, plan: Plan) -> Result<Outcome> {
        let Plan { changes, pending, .. } = plan;
        let (file, extra) = self.part(cx, None, true)?;
        let result = if changes.is_empty() { Some(true) } else { None };
        let outcome = match file.result {
            Some(false) => {
                Outcome::failed("Problem while testing file.managed changes, see its output")
            }
            _ => Outcome::new(result, changes, pending),
        };
        Ok(Outcome { extra, ..outcome })
    }

    /// Sees to a file whose content is right.
    fn keep(&self, cx: &Cx) -> Result<Applied> {
        // Where nothing is to be done, what a test said of the file is the answer.
        let looked = self.part(cx, None, true)?;
        let is_right = looked.0.result == Some(true) && looked.0.changes.is_empty();
        let (file, extra) = if is_right { looked } else { self.part(cx, None, false)? };
        let result = file.result.filter(|result| !result);
        let comment = match result {
            Some(_) => "Could not create file, see file.managed output".to_owned(),
            None => self.is_right(),
        };
        Ok(Applied { result, extra, ..Applied::changes(Dict::new()).comment(comment) })
    }

    /// Writes what was made.
    fn write(&self, cx: &Cx, made: &[u8], encoding: Encoding) -> Result<Applied> {
        let path = Path::new(self.name);
        let text = encoding.is_text().then(|| String::from_utf8_lossy(made).into_owned());
        if text.is_none() && !self.flag("follow_symlinks") && cx.host.is_link(path)? {
            cx.host.remove_file(path)?;
        }
        let (file, extra) = self.part(cx, text.as_deref(), false)?;
        if file.result == Some(false) {
            let failed =
                Applied::failed(Dict::new(), "Could not create file, see file.managed output");
            return Ok(Applied { extra, ..failed });
        }
        if text.is_none() {
            // `file.managed` writes texts only.
            let backup = self.given.get("backup").filter(Value::truthy);
            let backup = backup.map(|backup| backup.to_str().to_string()).unwrap_or_default();
            halite_modules::file::backup::keep_copy(cx, path, &backup)?;
            cx.host.write(path, made, &Write::default())?;
        }
        Ok(Applied { extra, ..Applied::as_planned() })
    }
}

/// What was found: nothing to make, or what to make and why.
pub(crate) enum Seen {
    Right,
    Make { changes: Dict, new: bool },
}

impl Seen {
    /// Decides by what differs.
    pub(crate) fn of(changes: Dict, new: bool) -> Self {
        if changes.is_empty() { Self::Right } else { Self::Make { changes, new } }
    }

    /// Tells whether nothing but these changes.
    pub(crate) fn only(&self, names: &[&str]) -> bool {
        match self {
            Self::Right => false,
            Self::Make { changes, .. } => {
                changes.keys().iter().all(|key| names.contains(&key.to_str().as_str()))
            }
        }
    }
}
