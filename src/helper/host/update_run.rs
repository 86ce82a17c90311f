//! Upgrades several targets, one after another: saves a container, upgrades it, checks it, and restores it if needed.

use gatewren_base::config::HelperClass;
use gatewren_wire::operations::{
    BackupSubject, ContainerRef, Operation, OperationEnd, OperationRefusal, PinnedPackage,
    RefusalCode, UpdateProtection, UpdateRunOrder, UpdateTarget, UpdateTargetReport,
};

use super::update_health::UpdateHealth;
use super::update_step::{UpdateStep, run_captured};
use super::updates::{PROCESSES, plain_agent};
use crate::backup::{operations, restore, targets};
use crate::context::lxc_tools::tool_for;
use crate::context::operation_context::OperationContext;
use crate::lxc::paths::require_lxc;
use crate::lxc::snapshots;
use crate::processes::answers::line;
use crate::processes::step_error::StepError;

/// The most targets of a run.
const MOST_TARGETS: usize = 100;

/// The most packages of a target.
const MOST_PACKAGES: usize = 1000;

/// The comment of a snapshot that is made before an upgrade.
const COMMENT: &str = "before update_run";

/// How long a container has to shut down before it is restored, in seconds.
const GRACE_SECONDS: u32 = 30;

/// The line after which a step prints the differences.
const DONE: &str = "gatewren: done ";

/// Performs the run and prints a report for each target as soon as it is done.
pub async fn perform(
    context: &mut OperationContext<'_>,
    order: &UpdateRunOrder,
) -> Result<OperationEnd, OperationRefusal> {
    let too_long = order.targets.len() > MOST_TARGETS
        || order
            .targets
            .iter()
            .any(|t| t.packages.len() > MOST_PACKAGES);
    if too_long {
        let words = format!(
            "at most {MOST_TARGETS} targets of {MOST_PACKAGES} packages each can be updated at once"
        );
        return Err(OperationRefusal::bad_command(words));
    }
    check_classes(context, order)?;
    context.processes = PROCESSES;
    for target in &order.targets {
        let mut run = TargetRun {
            order,
            target,
            report: UpdateTargetReport {
                container: target.container.clone(),
                ..UpdateTargetReport::default()
            },
        };
        let done = run.upgrade(context).await;
        context.relay.end_capture();
        let report = &mut run.report;
        let killed = match done {
            Ok(()) => None,
            Err(StepError::Refused(refusal)) => {
                report.problem.get_or_insert(refusal.to_string());
                None
            }
            Err(StepError::Killed(why)) => {
                let words = format!("the run was ended here: {why}");
                report.problem.get_or_insert(words);
                Some(why)
            }
        };
        report.undo = undo_calls(report, &order.protect);
        context.relay.write_stdout(line(report)).await;
        if let Some(why) = killed {
            return Ok(OperationEnd::Killed { why });
        }
        let failed = report.problem.is_some() || !report.unhealthy.is_empty();
        if failed && order.stop_on_failure {
            break;
        }
    }
    Ok(OperationEnd::SUCCESS)
}

/// Rejects the whole run if the owner's file does not allow what saves or restores containers.
fn check_classes(
    context: &OperationContext<'_>,
    order: &UpdateRunOrder,
) -> Result<(), OperationRefusal> {
    if order
        .targets
        .iter()
        .all(|target| target.container.is_none())
    {
        return Ok(());
    }
    let saves = match order.protect {
        UpdateProtection::Snapshot => Some(HelperClass::LxcManage),
        UpdateProtection::Backup(_) => Some(HelperClass::Backup),
        UpdateProtection::Nothing => None,
    };
    let restarts = (order.undo_on_failure && saves.is_some()).then_some(HelperClass::LxcWrites);
    let policy = context.helper.policy.now();
    for class in saves.into_iter().chain(restarts) {
        if !policy.allows(class) {
            let message = format!(
                "{class} is off in helper.toml, so containers cannot be protected this way; choose another `protect`"
            );
            return Err(OperationRefusal::new(RefusalCode::Forbidden, message));
        }
    }
    Ok(())
}

/// The run of one target.
struct TargetRun<'r> {
    order: &'r UpdateRunOrder,
    target: &'r UpdateTarget,
    report: UpdateTargetReport,
}

