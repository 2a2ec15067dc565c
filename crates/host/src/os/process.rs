//! Running commands.
//!
//! A child gets a session (and so a process group) of its own, no descriptors but the three
//! standard ones, and `/dev/null` to read from unless there is input. One thread attends to it: it
//! polls both outputs, the input, the child's end and the cancellation token.
//!
//! As with Salt, a command is over when it has ended *and* its output is closed: `daemon &` in a
//! shell keeps the caller waiting as long as the daemon holds the output. A timeout or a
//! cancellation ends that: the whole group gets SIGTERM, after a grace SIGKILL, and then nobody
//! waits for a descendant that left the group with the output in its hands.
//!
//! The leader is reaped last, after the group has been signalled: until then its number cannot
//! belong to anybody else.
#![expect(unsafe_code, reason = "changing the user between fork and exec; pidfd_open")]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use halite_spec::host::{Command, Error, Output, Result};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::Pid,
};

use super::accounts;
use crate::{Cancel, cancel::poll_timeout};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is collected, and the end awaited, after SIGKILL.
const AFTER_KILL: Duration = Duration::from_millis(500);
/// How often to look for the end on kernels without process descriptors (before 5.3).
const LOOK_AGAIN: Duration = Duration::from_millis(5);

pub(super) fn run(
    command: &Command,
    overlay: &BTreeMap<OsString, Option<OsString>>,
    cancel: &Cancel,
) -> Result<Output> {
    let failed = |reason: String| Error::Spawn { program: program_of(command), reason };
    let started = spawn(command, overlay).map_err(failed)?;
    let pid = started.child.id();
    if command.background {
        reap_later(started.child);
        return Ok(Output { pid, ..Output::default() });
    }
    let lost = |error: io::Error| failed(format!("process {pid} was lost: {}", words(&error)));
    let mut attended = Attended::new(started, command).map_err(lost)?;
    attended.attend(cancel).map_err(lost)?;
    attended.finish().map_err(lost)?.ok_or(Error::Cancelled)
}

fn program_of(command: &Command) -> String {
    command.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The system's words without Rust's `(os error 2)`.
fn words(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().into())
}

struct Started {
    child: Child,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

fn spawn(
    command: &Command,
    overlay: &BTreeMap<OsString, Option<OsString>>,
) -> Result<Started, String> {
    let (program, args) = command.argv.split_first().ok_or("there is nothing to run")?;
    let mut builder = std::process::Command::new(program);
    builder.args(args);
    if command.clear_env {
        builder.env_clear();
    }
    let identity = Identity::of(command)?;
    // Programs look for their configuration in HOME: that of the caller is not theirs to read.
    for (name, value) in identity.iter().flat_map(Identity::environment) {
        builder.env(name, value);
    }
    // A cleared environment is cleared of what was set through the host, too.
    let inherited = (!command.clear_env).then_some(overlay).into_iter().flatten();
    for (name, value) in inherited.chain(command.env.iter().map(|(name, value)| (name, value))) {
        match value {
            Some(value) => builder.env(name, value),
            None => builder.env_remove(name),
        };
    }
    if let Some(folder) = &command.cwd {
        // The child's own attempt would be reported as if the program were missing.
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => builder.current_dir(folder),
            _ => {
                return Err(format!(
                    "Specified cwd '{}' either not absolute or does not exist",
                    folder.display()
                ));
            }
        };
    }
    let (stdout, stderr) = connect(&mut builder, command).map_err(|error| words(&error))?;
    let umask = command.umask;
    // SAFETY: only system calls happen in the child; everything they need was allocated before.
    unsafe {
        builder.pre_exec(move || {
            libc::setsid();
            if let Some(mask) = umask {
                libc::umask(mask as libc::mode_t);
            }
            // Libraries may hold descriptors that are not closed on exec. Marking, not closing:
            // the standard library still needs its own to report a failing exec. Kernels before
            // 5.11 refuse, which leaves what the other libraries forgot.
            libc::syscall(
                libc::SYS_close_range,
                3 as libc::c_uint,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            identity.as_ref().map_or(Ok(()), Identity::assume)
        });
    }
    let child = spawn_patiently(&mut builder).map_err(|error| words(&error))?;
    Ok(Started { child, stdout, stderr })
}

/// A program just written may still be open for writing in a child that another thread is
/// starting and that has not reached its exec: it is soon over.
fn spawn_patiently(builder: &mut std::process::Command) -> io::Result<Child> {
    let mut pause = Duration::from_millis(1);
    loop {
        match builder.spawn() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy
                    && pause < Duration::from_millis(500) =>
            {
                std::thread::sleep(pause);
                pause *= 2;
            }
            other => return other,
        }
    }
}

