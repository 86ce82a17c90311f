//! Control groups, version 2: where the processes of a call start, and how all of them are killed at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The maximum depth of the search for leftover groups and of a removal.
const MAX_DEPTH: usize = 8;

/// The most groups that a search visits; groups beyond it are not found.
const MAX_GROUPS: usize = 16_384;

/// An open cgroup.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: File,
}

impl Cgroup {
    /// Creates the group `name` below `parent`.
    pub fn create(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let directory = File::open(&path)?;
        Ok(Self { path, directory })
    }

    /// Opens an existing group.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let directory = File::open(&path)?;
        Ok(Self { path, directory })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor with which a process is started in it (`CLONE_INTO_CGROUP`).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Moves a process into it.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        let mut file = File::options()
            .write(true)
            .open(self.path.join("cgroup.procs"))?;
        file.write_all(pid.to_string().as_bytes())
    }

    /// Sets a limit such as `pids.max`; an error if the kernel does not offer it here.
    pub fn limit(&self, name: &str, value: u64) -> io::Result<()> {
        let mut file = File::options().write(true).open(self.path.join(name))?;
        file.write_all(value.to_string().as_bytes())
    }

    /// Returns a counter from one of the kernel's files, such as `oom_kill` in `memory.events`; 0 if there is none.
    pub fn counter(&self, file: &str, name: &str) -> u64 {
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let words = text.lines().filter_map(|line| line.split_once(' '));
        let mut values = words.filter(|(word, _)| *word == name);
        values
            .next()
            .map_or(0, |(_, value)| value.trim().parse().unwrap_or(0))
    }

    /// Returns whether any living process is in it or below it.
    pub fn populated(&self) -> bool {
        self.has_line("cgroup.events", "populated 1")
    }

    /// Returns whether its processes are frozen, by it or by a group above it.
    pub fn is_frozen(&self) -> bool {
        self.has_line("cgroup.events", "frozen 1")
    }

    fn has_line(&self, file: &str, wanted: &str) -> bool {
        let text = fs::read_to_string(self.path.join(file));
        text.is_ok_and(|text| text.lines().any(|line| line == wanted))
    }

    /// Sends SIGKILL to all processes in it and below it, in one step that no fork escapes (Linux 5.14).
    pub fn kill(&self) -> io::Result<()> {
        let mut file = File::options()
            .write(true)
            .open(self.path.join("cgroup.kill"))?;
        file.write_all(b"1")
    }

    /// Removes it, with the groups that a command created below it.
    ///
    /// # Errors
    /// `ResourceBusy` while a process is in it.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path, MAX_DEPTH)
    }
}

/// The controllers that limit the groups of calls.
pub const LIMITING_CONTROLLERS: &[&str] = &["cpu", "memory", "pids"];

/// Returns which of [`LIMITING_CONTROLLERS`] the group can delegate to the groups below it. For the mount point
/// itself, returns which of them this host has in version 2.
pub fn limiting_controllers(group: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    let has = |wanted: &&&str| text.split_whitespace().any(|one| one == **wanted);
    LIMITING_CONTROLLERS.iter().filter(has).copied().collect()
}

/// Moves this process from `own` into the group `leaf` below it, and delegates the controllers of `own` to all
/// groups below. A group that delegates may contain no process (cgroups(7), "no internal processes"). Returns the
/// delegated controllers.
///
/// Does nothing if there are no controllers, if `own` is the mount point, or if other processes are in `own`, as in
/// a login session.
///
/// # Errors
/// If the group cannot be created or entered, or a controller cannot be delegated. After a failed delegation this
/// process is back in `own`.
pub fn share_controllers(own: &Path, leaf: &str) -> io::Result<Vec<&'static str>> {
    let controllers = limiting_controllers(own);
    let me = std::process::id().to_string();
    let processes = fs::read_to_string(own.join("cgroup.procs"))?;
    let is_alone = processes.lines().all(|one| one == me);
    if controllers.is_empty() || !is_alone || cgroup2_mount().as_deref() == Some(own) {
        return Ok(Vec::new());
    }
    let leaf = own.join(leaf);
    match fs::create_dir(&leaf) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
        _ => fs::write(leaf.join("cgroup.procs"), &me)?,
    }
    let words: Vec<String> = controllers.iter().map(|one| format!("+{one}")).collect();
    if let Err(cause) = fs::write(own.join("cgroup.subtree_control"), words.join(" ")) {
        fs::write(own.join("cgroup.procs"), &me)?;
        fs::remove_dir(&leaf)?;
        return Err(cause);
    }
    Ok(controllers)
}

