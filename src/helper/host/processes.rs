//! The host's processes that use the most CPU or memory, of all users. The front's sandbox shows it only its own.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gatewren_base::config::{ContainerMentions, HelperPolicy};
use gatewren_base::sys::source::{field, text};
use gatewren_base::sys::{LEAST_BETWEEN, cgroup2_mount};
use gatewren_base::telemetry::redact_text;
use gatewren_wire::operations::{ContainerRef, ProcessOrder, ProcessUsage, ProcessUsageList};

use crate::context::containers::HostContainers;
use crate::context::process_times::{EarlierTimes, ProcessTimes, process_times};

/// The most processes in a list; more are cut off.
const MOST: u32 = 100;

/// The longest part of a command line in the result.
const COMMAND_CHARS: usize = 200;

/// Ticks per second of the times in `/proc/PID/stat`, the same on every architecture that programs are built for
/// today.
const TICKS: f64 = 100.0;

/// The running containers by their cgroups. A cgroup's name does not always tell: LXC appends a number if another has the
/// name, and the names of Docker and Podman are ids.
#[derive(Debug, Default)]
pub struct ContainerCgroups {
    mount: PathBuf,
    groups: Vec<ContainerCgroup>,
}

/// A container's cgroup, version 2.
#[derive(Debug)]
struct ContainerCgroup {
    path: PathBuf,
    container: ContainerRef,
}

impl ContainerCgroups {
    /// Returns the cgroups of the containers that are known to run.
    pub fn of(containers: &HostContainers) -> Self {
        let running = containers.still_running().into_iter();
        let groups = running.filter_map(|(container, running)| {
            let path = running.payload?;
            Some(ContainerCgroup { path, container })
        });
        Self {
            mount: cgroup2_mount().unwrap_or_default(),
            groups: groups.collect(),
        }
    }

    /// Returns the container of a process with this `/proc/PID/cgroup`: the innermost, if one is inside another.
    fn container(&self, groups: &str) -> Option<&ContainerRef> {
        let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let path = self.mount.join(path);
        let around = self.groups.iter().filter(|one| path.starts_with(&one.path));
        let inner = around.max_by_key(|one| one.path.as_os_str().len())?;
        Some(&inner.container)
    }
}

/// Returns the processes that use the most, as JSON, without those of containers that the policy file hides. Without an
/// earlier sample of their times it waits for one.
pub fn list(
    order: ProcessOrder,
    most: u32,
    policy: &HelperPolicy,
    containers: &ContainerCgroups,
    earlier: &EarlierTimes,
) -> Vec<u8> {
    let proc = Path::new("/proc");
    let start = Instant::now();
    let (before, age) = earlier.earlier().unwrap_or_else(|| {
        let before = Arc::new(process_times(proc));
        // The next call may come at once, when this one's newest sample is too new.
        earlier.keep(Arc::clone(&before));
        thread::sleep(LEAST_BETWEEN);
        (before, Duration::ZERO)
    });
    let (after, time) = (Arc::new(process_times(proc)), age + start.elapsed());
    earlier.keep(Arc::clone(&after));
    let uptime_s = uptime_s(proc);
    let used = |(pid, now): (&i32, &ProcessTimes)| ProcessLoad {
        pid: *pid,
        cpu_percent: cpu_percent(before.get(pid), now, time, uptime_s),
        memory_bytes: memory(&proc.join(pid.to_string())),
    };
    let mut all: Vec<ProcessLoad> = after
        .iter()
        .filter(|(pid, _)| is_shown(&proc.join(pid.to_string()), policy, containers))
        .map(used)
        .collect();
    let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
    all.sort_by(|a, b| compare(order, a, b));
    all.truncate(usize::try_from(most.min(MOST)).unwrap_or_default());
    let processes = all.into_iter().filter_map(|load| {
        let started_s = after.get(&load.pid)?.started / 100;
        let age_s = uptime_s.saturating_sub(started_s);
        describe(&load, age_s, containers)
    });
    let list = ProcessUsageList {
        processes: processes.collect(),
        total,
    };
    // Plain numbers and strings always serialize.
    serde_json::to_vec(&list).unwrap_or_default()
}

