//! A crontab as data: read, changed, written.
//!
//! Everything above the marker line is the administrator's and is passed through untouched; below
//! it stand the variables and jobs Salt manages, each with a comment line that may carry an
//! identifier. Changing a job moves it to the end, as Salt does.

/// Where the managed part begins.
pub(super) const MARKER: &str = "# Lines below here are managed by Salt, do not edit";
const IDENTIFIER: &str = "SALT_CRON_IDENTIFIER";
const DISABLED: &str = "#DISABLED#";

/// When a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Minute, hour, day of month, month, day of week. Wanted ones may say `random` or `5:20`.
    Fields([String; 5]),
    /// `@daily` and the like.
    Special(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub when: When,
    pub cmd: String,
    pub identifier: Option<String>,
    /// `None` when wanted: whatever it is now.
    pub comment: Option<String>,
    /// Disabled by a comment sign.
    pub commented: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tab {
    pub pre: Vec<String>,
    pub env: Vec<(String, String)>,
    pub crons: Vec<Job>,
    pub special: Vec<Job>,
}

/// How a crontab stands to what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Absent,
    Present,
    /// It is there, but otherwise.
    Update,
}

/// Tells whether a job is meant.
type Fits<'a> = Box<dyn Fn(&Job) -> bool + 'a>;

/// What a line below the marker is.
enum Line<'t> {
    /// A comment, perhaps with the identifier of the job below.
    Note {
        text: &'t str,
        identifier: Option<String>,
    },
    Setting(&'t str, &'t str),
    Job {
        when: When,
        cmd: String,
        commented: bool,
    },
    /// Nothing we know.
    Odd,
}

impl<'t> Line<'t> {
    fn read(line: &'t str) -> Self {
        let enabled = line.strip_prefix(DISABLED);
        let (line, commented) = (enabled.unwrap_or(line), enabled.is_some());
        let job = |when, cmd: String| match cmd.is_empty() {
            true => Self::Odd,
            false => Self::Job { when, cmd, commented },
        };
        match line.chars().next() {
            Some('@') => {
                let mut words = line.split_whitespace();
                let spec = words.next().unwrap_or_default().to_owned();
                job(When::Special(spec), words.collect::<Vec<_>>().join(" "))
            }
            Some('#') => Self::note(line.trim_start_matches(['#', ' '])),
            _ => match line.split_once('=') {
                Some((name, value)) if !name.is_empty() && !name.contains(' ') => {
                    Self::Setting(name, value)
                }
                // Two spaces in a row are part of the command.
                _ => match *line.split(' ').collect::<Vec<_>>() {
                    [minute, hour, day, month, weekday, _, ..] => {
                        let fields = [minute, hour, day, month, weekday].map(str::to_owned);
                        let cmd = line.splitn(6, ' ').last().unwrap_or_default().to_owned();
                        Self::Job { when: When::Fields(fields), cmd, commented }
                    }
                    _ => Self::Odd,
                },
            },
        }
    }

    fn note(text: &'t str) -> Self {
        match text.split_once(IDENTIFIER) {
            None => Self::Note { text, identifier: None },
            Some((before, after)) => {
                // A colon stands between the two.
                let own: String = after.chars().skip(1).collect();
                let identifier = (!own.is_empty()).then_some(own);
                Self::Note { text: before.trim_end(), identifier }
            }
        }
    }
}

impl Tab {
    pub fn read(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let managed = lines.iter().position(|line| *line == MARKER).unwrap_or(lines.len());
        let (pre, own) = lines.split_at(managed);
        let mut tab =
            Self { pre: pre.iter().map(|line| (*line).to_owned()).collect(), ..Self::default() };
        // Notes belong to the next job.
        let mut notes: Vec<&str> = Vec::new();
        let mut identifier = None;
        for line in own.iter().filter(|line| **line != MARKER) {
            match Line::read(line) {
                Line::Note { text, identifier: own } => {
                    notes.push(text);
                    identifier = own.or(identifier);
                }
                Line::Setting(name, value) => tab.env.push((name.to_owned(), value.to_owned())),
                Line::Job { when, cmd, commented } => {
                    let jobs = match when {
                        When::Fields(_) => &mut tab.crons,
                        When::Special(_) => &mut tab.special,
                    };
                    let comment = (!notes.is_empty()).then(|| notes.join("\n"));
                    notes.clear();
                    jobs.push(Job { when, cmd, identifier: identifier.take(), comment, commented });
                }
                Line::Odd => {}
            }
        }
        tab
    }

