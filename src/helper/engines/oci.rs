//! What the OCI runtime below Docker or Podman keeps about a running container: where it is, and how to enter it.
//!
//! Everything here is read from files that only root can write. Every statement about the container's first process is
//! compared with the kernel's.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use gatewren_base::config::find_distrust;
use gatewren_base::sys::source::text;
use gatewren_base::sys::{cgroup2_mount, process};
use gatewren_wire::operations::OperationRefusal;

use crate::context::programs::find;

/// The most bytes of a state file or a configuration. A larger one is rejected.
const MAX_BYTES: u64 = 4 << 20;

/// Where the runtimes keep their state, if the process that watches the container does not say.
const DOCKER_ROOT: &str = "/run/docker/runtime-runc/moby";
const CRUN_ROOT: &str = "/run/crun";
const RUNC_ROOT: &str = "/run/runc";

/// The OCI runtimes whose `exec` starts a process in a given cgroup, with given descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OciRuntime {
    /// runc.
    Runc,
    /// crun.
    Crun,
}

/// A running container, as its OCI runtime describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciContainer {
    /// The container's full id.
    pub id: String,
    /// Its init process, by its id on the host.
    pub init: i32,
    /// The start time of init, in clock ticks from boot.
    pub started: u64,
    /// Its own version 2 cgroup; `None` on a host without version 2.
    pub cgroup: Option<PathBuf>,
    /// The runtime.
    pub runtime: OciRuntime,
    /// The runtime's program.
    pub program: PathBuf,
    /// The directory of the runtime's state (`--root`).
    pub root: PathBuf,
    /// The process of the container's configuration (`config.json`, "process").
    pub process: Map<String, Value>,
}

/// The state file of runc.
#[derive(Deserialize)]
struct RuncState {
    init_process_pid: i32,
    init_process_start: u64,
    cgroup_paths: Map<String, Value>,
    config: RuncConfig,
}

#[derive(Deserialize)]
struct RuncConfig {
    labels: Vec<String>,
}

/// The state file of crun.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CrunStatus {
    pid: i32,
    #[serde(default)]
    process_start_time: u64,
    cgroup_path: String,
    bundle: PathBuf,
}

/// What both have in common.
struct OciState {
    init: i32,
    started: u64,
    cgroup: Option<PathBuf>,
    bundle: PathBuf,
}

/// A place where a runtime may keep its state.
struct StatePlace {
    root: PathBuf,
    program: Option<PathBuf>,
}

/// The options that containerd's shim keeps beside a container's configuration.
#[derive(Deserialize)]
struct ShimOptions {
    #[serde(default)]
    binary_name: String,
    root: PathBuf,
}

/// Finds the runtime's state of a container by its full id. `init` is its first process according to the daemon.
///
/// # Errors
/// Fails if no runtime that can enter it has the container, or if the state is not root's or contradicts the kernel.
pub fn find_container(id: &str, init: i32) -> Result<OciContainer, OperationRefusal> {
    for place in places(id, init) {
        let directory = place.root.join(id);
        let known = [
            (OciRuntime::Runc, directory.join("state.json")),
            (OciRuntime::Crun, directory.join("status")),
        ];
        if let Some((runtime, file)) = known.into_iter().find(|(_, file)| file.is_file()) {
            return of_place(id, init, runtime, &file, place);
        }
    }
    Err(OperationRefusal::failed(
        "the runtime of this container is neither runc nor crun; commands cannot run in it, because they could not \
         be killed",
    ))
}

fn of_place(
    id: &str,
    init: i32,
    runtime: OciRuntime,
    file: &Path,
    place: StatePlace,
) -> Result<OciContainer, OperationRefusal> {
    let state = match runtime {
        OciRuntime::Runc => OciState::of_runc(&read(file)?)?,
        OciRuntime::Crun => OciState::of_crun(read(file)?),
    };
    state.check(id, init)?;
    let program = match place.program {
        Some(program) => program,
        None => find(runtime.name())?,
    };
    trust(&program)?;
    // crun keeps a copy of its own. The bundle of a container of Podman with mapped users belongs to one of these users.
    let kept = file.with_file_name("config.json");
    let configuration = match runtime {
        OciRuntime::Crun if kept.is_file() => kept,
        _ => state.bundle.join("config.json"),
    };
    let mut configuration: Map<String, Value> = read(&configuration)?;
    let Some(Value::Object(process)) = configuration.remove("process") else {
        return Err(unusable("the container's config.json describes no process"));
    };
    Ok(OciContainer {
        id: id.to_owned(),
        init: state.init,
        started: state.started,
        cgroup: state.cgroup,
        runtime,
        program,
        root: place.root,
        process,
    })
}

impl OciRuntime {
    /// Its usual program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runc => "runc",
            Self::Crun => "crun",
        }
    }
}

impl OciState {
    fn of_runc(state: &RuncState) -> Result<Self, OperationRefusal> {
        let mut labels = state.config.labels.iter();
        let bundle = labels.find_map(|label| label.strip_prefix("bundle="));
        let bundle = bundle.ok_or_else(|| unusable("runc's state does not name the bundle"))?;
        let cgroup = state.cgroup_paths.get("").and_then(Value::as_str);
        Ok(Self {
            init: state.init_process_pid,
            started: state.init_process_start,
            cgroup: cgroup.map(PathBuf::from),
            bundle: bundle.into(),
        })
    }