/// Returns whether a process may be shown. If it belongs to a container, runs one or is about one, its cgroups, its
/// name or its command line show that.
fn is_shown(process: &Path, policy: &HelperPolicy, containers: &ContainerCgroups) -> bool {
    if policy.shows_all_containers() {
        return true;
    }
    let groups = text(process.join("cgroup")).unwrap_or_default();
    let shows = |text: &str| ContainerMentions::show(text, |name| policy.shows_container(name));
    let is_in_shown = match containers.container(&groups) {
        Some(container) => policy.shows_container(container.as_str()),
        None => shows(&groups),
    };
    let mut files = ["comm", "cmdline"].iter();
    is_in_shown && files.all(|file| shows(&text(process.join(file)).unwrap_or_default()))
}

/// How much a process uses.
struct ProcessLoad {
    pid: i32,
    cpu_percent: f64,
    memory_bytes: u64,
}

/// Returns the share of one CPU that a process took: since the earlier sample, or since its start if it is newer.
fn cpu_percent(
    before: Option<&ProcessTimes>,
    now: &ProcessTimes,
    time: Duration,
    uptime_s: u64,
) -> f64 {
    if let Some(before) = before.filter(|before| before.started == now.started) {
        return percent(now.used.saturating_sub(before.used), time);
    }
    let age = Duration::from_secs(uptime_s.saturating_sub(now.started / 100));
    percent(now.used, age.clamp(LEAST_BETWEEN, time.max(LEAST_BETWEEN)))
}

#[expect(clippy::cast_precision_loss, reason = "a percentage needs no more")]
fn percent(ticks: u64, time: Duration) -> f64 {
    let share = ticks as f64 / TICKS / time.as_secs_f64().max(0.001);
    (share * 1000.0).round() / 10.0
}

fn compare(order: ProcessOrder, a: &ProcessLoad, b: &ProcessLoad) -> Ordering {
    let cpu = b.cpu_percent.total_cmp(&a.cpu_percent);
    let memory = b.memory_bytes.cmp(&a.memory_bytes);
    let first = match order {
        ProcessOrder::Cpu => cpu.then(memory),
        ProcessOrder::Memory => memory.then(cpu),
    };
    first.then(a.pid.cmp(&b.pid))
}

/// Returns 0 for a kernel thread.
fn memory(process: &Path) -> u64 {
    let status = text(process.join("status")).unwrap_or_default();
    kilobytes(&status)
}

fn kilobytes(status: &str) -> u64 {
    let size = field(status, "VmRSS", ':').unwrap_or_default();
    let number = size.split_whitespace().next().unwrap_or_default();
    number.parse::<u64>().unwrap_or_default() * 1024
}

/// Describes a process; `None` if it has already exited.
fn describe(load: &ProcessLoad, age_s: u64, containers: &ContainerCgroups) -> Option<ProcessUsage> {
    let process = &Path::new("/proc").join(load.pid.to_string());
    let status = text(process.join("status"))?;
    let groups = text(process.join("cgroup")).unwrap_or_default();
    let first = |name: &str| field(&status, name, ':')?.split_whitespace().next();
    let name = field(&status, "Name", ':')?.to_owned();
    Some(ProcessUsage {
        pid: load.pid,
        parent: first("PPid")?.parse().ok()?,
        uid: first("Uid")?.parse().ok()?,
        state: first("State")?.chars().next()?,
        command: command(process),
        name,
        cpu_percent: load.cpu_percent,
        memory_bytes: kilobytes(&status),
        threads: first("Threads")?.parse().ok()?,
        age_s,
        cgroup: cgroup(&groups),
        container: containers.container(&groups).cloned(),
    })
}

/// Redacts secrets from a command line: users of the host may read it, the front's clients may not.
fn command(process: &Path) -> String {
    let words = text(process.join("cmdline")).unwrap_or_default();
    let line = words.trim_end_matches('\0').replace('\0', " ");
    redact_text(&line).chars().take(COMMAND_CHARS).collect()
}

/// On a host that still has version 1 cgroups, one of them contains the container's name.
fn cgroup(groups: &str) -> String {
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    let of_lxc = groups
        .lines()
        .find(|line| !ContainerMentions::in_text(line).is_none());
    let unified = || groups.lines().find(|line| line.starts_with("0::"));
    of_lxc.or_else(unified).and_then(path).unwrap_or_default()
}

