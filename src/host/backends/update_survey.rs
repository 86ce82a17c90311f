//! Looks at the host and its containers for the plan of an update, some at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::helper_client::ContainerRef;
use gatewren_base::config::RuntimeKind;

use super::error::BackendError;
use super::lxc::{ContainerState, StateAndRoot};
use super::side_by_side::side_by_side;
use super::update_check::AptSimulation;
use super::update_plan::{PlannedTarget, StaleImage, UpdatePlan, brief};
use super::updates::UpdatesView;

/// How long all checks may take. Containers that are not reached by then are listed as not looked at.
const PLAN_TIME: Duration = Duration::from_secs(100);

/// How often apt runs at the same time. On a small host its lists take a good part of the memory.
const APT_AT_ONCE: usize = 2;

/// What was found out about a target.
enum TargetFinding {
    /// What apt would do there.
    Checked {
        target: Box<PlannedTarget>,
        found: Result<AptSimulation, BackendError>,
        problem: Option<String>,
    },
    /// It was not looked at, and why.
    Skipped(String),
    /// A container of an engine, and the image if it runs an older one.
    OfEngine(Option<StaleImage>),
}

/// How targets are looked at.
#[derive(Clone, Copy)]
struct PlanLook<'p> {
    apt: &'p Semaphore,
    /// What is known about containers already.
    known: &'p BTreeMap<ContainerRef, StateAndRoot>,
    until: Instant,
    has_backups: bool,
    refresh: bool,
}

impl UpdatesView<'_> {
    /// Looks at the host and its containers, or only at some containers.
    ///
    /// # Errors
    /// When the containers cannot be listed. A target that cannot be read is listed with its problem.
    pub async fn plan(
        &self,
        containers: Option<Vec<ContainerRef>>,
        refresh: bool,
    ) -> Result<UpdatePlan, BackendError> {
        let mut plan = UpdatePlan::default();
        let apt = Semaphore::new(APT_AT_ONCE);
        let until = Instant::now() + PLAN_TIME;
        let targets = self.backups.targets().await.unwrap_or_default();
        let ready = targets.into_iter().filter(|target| target.ready);
        plan.set_backup_targets(ready.map(|target| target.target));
        let (mut names, mut known) = (Vec::new(), BTreeMap::new());
        if let Some(containers) = containers {
            names.extend(containers.into_iter().map(Some));
        } else {
            names.extend(self.access.host().is_ok().then_some(None));
            names.extend(self.lxc.list().await?.into_iter().map(Some));
            known = self.lxc.states_and_roots().await.unwrap_or_default();
        }
        let look = PlanLook {
            apt: &apt,
            known: &known,
            until,
            has_backups: !plan.backup_targets.is_empty(),
            refresh,
        };
        let findings = side_by_side(names.clone(), |name| self.look_at(name, look));
        for (name, finding) in names.into_iter().zip(findings.await) {
            add_finding(&mut plan, name, finding);
        }
        Ok(plan)
    }

    async fn look_at(&self, name: Option<ContainerRef>, look: PlanLook<'_>) -> TargetFinding {
        let Some(name) = name else {
            return self.look_at_host(look).await;
        };
        let found = timeout_at(look.until, self.look_at_container(&name, look)).await;
        found.unwrap_or_else(|_| {
            let why = "there was no time left for it; name it in `containers`";
            TargetFinding::Skipped(why.to_owned())
        })
    }

    async fn look_at_host(&self, look: PlanLook<'_>) -> TargetFinding {
        let _turn = look.apt.acquire().await;
        let mut problem = None;
        if look.refresh {
            problem = match self.refresh(None, None).await {
                Ok(problems) if problems.is_empty() => None,
                Ok(problems) => Some(problems.join("; ")),
                Err(error) => Some(error.message),
            };
            problem = problem
                .map(|why| format!("the package lists could not be refreshed: {}", brief(&why)));
        }
        TargetFinding::Checked {
            target: Box::default(),
            found: self.simulate(None, None).await,
            problem,
        }
    }

    async fn look_at_container(&self, name: &ContainerRef, look: PlanLook<'_>) -> TargetFinding {
        if name.runtime() != RuntimeKind::Lxc {
            return TargetFinding::OfEngine(self.stale_image(name).await);
        }
        let found = match look.known.get(name) {
            Some(known) => Ok(known.clone()),
            None => self.state_and_root(name).await,
        };
        let StateAndRoot { state, rootfs } = match found {
            Ok(found) => found,
            Err(error) => return TargetFinding::Skipped(brief(&error.message)),
        };
        if state != ContainerState::Running {
            let state = format!("{state:?}").to_lowercase();
            return TargetFinding::Skipped(format!("it is {state}"));
        }
        let rootfs = rootfs.unwrap_or_default();
        let is_directory = rootfs.starts_with('/') || rootfs.starts_with("dir:");
        let mut protection = Vec::new();
        if is_directory {
            protection.push("snapshot".to_owned());
            protection.extend(look.has_backups.then(|| "backup".to_owned()));
        }
        let _turn = look.apt.acquire().await;
        TargetFinding::Checked {
            target: Box::new(PlannedTarget {
                container: Some(name.clone()),
                protection,
                ..PlannedTarget::default()
            }),
            found: self.simulate(Some(name), None).await,
            problem: None,
        }
    }

    async fn state_and_root(&self, name: &ContainerRef) -> Result<StateAndRoot, BackendError> {
        let state = self.lxc.status(name).await?.state;
        let definition = self.lxc.definition(name).await.ok();
        let rootfs = definition.and_then(|definition| definition.config.rootfs);
        Ok(StateAndRoot { state, rootfs })
    }

    /// Returns the image of a container of an engine if it runs an older one than the one that has the name now.
    async fn stale_image(&self, name: &ContainerRef) -> Option<StaleImage> {
        let image = self.lxc.image(name).await.ok()?;
        let (own, named) = (image.image_id.as_ref()?, image.named_image_id.as_ref()?);
        (own != named).then(|| StaleImage {
            container: name.clone(),
            image: brief(&image.image),
        })
    }
}

