//! A container's resource usage, from its version 2 cgroup, or from version 1 for controllers that version 2 lacks.

use std::path::{Path, PathBuf};

use gatewren_base::sys::source::{field, text, word};
use gatewren_wire::operations::ContainerUsage;

/// Version 1 represents "no limit" by a number near the maximum.
const NO_LIMIT: u64 = 1 << 60;

/// Returns the usage of the container whose init has this `/proc/PID/cgroup`, without its network. `payload` is the
/// container's own version 2 cgroup, where that is known.
pub fn usage(groups: &str, payload: Option<&Path>) -> ContainerUsage {
    let mut usage = read(Path::new("/sys/fs/cgroup"), groups);
    if let Some(payload) = payload
        && usage == ContainerUsage::default()
    {
        usage = version_2(payload);
    }
    usage
}

fn read(mount: &Path, groups: &str) -> ContainerUsage {
    let groups = ContainerGroups { mount, groups };
    let unified = groups.unified();
    let mut usage = unified.as_deref().map(version_2).unwrap_or_default();
    usage.memory_bytes = usage.memory_bytes.or_else(|| {
        let memory = version_1_memory(&groups.version_1("memory")?);
        usage.memory_cache_bytes = memory.memory_cache_bytes;
        usage.memory_limit_bytes = memory.memory_limit_bytes;
        usage.swap_bytes = memory.swap_bytes;
        memory.memory_bytes
    });
    usage.cpu_usage_us = usage.cpu_usage_us.or_else(|| {
        let cpuacct = groups.version_1("cpuacct")?;
        let micros = |file| number(&cpuacct, file).map(|nanos| nanos / 1000);
        usage.cpu_user_us = micros("cpuacct.usage_user");
        usage.cpu_system_us = micros("cpuacct.usage_sys");
        micros("cpuacct.usage")
    });
    usage.cpu_limit_percent = usage.cpu_limit_percent.or_else(|| {
        let cpu = groups.version_1("cpu")?;
        let stat = text(cpu.join("cpu.stat")).unwrap_or_default();
        usage.cpu_throttled_us = entry(&stat, "throttled_time").map(|nanos| nanos / 1000);
        let quota = number(&cpu, "cpu.cfs_quota_us")?;
        (quota * 100).checked_div(number(&cpu, "cpu.cfs_period_us")?)
    });
    usage.pids = usage.pids.or_else(|| {
        let pids = groups.version_1("pids")?;
        usage.pids_limit = number(&pids, "pids.max");
        number(&pids, "pids.current")
    });
    usage.io_read_bytes = usage.io_read_bytes.or_else(|| {
        let blkio = groups.version_1("blkio")?;
        let moved = text(blkio.join("blkio.throttle.io_service_bytes_recursive"))?;
        usage.io_write_bytes = Some(sum(&moved, "Write "));
        Some(sum(&moved, "Read "))
    });
    usage
}

fn version_2(group: &Path) -> ContainerUsage {
    let memory = text(group.join("memory.stat")).unwrap_or_default();
    let cpu = text(group.join("cpu.stat")).unwrap_or_default();
    let moved = text(group.join("io.stat"));
    let quota = || {
        let (quota, period) = word(group.join("cpu.max"))?
            .split_once(' ')
            .and_then(|(quota, period)| Some((quota.parse().ok()?, period.parse().ok()?)))?;
        u64::checked_div(u64::checked_mul(quota, 100)?, period)
    };
    ContainerUsage {
        memory_bytes: number(group, "memory.current"),
        memory_cache_bytes: entry(&memory, "file"),
        memory_limit_bytes: number(group, "memory.max"),
        swap_bytes: number(group, "memory.swap.current"),
        cpu_usage_us: entry(&cpu, "usage_usec"),
        cpu_user_us: entry(&cpu, "user_usec"),
        cpu_system_us: entry(&cpu, "system_usec"),
        cpu_throttled_us: entry(&cpu, "throttled_usec"),
        cpu_limit_percent: quota(),
        pids: number(group, "pids.current"),
        pids_limit: number(group, "pids.max"),
        io_read_bytes: moved.as_deref().map(|moved| sum(moved, "rbytes=")),
        io_write_bytes: moved.as_deref().map(|moved| sum(moved, "wbytes=")),
        ..ContainerUsage::default()
    }
}

fn version_1_memory(group: &Path) -> ContainerUsage {
    let used = number(group, "memory.usage_in_bytes");
    let stat = text(group.join("memory.stat")).unwrap_or_default();
    let with_swap = number(group, "memory.memsw.usage_in_bytes");
    ContainerUsage {
        memory_bytes: used,
        memory_cache_bytes: entry(&stat, "total_cache"),
        memory_limit_bytes: number(group, "memory.limit_in_bytes").filter(|most| *most < NO_LIMIT),
        swap_bytes: with_swap.and_then(|both| both.checked_sub(used?)),
        ..ContainerUsage::default()
    }
}

/// The cgroups of one container.
pub(super) struct ContainerGroups<'a> {
    /// The mount point of the cgroups.
    pub(super) mount: &'a Path,
    /// The `/proc/PID/cgroup` of its init.
    pub(super) groups: &'a str,
}

