//! What a container uses, from the files of its cgroup in version 2 and, where that lacks a controller, 1.

use std::path::{Path, PathBuf};

use super::super::source::{field, text, word};

/// What a container uses; absent is what the kernel does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Processes.
    pub pids: Option<u64>,
}

/// What the container with this first process uses.
pub fn counters(init_pid: u32) -> Counters {
    let groups = text(format!("/proc/{init_pid}/cgroup")).unwrap_or_default();
    read(Path::new("/sys/fs/cgroup"), &groups)
}

fn read(mount: &Path, groups: &str) -> Counters {
    let group = |controller: &str| payload(groups, controller);
    let unified = ["unified", ""].iter().find_map(|below| {
        let path = mount.join(below).join(group("")?);
        path.join("cgroup.procs").exists().then_some(path)
    });
    let first = |controller: &str| Some(mount.join(controller).join(group(controller)?));
    let number = |folder: Option<PathBuf>, file: &str| -> Option<u64> {
        word(folder?.join(file))?.parse().ok()
    };
    let nanoseconds = || number(first("cpuacct"), "cpuacct.usage");
    let cpu_stat = unified
        .as_ref()
        .and_then(|group| text(group.join("cpu.stat")));
    let microseconds = cpu_stat.and_then(|stat| field(&stat, "usage_usec", ' ')?.parse().ok());
    Counters {
        memory_bytes: number(unified.clone(), "memory.current")
            .or_else(|| number(first("memory"), "memory.usage_in_bytes")),
        cpu_usage_us: microseconds.or_else(|| Some(nanoseconds()? / 1000)),
        pids: number(unified, "pids.current").or_else(|| number(first("pids"), "pids.current")),
    }
}

/// The container's cgroup under a controller of version 1, or in version 2 for no controller.
///
/// It is its init's, up to the component that LXC made: with systemd inside, init is deeper, and after a
/// clash of names LXC adds a number.
fn payload(groups: &str, controller: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|c| c == controller)
            .then_some(path)
    })?;
    let mut found = PathBuf::new();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        if component == ".." {
            return None;
        }
        found.push(component);
        if component.starts_with("lxc.payload") {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::sys::Scratch;

    use super::*;

    fn write(scratch: &Scratch, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = scratch.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn version_2_with_init_deeper_inside() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("lxc.payload.a-1/cgroup.procs", ""),
                ("lxc.payload.a-1/memory.current", "4096\n"),
                ("lxc.payload.a-1/cpu.stat", "usage_usec 77\nuser_usec 5\n"),
                ("lxc.payload.a-1/pids.current", "3\n"),
            ],
        );
        let found = read(scratch.path(), "0::/lxc.payload.a-1/init.scope\n");
        let expected = Counters {
            memory_bytes: Some(4096),
            cpu_usage_us: Some(77),
            pids: Some(3),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hybrid_machine_has_the_controllers_in_version_1() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("unified/lxc.payload.a/cgroup.procs", ""),
                ("memory/lxc.payload.a/memory.usage_in_bytes", "8192\n"),
                ("cpuacct/lxc.payload.a/cpuacct.usage", "9999\n"),
                ("pids/lxc.payload.a/pids.current", "2\n"),
            ],
        );
        let groups = "8:pids:/lxc.payload.a\n4:memory:/lxc.payload.a\n\
                      2:cpu,cpuacct:/lxc.payload.a\n0::/lxc.payload.a\n";
        let expected = Counters {
            memory_bytes: Some(8192),
            cpu_usage_us: Some(9),
            pids: Some(2),
        };
        assert_eq!(read(scratch.path(), groups), expected);
    }

    #[test]
    fn odd_input_is_nothing() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("lxc.payload.a/cgroup.procs", ""),
                ("lxc.payload.a/memory.current", "max"),
            ],
        );
        for groups in [
            "",
            "0",
            "0:",
            "0::",
            "0::/",
            "0::/../lxc.payload.a",
            "0::/lxc.payload.a",
        ] {
            assert_eq!(
                read(scratch.path(), groups),
                Counters::default(),
                "{groups}"
            );
        }
        assert_eq!(counters(u32::MAX), Counters::default());
    }
}