/// Adds what was found out about a target to the plan.
fn add_finding(plan: &mut UpdatePlan, name: Option<ContainerRef>, finding: TargetFinding) {
    match (finding, name) {
        (
            TargetFinding::Checked {
                target,
                found,
                problem,
            },
            _,
        ) => plan.add(*target, found, problem),
        (TargetFinding::Skipped(why), Some(name)) => plan.skip(&name, &why),
        (TargetFinding::OfEngine(image), _) => plan.count_engine_container(image),
        // The host is always looked at.
        (TargetFinding::Skipped(_), None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_its_place_in_the_plan() {
        let name = |name: &str| Some(name.parse::<ContainerRef>().unwrap());
        let checked = |container| TargetFinding::Checked {
            target: Box::new(PlannedTarget {
                container,
                ..PlannedTarget::default()
            }),
            found: Ok(AptSimulation::parse("gatewren: lists 1700000000\n", None)),
            problem: None,
        };
        let image = StaleImage {
            container: name("docker:web").unwrap(),
            image: "web:1".to_owned(),
        };
        let mut plan = UpdatePlan::default();
        for (name, finding) in [
            (None, checked(None)),
            (name("alpha"), checked(name("alpha"))),
            (
                name("beta"),
                TargetFinding::Skipped("it is stopped".to_owned()),
            ),
            (name("docker:new"), TargetFinding::OfEngine(None)),
            (
                name("docker:web"),
                TargetFinding::OfEngine(Some(image.clone())),
            ),
        ] {
            add_finding(&mut plan, name, finding);
        }
        assert_eq!(plan.up_to_date, ["host", "alpha"]);
        assert_eq!(plan.not_looked_at[0].why, "it is stopped");
        assert_eq!(plan.engine_containers, 2);
        assert_eq!(plan.newer_images, [image]);
    }
}
