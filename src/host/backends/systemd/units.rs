//! Queries and changes of units: the host's over the bus and the helper, a container's through its own systemd.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::helper_client::{ContainerRef, HelperClient, Operation, UnitChange, UnitName};
use gatewren_base::config::Reach;

use super::super::access_filter::{AccessFilter, unmask_error};
use super::super::error::{BackendError, ErrorKind};
use super::super::request::ask;
use super::inside::{lines, status};
use super::jobs::SystemdJobs;
use super::manager::Systemd;
use super::unit::{UnitLine, UnitStatus};

/// How long a change is waited for; after that it continues in the background.
const JOB_TIME: Duration = Duration::from_secs(45);

/// The timeout for systemd to accept a change, and for a container's systemd to answer.
const ANSWER_TIME: Duration = Duration::from_secs(70);

/// The units of the host and of containers; queries and changes need a view.
#[derive(Debug, Clone)]
pub struct SystemdUnits {
    systemd: Systemd,
    helper: HelperClient,
}

/// The units that a caller may access.
#[derive(Debug)]
pub struct SystemdUnitsView {
    systemd: Systemd,
    helper: HelperClient,
    reach: Reach,
    access: AccessFilter,
    reference: String,
}

impl SystemdUnits {
    /// Returns the host's units over `systemd`, with `helper` for what needs root.
    pub fn new(systemd: Systemd, helper: HelperClient) -> Self {
        Self { systemd, helper }
    }

    /// Returns the units that a caller may access; `reference` identifies its calls in the helper's
    /// log.
    pub fn view_for(&self, reach: &Reach, reference: &str) -> SystemdUnitsView {
        SystemdUnitsView {
            systemd: self.systemd.clone(),
            helper: self.helper.clone(),
            reach: reach.clone(),
            access: AccessFilter::of(reach),
            reference: reference.to_owned(),
        }
    }
}

impl SystemdUnitsView {
    /// Returns every loaded unit of the host or of a container, sorted by name.
    ///
    /// # Errors
    /// `NotFound` on a host without systemd; `Unavailable` without a bus; `Refused` without access to the host;
    /// `NotFound` and `NotRunning` for a container.
    pub async fn list(
        &self,
        container: Option<&ContainerRef>,
    ) -> Result<Vec<UnitLine>, BackendError> {
        let Some(name) = container else {
            self.require_systemd()?;
            return self.systemd.view_for(&self.reach).list().await;
        };
        let list = |container| Operation::ContainerUnitList { container };
        Ok(lines(&self.inside(name, list, ANSWER_TIME).await?))
    }

    /// Returns all details of a unit.
    ///
    /// # Errors
    /// `NotFound` when the unit does not exist; otherwise as [`Self::list`].
    pub async fn status(
        &self,
        container: Option<&ContainerRef>,
        unit: &UnitName,
    ) -> Result<UnitStatus, BackendError> {
        let Some(name) = container else {
            self.require_systemd()?;
            return self.systemd.view_for(&self.reach).status(unit).await;
        };
        let show = |container| Operation::ContainerUnit {
            container,
            unit: unit.clone(),
        };
        let status = status(unit.clone(), &self.inside(name, show, ANSWER_TIME).await?);
        if status.unit.line.load == "not-found" {
            let words = format!("there is no unit '{unit}' in container '{name}'");
            return Err(BackendError::new(ErrorKind::NotFound, words));
        }
        Ok(status)
    }

    /// Changes a unit and waits until that is done. Returns `done`, `skipped`, or `running` if it
    /// takes longer than 45 s.
    ///
    /// # Errors
    /// When the owner does not allow it, when the unit does not exist, and when the change fails.
    pub async fn change(
        &self,
        container: Option<&ContainerRef>,
        unit: &UnitName,
        change: UnitChange,
    ) -> Result<String, BackendError> {
        let Some(name) = container else {
            return self.change_on_host(unit, change).await;
        };
        let operation = |container| Operation::ContainerUnitChange {
            container,
            unit: unit.clone(),
            change,
        };
        let changed = self.inside(name, operation, JOB_TIME).await;
        match changed {
            Ok(_) => Ok("done".to_owned()),
            // The container's systemd continues the change.
            Err(error) if error.message.contains("did not end in time") => Ok("running".to_owned()),
            Err(error) => Err(error),
        }
    }

    /// Checks that the caller reaches the host, and that it has units: a host of another init system may have containers
    /// with systemd.
    fn require_systemd(&self) -> Result<(), BackendError> {
        self.access.host()?;
        if Systemd::runs_here() {
            return Ok(());
        }
        Err(no_systemd())
    }

    async fn change_on_host(
        &self,
        unit: &UnitName,
        change: UnitChange,
    ) -> Result<String, BackendError> {
        self.require_systemd()?;
        let asked = if self.access.shows_unit(unit.as_str()) {
            unit.clone()
        } else {
            unit.of_none()
        };
        // Subscribed before the job exists, so that its end is not missed.
        let jobs = if change.is_job() {
            Some(self.systemd.jobs().await?)
        } else {
            None
        };
        let operation = Operation::UnitChange {
            unit: asked.clone(),
            change,
        };
        let answer = ask(&self.helper, operation, ANSWER_TIME, &self.reference).await;
        let answer = answer.map_err(|error| restore_unit_name(error, unit, &asked))?;
        let Some(jobs) = jobs else {
            return read_change_answer(unit, change, &answer);
        };
        self.wait_for_job(jobs, &answer, unit, change).await
    }