impl TargetRun<'_> {
    fn container(&self) -> Option<&ContainerRef> {
        self.target.container.as_ref()
    }

    async fn upgrade(&mut self, context: &mut OperationContext<'_>) -> Result<(), StepError> {
        if let Some(container) = self.container() {
            let policy = context.helper.policy.now();
            if !policy.allows_container(container.as_str()) {
                return Err(context.helper.containers.absence_refusal(container).into());
            }
            require_lxc(container)?;
        }
        let before = UpdateHealth::look(context, self.container()).await?;
        self.protect(context).await?;
        let installed = self.install(context).await;
        if self.report.changes.is_none() {
            return installed;
        }
        let well = match installed {
            Ok(()) => before.wait_until_as_before(context, self.container()).await,
            Err(StepError::Refused(refusal)) => {
                self.report.problem = Some(refusal.to_string());
                before.wait_until_as_before(context, self.container()).await
            }
            Err(killed) => Err(killed),
        };
        self.report.unhealthy = well?;
        let failed = self.report.problem.is_some() || !self.report.unhealthy.is_empty();
        if failed && self.order.undo_on_failure {
            self.undo(context).await;
        }
        Ok(())
    }

    /// Saves the container. The host has no snapshot.
    async fn protect(&mut self, context: &mut OperationContext<'_>) -> Result<(), StepError> {
        let Some(container) = self.target.container.clone() else {
            return Ok(());
        };
        match &self.order.protect {
            UpdateProtection::Nothing => {}
            UpdateProtection::Snapshot => {
                context.relay.begin_capture();
                let taken = snapshots::take(context, &container, Some(COMMENT)).await;
                let output = context.relay.end_capture();
                let taken = taken?;
                if let OperationEnd::Killed { why } = taken.ending {
                    return Err(why.into());
                }
                let stderr = String::from_utf8_lossy(&output.stderr);
                self.report.snapshot = Some(taken.name.ok_or_else(|| {
                    let why = stderr.trim();
                    OperationRefusal::failed(format!("no snapshot could be made: {why}"))
                })?);
                self.report.frozen = taken.frozen;
            }
            UpdateProtection::Backup(target) => {
                let target = targets::find_target(context.helper, target)?;
                let subject = BackupSubject::Container(container);
                let backup = operations::create(context, &target, &subject, true).await?;
                self.report.frozen = backup.was_frozen;
                self.report.backup = Some(backup.backup);
            }
        }
        Ok(())
    }

    /// Fetches and installs. The run can be ended until all packages are fetched.
    async fn install(&mut self, context: &mut OperationContext<'_>) -> Result<(), StepError> {
        if self.order.refresh {
            let step = self.step(context, &["refresh"]).await?;
            require(&step, "the package lists could not be fetched")?;
        }
        context.relay.set_uninterruptible(true);
        let repaired = self.step(context, &["mend"]).await;
        context.relay.set_uninterruptible(false);
        repaired?;
        let fetched = self.with_packages(context, "download").await?;
        require(
            &fetched,
            "the packages could not be fetched; nothing was installed",
        )?;
        context.relay.set_uninterruptible(true);
        let installed = self.with_packages(context, "install").await;
        context.relay.set_uninterruptible(false);
        let installed = installed?;
        if let Some((_, after)) = installed.stdout.rsplit_once(DONE) {
            self.report.changes = Some(after.split_once('\n').unwrap_or_default().1.to_owned());
        }
        require(&installed, "the installation did not complete")?;
        Ok(())
    }

    async fn with_packages(
        &self,
        context: &mut OperationContext<'_>,
        step: &str,
    ) -> Result<UpdateStep, StepError> {
        let packages = self.target.packages.iter().map(PinnedPackage::as_str);
        // After a refresh the packages of the plan may be superseded.
        let (scope, packages): (_, Vec<&str>) = if self.order.refresh {
            ("all", Vec::new())
        } else {
            ("exact", packages.collect())
        };
        let words = [step, scope, "keep", plain_agent(&self.order.agent)];
        self.step(context, &[&words[..], &packages].concat()).await
    }

    async fn step(
        &self,
        context: &mut OperationContext<'_>,
        words: &[&str],
    ) -> Result<UpdateStep, StepError> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        run_captured(context, self.container(), words).await
    }

    /// Restores the saved state. Once begun it runs to its end.
    async fn undo(&mut self, context: &mut OperationContext<'_>) {
        let Some(container) = self.target.container.clone() else {
            return;
        };
        if self.report.snapshot.is_none() && self.report.backup.is_none() {
            return;
        }
        context.relay.begin_capture();
        context.relay.set_uninterruptible(true);
        let restored = self.restore(context, &container).await;
        context.relay.set_uninterruptible(false);
        let output = context.relay.end_capture();
        match restored {
            Ok(OperationEnd::SUCCESS) => self.report.undone = true,
            Ok(ending) => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                self.report.undo_problem = Some(format!("{ending}: {}", stderr.trim()));
            }
            Err(refusal) => self.report.undo_problem = Some(refusal.to_string()),
        }
    }

    async fn restore(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, OperationRefusal> {
        let helper = context.helper;
        let lxcpath = helper.containers.lxcpath();
        let unsupported = || OperationRefusal::failed("unsupported operation");
        if helper.containers.alive(container).await.is_ok() {
            let stop = Operation::ContainerStop {
                container: container.clone(),
                grace_s: GRACE_SECONDS,
            };
            let stop = tool_for(&stop, lxcpath).ok_or_else(unsupported)?;
            context.run_tool(&stop).await?;
        }
        let restored = match (
            &self.report.snapshot,
            &self.report.backup,
            &self.order.protect,
        ) {
            (Some(snapshot), _, _) => snapshots::restore(context, container, snapshot).await,
            (None, Some(backup), UpdateProtection::Backup(target)) => {
                let target = targets::find_target(helper, target)?;
                let subject = BackupSubject::Container(container.clone());
                restore::restore(context, &target, backup, &subject).await
            }
            _ => Err(unsupported()),
        };
        // Also started if it was not restored: it is better upgraded than stopped.
        let start = Operation::ContainerStart {
            container: container.clone(),
        };
        let start = tool_for(&start, lxcpath).ok_or_else(unsupported)?;
        let started = context.run_tool(&start).await;
        match restored? {
            OperationEnd::SUCCESS => started,
            ending => Ok(ending),
        }
    }
}

