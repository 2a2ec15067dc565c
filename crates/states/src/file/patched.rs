//! `file.patch`: applying a patch with the `patch` program.
//!
//! The patch is tried first, forwards and then backwards, both without writing anything; so a test
//! knows as well whether it fits or is applied already. The program reads it from its input: no
//! temporary files.

use std::path::Path;

use halite_modules::file::{
    content::names_of,
    edit::{patch_command, shell_words},
    managed::Request,
    paths::{expand_user, is_abs, parent},
    source::choose,
};
use halite_spec::{Applied, Args, Command, Cx, Error, Output, Plan, Result, State};
use halite_value::{Dict, Value, entries};

use super::Found;

/// Apply a patch to a file or folder, unless it is applied already.
#[derive(Args)]
#[arg(open)]
pub struct Patch {
    /// The file or folder to patch.
    name: String,
    /// The patch.
    source: Option<Value>,
    /// Its hash.
    source_hash: Option<Value>,
    /// The name to look for in a file of digests.
    source_hash_name: Option<String>,
    /// Take a patch from the web without comparing hashes.
    #[default(false)]
    skip_verify: bool,
    /// The template engine.
    template: Option<String>,
    /// Names for the template.
    context: Option<Value>,
    /// Names for the template where `context` has none.
    defaults: Option<Value>,
    /// Options of `patch`.
    #[default(String::new())]
    options: String,
    /// Where to leave what does not fit.
    reject_file: Option<String>,
    /// How many folders to take off the names in the patch.
    strip: Option<i64>,
    /// The environment of `salt://` files.
    saltenv: Option<String>,
    /// No longer used.
    #[arg(by_name)]
    hash: Option<Value>,
    /// No longer used.
    #[arg(by_name)]
    dry_run_first: Option<Value>,
}

/// What is to be done.
pub struct Work {
    name: String,
    patch: Vec<u8>,
    options: Vec<String>,
    strip: Option<i64>,
}

fn shape(output: &Output) -> Dict {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    entries! {
        "pid" => output.pid, "retcode" => output.code, "stdout" => text(&output.stdout),
        "stderr" => text(&output.stderr),
    }
}

impl Patch {
    /// Options without those that this state gives itself.
    fn options(&self) -> Result<(Vec<String>, Option<i64>)> {
        let mut strip = self.strip;
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        let bad = |word: &str| {
            Error::failed(format!(
                "Invalid format for '{word}' CLI option. Consider using the 'strip' option for \
                 this state."
            ))
        };
        let mut words = shell_words(&self.options).into_iter();
        while let Some(word) = words.next() {
            let own = ["-N", "--forward", "-r", "--reject-file", "-o", "--output"];
            if own.iter().any(|own| word.starts_with(own)) {
                refused.push(word.clone());
            }
            if let Some(rest) = word.strip_prefix("--strip") {
                let number = match rest.rsplit_once('=') {
                    Some((_, number)) => number.to_owned(),
                    None => words.next().unwrap_or_default(),
                };
                strip = Some(number.parse().map_err(|_| bad("-strip"))?);
            } else if let Some(number) = word.strip_prefix("-p") {
                strip = Some(number.parse().map_err(|_| bad("-p"))?);
            } else {
                kept.push(word);
            }
        }
        if !refused.is_empty() {
            return Err(Error::failed(format!(
                "The following CLI options are not allowed: {}",
                refused.join(", ")
            )));
        }
        Ok((kept, strip))
    }

    fn patch(&self, cx: &Cx) -> Result<Vec<u8>> {
        let saltenv = self.saltenv.clone().unwrap_or_else(|| cx.saltenv());
        let source = self.source.clone().unwrap_or_default();
        let hash = self.source_hash.clone().unwrap_or_default();
        let (source, hash) = choose(cx, &source, &hash, &saltenv)?;
        let mut request = Request::new("", &saltenv);
        request.origin.source = source;
        request.origin.source_hash = Some(hash.to_str().to_string()).filter(|_| hash.truthy());
        request.origin.source_hash_name.clone_from(&self.source_hash_name);
        request.origin.template = self.template.clone().filter(|engine| !engine.is_empty());
        request.origin.context = names_of(self.context.as_ref(), "Context")?;
        request.origin.defaults = names_of(self.defaults.as_ref(), "Defaults")?;
        request.origin.skip_verify = self.skip_verify;
        request
            .origin
            .content(cx)
            .and_then(|content| content.read(cx))
            .map_err(|error| Error::failed(format!("Unable to manage file: {error}")))
    }