impl ContainerGroups<'_> {
    /// Returns its version 2 cgroup, if there is one.
    pub(super) fn unified(&self) -> Option<PathBuf> {
        ["unified", ""].iter().find_map(|below| {
            let path = self.mount.join(below).join(self.payload("")?);
            path.join("cgroup.procs").exists().then_some(path)
        })
    }

    /// Returns its cgroup under a version 1 controller, whether or not it exists.
    pub(super) fn version_1(&self, controller: &str) -> Option<PathBuf> {
        Some(self.mount.join(controller).join(self.payload(controller)?))
    }

    /// Returns the container's cgroup under a version 1 controller, or in version 2 if the controller is empty.
    ///
    /// It is the path of its init up to the component that LXC created. With systemd inside, init is deeper, and LXC
    /// appends a number after a clash of names. Proxmox uses `lxc` and the container's number.
    fn payload(&self, controller: &str) -> Option<PathBuf> {
        let path = self.groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers
                .split(',')
                .any(|c| c == controller)
                .then_some(path)
        })?;
        let mut found = PathBuf::new();
        for component in path.split('/').filter(|component| !component.is_empty()) {
            let ours = component.starts_with("lxc.payload") || found == Path::new("lxc");
            if component == ".." {
                return None;
            }
            found.push(component);
            if ours {
                return Some(found);
            }
        }
        None
    }
}

/// Parses a file that contains only a number; `None` for `max`.
pub(super) fn number(group: &Path, file: &str) -> Option<u64> {
    word(group.join(file))?.parse().ok()
}

/// Parses the number in a line such as `usage_usec 77`.
pub(super) fn entry(stat: &str, key: &str) -> Option<u64> {
    field(stat, key, ' ')?.parse().ok()
}

/// Sums up all numbers after a key, such as `rbytes=` in `8:0 rbytes=1 wbytes=2`.
fn sum(text: &str, key: &str) -> u64 {
    let numbers = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(key)?;
        rest.split(' ').next()?.trim().parse::<u64>().ok()
    });
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gatewren_base::sys::Scratch;

    use super::super::usage::*;

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
                (
                    "lxc.payload.a-1/memory.stat",
                    "anon 1\nfile 1024\nfile_mapped 9\n",
                ),
                ("lxc.payload.a-1/memory.max", "max\n"),
                ("lxc.payload.a-1/memory.swap.current", "0\n"),
                (
                    "lxc.payload.a-1/cpu.stat",
                    "usage_usec 77\nuser_usec 5\nsystem_usec 72\nthrottled_usec 9\n",
                ),
                ("lxc.payload.a-1/cpu.max", "150000 100000\n"),
                ("lxc.payload.a-1/pids.current", "3\n"),
                ("lxc.payload.a-1/pids.max", "512\n"),
                (
                    "lxc.payload.a-1/io.stat",
                    "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n",
                ),
            ],
        );
        let found = read(scratch.path(), "0::/lxc.payload.a-1/init.scope\n");
        let expected = ContainerUsage {
            memory_bytes: Some(4096),
            memory_cache_bytes: Some(1024),
            swap_bytes: Some(0),
            cpu_usage_us: Some(77),
            cpu_user_us: Some(5),
            cpu_system_us: Some(72),
            cpu_throttled_us: Some(9),
            cpu_limit_percent: Some(150),
            pids: Some(3),
            pids_limit: Some(512),
            io_read_bytes: Some(11),
            io_write_bytes: Some(22),
            ..ContainerUsage::default()
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
                ("memory/lxc.payload.a/memory.memsw.usage_in_bytes", "8292\n"),
                (
                    "memory/lxc.payload.a/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
                (
                    "memory/lxc.payload.a/memory.stat",
                    "cache 1\ntotal_cache 7\n",
                ),
                ("cpuacct/lxc.payload.a/cpuacct.usage", "9999\n"),
                ("cpu/lxc.payload.a/cpu.cfs_quota_us", "-1\n"),
                (
                    "cpu/lxc.payload.a/cpu.stat",
                    "nr_throttled 1\nthrottled_time 7999\n",
                ),
                ("pids/lxc.payload.a/pids.current", "2\n"),
                ("pids/lxc.payload.a/pids.max", "max\n"),
                (
                    "blkio/lxc.payload.a/blkio.throttle.io_service_bytes_recursive",
                    "8:0 Read 5\n8:0 Write 6\n8:0 Total 11\n8:16 Read 1\nTotal 12\n",
                ),
            ],
        );
        let groups = "8:pids:/lxc.payload.a\n4:memory:/lxc.payload.a\n7:blkio:/lxc.payload.a\n\
                      2:cpu,cpuacct:/lxc.payload.a\n0::/lxc.payload.a\n";
        let expected = ContainerUsage {
            memory_bytes: Some(8192),
            memory_cache_bytes: Some(7),
            swap_bytes: Some(100),
            cpu_usage_us: Some(9),
            cpu_throttled_us: Some(7),
            pids: Some(2),
            io_read_bytes: Some(6),
            io_write_bytes: Some(6),
            ..ContainerUsage::default()
        };
        assert_eq!(read(scratch.path(), groups), expected);
    }

    #[test]
    fn one_that_proxmox_named() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("lxc/101/cgroup.procs", ""),
                ("lxc/101/memory.current", "5\n"),
            ],
        );
        let found = read(scratch.path(), "0::/lxc/101/ns/init.scope\n");
        assert_eq!(found.memory_bytes, Some(5));
    }

    #[test]
    fn odd_input_is_nothing() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("lxc.payload.a/cgroup.procs", ""),
                ("lxc.payload.a/memory.current", "max"),
                ("lxc.payload.a/cpu.max", "max 100000"),
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
            "0::/system.slice/lxc.service",
        ] {
            assert_eq!(
                read(scratch.path(), groups),
                ContainerUsage::default(),
                "{groups}"
            );
        }
    }
}
