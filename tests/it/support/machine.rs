//! The resources that this machine has for tests, and the processes that run on it.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time limit for an event that must happen. A test that passes never waits this long, and neither does a machine
/// that is busy or ten times slower.
pub const IN_TIME: Duration = Duration::from_mins(2);

/// The longest timeout of a command, in seconds, for commands that must outlast their test; the default is 30.
pub const LONG_S: u32 = 300;

/// The time limit of a program of LXC or an engine, in seconds. Without it, a program that hangs would never let its test
/// end.
const LIMIT_S: &str = "300";

/// The pause between two checks.
const LOOK: Duration = Duration::from_millis(5);

/// The time limit for an event that must happen eventually, on a slow and busy machine.
pub const LONG: Duration = Duration::from_mins(3);

/// Skips the running test, prints the reason, and counts the test in the file named by `GATEWREN_SKIPPED`.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {reason}\n", thread.name().unwrap_or("?"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Ok(file) = std::env::var("GATEWREN_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Returns the lxcpath of the real containers alpha and beta. Skips the test and returns `None` where there are none.
pub fn lxcpath() -> Option<PathBuf> {
    let Some(path) = std::env::var_os("GATEWREN_LXCPATH") else {
        skip("GATEWREN_LXCPATH names no containers");
        return None;
    };
    if is_root() {
        return Some(path.into());
    }
    skip("containers need root");
    None
}

/// Returns whether a process is the fork server of a helper, which has the helper's arguments.
pub fn is_fork_server(pid: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim() == "gatewren-fork")
}

/// Returns whether the tests run as root.
pub fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// Returns a number that occurs in no other command line; as seconds of sleep it outlasts every test.
pub fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("7{:07}{count:03}", std::process::id())
}

/// Returns whether a process runs with exactly these arguments.
pub fn runs(words: &[&str]) -> bool {
    let line = format!("{}\0", words.join("\0"));
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|bytes| bytes == line.as_bytes())
    })
}

/// Returns the live processes with `marker` among their arguments, without zombies.
pub fn marked(marker: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_marked = line
            .windows(marker.len())
            .any(|part| part == marker.as_bytes());
        if is_marked && is_alive(pid) {
            found.push(pid);
        }
    }
    found
}

/// Returns those of them that are `sleep` itself, without the shells that start it.
pub fn sleeping(marker: &str) -> Vec<i32> {
    let mut found = marked(marker);
    found.retain(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line == format!("sleep\0{marker}\0").as_bytes()
    });
    found
}

/// Returns whether the process exists and is not a zombie.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Sets a flag on drop, also in a failing test. A thread that runs until the flag is set would otherwise go on for ever,
/// and so would the test, which waits for the thread.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, bound: Duration, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(bound, condition),
        "{what}: not within {bound:?}"
    );
}

/// Waits for `condition`, and returns whether it came to hold.
pub fn holds_within(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > bound {
            return false;
        }
        sleep(LOOK);
    }
    true
}

/// Returns a command for a program that is killed when it has run for [`LIMIT_S`] seconds.
pub fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "10", LIMIT_S]).arg(program);
    command
}

/// Waits until a process ends, and returns how. A process that hangs is killed, and the test fails with what its threads
/// wait for.
pub fn exit_of(what: &str, process: &mut Child) -> ExitStatus {
    let mut status = None;
    let ended = holds_within(IN_TIME, || {
        status = process.try_wait().unwrap();
        status.is_some()
    });
    if !ended {
        let threads = waits_of(process.id());
        let _ = process.kill();
        let _ = process.wait();
        assert!(
            std::thread::panicking(),
            "{what} has not ended within {IN_TIME:?}:\n{threads}"
        );
    }
    status.unwrap_or_default()
}

/// Returns a line for each thread of a process: its name, state and the system call that it is in (proc(5)).
fn waits_of(pid: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let line = |task: PathBuf| {
        let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
        let (stat, call, place) = (read("stat"), read("syscall"), read("wchan"));
        let stat: String = stat.chars().take(60).collect();
        format!("{stat} | {} | {place}\n", call.trim())
    };
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.map(|task| line(task.path())).collect()
}

/// Tries an action that must be in flight before a time limit of the test expires, the shortest limit first. On a
/// machine that is too slow for it, `attempt` returns `None` and gets a longer one, up to 32 times the shortest.
pub fn with_time_enough<T>(
    shortest: Duration,
    mut attempt: impl FnMut(Duration) -> Option<T>,
) -> T {
    let times = [1, 4, 16, 32].map(|factor| shortest * factor);
    let done = times.into_iter().find_map(&mut attempt);
    done.unwrap_or_else(|| panic!("it was not under way within any of {times:?}"))
}

/// Installs a program from another process. A file that is open for writing cannot be executed. A descriptor that
/// this process writes with would be inherited by every child that another test starts at that moment.
pub fn install_program(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).args([from, to]).status();
    assert!(installed.unwrap().success(), "{}", to.display());
}

/// Returns where cgroup v2 is mounted.
pub fn cgroup2() -> Option<PathBuf> {
    let candidates = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    candidates
        .into_iter()
        .find(|path| path.join("cgroup.procs").is_file())
}

/// Returns the cgroups of the calls of the helper with this process id.
pub fn call_cgroups(helper: i32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(mount) = cgroup2() {
        collect(&mount, 6, &helper.to_string(), &mut found);
    }
    found
}

fn collect(folder: &Path, depth: u32, helper: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // The parts are: the namespace, the helper, its start time, the call. Only the second is a process id.
        let owner = name.strip_prefix("gatewren-exec-");
        if owner.is_some_and(|parts| parts.split('-').nth(1) == Some(helper)) {
            found.push(path);
        } else if depth > 0 && entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, depth - 1, helper, found);
        }
    }
}
