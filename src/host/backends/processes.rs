//! The host's processes that use most, with their containers and units.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{
    ContainerRef, HelperClient, Operation, ProcessOrder, ProcessUsage,
    ProcessUsageList as SeenProcesses,
};
use gatewren_base::config::Reach;

use super::access_filter::AccessFilter;
use super::error::{BackendError, ErrorKind};
use super::host::{container_of_group, unit_of_group, users};
use super::request::ask;
use super::source::HostTree;
use gatewren_base::sys::neutralise;

/// The timeout of the helper's answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many processes are requested from the helper; the caller may not be allowed to see some of
/// them.
const MOST: u32 = 100;

/// The host's processes, including those of containers; queries need a view.
#[derive(Debug, Clone)]
pub struct Processes {
    helper: HelperClient,
}

/// The processes that a caller may see.
#[derive(Debug)]
pub struct ProcessesView {
    helper: HelperClient,
    access: AccessFilter,
    reference: String,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// Its parent's pid.
    pub parent: i32,
    /// Its user: the name, or the uid if the host has no name for it.
    pub user: String,
    /// Its name.
    pub name: String,
    /// The beginning of its command line, without recognisable secrets; absent for kernel threads.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Running `R`, sleeping `S`, waiting for a disk `D`, stopped `T`, dead `Z`, idle `I`.
    pub state: char,
    /// The CPU time that it used during a short sample, in percent of one processor.
    pub cpu_percent: f64,
    /// Its memory, including shared memory (RSS), in bytes.
    pub memory_bytes: u64,
    /// Its number of threads.
    pub threads: u32,
    /// Its age in seconds.
    pub age_s: u64,
    /// The container that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The systemd unit of the host that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// The processes that use most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopProcesses {
    /// The processes, highest usage first.
    pub processes: Vec<Process>,
    /// The total number of processes, including kernel threads; absent if the agent may not see all
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

impl Processes {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Returns the processes that a caller may see; `reference` identifies its calls in the
    /// helper's log.
    pub fn view_for(&self, reach: &Reach, reference: &str) -> ProcessesView {
        ProcessesView {
            helper: self.helper.clone(),
            access: AccessFilter::of(reach),
            reference: reference.to_owned(),
        }
    }
}

impl ProcessesView {
    /// Returns the processes that use most, up to `most`.
    ///
    /// # Errors
    /// When the caller has no access to the host, and when the owner does not allow it.
    pub async fn top(
        &self,
        order: ProcessOrder,
        most: usize,
    ) -> Result<TopProcesses, BackendError> {
        self.access.host()?;
        let seen = self.seen(order).await?;
        let users = users(&HostTree::of_this_machine());
        let shown = seen.processes.iter().filter(|one| self.shows(one));
        let processes = shown.map(|one| process(one, &users));
        Ok(TopProcesses {
            processes: processes.take(most).collect(),
            total: self.access.everything().is_ok().then_some(seen.total),
        })
    }

    /// Returns the processes of one container that use most, up to `most`: of those that are among the host's hundred
    /// first.
    ///
    /// # Errors
    /// When the caller has no access to the container, and when the owner does not allow it.
    pub async fn top_in(
        &self,
        container: &ContainerRef,
        most: usize,
    ) -> Result<Vec<Process>, BackendError> {
        if !self.access.shows(container) {
            let message = format!("there is no container '{container}'");
            return Err(BackendError::new(ErrorKind::NotFound, message));
        }
        let seen = self.seen(ProcessOrder::Cpu).await?;
        let is_inside = |one: &&ProcessUsage| one.container.as_ref() == Some(container);
        let inside = seen.processes.iter().filter(is_inside);
        let shown = inside.filter(|one| self.shows(one));
        Ok(shown
            .map(|one| process(one, &BTreeMap::new()))
            .take(most)
            .collect())
    }

    async fn seen(&self, order: ProcessOrder) -> Result<SeenProcesses, BackendError> {
        let operation = Operation::HostProcesses { order, most: MOST };
        let answer = ask(&self.helper, operation, PATIENCE, &self.reference).await?;
        serde_json::from_str(&answer).map_err(|cause| {
            BackendError::new(
                ErrorKind::Failed,
                format!("the helper's list is invalid: {cause}"),
            )
        })
    }