/// Returns the calls that restore a container that was changed, as a model makes them.
fn undo_calls(report: &UpdateTargetReport, protect: &UpdateProtection) -> Vec<String> {
    let Some(container) = &report.container else {
        return Vec::new();
    };
    if report.changes.is_none() || report.undone {
        return Vec::new();
    }
    match (&report.snapshot, &report.backup, protect) {
        (Some(snapshot), ..) => vec![format!(
            r#"container_rebuild {{"container":"{container}","snapshot":"{snapshot}"}}"#
        )],
        (None, Some(backup), UpdateProtection::Backup(target)) => vec![
            format!(r#"container_stop {{"container":"{container}"}}"#),
            format!(
                r#"backup_restore {{"target":"{target}","backup":"{backup}","container":"{container}"}}"#
            ),
            format!(r#"container_start {{"container":"{container}"}}"#),
        ],
        _ => Vec::new(),
    }
}

fn require(step: &UpdateStep, what: &str) -> Result<(), OperationRefusal> {
    if step.succeeded {
        return Ok(());
    }
    let error = &step.error;
    Err(OperationRefusal::failed(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_container_comes_with_the_calls_that_undo_it() {
        let changed = UpdateTargetReport {
            container: Some("alpha".parse().unwrap()),
            snapshot: Some("snap3".to_owned().try_into().unwrap()),
            changes: Some(String::new()),
            ..UpdateTargetReport::default()
        };
        let calls = |report: &UpdateTargetReport| undo_calls(report, &UpdateProtection::Snapshot);
        let rebuild = r#"container_rebuild {"container":"alpha","snapshot":"snap3"}"#;
        assert_eq!(calls(&changed), [rebuild]);
        let undone = UpdateTargetReport {
            undone: true,
            ..changed.clone()
        };
        assert_eq!(calls(&undone), [""; 0]);
        let unchanged = UpdateTargetReport {
            changes: None,
            ..changed.clone()
        };
        assert_eq!(calls(&unchanged), [""; 0]);
        let target = UpdateProtection::Backup("nas".parse().unwrap());
        let backup = "alpha@2026-07-28T09-30-00.000Z".parse().unwrap();
        let saved = UpdateTargetReport {
            snapshot: None,
            backup: Some(backup),
            ..changed
        };
        let [stop, restore, start] = undo_calls(&saved, &target).try_into().unwrap();
        assert!(stop.starts_with("container_stop ") && start.starts_with("container_start "));
        assert_eq!(
            restore,
            r#"backup_restore {"target":"nas","backup":"alpha@2026-07-28T09-30-00.000Z","container":"alpha"}"#
        );
    }
}
