//! The processes of the host that use most, and what each belongs to.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::Reach;
use crate::helper_client::{
    Helper, Operation, ProcessOrder, ProcessSeen, Processes as SeenProcesses,
};

use super::ask::ask;
use super::error::{BackendError, ErrorKind};
use super::host::{container_of_group, unit_of_group, users};
use super::source::Tree;
use super::threshold::Threshold;
use crate::sys::neutralise;

/// How long the helper may look.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many are asked for: of these some may be for others alone.
const MOST: u32 = 100;

/// The processes of the host, containers included; what can be asked is asked by a view of them.
#[derive(Debug, Clone)]
pub struct Processes {
    helper: Helper,
}

/// Those within somebody's reach.
#[derive(Debug)]
pub struct ProcessesView {
    helper: Helper,
    threshold: Threshold,
    reference: String,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// Whose it is: a user's name, or the number where the host has no name for it.
    pub user: String,
    /// What it calls itself.
    pub name: String,
    /// The beginning of its command line, without secrets that can be recognised; absent for the kernel's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Running `R`, sleeping `S`, waiting for a disk `D`, stopped `T`, dead `Z`, idle `I`.
    pub state: char,
    /// The processor's time that it used in a moment, in percent of one processor.
    pub cpu_percent: f64,
    /// Memory that is in use for it, alone or shared with others (RSS), in bytes.
    pub memory_bytes: u64,
    /// How many threads it has.
    pub threads: u32,
    /// For how many seconds it has been there.
    pub age_s: u64,
    /// The container that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The systemd unit of the host that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// Those that use most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopProcesses {
    /// Those that use most come first.
    pub processes: Vec<Process>,
    /// How many there are in all, threads of the kernel among them; absent where some of them are none of the agent's
    /// business.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

impl Processes {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        Self { helper }
    }

    /// Those within reach; `reference` names our calls in the helper's log.
    pub fn seen_by(&self, reach: &Reach, reference: &str) -> ProcessesView {
        ProcessesView {
            helper: self.helper.clone(),
            threshold: Threshold::of(reach),
            reference: reference.to_owned(),
        }
    }
}

impl ProcessesView {
    /// Those that use most, at most so many.
    ///
    /// # Errors
    /// When the host is not within reach, and when the owner does not let the helper look.
    pub async fn top(
        &self,
        order: ProcessOrder,
        most: usize,
    ) -> Result<TopProcesses, BackendError> {
        self.threshold.host()?;
        let operation = Operation::HostProcesses { order, most: MOST };
        let told = ask(&self.helper, operation, PATIENCE, &self.reference).await?;
        let seen: SeenProcesses = serde_json::from_str(&told).map_err(|cause| {
            BackendError::new(
                ErrorKind::Failed,
                format!("the helper's list is odd: {cause}"),
            )
        })?;
        let users = users(&Tree::of_this_machine());
        let shown = seen.processes.iter().filter(|one| self.shows(one));
        let told = shown.map(|one| process(one, &users));
        Ok(TopProcesses {
            processes: told.take(most).collect(),
            total: self.threshold.everything().is_ok().then_some(seen.total),
        })
    }

    fn shows(&self, one: &ProcessSeen) -> bool {
        let mut texts = [&one.cgroup, &one.name, &one.command].into_iter();
        texts.all(|text| self.threshold.shows_text(text))
    }
}

fn process(seen: &ProcessSeen, users: &BTreeMap<u32, String>) -> Process {
    let plain = |text: &str| neutralise(text).into_owned();
    let user = users.get(&seen.uid).cloned();
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
        container: container_of_group(&seen.cgroup),
        unit: unit_of_group(&seen.cgroup),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Space;

    fn seen(name: &str, cgroup: &str) -> ProcessSeen {
        ProcessSeen {
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
        }
    }

    fn told(name: &str, cgroup: &str) -> Process {
        let users = BTreeMap::from([(33, "www-data".to_owned())]);
        process(&seen(name, cgroup), &users)
    }

    #[test]
    fn a_process_is_told_with_what_it_belongs_to() {
        let one = told("nginx\u{1b}", "/lxc.payload.web/system.slice/nginx.service");
        assert_eq!(one.container.as_deref(), Some("web"));
        assert_eq!((one.unit.as_deref(), one.user.as_str()), (None, "www-data"));
        assert_eq!(one.name, "nginx^[");
        let one = told("sshd", "/system.slice/ssh.service");
        assert_eq!(one.unit.as_deref(), Some("ssh.service"));
    }

    #[test]
    fn what_belongs_elsewhere_is_not_told() {
        let space = Space {
            containers: vec!["web".parse().unwrap()],
            host: true,
        };
        let processes = Processes::new(Helper::connect_to("/nonexistent".into()));
        let view = processes.seen_by(&Reach::of(&space), "r");
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
            assert_eq!(view.shows(&seen(name, cgroup)), is_shown, "{name} {cgroup}");
        }
    }
}