    /// A cgroup mentions a container by a name that may be another's, or by an id, unless the container is known.
    fn shows(&self, one: &ProcessUsage) -> bool {
        let is_in_shown = match &one.container {
            Some(container) => self.access.shows(container),
            None => self.access.shows_text(&one.cgroup),
        };
        let mut texts = [&one.name, &one.command].into_iter();
        is_in_shown && texts.all(|text| self.access.shows_text(text))
    }
}

fn process(seen: &ProcessUsage, users: &BTreeMap<u32, String>) -> Process {
    let plain = |text: &str| neutralise(text).into_owned();
    let user = users.get(&seen.uid).cloned();
    let of_known = seen.container.as_ref().map(ToString::to_string);
    Process {
        pid: seen.pid,
        parent: seen.parent,
        user: user.unwrap_or_else(|| seen.uid.to_string()),
        name: plain(&seen.name),
        command: plain(&seen.command),
        state: seen.state,
        cpu_percent: seen.cpu_percent,
        memory_bytes: seen.memory_bytes,
        threads: seen.threads,
        age_s: seen.age_s,
        container: of_known.or_else(|| container_of_group(&seen.cgroup)),
        // The scope of a container of Docker or Podman is named by its id.
        unit: unit_of_group(&seen.cgroup).filter(|_| seen.container.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Space;

    fn process_usage(name: &str, cgroup: &str) -> ProcessUsage {
        ProcessUsage {
            pid: 7,
            parent: 1,
            uid: 33,
            state: 'S',
            name: name.to_owned(),
            command: format!("/usr/bin/{name}"),
            cpu_percent: 0.0,
            memory_bytes: 1,
            threads: 1,
            age_s: 1,
            cgroup: cgroup.to_owned(),
            container: None,
        }
    }

    fn describe(name: &str, cgroup: &str) -> Process {
        let users = BTreeMap::from([(33, "www-data".to_owned())]);
        process(&process_usage(name, cgroup), &users)
    }

    #[test]
    fn a_process_is_told_with_what_it_belongs_to() {
        let one = describe("nginx\u{1b}", "/lxc.payload.web/system.slice/nginx.service");
        assert_eq!(one.container.as_deref(), Some("web"));
        assert_eq!((one.unit.as_deref(), one.user.as_str()), (None, "www-data"));
        assert_eq!(one.name, "nginx^[");
        let known = ProcessUsage {
            container: Some("web".parse().unwrap()),
            ..process_usage("nginx", "/lxc.payload.web-1/init.scope")
        };
        let one = process(&known, &BTreeMap::new());
        assert_eq!(one.container.as_deref(), Some("web"));
        let known = ProcessUsage {
            container: Some("docker:web".parse().unwrap()),
            ..process_usage("nginx", "/system.slice/docker-4e5f.scope")
        };
        let one = process(&known, &BTreeMap::new());
        assert_eq!(
            (one.container.as_deref(), one.unit),
            (Some("docker:web"), None)
        );
        let one = describe("sshd", "/system.slice/ssh.service");
        assert_eq!(one.unit.as_deref(), Some("ssh.service"));
    }

    #[test]
    fn what_belongs_elsewhere_is_not_told() {
        let space = Space {
            containers: vec!["web".parse().unwrap()],
            host: true,
        };
        let processes = Processes::new(HelperClient::connect_to("/nonexistent".into()));
        let view = processes.view_for(&Reach::of(&space), "r");
        let inside = |cgroup: &str, container: &str| ProcessUsage {
            container: Some(container.parse().unwrap()),
            ..process_usage("nginx", cgroup)
        };
        assert!(view.shows(&inside("/docker/4e5f", "docker:web")));
        assert!(view.shows(&inside("/lxc.payload.web-1", "web")));
        assert!(!view.shows(&inside("/lxc.payload.web", "vault")));
        for (name, cgroup, is_shown) in [
            ("sshd", "/system.slice/ssh.service", true),
            ("nginx", "/lxc.payload.web/init.scope", true),
            ("nginx", "/lxc.payload.vault/init.scope", false),
            ("vault", "/system.slice/vault.service", true),
            ("lxc-start -n vault", "/user.slice", false),
            ("lxc-start -n web", "/user.slice", true),
            ("lxc-autostart", "/user.slice", false),
            ("sh", "/lxc.monitor.vault", false),
            (
                "lxc-start",
                "/system.slice/system-lxc.slice/lxc@vault.service",
                false,
            ),
        ] {
            assert_eq!(
                view.shows(&process_usage(name, cgroup)),
                is_shown,
                "{name} {cgroup}"
            );
        }
    }
}