fn uptime_s(proc: &Path) -> u64 {
    let uptime = text(proc.join("uptime")).unwrap_or_default();
    let whole = uptime.split('.').next().unwrap_or_default();
    whole.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::processes::*;
    use gatewren_base::sys::{own_pid, own_uid};

    fn listed(order: ProcessOrder, most: u32) -> Vec<u8> {
        let containers = ContainerCgroups::default();
        let earlier = EarlierTimes::default();
        list(order, most, &HelperPolicy::default(), &containers, &earlier)
    }

    #[test]
    fn the_second_list_does_not_wait_and_a_new_process_counts_from_its_start() {
        let earlier = EarlierTimes::default();
        let containers = ContainerCgroups::default();
        let ask = || {
            let policy = HelperPolicy::default();
            list(ProcessOrder::Cpu, 5, &policy, &containers, &earlier)
        };
        ask();
        assert!(earlier.earlier().is_some());
        ask();
        let (second, tenth) = (Duration::from_secs(1), Duration::from_millis(100));
        let times = |used, started| ProcessTimes { used, started };
        let used = |before: Option<ProcessTimes>, now: ProcessTimes, time| {
            cpu_percent(before.as_ref(), &now, time, 100)
        };
        assert!((used(Some(times(50, 1)), times(100, 1), second) - 50.0).abs() < 0.1);
        // Its number is of another process, which began a second ago.
        assert!((used(Some(times(50, 1)), times(100, 9900), 60 * second) - 100.0).abs() < 0.1);
        // Its age is known in whole seconds.
        assert!((used(None, times(20, 9990), 60 * second) - 20.0).abs() < 0.1);
        assert!((used(None, times(20, 9990), tenth) - 100.0).abs() < 0.1);
    }

    #[test]
    fn those_that_use_most_come_first() {
        for order in [ProcessOrder::Cpu, ProcessOrder::Memory] {
            let usage: ProcessUsageList = serde_json::from_slice(&listed(order, 5)).unwrap();
            assert!((1..=5).contains(&usage.processes.len()), "{usage:?}");
            let keys = usage.processes.iter().map(|one| match order {
                ProcessOrder::Cpu => -one.cpu_percent,
                #[expect(clippy::cast_precision_loss, reason = "a test")]
                ProcessOrder::Memory => -(one.memory_bytes as f64),
            });
            // The process may have grown between the two reads.
            assert!(
                order == ProcessOrder::Memory || keys.is_sorted(),
                "{usage:?}"
            );
        }
        assert!(listed(ProcessOrder::Cpu, 0).ends_with(b"}"));
    }

    #[test]
    fn a_process_is_told_with_what_it_is() {
        let load = ProcessLoad {
            pid: own_pid(),
            cpu_percent: 0.0,
            memory_bytes: 0,
        };
        let usage = describe(&load, 1, &ContainerCgroups::default()).unwrap();
        assert!(usage.memory_bytes > 0 && usage.threads > 0 && !usage.command.is_empty());
        assert_eq!(usage.uid, own_uid());
    }

    #[test]
    fn a_process_is_of_the_container_whose_cgroup_it_is_in() {
        let group = |path: &str, container: &str| ContainerCgroup {
            path: path.into(),
            container: container.parse().unwrap(),
        };
        let known = ContainerCgroups {
            mount: "/sys/fs/cgroup".into(),
            groups: vec![
                group("/sys/fs/cgroup/lxc.payload.alpha-1", "alpha"),
                group(
                    "/sys/fs/cgroup/lxc.payload.alpha-1/docker/4e5f",
                    "docker:web@alpha",
                ),
                group("/sys/fs/cgroup/docker/4e5f", "docker:web"),
            ],
        };
        for (groups, expected) in [
            ("0::/lxc.payload.alpha-1/init.scope\n", Some("alpha")),
            ("9:freezer:/x\n0::/docker/4e5f\n", Some("docker:web")),
            (
                "0::/lxc.payload.alpha-1/docker/4e5f/x\n",
                Some("docker:web@alpha"),
            ),
            ("0::/docker/4e5f0\n", None),
            ("0::/\n", None),
            ("", None),
        ] {
            let found = known.container(groups).map(ContainerRef::as_str);
            assert_eq!(found, expected, "{groups}");
        }
    }
}