    pub fn write(&self) -> String {
        let mut text = String::new();
        for line in &self.pre {
            text += &format!("{line}\n");
        }
        text += &format!("{MARKER}\n");
        for (name, value) in &self.env {
            let value = if value.is_empty() { "\"\"" } else { value };
            text += &format!("{name}={value}\n");
        }
        for job in self.crons.iter().chain(&self.special) {
            if job.comment.is_some() || job.identifier.is_some() {
                text.push('#');
                if let Some(comment) = job.comment.as_ref().filter(|comment| !comment.is_empty()) {
                    text += &format!(" {}", comment.replace('\n', "\n# "));
                }
                if let Some(own) = job.identifier.as_ref().filter(|own| !own.is_empty()) {
                    text += &format!(" {IDENTIFIER}:{own}");
                }
                text.push('\n');
            }
            if job.commented {
                text += DISABLED;
            }
            match &job.when {
                When::Fields(fields) => text += &fields.join(" "),
                When::Special(spec) => text += spec,
            }
            text += &format!(" {}\n", job.cmd);
        }
        text
    }

    fn find(jobs: &[Job], cmd: &str, identifier: Option<&str>) -> Option<usize> {
        jobs.iter().position(|job| job.is_named(cmd, identifier))
    }

    /// Tells how the job stands to the one wanted.
    pub fn status(&self, wanted: &Job) -> Status {
        let mut jobs = self.crons.iter().chain(&self.special);
        match jobs.find(|job| job.is_named(&wanted.cmd, wanted.identifier.as_deref())) {
            None => Status::Absent,
            Some(job) if job.differs(wanted) => Status::Update,
            Some(_) => Status::Present,
        }
    }

    /// Puts a job in; `resolve` turns `random` and ranges into numbers.
    pub fn set<E>(
        &mut self,
        wanted: &Job,
        resolve: impl FnOnce([String; 5]) -> Result<[String; 5], E>,
    ) -> Result<Status, E> {
        let status = self.status(wanted);
        if status == Status::Present {
            return Ok(status);
        }
        let name = (wanted.cmd.as_str(), wanted.identifier.as_deref());
        let old = match Self::find(&self.crons, name.0, name.1) {
            Some(at) => Some(self.crons.remove(at)),
            None => Self::find(&self.special, name.0, name.1).map(|at| self.special.remove(at)),
        };
        let mut new = wanted.clone();
        if let Some(old) = &old {
            new.comment = new.comment.or_else(|| old.comment.clone());
            new.identifier = new.identifier.or_else(|| old.identifier.clone());
        }
        match (&mut new.when, old.as_ref().map(|old| &old.when)) {
            (When::Special(_), _) => self.special.push(new),
            (When::Fields(fields), old) => {
                if let Some(When::Fields(old)) = old {
                    for (field, old) in fields.iter_mut().zip(old) {
                        if !field_differs(old, field) {
                            field.clone_from(old);
                        }
                    }
                }
                *fields = resolve(fields.clone())?;
                self.crons.push(new);
            }
        }
        Ok(status)
    }

    /// Takes a job out; with fields or a word given, only one that has them.
    pub fn remove(&mut self, cmd: &str, identifier: Option<&str>, when: &Filter) -> bool {
        let (jobs, fits): (_, Fits<'_>) = match when {
            Filter::Fields(fields) => (
                &mut self.crons,
                Box::new(move |job| match &job.when {
                    When::Fields(own) => own.iter().zip(fields).all(|(own, wanted)| match wanted {
                        None => true,
                        Some(word) if word.eq_ignore_ascii_case("random") => own != "*",
                        Some(word) => own == word,
                    }),
                    When::Special(_) => false,
                }),
            ),
            Filter::Special(spec) => (
                &mut self.special,
                Box::new(move |job| match (&job.when, spec) {
                    (When::Special(own), Some(spec)) => own == spec,
                    _ => true,
                }),
            ),
        };
        let at = jobs.iter().position(|job| job.is_named(cmd, identifier) && fits(job));
        at.map(|at| jobs.remove(at)).is_some()
    }

    pub fn env_status(&self, name: &str, value: &str) -> Status {
        match self.env.iter().find(|(own, _)| own == name) {
            None => Status::Absent,
            // An empty value is written as two quotation marks.
            Some((_, own)) if own == value || (value.is_empty() && own == "\"\"") => {
                Status::Present
            }
            Some(_) => Status::Update,
        }
    }

    pub fn set_env(&mut self, name: &str, value: &str) -> Status {
        let status = self.env_status(name, value);
        if status != Status::Present {
            self.remove_env(name);
            self.env.push((name.to_owned(), value.to_owned()));
        }
        status
    }

    pub fn remove_env(&mut self, name: &str) -> bool {
        let at = self.env.iter().rposition(|(own, _)| own == name);
        at.map(|at| self.env.remove(at)).is_some()
    }
}

/// Which jobs to remove, beside the name.
#[derive(Clone, Debug)]
pub enum Filter {
    Fields([Option<String>; 5]),
    Special(Option<String>),
}

impl Job {
    /// The same identifier, or the same command where the job carries none.
    fn is_named(&self, cmd: &str, identifier: Option<&str>) -> bool {
        let given = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(str::to_owned);
        match (given(self.identifier.as_deref()), given(identifier)) {
            (None, _) => self.cmd == cmd,
            (own, wanted) => own == wanted,
        }
    }

