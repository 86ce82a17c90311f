//! The plan of an update of everything: what the host and each running container would install, and what protects it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::helper_client::{ContainerRef, TargetName};
use gatewren_base::sys::rfc3339;

use super::error::BackendError;
use super::update_applied::sentence;
use super::update_check::{AptSimulation, Upgrade};

/// The most targets with their details; the rest is only counted, and not part of the run.
const MAX_TARGETS: usize = 25;

/// The most names in one of the lists about containers; the rest is only counted.
const MAX_NAMES: usize = 40;

/// The most security updates that are named for a target; the rest is only counted.
const MAX_SECURITY: usize = 20;

/// The most packages, other than security updates, that are named in the whole plan.
const MAX_PACKAGES: usize = 60;

/// The longest error in a plan, in characters.
const MAX_ERROR: usize = 300;

/// The prefixes of packages with a kernel.
const KERNELS: [&str; 3] = ["linux-image-", "proxmox-kernel-", "raspberrypi-kernel"];

/// What an update of everything would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdatePlan {
    /// The number of packages to install on all targets.
    pub total: usize,
    /// The number of security updates among them.
    pub security: usize,
    /// The host and the containers with updates, or with a problem.
    pub targets: Vec<PlannedTarget>,
    /// Targets with updates that are not listed here and not in `run`: name them in `containers` next time.
    pub more_targets: usize,
    /// Those without updates: `host` and containers.
    pub up_to_date: Vec<String>,
    /// Containers whose packages are unknown, and why.
    pub not_looked_at: Vec<SkippedContainer>,
    /// The number of containers of Docker and Podman, which are not updated here.
    pub engine_containers: usize,
    /// Those whose image has been pulled in a newer version; they run it once they are created again.
    pub newer_images: Vec<StaleImage>,
    /// Entries that the lists about containers leave out.
    pub left_out: usize,
    /// Backup targets that can be used now.
    pub backup_targets: Vec<TargetName>,
    /// The plan itself: the `targets` of `update_run`, unchanged.
    pub run: Vec<ApprovedUpdate>,
}

/// A target of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedTarget {
    /// The container; absent for the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// The number of packages to install.
    pub updates: usize,
    /// The number of security updates among them.
    pub security: usize,
    /// Some of the packages besides the security updates: name, old and new version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Why it is not part of `run`, or why its updates are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When its package lists were refreshed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists_refreshed: Option<String>,
    /// The kernel that would be installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether a restart is required now, or afterwards for the kernel.
    pub restart_required: bool,
    /// The space that the updates need, in apt's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub space: Vec<String>,
    /// The free space, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// What can protect it: `snapshot`, `backup`; empty for nothing.
    pub protection: Vec<String>,
}

/// A container that was not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedContainer {
    /// The container.
    pub container: ContainerRef,
    /// Why.
    pub why: String,
}

/// A container of an engine that runs an older image than the one that has the name now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StaleImage {
    /// The container.
    pub container: ContainerRef,
    /// The image's name.
    pub image: String,
}

/// The updates of one target, as they are approved: `update_run` installs these or nothing. With `refresh` only the
/// target is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovedUpdate {
    /// Absent: the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// Packages.
    #[serde(default)]
    pub updates: usize,
    /// Security updates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security: Vec<String>,
    /// Of all versions.
    #[serde(default)]
    pub digest: String,
}

impl ApprovedUpdate {
    /// Describes what apt would do on a target.
    pub(super) fn of(container: Option<ContainerRef>, found: &AptSimulation) -> Self {
        let security = found.upgrades.iter().filter(|one| one.security);
        let security = security.take(MAX_SECURITY).map(|one| one.name.clone());
        Self {
            container,
            updates: found.upgrades.len(),
            security: security.collect(),
            digest: found.digest(),
        }
    }

    /// Whether it names a target and says nothing about packages.
    pub(super) fn is_only_a_name(&self) -> bool {
        self.updates == 0 && self.security.is_empty() && self.digest.is_empty()
    }

