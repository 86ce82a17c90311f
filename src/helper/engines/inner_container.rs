//! A container of the Docker inside a container of LXC: where the kernel has it, and how runc in there enters it.
//!
//! What its Docker and runc say is not trusted. Their process id only chooses among the processes that the kernel has in
//! the container's cgroup, below that of the container of LXC. Their files are read as inside the container of LXC, and
//! their contents are used only inside it.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::container_id::EngineContainerId;
use super::inner_socket::InnerSocket;
use super::oci::{OciContainer, OciRuntime};
use gatewren_base::sys::{
    InsideRoot, groups_named, nested_pids, process, processes_in_group, sanitize, shorten,
};

/// Docker's state of runc. `/var/run` is `/run` where Docker itself writes the former.
const RUNC_ROOT: &str = "/run/docker/runtime-runc/moby";

/// The most bytes of runc's state and of a container's configuration. A larger one is rejected.
const MAX_STATE_BYTES: u64 = 1 << 20;
const MAX_CONFIG_BYTES: u64 = 512 << 10;

/// The most bytes of the description of a container's process, which is remembered while the container runs. A larger one
/// is rejected.
const MAX_PROCESS_BYTES: usize = 128 << 10;

/// The most processes of a container among which its first one is looked for; others are not found.
const MAX_PROCESSES: usize = 16_384;

/// The first process of a container, as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerInit {
    /// Its id on the host.
    pub pid: i32,
    /// Its start time, in clock ticks from boot.
    pub started: u64,
    /// The container's cgroup.
    pub cgroup: PathBuf,
}

/// The part of runc's state that is read.
#[derive(Deserialize)]
struct InnerRuncState {
    config: InnerRuncConfig,
}

#[derive(Deserialize)]
struct InnerRuncConfig {
    labels: Vec<String>,
}

/// Finds the first process of a container with this full id. `payload` is the cgroup of the container of LXC, and `pid`
/// the process's id in that container, as Docker states it.
pub fn find_init(payload: &Path, id: &EngineContainerId, pid: i32) -> Option<InnerInit> {
    // Where Docker makes it without and with systemd. Elsewhere, as with a parent that was configured, it is looked for.
    let usual = [
        payload.join(format!("docker/{id}")),
        payload.join(format!("system.slice/docker-{id}.scope")),
    ];
    let usual: Vec<PathBuf> = usual.into_iter().filter(|group| group.is_dir()).collect();
    let groups = if usual.is_empty() {
        groups_named(payload, id.as_str())
    } else {
        usual
    };
    groups.into_iter().find_map(|cgroup| {
        let members = processes_in_group(&cgroup, MAX_PROCESSES);
        let found = members.into_iter().find_map(|member| {
            let before = process(member).filter(|process| !process.is_ending)?;
            // The first id is the host's, the second the one in the container of LXC.
            let is_it = nested_pids(member).get(1) == Some(&pid);
            // The id may have been reused while it was read.
            let is_same = process(member).is_some_and(|now| now.started == before.started);
            (is_it && is_same).then_some(before)
        })?;
        Some(InnerInit {
            pid: found.pid,
            started: found.started,
            cgroup,
        })
    })
}

/// Reads how runc inside the container of LXC enters a container.
///
/// # Errors
/// A sentence that says why commands cannot run in the container.
pub async fn read_container(
    socket: &InnerSocket,
    id: &EngineContainerId,
    init: &InnerInit,
) -> Result<OciContainer, String> {
    let wanted = id.clone();
    let process = socket.look(move |root| read_process(root, &wanted)).await;
    let process = process.map_err(|cause| {
        let cause = sanitize(&shorten(&cause.to_string(), 200));
        format!(
            "the container cannot be entered: the files of Docker's runc cannot be read: {cause}"
        )
    })?;
    Ok(OciContainer {
        id: id.as_str().to_owned(),
        init: init.pid,
        started: init.started,
        cgroup: Some(init.cgroup.clone()),
        runtime: OciRuntime::Runc,
        // That of the container of LXC.
        program: OciRuntime::Runc.name().into(),
        root: RUNC_ROOT.into(),
        process,
    })
}

