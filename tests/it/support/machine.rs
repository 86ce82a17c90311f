//! What this machine has for tests, and what runs on it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen. A good run never waits so long, and a machine that is ten times
/// slower, or has much else to do, does not either.
pub const IN_TIME: Duration = Duration::from_mins(2);

/// The longest, in seconds, that a command may be given, for one that is to outlast its test: unasked it is 30.
pub const LONG_S: u32 = 300;

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// For what must come in the end, on a machine that is slow and busy.
pub const LONG: Duration = Duration::from_mins(3);

/// Leaves the running test out, loudly, and counts it in the file named by `GATEWREN_SKIPPED`.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {reason}\n", thread.name().unwrap_or("?"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Ok(file) = std::env::var("GATEWREN_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Where real containers named alpha and beta run; `None`, after saying so, where there are none.
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

/// Whether the tests run as root.
pub fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// A number that stands in no other command line; as seconds of sleep it outlasts every test.
pub fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("7{:07}{count:03}", std::process::id())
}

/// Whether a process runs with just these words.
pub fn runs(words: &[&str]) -> bool {
    let line = format!("{}\0", words.join("\0"));
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|bytes| bytes == line.as_bytes())
    })
}

/// The living processes with `marker` among their arguments; dead ones that nobody waited for do not count.
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

/// Those of them that are `sleep` itself, and no shell that starts it.
pub fn sleeping(marker: &str) -> Vec<i32> {
    let mut found = marked(marker);
    found.retain(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line == format!("sleep\0{marker}\0").as_bytes()
    });
    found
}

/// Whether there is such a process and it is no zombie.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, bound: Duration, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(bound, condition),
        "{what}: not within {bound:?}"
    );
}

/// Waits for `condition`; whether it came to hold.
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

/// Does what has to be under way before a time is over that the test itself sets, the shortest first: a machine
/// that is too slow for it, on which `attempt` returns nothing, gets four times as much.
pub fn with_time_enough<T>(
    shortest: Duration,
    mut attempt: impl FnMut(Duration) -> Option<T>,
) -> T {
    let times = [1, 4, 16].map(|factor| shortest * factor);
    let done = times.into_iter().find_map(&mut attempt);
    done.unwrap_or_else(|| panic!("it was not under way within any of {times:?}"))
}

/// Puts a program in place with another process's hands. A descriptor with which this one writes would be in every
/// child that another test is just starting, and a file that somebody may still write cannot be executed.
pub fn install_program(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).args([from, to]).status();
    assert!(installed.unwrap().success(), "{}", to.display());
}

/// Where cgroup v2 is mounted.
pub fn cgroup2() -> Option<PathBuf> {
    let candidates = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    candidates
        .into_iter()
        .find(|path| path.join("cgroup.procs").is_file())
}

/// The cgroups of calls of the helper with this process number.
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
        // The namespace, the helper, its start, the call: only the second is a process number.
        let owner = name.strip_prefix("gatewren-exec-");
        if owner.is_some_and(|parts| parts.split('-').nth(1) == Some(helper)) {
            found.push(path);
        } else if depth > 0 && entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, depth - 1, helper, found);
        }
    }
}