    /// The name of its target.
    pub fn name(&self) -> &str {
        self.container
            .as_ref()
            .map_or("the host", ContainerRef::as_str)
    }
}

impl UpdatePlan {
    /// Counts a container of an engine, with its image if it runs an older one.
    pub(super) fn count_engine_container(&mut self, image: Option<StaleImage>) {
        self.engine_containers += 1;
        if self.newer_images.len() < MAX_NAMES {
            self.newer_images.extend(image);
        } else {
            self.left_out += usize::from(image.is_some());
        }
    }

    /// Sets the backup targets that can be used now.
    pub(super) fn set_backup_targets(&mut self, ready: impl Iterator<Item = TargetName>) {
        self.backup_targets = ready.take(MAX_NAMES).collect();
    }

    /// Names a container that was not looked at, and why.
    pub(super) fn skip(&mut self, container: &ContainerRef, why: &str) {
        if self.not_looked_at.len() >= MAX_NAMES {
            self.left_out += 1;
            return;
        }
        self.not_looked_at.push(SkippedContainer {
            container: container.clone(),
            why: why.to_owned(),
        });
    }

    /// Adds the findings about a target.
    pub(super) fn add(
        &mut self,
        target: PlannedTarget,
        found: Result<AptSimulation, BackendError>,
        problem: Option<String>,
    ) {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let problem = Some(brief(&error.message));
                return self.list(PlannedTarget { problem, ..target }, None);
            }
        };
        let kernel = found.upgrades.iter().find(|one| is_kernel(one));
        let in_container = target.container.is_some();
        let target = PlannedTarget {
            updates: found.upgrades.len(),
            security: found.security(),
            packages: self.name_some(&found),
            problem: found
                .unknown()
                .or_else(|| removal_problem(&found))
                .or(problem),
            lists_refreshed: found.refreshed_ms.map(rfc3339),
            restart_required: found.reboot.is_some() || (kernel.is_some() && !in_container),
            kernel: kernel.map(|one| format!("{} {}", one.name, one.candidate)),
            space: found.space.clone(),
            free_bytes: found.free_bytes,
            ..target
        };
        if found.upgrades.is_empty() && target.problem.is_none() && !target.restart_required {
            let name = target
                .container
                .as_ref()
                .map_or("host", ContainerRef::as_str);
            if self.up_to_date.len() < MAX_NAMES {
                self.up_to_date.push(name.to_owned());
            } else {
                self.left_out += 1;
            }
            return;
        }
        let runs = !found.upgrades.is_empty() && found.removed.is_empty();
        let run = runs.then(|| ApprovedUpdate::of(target.container.clone(), &found));
        self.list(target, run);
    }

    fn list(&mut self, target: PlannedTarget, run: Option<ApprovedUpdate>) {
        self.total += target.updates;
        self.security += target.security;
        if self.targets.len() >= MAX_TARGETS {
            self.more_targets += 1;
            return;
        }
        self.targets.push(target);
        self.run.extend(run);
    }

    /// Names some of the other updates than those of security, as long as the whole plan stays short.
    fn name_some(&self, found: &AptSimulation) -> Vec<String> {
        let named: usize = self
            .targets
            .iter()
            .map(|target| target.packages.len())
            .sum();
        let others = found.upgrades.iter().filter(|one| !one.security);
        let others = others.take(MAX_PACKAGES.saturating_sub(named).min(MAX_PACKAGES / 4));
        others
            .map(|one| {
                let installed = one.installed.as_deref().unwrap_or("(new)");
                format!("{} {installed} {}", one.name, one.candidate)
            })
            .collect()
    }
}

fn is_kernel(upgrade: &Upgrade) -> bool {
    KERNELS
        .iter()
        .any(|prefix| upgrade.name.starts_with(prefix))
}

/// Why updates that remove packages are not part of a run.
fn removal_problem(found: &AptSimulation) -> Option<String> {
    let removed = found.removed.get(..3).unwrap_or(&found.removed).join(", ");
    (!found.removed.is_empty()).then(|| {
        format!(
            "the updates remove {} packages ({removed}), so update_run leaves it out; update_apply with allow_removal \
             installs them",
            found.removed.len()
        )
    })
}