fn read_process(root: &InsideRoot, id: &EngineContainerId) -> io::Result<Map<String, Value>> {
    let state = format!("{RUNC_ROOT}/{id}/state.json");
    let state: InnerRuncState = read(root, &state, MAX_STATE_BYTES)?;
    let mut labels = state.config.labels.iter();
    let bundle = labels.find_map(|label| label.strip_prefix("bundle="));
    let bundle = bundle.ok_or_else(|| io::Error::other("runc's state does not name the bundle"))?;
    let mut config: Map<String, Value> =
        read(root, &format!("{bundle}/config.json"), MAX_CONFIG_BYTES)?;
    let Some(Value::Object(process)) = config.remove("process") else {
        return Err(io::Error::other("config.json describes no process"));
    };
    if serde_json::to_vec(&process)?.len() > MAX_PROCESS_BYTES {
        return Err(io::Error::other(
            "config.json describes too large a process",
        ));
    }
    Ok(process)
}

/// Reads a JSON file inside the container of LXC. The error's own text may contain a value, so it is left out.
fn read<T: DeserializeOwned>(root: &InsideRoot, path: &str, most: u64) -> io::Result<T> {
    let bytes = root.read_on_any_mount(path, most)?;
    serde_json::from_slice(&bytes).map_err(|_| io::Error::other("it is not the JSON of runc"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use gatewren_base::sys::Scratch;

    fn an_id() -> EngineContainerId {
        EngineContainerId::parse(&"ab".repeat(32)).unwrap()
    }

    /// Makes the root of a container of LXC with this state of runc and this configuration in `/bundle`.
    fn root(state: &str, config: &str) -> (Scratch, InsideRoot) {
        let scratch = Scratch::new();
        let runc = scratch.join(&format!("root{RUNC_ROOT}/{}", an_id()));
        fs::create_dir_all(&runc).unwrap();
        fs::create_dir_all(scratch.join("root/bundle")).unwrap();
        fs::create_dir_all(scratch.join("outside")).unwrap();
        fs::write(runc.join("state.json"), state).unwrap();
        fs::write(scratch.join("root/bundle/config.json"), config).unwrap();
        fs::write(
            scratch.join("outside/config.json"),
            r#"{"process":{"outside":1}}"#,
        )
        .unwrap();
        let inside = InsideRoot::open(&scratch.join("root")).unwrap();
        (scratch, inside)
    }

    const STATE: &str = r#"{"config":{"labels":["a=b","bundle=/bundle"]},"init_process_pid":1}"#;

    #[test]
    fn the_process_is_that_of_the_bundle_inside() {
        let (_scratch, inside) = root(STATE, r#"{"process":{"cwd":"/x"},"root":{}}"#);
        let process = read_process(&inside, &an_id()).unwrap();
        assert_eq!(Value::Object(process), serde_json::json!({ "cwd": "/x" }));
    }

    #[test]
    fn a_bundle_outside_the_container_is_not_read() {
        let (scratch, inside) = root(
            r#"{"config":{"labels":["bundle=/bundle/../../outside"]}}"#,
            "{}",
        );
        assert!(read_process(&inside, &an_id()).is_err());
        let link = scratch.join("root/link");
        symlink(scratch.join("outside"), link).unwrap();
        let state = scratch.join(&format!("root{RUNC_ROOT}/{}/state.json", an_id()));
        fs::write(state, r#"{"config":{"labels":["bundle=/link"]}}"#).unwrap();
        assert!(read_process(&inside, &an_id()).is_err());
    }

    #[test]
    fn files_that_are_too_large_or_are_not_runcs_are_rejected() {
        let spaces = " ".repeat(600 << 10);
        let long = "x".repeat(130 << 10);
        for config in [
            format!("{{\"process\":{{}}}}{spaces}"),
            format!("{{\"process\":{{\"cwd\":\"{long}\"}}}}"),
            "{}".to_owned(),
            "[]".to_owned(),
            "[".repeat(10_000),
        ] {
            let (_scratch, inside) = root(STATE, &config);
            assert!(read_process(&inside, &an_id()).is_err());
        }
        for state in ["", "{}", r#"{"config":{"labels":[]}}"#] {
            let (_scratch, inside) = root(state, r#"{"process":{}}"#);
            assert!(read_process(&inside, &an_id()).is_err());
        }
    }

    #[test]
    fn a_process_outside_the_cgroup_is_not_found_by_its_id() {
        let scratch = Scratch::new();
        let group = scratch.join(&format!("docker/{}", an_id()));
        fs::create_dir_all(&group).unwrap();
        let me = std::process::id();
        let found = |pid: u32| find_init(scratch.path(), &an_id(), i32::try_from(pid).unwrap());
        assert_eq!(found(me), None);
        // A process of the host, which has no id in a container, even if it is in the cgroup.
        fs::write(group.join("cgroup.procs"), format!("{me}\n")).unwrap();
        assert_eq!(found(me), None);
        assert_eq!(found(1), None);
    }
}