    fn differs(&self, wanted: &Self) -> bool {
        let when = match (&self.when, &wanted.when) {
            (When::Fields(own), When::Fields(wanted)) => {
                own.iter().zip(wanted).any(|(own, wanted)| field_differs(own, wanted))
            }
            (own, wanted) => own != wanted,
        };
        let other = |own: &Option<String>, wanted: &Option<String>| {
            wanted.is_some()
                && own.as_deref().unwrap_or_default() != wanted.as_deref().unwrap_or_default()
        };
        when || self.cmd != wanted.cmd
            || self.commented != wanted.commented
            || other(&self.comment, &wanted.comment)
            || other(&self.identifier, &wanted.identifier)
    }
}

/// Reads a range a number is to be picked from: `5:20`.
pub(super) fn range(field: &str) -> Option<(u64, u64)> {
    let (one, other) = field.split_once(':')?;
    let (one, other) = (one.parse().ok()?, other.parse().ok()?);
    Some((std::cmp::min(one, other), std::cmp::max(one, other)))
}

fn field_differs(own: &str, wanted: &str) -> bool {
    if wanted == "random" {
        return own == "*";
    }
    // differs: Salt picks anew at every run, and so changes the crontab each time.
    if let (Some((from, to)), Ok(own)) = (range(wanted), own.parse::<u64>()) {
        return own < from || own > to;
    }
    own != wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "MAILTO=me\n# Lines below here are managed by Salt, do not edit\nPATH=/bin\n\
        # nightly SALT_CRON_IDENTIFIER:one\n5 4 * * * do  it\n#DISABLED#1 2 * * * other\n\
        # SALT_CRON_IDENTIFIER:x\n@daily go\n";

    fn job(cmd: &str, id: &str, fields: &str) -> Job {
        let mut words = fields.split(' ').map(str::to_owned);
        let fields = std::array::from_fn(|_| words.next().unwrap());
        Job {
            when: When::Fields(fields),
            cmd: cmd.into(),
            identifier: Some(id.into()),
            comment: None,
            commented: false,
        }
    }

    fn set(tab: &mut Tab, job: &Job) -> Status {
        tab.set::<()>(job, |fields| Ok(fields.map(|field| field.replace("random", "7")))).unwrap()
    }

    #[test]
    fn reads_and_writes() {
        let tab = Tab::read(TEXT);
        assert_eq!(tab.pre, ["MAILTO=me"]);
        assert_eq!(tab.env, [("PATH".to_owned(), "/bin".to_owned())]);
        assert_eq!(tab.crons[0].identifier.as_deref(), Some("one"));
        assert_eq!(tab.crons[0].comment.as_deref(), Some("nightly"));
        assert_eq!(tab.crons[0].cmd, "do  it");
        assert!(tab.crons[1].commented && tab.crons[1].identifier.is_none());
        assert_eq!(tab.special[0].when, When::Special("@daily".into()));
        assert_eq!(tab.write(), TEXT);
    }

    #[test]
    fn jobs_are_found_by_identifier_then_by_command() {
        let mut tab = Tab::read(TEXT);
        assert_eq!(set(&mut tab, &job("do  it", "one", "5 4 * * *")), Status::Present);
        assert_eq!(set(&mut tab, &job("do that", "one", "5 4 * * *")), Status::Update);
        assert_eq!(tab.crons.last().unwrap().cmd, "do that");
        assert_eq!(tab.crons.last().unwrap().comment.as_deref(), Some("nightly"), "kept");
        assert_eq!(set(&mut tab, &job("other", "new", "1 2 * * *")), Status::Update, "gets an id");
        assert_eq!(set(&mut tab, &job("third", "third", "* * * * *")), Status::Absent);
        assert_eq!(tab.crons.len(), 3);
    }

    #[test]
    fn random_is_picked_once() {
        let mut tab = Tab::default();
        assert_eq!(set(&mut tab, &job("a", "a", "random * * * *")), Status::Absent);
        assert_eq!(set(&mut tab, &job("a", "a", "random * * * *")), Status::Present);
        assert_eq!(set(&mut tab, &job("a", "a", "5:9 * * * *")), Status::Present);
        assert_eq!(set(&mut tab, &job("a", "a", "8:9 * * * *")), Status::Update);
    }

    #[test]
    fn removes() {
        let mut tab = Tab::read(TEXT);
        let any = Filter::Fields(Default::default());
        assert!(tab.remove("", Some("one"), &any) && !tab.remove("", Some("one"), &any));
        assert!(!tab.remove("go", Some("x"), &Filter::Special(Some("@hourly".into()))));
        assert!(tab.remove("go", Some("x"), &Filter::Special(Some("@daily".into()))));
        assert_eq!(tab.set_env("A", "b"), Status::Absent);
        assert!(tab.remove_env("A") && !tab.remove_env("A"));
    }
}