fn remove(path: &Path, depth: usize) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy && depth > 0 => {
            for below in folders(path) {
                remove(&below, depth - 1)?;
            }
            fs::remove_dir(path)
        }
        other => other,
    }
}

/// Freezes or thaws all processes of a group. They are frozen only when its `cgroup.events` reports it, some time
/// later.
pub fn set_frozen(group: &Path, still: bool) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .open(group.join("cgroup.freeze"))?;
    file.write_all(if still { b"1" } else { b"0" })
}

/// Returns the mount point of version 2: `/sys/fs/cgroup`, or `/sys/fs/cgroup/unified` on a hybrid host.
pub fn cgroup2_mount() -> Option<PathBuf> {
    mount_of(
        &fs::read_to_string("/proc/self/mountinfo").ok()?,
        "cgroup2",
        None,
    )
}

/// Returns the full path of the group that this process is in.
pub fn own_cgroup() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(cgroup2_mount()?.join(path.trim_start_matches('/')))
}

/// Returns the file in which version 1's freezer reports whether `pid` is frozen; `None` on a pure version 2 host.
pub fn freezer_state(pid: i32) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mount_of(&mounts, "cgroup", Some("freezer"))?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|c| c == "freezer")
            .then_some(path)
    })?;
    Some(
        mount
            .join(path.trim_start_matches('/'))
            .join("freezer.state"),
    )
}

/// Returns the version 1 groups of `pid` that limit what a process may do or use: devices, memory and the like.
///
/// The freezer is excluded: a process that is frozen there cannot even be killed.
pub fn limiting_groups(pid: i32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let lines = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let controller = controllers.split(',').next()?;
        let mount = mount_of(&mounts, "cgroup", Some(controller))?;
        let limits = controller != "freezer" && !controller.starts_with("name=");
        limits.then(|| mount.join(path.trim_start_matches('/')))
    });
    lines.filter(|path| path.is_dir()).collect()
}

/// Returns every group below the mount point whose name begins with one of these prefixes, without the groups below
/// such a group.
pub fn stale_cgroups(prefixes: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for_each_group(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let begins = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if name.is_some_and(begins) {
            found.push(path.to_owned());
            return Next::Beside;
        }
        Next::Below
    });
    found
}

/// Returns the paths of the groups with these inode numbers, relative to the mount point and beginning with `/`. A
/// group that no longer exists, or is too deep, is missing from the result.
pub fn cgroup_paths(wanted: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let mount = cgroup2_mount().unwrap_or_default();
    for_each_group(|path| {
        let number = fs::metadata(path).map(|facts| facts.ino());
        if let Some(number) = number.ok().filter(|number| wanted.contains(number)) {
            let below = path.strip_prefix(&mount).unwrap_or(path);
            found.insert(number, format!("/{}", below.display()));
        }
        if found.len() == wanted.len() {
            Next::Nowhere
        } else {
            Next::Below
        }
    });
    found
}

/// Returns the groups below `group` whose names contain `word`, shallower ones first and without the groups below such
/// a group.
pub fn groups_named(group: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for_each_below(Some(group.to_owned()), |path| {
        let name = path.file_name().and_then(|name| name.to_str());
        if path != group && name.is_some_and(|name| name.contains(word)) {
            found.push(path.to_owned());
            return Next::Beside;
        }
        Next::Below
    });
    found
}

/// Returns the processes in a group and in those below it, at most `most`.
pub fn processes_in_group(group: &Path, most: usize) -> Vec<i32> {
    let mut found = Vec::new();
    for_each_below(Some(group.to_owned()), |path| {
        let file = File::open(path.join("cgroup.procs"));
        let lines = file
            .into_iter()
            .flat_map(|file| BufReader::new(file).lines());
        let numbers = lines.map_while(Result::ok);
        let numbers = numbers.filter_map(|line| line.parse::<i32>().ok());
        found.extend(numbers.take(most - found.len()));
        if found.len() < most {
            Next::Below
        } else {
            Next::Nowhere
        }
    });
    found
}

/// How to continue after a group.
enum Next {
    Below,
    Beside,
    Nowhere,
}

/// Visits all groups, shallower ones first.
fn for_each_group(visit: impl FnMut(&Path) -> Next) {
    for_each_below(cgroup2_mount(), visit);
}

