//! The reaper of one call: starts the command as its child, and exits only when everything below it is dead.
//!
//! It runs where the command runs, even inside a container. It adopts the processes that the command leaves behind (a
//! child subreaper, prctl(2)), so neither a new session nor a double fork escapes it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gatewren_base::sys::{
    Child, OnParentExit, ProcessCredentials, Spawn, SpawnError, SpawnStage, Subreaper,
    SubreaperEvent, allow_huge_pages, descendants, hold_proc, is_root, launch_pipes, own_pid,
    own_uid, reap_any, terminate,
};
use gatewren_wire::operations::{
    MAX_LAUNCH_BYTES, OperationEnd, OperationRefusal, ReaperLaunch, ReaperReport, RefusalCode,
};

use super::accounts::{Account, account, groups};
use crate::context::programs::{PATH, candidates};

/// How long the reaper keeps killing. After that only a process that the kernel cannot end is left.
const KILL_TIME: Duration = Duration::from_mins(1);

/// The pauses between two rounds of killing: short at first, long if the first rounds were not enough.
const SHORT_PAUSE: Duration = Duration::from_micros(200);
const LONG_PAUSE: Duration = Duration::from_millis(10);

/// How many rounds have the short pause.
const SHORT_ROUNDS: u32 = 200;

/// The main function of a reaper. Descriptor 3 is the pipe from the helper, 4 the pipe to it.
///
/// The reaper reports the command's ending on descriptor 4. Its exit code is about the reaper itself: 0 means that no
/// process below it is left. No other process can set it.
pub fn reap() -> u8 {
    match keep() {
        Ok(true) => 0,
        Ok(false) | Err(_) => 125,
    }
}

/// Runs the reaper; returns whether no process is left at the end.
fn keep() -> io::Result<bool> {
    // Its parents may have gone without them; the command may want them.
    allow_huge_pages();
    let (control, status) = launch_pipes()?;
    let sink = Subreaper::begin()?;
    // Opened now: a mount that the command makes over `/proc` must not hide its processes.
    hold_proc()?;
    let mut status = File::from(status);
    write_report(&mut status, &ReaperReport::Ready)?;
    let mut control = File::from(control);
    let launch = match read_launch(&mut control) {
        // The call was over before it began.
        Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
        other => other?,
    };
    let ending = match start(&launch) {
        Err(refusal) => refusal.into(),
        Ok(command) => {
            // The helper may be gone; the killing below happens anyway.
            let _ = write_report(&mut status, &ReaperReport::Started);
            wait(&sink, &control.into(), &command)
        }
    };
    let _ = write_report(&mut status, &ReaperReport::Ended(ending));
    Ok(kill_all())
}

fn read_launch(control: &mut File) -> io::Result<ReaperLaunch> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_LAUNCH_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    control.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn write_report(status: &mut File, report: &ReaperReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    status.write_all(&line)
}

/// Sleeps until the command has ended or is to be killed.
fn wait(sink: &Subreaper, control: &OwnedFd, command: &Child) -> OperationEnd {
    loop {
        match sink.wait(control.as_fd()) {
            Ok(SubreaperEvent::Child) => {
                while let Ok(Some((pid, exit))) = reap_any() {
                    if pid == command.pid() {
                        return exit.into();
                    }
                }
            }
            // The helper knows why it ordered this; the ending given here matters only if it did not order it.
            Ok(SubreaperEvent::Stop | SubreaperEvent::Closed) | Err(_) => {
                return OperationEnd::Signalled { signal: 15 };
            }
        }
    }
}

/// Kills in rounds until no child is left: children forked during a round are killed in the next one. Returns whether
/// none is left.
fn kill_all() -> bool {
    let started_at = Instant::now();
    let mut round = 0;
    loop {
        loop {
            match reap_any() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // No child, so nothing below.
                Err(_) => return true,
            }
        }
        for process in descendants(own_pid()) {
            terminate(process.pid, true);
        }
        if started_at.elapsed() > KILL_TIME {
            return false;
        }
        round += 1;
        sleep(if round < SHORT_ROUNDS {
            SHORT_PAUSE
        } else {
            LONG_PAUSE
        });
    }
}