    fn of_crun(status: CrunStatus) -> Self {
        let below = status.cgroup_path.trim_start_matches('/');
        let cgroup = cgroup2_mount().filter(|_| !below.is_empty());
        Self {
            init: status.pid,
            // Old versions do not record it. The cgroup then identifies the process.
            started: match status.process_start_time {
                0 => process(status.pid).map_or(0, |process| process.started),
                started => started,
            },
            cgroup: cgroup.map(|mount| mount.join(below)),
            bundle: status.bundle,
        }
    }

    /// Checks the state against the daemon's word and the kernel's.
    fn check(&self, id: &str, init: i32) -> Result<(), OperationRefusal> {
        let now = process(self.init).filter(|process| !process.is_ending);
        let same = now.is_some_and(|process| process.started == self.started);
        if self.init != init || !same {
            return Err(unusable(
                "its first process is not the one that the daemon names",
            ));
        }
        let Some(cgroup) = &self.cgroup else {
            return Ok(());
        };
        let own = text(format!("/proc/{init}/cgroup")).unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::"));
        let own = own.and_then(|path| Some(cgroup2_mount()?.join(path.trim_start_matches('/'))));
        let parts = || {
            cgroup
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
        };
        let is_inside = own.is_some_and(|own| own.starts_with(cgroup));
        let is_straight = parts().all(|part| part != "..");
        if is_inside && is_straight && parts().any(|part| part.contains(id)) {
            return Ok(());
        }
        Err(unusable(
            "its first process is outside the cgroup in its runtime's state",
        ))
    }
}

/// Returns the places to look at: what the process that watches the container says, then the usual ones.
fn places(id: &str, init: i32) -> Vec<StatePlace> {
    let watching = process(init).map(|init| init.parent).unwrap_or_default();
    let usual = [DOCKER_ROOT, CRUN_ROOT, RUNC_ROOT].map(|root| StatePlace {
        root: root.into(),
        program: None,
    });
    let mut places = Vec::from_iter(of_shim(id, watching));
    places.extend(of_conmon(id, watching));
    places.extend(usual);
    places
}

/// Returns the place that containerd's shim uses: its working directory is the container's bundle, with its options.
fn of_shim(id: &str, pid: i32) -> Option<StatePlace> {
    let bundle = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let is_its = bundle.file_name().is_some_and(|name| name == id);
    let namespace = bundle.parent()?.file_name()?;
    let options: ShimOptions = is_its.then(|| read(&bundle.join("options.json")).ok())??;
    let named = Some(options.binary_name).filter(|name| !name.is_empty());
    let program = named.map(|name| {
        if name.starts_with('/') {
            Some(PathBuf::from(name))
        } else {
            find_runtime(&name)
        }
    });
    Some(StatePlace {
        root: options.root.join(namespace),
        program: program.flatten(),
    })
}

/// Returns the place that Podman's conmon uses: its arguments name the container and the runtime's program.
fn of_conmon(id: &str, pid: i32) -> Vec<StatePlace> {
    let line = text(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments: Vec<&str> = line.split('\0').collect();
    let after = |option: &str| {
        let mut pairs = arguments.windows(2);
        pairs.find_map(|pair| (pair.first() == Some(&option)).then(|| pair.last().copied())?)
    };
    let program = after("-r").filter(|path| path.starts_with('/') && after("-c") == Some(id));
    let place = |root: &str| StatePlace {
        root: root.into(),
        program: program.map(PathBuf::from),
    };
    program.map_or_else(Vec::new, |_| vec![place(CRUN_ROOT), place(RUNC_ROOT)])
}

/// Finds a runtime that an option of the shim names without a directory.
fn find_runtime(name: &str) -> Option<PathBuf> {
    [OciRuntime::Runc, OciRuntime::Crun]
        .into_iter()
        .find(|runtime| runtime.name() == name)
        .and_then(|runtime| find(runtime.name()).ok())
}

/// Reads a JSON file that only root can change.
fn read<T: DeserializeOwned>(file: &Path) -> Result<T, OperationRefusal> {
    trust(file)?;
    let shown = file.display();
    let failed = |cause: &dyn std::fmt::Display| unusable(&format!("{shown}: {cause}"));
    let opened = File::open(file).map_err(|e| failed(&e))?;
    let mut bytes = Vec::new();
    let mut limited = opened.take(MAX_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(|e| failed(&e))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed(&"it is too large"));
    }
    serde_json::from_slice(&bytes).map_err(|e| failed(&e))
}

/// Rejects a file that a user other than root could change or replace.
fn trust(file: &Path) -> Result<(), OperationRefusal> {
    match find_distrust(file) {
        None => Ok(()),
        Some(problem) => Err(unusable(&problem.to_string())),
    }
}

fn unusable(why: &str) -> OperationRefusal {
    OperationRefusal::failed(format!("the container cannot be entered: {why}"))
}