fn connect(
    builder: &mut std::process::Command,
    command: &Command,
) -> io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
    let piped = command.stdin.is_some() && !command.background;
    builder.stdin(if piped { Stdio::piped() } else { Stdio::null() });
    if command.background {
        builder.stdout(Stdio::null()).stderr(Stdio::null());
        return Ok((None, None));
    }
    let (stdout, writer) = io::pipe()?;
    if command.merge_stderr {
        builder.stderr(writer.try_clone()?).stdout(writer);
        return Ok((Some(stdout.into()), None));
    }
    builder.stdout(writer);
    let (stderr, writer) = io::pipe()?;
    builder.stderr(writer);
    Ok((Some(stdout.into()), Some(stderr.into())))
}

/// Who the child shall be.
struct Identity {
    uid: Option<u32>,
    gid: u32,
    groups: Option<Vec<u32>>,
    /// Name and home, unless it is a group only.
    user: Option<(String, String)>,
}

impl Identity {
    fn of(command: &Command) -> Result<Option<Self>, String> {
        if command.user.is_none() && command.group.is_none() {
            return Ok(None);
        }
        let group = match &command.group {
            Some(name) => {
                let found = accounts::group_named(name).map_err(|error| error.to_string())?;
                Some(found.ok_or_else(|| format!("Group '{name}' is not available"))?.gid)
            }
            None => None,
        };
        let user = match &command.user {
            Some(name) => {
                let found = accounts::user_named(name).map_err(|error| error.to_string())?;
                Some(found.ok_or_else(|| format!("User '{name}' is not available"))?)
            }
            None => None,
        };
        let me = nix::unistd::geteuid();
        let gid = group.or(user.as_ref().map(|user| user.gid)).unwrap_or_default();
        // Only root may choose groups; anybody may «become» who they are.
        let groups = match &user {
            Some(user) if me.is_root() => {
                Some(accounts::groups_of(&user.name, gid).map_err(|error| error.to_string())?)
            }
            Some(user) if user.uid == me.as_raw() && group.is_none() => return Ok(None),
            None if me.is_root() => Some(vec![gid]),
            _ => None,
        };
        let uid = user.as_ref().map(|user| user.uid);
        Ok(Some(Self { uid, gid, groups, user: user.map(|user| (user.name, user.home)) }))
    }

    /// What a login would set at the least; the command's own environment is stronger.
    fn environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let user = self.user.iter();
        user.flat_map(|(name, home)| [("HOME", home), ("USER", name), ("LOGNAME", name)])
            .map(|(name, value)| (name, value.as_str()))
    }

    /// Runs in the child.
    fn assume(&self) -> io::Result<()> {
        let check = |answer: libc::c_int| {
            if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        if let Some(groups) = &self.groups {
            // SAFETY: pointer and length belong to one vector.
            check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
        }
        // SAFETY: plain system calls.
        check(unsafe { libc::setgid(self.gid) })?;
        match self.uid {
            // SAFETY: a plain system call.
            Some(uid) => check(unsafe { libc::setuid(uid) }),
            None => Ok(()),
        }
    }
}

/// Waits for a child nobody waits for, so that it does not stay as a zombie.
fn reap_later(mut child: Child) {
    let pid = child.id();
    let waiter = std::thread::Builder::new()
        .name(format!("reap-{pid}"))
        .stack_size(64 << 10)
        .spawn(move || child.wait());
    // Without a thread it is a zombie until we end: no reason to fail.
    drop(waiter);
}