fn start(launch: &ReaperLaunch) -> Result<Child, OperationRefusal> {
    let passwd = fs::read("/etc/passwd").unwrap_or_default();
    let passwd = String::from_utf8_lossy(&passwd);
    let who = find_account(&passwd, launch.user.as_deref())?;
    let home = who.as_ref().map_or("/", |account| account.home.as_str());
    let environment = environment(launch, home);
    let own_directory = launch.inherits.then(|| env::current_dir().ok()).flatten();
    let own_directory = own_directory.map(|path| path.to_string_lossy().into_owned());
    let path = environment.get("PATH").map_or(PATH, String::as_str);
    let Some(name) = launch.argv.first() else {
        return Err(OperationRefusal::bad_command("the command is empty"));
    };
    let nothing =
        File::open("/dev/null").map_err(|e| OperationRefusal::failed(format!("/dev/null: {e}")))?;
    let (out, err) = (io::stdout(), io::stderr());
    let spawn = Spawn {
        programs: candidates(name, path)
            .collect::<Result<_, _>>()
            .map_err(no_nul)?,
        argv: strings(launch.argv.iter().cloned())?,
        env: strings(
            environment
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        )?,
        fds: vec![nothing.as_fd(), out.as_fd(), err.as_fd()],
        identity: identity(launch, who.as_ref()),
        directories: match (&launch.cwd, own_directory) {
            (Some(cwd), _) => strings([cwd.clone()])?,
            (None, Some(own)) => strings([own, "/".to_owned()])?,
            (None, None) => strings([home.to_owned(), "/".to_owned()])?,
        },
        with_parent: OnParentExit::Dies,
        ..Spawn::default()
    };
    spawn.spawn().map_err(|error| explain(launch, &error))
}

/// Returns the account to run as; `None` if none was requested and this user has none.
fn find_account(passwd: &str, user: Option<&str>) -> Result<Option<Account>, OperationRefusal> {
    let own = own_uid();
    let Some(user) = user else {
        return Ok(account(passwd, &own.to_string()));
    };
    let found = account(passwd, user).ok_or_else(|| {
        OperationRefusal::bad_command(format!("user '{user}' not found in /etc/passwd"))
    })?;
    if found.uid != own && !is_root() {
        return Err(OperationRefusal::new(
            RefusalCode::NotRoot,
            format!("running as '{user}' needs root: omit the user, or run gatewren as root"),
        ));
    }
    Ok(Some(found))
}

/// Returns the identity to change to; `None` if no user was named or this is not root.
fn identity(launch: &ReaperLaunch, who: Option<&Account>) -> Option<ProcessCredentials> {
    let account = who.filter(|_| launch.user.is_some() && is_root())?;
    let group = fs::read("/etc/group").unwrap_or_default();
    Some(ProcessCredentials {
        uid: account.uid,
        gid: account.gid,
        groups: groups(&String::from_utf8_lossy(&group), account),
    })
}

fn environment(launch: &ReaperLaunch, home: &str) -> BTreeMap<String, String> {
    let fixed = [
        ("PATH", PATH),
        ("HOME", home),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let extra = launch.env.clone();
    let own = own_variables(launch.inherits);
    fixed.into_iter().chain(own).chain(extra).collect()
}

/// Returns the reaper's own variables, if the command is to have them. Podman sets HOME to that of the container's user
/// or leaves it empty; the reaper has found the user's own.
fn own_variables(inherits: bool) -> Vec<(String, String)> {
    let own = inherits.then(env::vars_os).into_iter().flatten();
    let texts =
        own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| name != "HOME").collect()
}

fn strings(texts: impl IntoIterator<Item = String>) -> Result<Vec<CString>, OperationRefusal> {
    let texts = texts.into_iter().map(CString::new);
    texts.collect::<Result<_, _>>().map_err(no_nul)
}

fn no_nul(_: std::ffi::NulError) -> OperationRefusal {
    OperationRefusal::bad_command("a command cannot contain a NUL character")
}

fn explain(launch: &ReaperLaunch, error: &SpawnError) -> OperationRefusal {
    let program = short(launch.argv.first().map_or("", String::as_str));
    let directory = short(launch.cwd.as_deref().unwrap_or("/"));
    let cause = &error.cause;
    match (error.stage, cause.kind()) {
        (SpawnStage::Directory, _) => OperationRefusal::bad_command(format!(
            "directory '{directory}' cannot be entered: {cause}; name one that exists"
        )),
        (SpawnStage::Program, io::ErrorKind::NotFound) => OperationRefusal::bad_command(format!(
            "program '{program}' was not found; check that it is installed and in PATH"
        )),
        (SpawnStage::Program, _) => OperationRefusal::bad_command(format!(
            "program '{program}' cannot be executed: {cause}"
        )),
        _ => OperationRefusal::failed(format!("the command could not be started: {error}")),
    }
}

/// Shortens a name but keeps it recognizable: a report has a size limit.
fn short(name: &str) -> String {
    name.chars().take(200).collect()
}
