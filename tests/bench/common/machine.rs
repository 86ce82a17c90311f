//! The kernel's figures of a process and of the machine, and the assignment of cores.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::Error;

const SERVER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";

/// A process's CPU time from now on, user and kernel, thread by thread (`proc_pid_schedstat`). The last few
/// milliseconds of a running thread may be missing, and a thread that has exited is missing entirely.
pub struct CpuClock {
    pid: u32,
    before: BTreeMap<OsString, u64>,
}

impl CpuClock {
    /// Starts measuring.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let before = threads(pid)?;
        Ok(Self { pid, before })
    }

    /// Returns the CPU time since.
    pub fn spent(&self) -> Result<Duration, Error> {
        let since = threads(self.pid)?.into_iter().map(|(thread, now)| {
            let before = self.before.get(&thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        });
        Ok(Duration::from_nanos(since.sum()))
    }
}

fn threads(pid: u32) -> Result<BTreeMap<OsString, u64>, Error> {
    let mut threads = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?;
        // A thread may exit between the two.
        let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else {
            continue;
        };
        let on_cpu = text.split(' ').next().unwrap_or_default();
        threads.insert(thread.file_name(), on_cpu.parse()?);
    }
    Ok(threads)
}

/// Returns a memory figure of a process in KiB: `Pss` of `smaps_rollup`, where shared pages count proportionally, or,
/// of `status`, `VmHWM`, the peak resident size, or `VmRSS`, the current one.
pub fn memory_kib(pid: u32, figure: &str) -> Result<f64, Error> {
    let file = if figure == "Pss" {
        "smaps_rollup"
    } else {
        "status"
    };
    let text = fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number
        .ok_or("the kernel does not say how much memory")?
        .parse()?)
}

/// Resets the peak resident size (`proc_pid_clear_refs`).
pub fn forget_peak(pid: u32) -> Result<(), Error> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

/// Returns the CPU time of a process and of its waited-for children, user and kernel, in microseconds; the resolution
/// is the kernel's clock tick of ten milliseconds (`proc_pid_stat`).
pub fn cpu_with_children_us(pid: u32) -> Result<f64, Error> {
    const TICK_US: f64 = 10_000.0;
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name may contain anything; the state is the first word after it.
    let behind = text.rsplit(") ").next().unwrap_or_default();
    let columns = behind.split(' ').skip(11).take(4);
    let mut ticks = 0.0;
    for column in columns {
        ticks += column.parse::<f64>()?;
    }
    Ok(ticks * TICK_US)
}

/// Returns a process and all its descendants.
pub fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        let mut children = Vec::new();
        for thread in threads.into_iter().flatten().flatten() {
            let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            children.extend(
                list.split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        all.extend(children);
        at += 1;
    }
    all
}

/// Raises the limit of open files of this process and its children to the maximum.
pub fn raise_descriptor_limit() -> Result<(), Error> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

/// Whether the servers and this client have a core each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinning(bool);

impl Pinning {
    /// Moves this process to its core, if there are two and `taskset` is installed.
    pub fn begin() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let pid = std::process::id().to_string();
        let moved = cores > 1
            && Command::new("taskset")
                .args(["-acp", CLIENT_CORE, &pid])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success());
        Self(moved)
    }

    /// Returns the command that starts a server on its core; it has the server's own process id either way.
    pub fn server(self, program: &Path) -> Command {
        if !self.0 {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", SERVER_CORE]).arg(program);
        command
    }

    /// Returns whether the cores are assigned.
    pub fn is_held(self) -> bool {
        self.0
    }

    /// Returns the text for the report.
    pub fn words(self) -> &'static str {
        if self.0 {
            "servers on core 0, client on core 1"
        } else {
            "NOT pinned (one core, or no taskset): servers and client take each other's time"
        }
    }
}

/// The properties of the machine that affect the figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// The load average over one minute, which includes other programs.
    pub load: String,
}

impl Machine {
    /// Reads the properties; before [`Pinning::begin`] takes cores away.
    pub fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let named = processors.lines().find(|l| l.starts_with("model name"));
        let name = named.and_then(|line| line.split_once(": "));
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: name.map_or("unknown", |(_, name)| name).to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: load(),
        }
    }

    /// Returns the text for the report.
    pub fn words(&self) -> String {
        let Self {
            cores,
            processor,
            kernel,
            load,
        } = self;
        format!("{processor}, {cores} cores, Linux {kernel}, load {load} before")
    }
}

/// Returns the load average of the last minute.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