/// What a child writes.
struct Stream {
    pipe: Option<File>,
    kept: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Stream {
    fn new(pipe: Option<OwnedFd>, limit: usize) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            do_not_block(pipe.as_fd())?;
        }
        Ok(Self { pipe: pipe.map(File::from), kept: Vec::new(), limit, truncated: false })
    }

    /// Takes what is there; what is beyond the limit is read all the same, so that the child does
    /// not stand still.
    fn take(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        loop {
            match pipe.read(buffer) {
                Ok(0) => break,
                Ok(count) => {
                    let room = self.limit.saturating_sub(self.kept.len()).min(count);
                    self.kept.extend_from_slice(&buffer[..room]);
                    self.truncated |= room < count;
                    if count < buffer.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        self.pipe = None;
    }
}

fn do_not_block(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(descriptor, FcntlArg::F_GETFL)?);
    fcntl(descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// How far we are with ending the group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Asked(Instant),
    Killed(Instant),
}

/// A child that somebody waits for.
struct Attended<'a> {
    /// Taken when it is reaped.
    child: Option<Child>,
    group: Pid,
    end: Option<OwnedFd>,
    input: Option<(File, &'a [u8])>,
    stdout: Stream,
    stderr: Stream,
    deadline: Option<Instant>,
    exited: bool,
    timed_out: bool,
    cancelled: bool,
}

impl<'a> Attended<'a> {
    fn new(mut started: Started, command: &'a Command) -> io::Result<Self> {
        let pid = started.child.id();
        let input = started.child.stdin.take();
        let mut attended = Self {
            child: Some(started.child),
            group: Pid::from_raw(pid as i32),
            end: open_end(pid),
            input: None,
            stdout: Stream::new(None, command.output_limit)?,
            stderr: Stream::new(None, command.output_limit)?,
            // A timeout too large to count is none.
            deadline: command.timeout.and_then(|time| Instant::now().checked_add(time)),
            exited: false,
            timed_out: false,
            cancelled: false,
        };
        // From here on the child is ended if something fails.
        attended.stdout = Stream::new(started.stdout, command.output_limit)?;
        attended.stderr = Stream::new(started.stderr, command.output_limit)?;
        if let (Some(pipe), Some(bytes)) = (input, &command.stdin) {
            do_not_block(pipe.as_fd())?;
            attended.input = Some((File::from(OwnedFd::from(pipe)), bytes));
        }
        Ok(attended)
    }

    fn closed(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    fn attend(&mut self, cancel: &Cancel) -> io::Result<()> {
        let bell = cancel.bell()?;
        let mut buffer = vec![0; 64 << 10];
        let mut ending = Ending::No;
        loop {
            let now = Instant::now();
            if ending == Ending::No {
                if self.exited && self.closed() {
                    return Ok(());
                }
                self.cancelled = cancel.is_cancelled();
                self.timed_out = self.deadline.is_some_and(|deadline| now >= deadline);
                if self.cancelled || self.timed_out {
                    self.signal(Signal::SIGTERM);
                    ending = Ending::Asked(now + GRACE);
                }
            }
            if let Ending::Asked(until) = ending
                && (now >= until || (self.exited && self.closed()))
            {
                self.signal(Signal::SIGKILL);
                ending = Ending::Killed(now + AFTER_KILL);
            }
            if let Ending::Killed(until) = ending
                && (now >= until || (self.exited && self.closed()))
            {
                return Ok(());
            }
            let until = match ending {
                Ending::No => self.deadline,
                Ending::Asked(until) | Ending::Killed(until) => Some(until),
            };
            self.wait(until, (ending == Ending::No).then_some(bell), &mut buffer)?;
        }
    }

    /// Waits until something happens, and deals with it.
    fn wait(
        &mut self,
        until: Option<Instant>,
        bell: Option<BorrowedFd<'_>>,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let blind = self.end.is_none() && !self.exited;
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = if blind { Some(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)) } else { left };
        let mut watched = Vec::with_capacity(5);
        let mut watch = |descriptor, events| watched.push(PollFd::new(descriptor, events));
        for pipe in [&self.stdout.pipe, &self.stderr.pipe].into_iter().flatten() {
            watch(pipe.as_fd(), PollFlags::POLLIN);
        }
        if let Some((pipe, _)) = &self.input {
            watch(pipe.as_fd(), PollFlags::POLLOUT);
        }
        if let Some(end) = self.end.as_ref().filter(|_| !self.exited) {
            watch(end.as_fd(), PollFlags::POLLIN);
        }
        if let Some(bell) = bell {
            watch(bell, PollFlags::POLLIN);
        }
        match poll(&mut watched, left.map_or(PollTimeout::NONE, poll_timeout)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Everything is non-blocking, so that asking all of them is simpler than asking which.
        self.feed();
        self.stdout.take(buffer);
        self.stderr.take(buffer);
        self.exited = self.exited || self.has_exited();
        Ok(())
    }

    fn feed(&mut self) {
        while let Some((pipe, rest)) = &mut self.input {
            match pipe.write(rest) {
                Ok(count) if count < rest.len() => *rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // All written, or nobody reads: either way the pipe is closed.
                _ => self.input = None,
            }
        }
    }

    /// Looks without reaping: the number must stay ours until the group has been dealt with.
    fn has_exited(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.group), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
            // An error means that there is nothing to wait for.
            Ok(_) | Err(_) => true,
        }
    }

    fn signal(&self, signal: Signal) {
        if self.child.is_some() {
            let _ = killpg(self.group, signal);
        }
    }

    /// Returns what came out; nothing when the job was cancelled.
    fn finish(mut self) -> io::Result<Option<Output>> {
        if self.cancelled {
            return Ok(None);
        }
        let mut code = -libc::SIGKILL;
        // Not exited after SIGKILL means stuck in the kernel.
        if self.exited
            && let Some(mut child) = self.child.take()
        {
            let status = child.wait()?;
            code = status.code().or(status.signal().map(|signal| -signal)).unwrap_or(code);
        }
        Ok(Some(Output {
            pid: self.group.as_raw() as u32,
            code,
            stdout: std::mem::take(&mut self.stdout.kept),
            stderr: std::mem::take(&mut self.stderr.kept),
            timed_out: self.timed_out,
            truncated: self.stdout.truncated || self.stderr.truncated,
        }))
    }
}

/// Whatever went wrong, no child is left behind.
impl Drop for Attended<'_> {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        match self.child.take() {
            Some(mut child) if self.exited || self.has_exited() => drop(child.wait()),
            Some(child) => reap_later(child),
            None => {}
        }
    }
}