    fn strip_option(&self, cx: &Cx, work: &Work) -> Result<Option<String>> {
        let is_dir = cx.host.is_dir(Path::new(&work.name))?;
        Ok(work.strip.filter(|_| is_dir).map(|strip| format!("-p{strip}")))
    }

    fn run(&self, cx: &Cx, work: &Work, more: &[&str], dry: bool) -> Result<Output> {
        let mut options = work.options.clone();
        options.extend(more.iter().map(|word| (*word).to_owned()));
        options.extend(self.strip_option(cx, work)?);
        let mut command: Command = patch_command(cx, &work.name, "-", &options, dry)?;
        command.stdin = Some(work.patch.clone());
        command.query = dry;
        Ok(cx.host.run(&command)?)
    }

    /// Tries the patch without writing.
    fn try_out(&self, cx: &Cx, work: &Work) -> Result<Verdict> {
        let output = self.run(cx, work, &["-N", "-r", "-"], true)?;
        if output.code == 0 {
            return Ok(Verdict::Fits(shape(&output)));
        }
        let stderr = output.stderr_text().trim_end().to_owned();
        if output.code == 2 && !stderr.is_empty() {
            return Err(Error::failed(stderr));
        }
        if self.run(cx, work, &["-R", "-f", "-r", "-"], true)?.code == 0 {
            return Ok(Verdict::Applied);
        }
        Ok(Verdict::Rejected(self.rejected(&output)))
    }

    fn rejected(&self, output: &Output) -> String {
        let mut comment = "Patch would not apply cleanly, no changes made. Results of dry-run are \
                           below."
            .to_owned();
        if self.reject_file.is_none() {
            comment.push_str(
                " Run state again using the reject_file option to save rejects to a persistent \
                 file.",
            );
        }
        comment.push_str("\n\n");
        for (key, value) in &shape(output) {
            comment.push_str(&format!("              {key}:\n                  {value}\n"));
        }
        comment
    }
}

/// How a patch fares.
enum Verdict {
    Fits(Dict),
    Applied,
    Rejected(String),
}

impl State for Patch {
    type Seen = Found<Work>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        if cx.host.which("patch").is_none() {
            return Err(Error::failed("patch executable not found on minion"));
        }
        if self.name.is_empty() {
            return Err(Error::failed("A file/directory to be patched is required"));
        }
        let name = expand_user(cx, &self.name);
        if !is_abs(&name) {
            return Err(Error::failed(format!("{name} is not an absolute path")));
        }
        if !cx.host.exists(Path::new(&name))? {
            return Err(Error::failed(format!("{name} does not exist")));
        }
        if let Some(reject) = &self.reject_file {
            let folder = parent(reject);
            if !is_abs(folder) {
                return Err(Error::failed(format!("'{reject}' is not an absolute path")));
            }
            if !cx.host.is_dir(Path::new(folder))? {
                return Err(Error::failed(format!(
                    "Parent directory for reject_file '{reject}' either does not exist, or is not \
                     a directory"
                )));
            }
        }
        let (options, strip) = self.options()?;
        let mut warnings = Vec::new();
        for (word, given) in [("hash", &self.hash), ("dry_run_first", &self.dry_run_first)] {
            if given.is_some() {
                warnings
                    .push(format!("The '{word}' argument is no longer used and has been ignored."));
            }
        }
        let work = Work { name, patch: self.patch(cx)?, options, strip };
        let mut plan = match self.try_out(cx, &work)? {
            Verdict::Applied => Plan::nothing("Patch was already applied"),
            Verdict::Fits(output) => Plan::changes(output).pending("The patch would be applied"),
            Verdict::Rejected(comment) => {
                let mut plan = Plan::unknown().pending(comment);
                plan.test_result = Some(false);
                plan
            }
        };
        plan.warnings = warnings;
        Ok(Found::todo(plan, work))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(work) = seen.work else { return Ok(Applied::as_planned()) };
        if seen.plan.test_result == Some(false) {
            if let Some(rejects) = &self.reject_file {
                // What does not fit is left there; the file itself is written to nowhere.
                let how = ["-N", "-r", rejects, "-o", "/dev/null"];
                let output = self.run(cx, &work, &how, false)?;
                return Err(Error::failed(self.rejected(&output)));
            }
            return Err(Error::failed(seen.plan.pending));
        }
        let output = self.run(cx, &work, &[], false)?;
        let changes = shape(&output);
        Ok(if output.code == 0 {
            Applied::changes(changes).comment("Patch successfully applied")
        } else {
            Applied::failed(changes, "Failed to apply patch")
        })
    }
}
