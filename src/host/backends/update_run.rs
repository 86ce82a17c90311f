//! The run of an approved plan of updates, and its report.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{
    ContainerRef, FinishedOperation, OperationEnd, UpdateProtection, UpdateRunOrder, UpdateTarget,
    UpdateTargetReport,
};

use super::error::{BackendError, ErrorKind};
use super::long_work::CallJob;
use super::request::operation_error;
use super::update_applied::{UpdateApplied, sentence};
use super::update_plan::ApprovedUpdate;
use super::updates::UpdatesView;

/// The most targets of a run.
const MAX_TARGETS: usize = 50;

/// The most packages that the whole report names; the rest is only counted.
const MAX_PACKAGES: usize = 100;

/// An approved run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateRunRequest {
    /// The targets, as they were approved.
    pub targets: Vec<ApprovedUpdate>,
    /// How each container is saved first.
    pub protect: UpdateProtection,
    /// Whether package lists are fetched first, and everything that they offer is installed.
    pub refresh: bool,
    /// Whether a container that is not well afterwards is restored.
    pub undo_on_failure: bool,
    /// Whether the first failure ends the run.
    pub stop_on_failure: bool,
}

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateRunResult {
    /// Whether all targets were updated and are well.
    pub completed: bool,
    /// Why the run ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The targets, in the order of the run.
    pub targets: Vec<UpdatedTarget>,
}

/// The result of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdatedTarget {
    /// The container; absent for the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// What it is now.
    pub state: UpdatedState,
    /// Why it is not updated, or not completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What is worse than before: failed units, closed ports, half-installed packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unhealthy: Vec<String>,
    /// The number of changed packages.
    pub changed: usize,
    /// Some of them: name, old and new version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Whether it requires a restart now.
    pub restart_required: bool,
    /// How it was saved before.
    pub protected_by: String,
    /// The calls that restore it, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
    /// Why it could not be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_problem: Option<String>,
}

/// The state of a target after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpdatedState {
    /// Updated, and as well as before.
    Updated,
    /// Nothing was installed.
    Unchanged,
    /// Installed, completely or not, and not as well as before.
    Unhealthy,
    /// Restored to what it was before.
    Undone,
    /// The run ended before it.
    NotBegun,
}

impl UpdatesView<'_> {
    /// Runs the approved updates. A target whose updates are others now is left unchanged.
    ///
    /// # Errors
    /// When the owner does not allow it, or nothing was begun.
    pub async fn run_plan(
        &self,
        asked: UpdateRunRequest,
        job: Option<CallJob>,
    ) -> Result<UpdateRunResult, BackendError> {
        check_targets(&asked)?;
        let (mut targets, mut rejected) = (Vec::new(), BTreeMap::new());
        for approved in &asked.targets {
            match self.confirm(approved, asked.refresh).await {
                Ok(target) => targets.push(target),
                Err(error) if asked.stop_on_failure => return Err(error),
                Err(error) => {
                    rejected.insert(approved.container.clone(), sentence(&error.message));
                }
            }
        }
        let mut result = UpdateRunResult::default();
        if let ([_], Some(why), true) = (
            asked.targets.as_slice(),
            rejected.values().next(),
            targets.is_empty(),
        ) {
            return Err(BackendError::new(ErrorKind::Refused, why.clone()));
        }
        let mut reports = BTreeMap::new();
        if !targets.is_empty() {
            let order = UpdateRunOrder {
                targets,
                protect: asked.protect,
                refresh: asked.refresh,
                undo_on_failure: asked.undo_on_failure,
                stop_on_failure: asked.stop_on_failure,
                agent: self.agent.to_owned(),
            };
            let finished = self.run_order(order, job).await?;
            reports = read_reports(&finished)?;
            if finished.ending != OperationEnd::SUCCESS {
                result.stopped = operation_error(&finished.ending, "").map(|error| error.message);
            }
        }
        let mut names_left = MAX_PACKAGES;
        for approved in &asked.targets {
            let container = &approved.container;
            let target = match (reports.remove(container), rejected.remove(container)) {
                (Some(report), _) => describe(report, &mut names_left),
                (None, why) => untouched(container.clone(), why),
            };
            result.targets.push(target);
        }
        result.completed = result.stopped.is_none()
            && result
                .targets
                .iter()
                .all(|one| one.state == UpdatedState::Updated);
        Ok(result)
    }

    /// Checks that a target would get exactly what was approved.
    async fn confirm(
        &self,
        approved: &ApprovedUpdate,
        refresh: bool,
    ) -> Result<UpdateTarget, BackendError> {
        let container = approved.container.clone();
        let refused = |words: String| Err(BackendError::new(ErrorKind::Refused, words));
        let name = approved.name();
        let found = self.simulate(container.as_ref(), None).await?;
        // The person who approves the call must not read numbers that the new lists change.
        if refresh && !approved.is_only_a_name() {
            return refused(format!(
                "{name}: what its lists will offer is not known yet, so with `refresh` a target only names its \
                 container, or is empty for the host"
            ));
        }
        if refresh {
            let packages = Vec::new();
            return Ok(UpdateTarget {
                container,
                packages,
            });
        }
        if ApprovedUpdate::of(container.clone(), &found) != *approved {
            return refused(format!(
                "the updates of {name} are not those of the plan any more; nothing was done there, call update_plan \
                 again"
            ));
        }
        if !found.removed.is_empty() || found.upgrades.is_empty() {
            return refused(format!(
                "{name} has nothing that update_run installs; update_plan shows why"
            ));
        }
        match found.pinned() {
            Ok(packages) => Ok(UpdateTarget {
                container,
                packages,
            }),
            Err(package) => refused(format!(
                "{name}: apt's package {package} has no valid version"
            )),
        }
    }
}