/// Shortens an error to a sentence.
pub(super) fn brief(text: &str) -> String {
    sentence(text).chars().take(MAX_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper_client::OperationRefusal;

    fn simulation(output: &str) -> AptSimulation {
        let lists = "gatewren: lists 1700000000\n";
        AptSimulation::parse(&format!("{output}{lists}"), None)
    }

    fn target(name: &str) -> PlannedTarget {
        PlannedTarget {
            container: Some(name.parse().unwrap()),
            ..PlannedTarget::default()
        }
    }

    #[test]
    fn what_is_approved_is_in_the_run_and_what_cannot_run_is_not() {
        let mut plan = UpdatePlan::default();
        let updates = "Inst openssl [1] (2 Debian-Security:12/stable-security [all])\nInst a [1] (2 Debian:12/stable [all])\n";
        plan.add(target("alpha"), Ok(simulation(updates)), None);
        plan.add(target("calm"), Ok(simulation("")), None);
        plan.add(target("never"), Ok(AptSimulation::parse("", None)), None);
        plan.add(
            target("bad"),
            Ok(simulation(&format!("Remv old [1]\n{updates}"))),
            None,
        );
        let refusal = OperationRefusal::failed("container 'box' has no apt");
        plan.add(target("box"), Err(refusal.into()), None);
        assert_eq!((plan.total, plan.security), (4, 2));
        assert_eq!(plan.up_to_date, ["calm"]);
        let [run] = plan.run.as_slice() else {
            panic!("{:?}", plan.run)
        };
        assert_eq!((run.name(), run.updates), ("alpha", 2));
        assert_eq!(
            (run.security.as_slice(), run.digest.len()),
            (&["openssl".to_owned()][..], 32)
        );
        let problem = |n: usize| plan.targets[n].problem.clone().unwrap_or_default();
        assert_eq!(problem(0), "");
        assert!(problem(1).contains("never fetched"), "{}", problem(1));
        assert!(
            problem(2).contains("remove 1 packages (old)"),
            "{}",
            problem(2)
        );
        assert!(problem(3).contains("has no apt"), "{}", problem(3));
        assert_eq!(plan.targets[0].packages, ["a 1 2"]);
    }

    #[test]
    fn a_new_kernel_of_the_host_requires_a_restart_afterwards() {
        let kernel = "Inst linux-image-6.1.0-30-amd64 (6.1.124-1 Debian:12/stable [amd64])\n";
        let mut plan = UpdatePlan::default();
        plan.add(PlannedTarget::default(), Ok(simulation(kernel)), None);
        plan.add(target("alpha"), Ok(simulation(kernel)), None);
        assert!(plan.targets[0].restart_required && !plan.targets[1].restart_required);
        assert_eq!(
            plan.targets[0].kernel.as_deref(),
            Some("linux-image-6.1.0-30-amd64 6.1.124-1")
        );
    }

    #[test]
    fn a_plan_of_many_containers_stays_below_its_limit() {
        let line = |n: usize| {
            format!(
                "Inst package-with-a-long-name-{n:04} [1:2.36-9+deb12u4] (1:2.36-9+deb12u5 Debian-Security:12/stable-security [amd64])\n"
            )
        };
        let updates: String = (0..300).map(line).collect();
        let mut plan = UpdatePlan::default();
        for n in 0..200 {
            plan.add(
                target(&format!("container-{n}")),
                Ok(simulation(&updates)),
                None,
            );
            plan.skip(&format!("stopped-{n}").parse().unwrap(), "it is stopped");
        }
        assert_eq!((plan.total, plan.run.len()), (60_000, MAX_TARGETS));
        assert_eq!(plan.more_targets, 200 - MAX_TARGETS);
        let bytes = serde_json::to_string(&plan).unwrap().len();
        assert!(bytes < 32 * 1024, "{bytes}");
    }
}
