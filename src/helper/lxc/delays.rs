//! What a container's processes waited for, from its version 2 cgroup, or from version 1 for what version 2 lacks.

use std::path::Path;

use gatewren_base::sys::source::{text, word};
use gatewren_wire::operations::ContainerDelays;

use super::usage::{ContainerGroups, entry, number};

/// Returns the counters of the container whose init has this `/proc/PID/cgroup`. `payload` is the container's own
/// version 2 cgroup, where that is known.
pub fn delays(groups: &str, payload: Option<&Path>) -> ContainerDelays {
    read(Path::new("/sys/fs/cgroup"), groups, payload)
}

fn read(mount: &Path, groups: &str, payload: Option<&Path>) -> ContainerDelays {
    let groups = ContainerGroups { mount, groups };
    let unified = groups.unified();
    let unified = unified.as_deref().or(payload);
    let mut delays = unified.map(version_2).unwrap_or_default();
    if delays.cpu_throttled_periods.is_none()
        && let Some(cpu) = groups.version_1("cpu")
    {
        let has_limit = number(&cpu, "cpu.cfs_quota_us").is_some();
        let stat = text(cpu.join("cpu.stat")).unwrap_or_default();
        delays.cpu_period_us = number(&cpu, "cpu.cfs_period_us").filter(|_| has_limit);
        delays.cpu_throttled_periods = entry(&stat, "nr_throttled").filter(|_| has_limit);
    }
    delays.oom_kills = delays.oom_kills.or_else(|| {
        let memory = groups.version_1("memory")?;
        entry(&text(memory.join("memory.oom_control"))?, "oom_kill")
    });
    delays
}

fn version_2(group: &Path) -> ContainerDelays {
    let cpu = text(group.join("cpu.stat")).unwrap_or_default();
    let period = || {
        let limit = word(group.join("cpu.max"))?;
        let (quota, period) = limit.split_once(' ')?;
        let period = period.parse::<u64>().ok()?;
        (quota != "max").then_some(period)
    };
    let period = period();
    let [cpu_waits, memory_waits, io_waits] = ["cpu.pressure", "memory.pressure", "io.pressure"]
        .map(|file| Waits::parse(&text(group.join(file)).unwrap_or_default()));
    ContainerDelays {
        cpu_period_us: period,
        cpu_throttled_periods: entry(&cpu, "nr_throttled").filter(|_| period.is_some()),
        cpu_waited_us: cpu_waits.waited_us,
        memory_waited_us: memory_waits.waited_us,
        io_waited_us: io_waits.waited_us,
        cpu_waits_now: cpu_waits.now,
        memory_waits_now: memory_waits.now,
        io_waits_now: io_waits.now,
        oom_kills: text(group.join("memory.events")).and_then(|events| entry(&events, "oom_kill")),
    }
}

/// How long processes waited for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Waits {
    /// Microseconds since the group was made.
    waited_us: Option<u64>,
    /// The share of the last 10 seconds, in hundredths of a percent.
    now: Option<u64>,
}

impl Waits {
    /// Parses `some avg10=1.25 avg60=0.00 avg300=0.00 total=77`.
    fn parse(pressure: &str) -> Self {
        let mut lines = pressure.lines();
        let some = lines.find_map(|line| line.strip_prefix("some "));
        let some = some.unwrap_or_default();
        let value = |key: &str| {
            let mut words = some.split_whitespace();
            words.find_map(|word| word.strip_prefix(key))
        };
        Self {
            waited_us: value("total=").and_then(|total| total.parse().ok()),
            // The kernel writes two digits after the point.
            now: value("avg10=").and_then(|share| share.replace('.', "").parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gatewren_base::sys::Scratch;

    use super::super::delays::*;

    fn write(scratch: &Scratch, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = scratch.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    const PRESSURE: &str = "some avg10=1.25 avg60=2.00 avg300=3.00 total=77\n\
                            full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";

    #[test]
    fn version_2_counts_throttled_periods_pressure_and_kills() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("docker/abc/cpu.max", "50000 100000\n"),
                (
                    "docker/abc/cpu.stat",
                    "usage_usec 7\nnr_periods 10\nnr_throttled 4\n",
                ),
                ("docker/abc/cpu.pressure", PRESSURE),
                (
                    "docker/abc/memory.events",
                    "low 0\noom 2\noom_kill 1\noom_group_kill 0\n",
                ),
            ],
        );
        let payload = scratch.join("docker/abc");
        let expected = ContainerDelays {
            cpu_period_us: Some(100_000),
            cpu_throttled_periods: Some(4),
            cpu_waited_us: Some(77),
            cpu_waits_now: Some(125),
            oom_kills: Some(1),
            ..ContainerDelays::default()
        };
        let found = read(scratch.path(), "0::/docker/abc\n", Some(&payload));
        assert_eq!(found, expected);
        write(&scratch, &[("docker/abc/cpu.max", "max 100000\n")]);
        let found = read(scratch.path(), "0::/docker/abc\n", Some(&payload));
        assert_eq!(
            (found.cpu_period_us, found.cpu_throttled_periods),
            (None, None)
        );
    }

    #[test]
    fn a_hybrid_machine_has_the_limits_in_version_1_and_the_pressure_in_version_2() {
        let scratch = Scratch::new();
        write(
            &scratch,
            &[
                ("unified/lxc.payload.a/cgroup.procs", ""),
                ("unified/lxc.payload.a/cpu.stat", "usage_usec 7\n"),
                ("unified/lxc.payload.a/io.pressure", PRESSURE),
                ("cpu/lxc.payload.a/cpu.cfs_quota_us", "20000\n"),
                ("cpu/lxc.payload.a/cpu.cfs_period_us", "100000\n"),
                (
                    "cpu/lxc.payload.a/cpu.stat",
                    "nr_periods 9\nnr_throttled 8\n",
                ),
                (
                    "memory/lxc.payload.a/memory.oom_control",
                    "under_oom 0\noom_kill 3\n",
                ),
            ],
        );
        let groups = "4:memory:/lxc.payload.a\n2:cpu,cpuacct:/lxc.payload.a\n0::/lxc.payload.a\n";
        let expected = ContainerDelays {
            cpu_period_us: Some(100_000),
            cpu_throttled_periods: Some(8),
            io_waited_us: Some(77),
            io_waits_now: Some(125),
            oom_kills: Some(3),
            ..ContainerDelays::default()
        };
        assert_eq!(read(scratch.path(), groups, None), expected);
    }

    #[test]
    fn odd_input_is_nothing() {
        for text in ["", "some", "some total=x", "full total=5", "some avg10=x"] {
            assert_eq!(Waits::parse(text), Waits::default(), "{text}");
        }
        let scratch = Scratch::new();
        assert_eq!(
            read(scratch.path(), "0::/../x\n", None),
            ContainerDelays::default()
        );
    }
}