/// Returns a descriptor that becomes readable when the process ends.
fn open_end(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a plain system call; a result that is not negative is a new descriptor of ours.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
        Some(OwnedFd::from_raw_fd(descriptor))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt, path::PathBuf, thread};

    use super::*;

    fn sh(text: &str) -> Command {
        Command::shell("/bin/sh", text)
    }

    fn run(command: &Command) -> Result<Output> {
        super::run(command, &BTreeMap::new(), &Cancel::new())
    }

    fn stdout(command: &Command) -> String {
        let output = run(command).unwrap();
        assert_eq!(output.stderr_text(), "");
        output.stdout_text()
    }

    fn alive(pid: &str) -> bool {
        // A zombie is not alive.
        let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    }

    fn dies(pid: &str) -> bool {
        (0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !alive(pid)
        })
    }

    #[test]
    fn output_and_exit_code() {
        let output = run(&sh("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!((output.stdout_text(), output.stderr_text()), ("out\n".into(), "err\n".into()));
        assert_eq!((output.code, output.timed_out, output.truncated), (3, false, false));
        assert!(output.pid > 1);
        assert_eq!(run(&sh("kill -9 $$")).unwrap().code, -9);
    }

    #[test]
    fn cannot_be_run() {
        let error = run(&Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot run /no/such/program: No such file or directory");
        let error = run(&Command::new("/etc/passwd")).unwrap_err();
        assert_eq!(error.to_string(), "cannot run /etc/passwd: Permission denied");
        let nowhere = Command { cwd: Some("/no/such/folder".into()), ..sh("true") };
        let error = run(&nowhere).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Specified cwd '/no/such/folder' either not absolute or does not exist"
        );
        let nobody = Command { user: Some("no-such-user".into()), ..sh("true") };
        let error = run(&nobody).unwrap_err();
        assert_eq!(error.to_string(), "User 'no-such-user' is not available");
        assert!(run(&Command { argv: Vec::new(), ..sh("") }).is_err());
    }

    #[test]
    fn a_thousand_lines_each_way() {
        let big = "0123456789abcdef\n".repeat(50_000);
        let echo = Command { stdin: Some(big.clone().into()), ..sh("tee /dev/stderr") };
        let output = run(&echo).unwrap();
        assert!(output.stdout_text() == big && output.stderr_text() == big);
    }

    #[test]
    fn input_nobody_reads() {
        let command = Command { stdin: Some(vec![b'x'; 1 << 20]), ..sh("exec <&-; echo done") };
        assert_eq!(stdout(&command), "done\n");
        assert_eq!(stdout(&sh("cat; echo end")), "end\n");
    }

    #[test]
    fn merged_in_the_order_written() {
        let command =
            Command { merge_stderr: true, ..sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done") };
        let output = run(&command).unwrap();
        assert_eq!(output.stdout_text(), "o1\ne1\no2\ne2\no3\ne3\n");
        assert!(output.stderr.is_empty());
    }

    #[test]
    fn limited_output_does_not_stop_the_child() {
        let command = Command { output_limit: 1000, ..sh("head -c 3000000 /dev/zero; exit 4") };
        let output = run(&command).unwrap();
        assert_eq!((output.stdout.len(), output.truncated, output.code), (1000, true, 4));
        let command = Command { output_limit: 4, ..sh("printf four") };
        assert!(!run(&command).unwrap().truncated);
    }

    #[test]
    fn environment() {
        let mut command = sh("echo $A-$B-$C-$PATH");
        command.clear_env = true;
        let overlay = BTreeMap::from([("C".into(), Some("no".into()))]);
        let command = command.env("A", "1").env("PATH", "/bin");
        let output = super::run(&command, &overlay, &Cancel::new()).unwrap();
        assert_eq!(output.stdout_text(), "1---/bin\n");

        let overlay = BTreeMap::from([
            ("B".into(), Some("2".into())),
            ("C".into(), Some("3".into())),
            ("HOME".into(), None),
        ]);
        let mut command = sh("echo $A-$B-$C-${HOME-none}").env("A", "1");
        command.env.push(("C".into(), None));
        let output = super::run(&command, &overlay, &Cancel::new()).unwrap();
        assert_eq!(output.stdout_text(), "1-2--none\n");
    }

    #[test]
    fn the_program_is_looked_for_on_the_childs_path() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("only-here");
        fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let command = Command::new("only-here").env("PATH", folder.path());
        assert_eq!(stdout(&command), "found\n");
    }

    #[test]
    fn folder_and_umask() {
        let command = Command { cwd: Some("/usr".into()), umask: Some(0o27), ..sh("pwd; umask") };
        assert_eq!(stdout(&command), "/usr\n0027\n");
    }

    #[test]
    fn own_session_and_no_foreign_descriptors() {
        let held = File::open("/dev/null").unwrap();
        fcntl(&held, FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
        // ls itself opens the folder it lists: 3.
        assert_eq!(stdout(&sh("exec ls /proc/self/fd")), "0\n1\n2\n3\n");
        assert_eq!(
            stdout(&sh(
                "read a b c d e f g < /proc/self/stat; test $e = $a && test $f = $a && echo own"
            )),
            "own\n"
        );
    }

    #[test]
    fn as_another_user() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let Some(user) = accounts::users().into_iter().find(|user| user.uid != 0) else { return };
        let groups = accounts::groups_of(&user.name, user.gid).unwrap();
        let command = Command { user: Some(user.name.clone()), ..sh("id -u; id -g; id -G") };
        let mut expected = groups.iter().map(ToString::to_string).collect::<Vec<_>>();
        expected.sort();
        let text = stdout(&command);
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap(), user.uid.to_string());
        assert_eq!(lines.next().unwrap(), user.gid.to_string());
        let mut seen: Vec<_> = lines.next().unwrap().split(' ').map(str::to_owned).collect();
        seen.sort();
        assert_eq!(seen, expected, "not root's groups");
        let whose = |command: &Command| {
            stdout(&Command { user: Some(user.name.clone()), ..command.clone() })
        };
        let asked = sh("echo $HOME $USER $LOGNAME");
        let (name, home) = (&user.name, &user.home);
        assert_eq!(whose(&asked), format!("{home} {name} {name}\n"), "not root's home");
        assert_eq!(whose(&asked.env("HOME", "/x")), format!("/x {name} {name}\n"));
        let cannot = Command { user: Some(user.name), ..sh("echo x > /etc/halite-must-not-exist") };
        assert_ne!(run(&cannot).unwrap().code, 0);
    }

    #[test]
    fn a_timeout_ends_the_whole_group() {
        let started = Instant::now();
        let command = sh("sleep 60 & echo $!; wait").timeout(Duration::from_millis(100));
        let output = run(&command).unwrap();
        assert!(output.timed_out);
        assert!(started.elapsed() < Duration::from_millis(1500));
        assert!(dies(&output.stdout_text()));
    }

    #[test]
    fn who_ignores_the_request_is_killed() {
        let command = sh("trap '' TERM; echo $$; while :; do sleep 1; done");
        let output = run(&command.timeout(Duration::from_millis(100))).unwrap();
        assert!(output.timed_out && output.code == -9, "{output:?}");
        assert!(!alive(&output.stdout_text()));
    }

    #[test]
    fn a_descendant_that_left_does_not_hold_us() {
        let started = Instant::now();
        let command = sh("setsid sleep 4 & sleep 30").timeout(Duration::from_millis(100));
        assert!(run(&command).unwrap().timed_out);
        assert!(started.elapsed() < Duration::from_millis(3900));
    }

    #[test]
    fn waits_for_the_output_to_be_closed() {
        assert_eq!(stdout(&sh("{ sleep 0.2; echo late; } & echo first")), "first\nlate\n");
    }

    #[test]
    fn cancelling_kills_the_children() {
        let token = Cancel::new();
        let other = token.clone();
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pid");
        let seen = note.clone();
        let canceller = thread::spawn(move || {
            while fs::read_to_string(&seen).unwrap_or_default().is_empty() {
                thread::sleep(Duration::from_millis(5));
            }
            other.cancel();
        });
        let command = sh(&format!("sleep 60 & echo $! > {}; wait", note.display()));
        let error = super::run(&command, &BTreeMap::new(), &token).unwrap_err();
        assert!(matches!(error, Error::Cancelled));
        assert!(dies(&fs::read_to_string(&note).unwrap()));
        canceller.join().unwrap();
    }

    #[test]
    fn background() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        let started = Instant::now();
        let mut command = sh(&format!("sleep 0.3; echo $$ > {}", note.display()));
        command.background = true;
        let output = run(&command).unwrap();
        assert!(started.elapsed() < Duration::from_millis(300) && output.stdout.is_empty());
        assert!((0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            fs::read_to_string(&note).unwrap_or_default().ends_with('\n')
        }));
        let zombie = PathBuf::from(format!("/proc/{}", output.pid));
        assert!((0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !zombie.exists()
        }));
    }

    #[test]
    fn without_process_descriptors() {
        let command = sh("echo a; sleep 0.05; exit 5");
        let started = spawn(&command, &BTreeMap::new()).unwrap();
        let mut attended = Attended::new(started, &command).unwrap();
        attended.end = None;
        attended.attend(&Cancel::new()).unwrap();
        assert_eq!(attended.finish().unwrap().unwrap().code, 5);
    }

    #[test]
    fn a_lost_child_is_killed() {
        let command = sh("sleep 60");
        let attended = Attended::new(spawn(&command, &BTreeMap::new()).unwrap(), &command).unwrap();
        let pid = attended.group.to_string();
        drop(attended);
        assert!(dies(&pid));
        assert!((0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            fs::metadata(format!("/proc/{pid}")).map(|found| found.ino()).is_err()
        }));
    }
}