    async fn wait_for_job(
        &self,
        mut jobs: SystemdJobs,
        answer: &str,
        unit: &UnitName,
        change: UnitChange,
    ) -> Result<String, BackendError> {
        let data: Value = serde_json::from_str(answer).unwrap_or_default();
        let job = data.pointer("/data/0").and_then(Value::as_str);
        let job = job.ok_or_else(|| {
            BackendError::new(
                ErrorKind::Failed,
                "systemd did not name the job that it created",
            )
        })?;
        let Ok(result) = timeout(JOB_TIME, jobs.result(job)).await else {
            return Ok("running".to_owned());
        };
        let result = result?;
        if matches!(result.as_str(), "done" | "skipped") {
            return Ok(result);
        }
        let verb = change.verb();
        Err(BackendError {
            hint: Some(format!(
                "unit_status of {unit} shows its state, and logs_query with that unit shows the reason."
            )),
            ..BackendError::new(
                ErrorKind::Failed,
                format!("the {verb} of {unit} ended with the result '{result}'"),
            )
        })
    }

    /// Runs an operation on a container; an inaccessible one is queried under a name that no
    /// container has.
    async fn inside(
        &self,
        name: &ContainerRef,
        operation: impl FnOnce(ContainerRef) -> Operation,
        time: Duration,
    ) -> Result<String, BackendError> {
        let asked = self.access.name(name);
        let answer = ask(
            &self.helper,
            operation(asked.clone()),
            time,
            &self.reference,
        );
        unmask_error(name, &asked, answer.await).map_err(|error| add_systemd_hint(name, error))
    }
}

/// Restores the requested unit's name in an error of systemd or the helper.
fn restore_unit_name(error: BackendError, unit: &UnitName, asked: &UnitName) -> BackendError {
    let message = error.message.replace(asked.as_str(), unit.as_str());
    as_not_found(BackendError {
        message: message.trim_start_matches("Call failed: ").to_owned(),
        ..error
    })
}

/// systemd's messages for a missing unit have no error code.
fn as_not_found(error: BackendError) -> BackendError {
    let words = ["not found", "not loaded", "does not exist"];
    let is_absent = words.iter().any(|words| error.message.contains(words));
    if error.kind == ErrorKind::Failed && is_absent {
        return BackendError {
            kind: ErrorKind::NotFound,
            ..error
        };
    }
    error
}

/// A change without a job is complete when it is answered; a unit that cannot be enabled is an
/// error.
fn read_change_answer(
    unit: &UnitName,
    change: UnitChange,
    answer: &str,
) -> Result<String, BackendError> {
    let data: Value = serde_json::from_str(answer).unwrap_or_default();
    if change == UnitChange::Enable && data.pointer("/data/0") == Some(&Value::Bool(false)) {
        let words = format!(
            "{unit} cannot be enabled: its file has no section [Install], so it cannot start at boot. unit_start starts it now; another unit or a timer can start it later"
        );
        return Err(BackendError::new(ErrorKind::Failed, words));
    }
    Ok("done".to_owned())
}

/// The error about the units of a host without systemd.
fn no_systemd() -> BackendError {
    BackendError {
        hint: Some("`container` names a container that runs systemd.".to_owned()),
        ..BackendError::new(
            ErrorKind::NotFound,
            "the host has no units: it does not run systemd",
        )
    }
}

fn add_systemd_hint(name: &ContainerRef, error: BackendError) -> BackendError {
    let has_none = error.message.starts_with("it does not run systemd");
    if error.kind == ErrorKind::Failed && has_none {
        let words = format!("container '{name}' has no units: it does not run systemd");
        return BackendError::new(ErrorKind::Failed, words);
    }
    as_not_found(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_refuses_is_told_in_its_words_about_the_unit_that_was_asked_for() {
        let (unit, asked): (UnitName, UnitName) = (
            "lxc@vault.service".parse().unwrap(),
            "lxc@0.service".parse().unwrap(),
        );
        let error = BackendError::new(
            ErrorKind::Failed,
            "Call failed: Unit lxc@0.service not found.",
        );
        let error = restore_unit_name(error, &unit, &asked);
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert_eq!(error.message, "Unit lxc@vault.service not found.");
    }

    #[test]
    fn a_unit_without_an_install_section_cannot_be_enabled() {
        let unit: UnitName = "a.service".parse().unwrap();
        let without = r#"{"type":"ba(sss)","data":[false,[]]}"#;
        let with = r#"{"type":"ba(sss)","data":[true,[["symlink","/etc/a","/lib/a"]]]}"#;
        assert!(read_change_answer(&unit, UnitChange::Enable, without).is_err());
        assert_eq!(
            read_change_answer(&unit, UnitChange::Enable, with).as_deref(),
            Ok("done")
        );
        assert_eq!(
            read_change_answer(&unit, UnitChange::Disable, "").as_deref(),
            Ok("done")
        );
    }

    #[test]
    fn a_container_without_systemd_is_told_so() {
        let name: ContainerRef = "web".parse().unwrap();
        let problem = "it does not run systemd (No such file or directory (os error 2))";
        let error = add_systemd_hint(&name, BackendError::new(ErrorKind::Failed, problem));
        assert!(
            error.message.starts_with("container 'web' has no units"),
            "{error}"
        );
    }
}