/// Rejects a run of no targets, of too many, or with one twice.
fn check_targets(asked: &UpdateRunRequest) -> Result<(), BackendError> {
    let refused = |words: String| Err(BackendError::new(ErrorKind::Refused, words));
    if asked.targets.is_empty() || asked.targets.len() > MAX_TARGETS {
        return refused(format!(
            "give 1 to {MAX_TARGETS} targets, as `run` of update_plan lists them"
        ));
    }
    let mut seen = BTreeSet::new();
    match asked.targets.iter().find(|one| !seen.insert(one.name())) {
        Some(twice) => refused(format!("{} is named twice", twice.name())),
        None => Ok(()),
    }
}

/// Parses the reports of the targets.
fn read_reports(
    finished: &FinishedOperation,
) -> Result<BTreeMap<Option<ContainerRef>, UpdateTargetReport>, BackendError> {
    let text = finished.stdout.text_lossy();
    let reports = text.lines().map(serde_json::from_str::<UpdateTargetReport>);
    let reports: BTreeMap<_, _> = reports
        .flatten()
        .map(|report| (report.container.clone(), report))
        .collect();
    if reports.is_empty() {
        let stderr = finished.stderr.text_lossy();
        let none = || BackendError::new(ErrorKind::Failed, "the run did not report what it did");
        return Err(operation_error(&finished.ending, &stderr).unwrap_or_else(none));
    }
    Ok(reports)
}

fn untouched(container: Option<ContainerRef>, why: Option<String>) -> UpdatedTarget {
    UpdatedTarget {
        container,
        state: match why {
            Some(_) => UpdatedState::Unchanged,
            None => UpdatedState::NotBegun,
        },
        problem: why,
        unhealthy: Vec::new(),
        changed: 0,
        packages: Vec::new(),
        restart_required: false,
        protected_by: "nothing".to_owned(),
        undo: Vec::new(),
        undo_problem: None,
    }
}

fn describe(report: UpdateTargetReport, names_left: &mut usize) -> UpdatedTarget {
    let applied = UpdateApplied::read(report.changes.as_deref().unwrap_or_default());
    let is_well = report.problem.is_none() && report.unhealthy.is_empty();
    let state = match (&report.changes, is_well, report.undone) {
        (_, _, true) => UpdatedState::Undone,
        (None, ..) => UpdatedState::Unchanged,
        (Some(_), true, _) => UpdatedState::Updated,
        (Some(_), false, _) => UpdatedState::Unhealthy,
    };
    let all = applied.upgraded.iter().chain(&applied.installed);
    let packages: Vec<String> = all
        .chain(&applied.removed)
        .take((*names_left).min(MAX_PACKAGES / 4))
        .map(|one| {
            let from = one.from.as_deref().unwrap_or("(new)");
            let to = one.to.as_deref().unwrap_or("(removed)");
            format!("{} {from} {to}", one.name)
        })
        .collect();
    *names_left -= packages.len();
    UpdatedTarget {
        state,
        protected_by: protected_by(&report),
        undo: report.undo,
        container: report.container,
        problem: report.problem.as_deref().map(sentence),
        unhealthy: report.unhealthy.iter().map(|one| sentence(one)).collect(),
        changed: applied.total,
        packages,
        restart_required: applied.reboot_required,
        undo_problem: report.undo_problem.as_deref().map(sentence),
    }
}

fn protected_by(report: &UpdateTargetReport) -> String {
    let meanwhile = if report.frozen {
        "frozen meanwhile"
    } else {
        "not frozen meanwhile, because this host cannot"
    };
    match (&report.snapshot, &report.backup) {
        (Some(snapshot), _) => format!("snapshot {snapshot} ({meanwhile})"),
        (None, Some(backup)) => format!("backup {backup} ({meanwhile})"),
        (None, None) if report.container.is_none() => {
            "nothing: the host has no snapshot".to_owned()
        }
        (None, None) => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> UpdateTargetReport {
        let mut all = serde_json::to_value(UpdateTargetReport::default()).unwrap();
        let more: serde_json::Value = serde_json::from_str(text).unwrap();
        for (key, value) in more.as_object().unwrap() {
            all[key] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    fn described(text: &str) -> UpdatedTarget {
        describe(report(text), &mut 100)
    }

    #[test]
    fn a_broken_service_is_unhealthy_though_all_is_installed() {
        let broken = described(
            r#"{"container":"alpha","snapshot":"snap3","frozen":true,"unhealthy":["TCP port 80 is no longer open"],
                "changes":"gatewren: upgraded web all 1 2\n"}"#,
        );
        assert_eq!(broken.state, UpdatedState::Unhealthy);
        assert_eq!(broken.packages, ["web 1 2"]);
        assert_eq!(broken.protected_by, "snapshot snap3 (frozen meanwhile)");
    }

    #[test]
    fn what_was_restored_or_never_installed_is_not_updated() {
        let undone = described(
            r#"{"container":"alpha","snapshot":"snap3","undone":true,"unhealthy":["x"],"changes":""}"#,
        );
        assert_eq!(undone.state, UpdatedState::Undone);
        let none = described(r#"{"container":"alpha","snapshot":"snap3","problem":"E: no"}"#);
        assert_eq!(none.state, UpdatedState::Unchanged);
        let host = described(r#"{"changes":"gatewren: reboot\n"}"#);
        assert_eq!(host.state, UpdatedState::Updated);
        assert!(host.restart_required && host.protected_by.contains("no snapshot"));
    }
}