/// Visits a group and those below it, shallower ones first: a container may create any number of groups below its own.
fn for_each_below(top: Option<PathBuf>, mut visit: impl FnMut(&Path) -> Next) {
    let mut next = VecDeque::new();
    next.extend(top.map(|top| (top, MAX_DEPTH)));
    let mut left = MAX_GROUPS;
    while let Some((path, depth)) = next.pop_front() {
        match visit(&path) {
            Next::Below if depth > 0 => {
                let below = folders(&path).take(left);
                let below: Vec<_> = below.map(|below| (below, depth - 1)).collect();
                left -= below.len();
                next.extend(below);
            }
            Next::Below | Next::Beside => {}
            Next::Nowhere => return,
        }
    }
}

fn folders(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    folders.map(|entry| entry.path())
}

/// Returns the mount point of a file system type: the last one, which is the visible one.
fn mount_of(mountinfo: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    let mut lines = mountinfo.lines().rev();
    lines.find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let fits = right.next()? == kind
            && option.is_none_or(|wanted| {
                right
                    .nth(1)
                    .is_some_and(|all| all.split(',').any(|o| o == wanted))
            });
        fits.then(|| left.split(' ').nth(4).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";

    #[test]
    fn both_layouts_are_understood() {
        let at = |text, kind, option| mount_of(text, kind, option).map(|p| p.display().to_string());
        assert_eq!(
            at(HYBRID, "cgroup2", None).unwrap(),
            "/sys/fs/cgroup/unified"
        );
        assert_eq!(
            at(HYBRID, "cgroup", Some("freezer")).unwrap(),
            "/sys/fs/cgroup/freezer"
        );
        assert_eq!(at(HYBRID, "cgroup", Some("pids")), None);
        let pure = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(at(pure, "cgroup2", None).unwrap(), "/sys/fs/cgroup");
        assert_eq!(at("", "cgroup2", None), None);
    }

    #[test]
    fn what_the_kernel_counts_is_read_by_its_name() {
        let scratch = gatewren_portable::Scratch::new();
        let group = Cgroup::create(&scratch.join(""), "call").unwrap();
        assert_eq!(group.counter("memory.events", "oom_kill"), 0);
        let text = "low 0\noom 3\noom_kill 2\noom_group_kill 1\n";
        fs::write(group.path().join("memory.events"), text).unwrap();
        assert_eq!(group.counter("memory.events", "oom_kill"), 2);
        assert_eq!(group.counter("memory.events", "max"), 0);
        let all = "cpuset cpu io memory hugetlb pids\n";
        fs::write(group.path().join("cgroup.controllers"), all).unwrap();
        assert_eq!(limiting_controllers(group.path()), LIMITING_CONTROLLERS);
        fs::write(group.path().join("cgroup.controllers"), "cpuset pids\n").unwrap();
        assert_eq!(limiting_controllers(group.path()), ["pids"]);
    }

    #[test]
    fn a_process_that_shares_its_group_leaves_the_controllers_alone() {
        let scratch = gatewren_portable::Scratch::new();
        let own = scratch.join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("cgroup.controllers"), "memory pids\n").unwrap();
        let me = std::process::id();
        fs::write(own.join("cgroup.procs"), format!("{me}\n1\n")).unwrap();
        assert_eq!(
            share_controllers(&own, "helper").unwrap(),
            Vec::<&str>::new()
        );
        assert!(!own.join("helper").exists());
        fs::write(own.join("cgroup.procs"), format!("{me}\n")).unwrap();
        assert_eq!(
            share_controllers(&own, "helper").unwrap(),
            ["memory", "pids"]
        );
        let given = fs::read_to_string(own.join("cgroup.subtree_control")).unwrap();
        assert_eq!(given, "+memory +pids");
        let moved = fs::read_to_string(own.join("helper/cgroup.procs")).unwrap();
        assert_eq!(moved, me.to_string());
    }

    #[test]
    fn a_group_is_found_by_its_number() {
        let Some(own) = own_cgroup().filter(|path| path.is_dir()) else {
            return super::super::skip::skip("there is no cgroup of version 2");
        };
        let mount = cgroup2_mount().unwrap();
        let number = |path: &Path| fs::metadata(path).unwrap().ino();
        let wanted = BTreeSet::from([number(&own), number(&mount), u64::MAX]);
        let found = cgroup_paths(&wanted);
        let below = own.strip_prefix(&mount).unwrap().display().to_string();
        assert_eq!(found[&number(&own)], format!("/{below}"));
        assert!(found.contains_key(&number(&mount)) && !found.contains_key(&u64::MAX));
        assert!(cgroup_paths(&BTreeSet::new()).is_empty());
    }
}
