//! What this machine has for tests, and what runs on it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

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
pub fn wait_until(what: &str, bound: Duration, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < bound, "{what}: not within {bound:?}");
        sleep(Duration::from_millis(5));
    }
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
        collect(&mount, 6, &format!("-{helper}-"), &mut found);
    }
    found
}

fn collect(folder: &Path, depth: u32, owner: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("gatewren-exec-") && name.contains(owner) {
            found.push(path);
        } else if depth > 0 && entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, depth - 1, owner, found);
        }
    }
}
