//! Firmware of the host's devices: available updates, as fwupd reports them, and their installation.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::helper_client::{
    FIRMWARE_MARK, FinishedOperation, FirmwareAction, FirmwareId, HelperClient, Operation,
    OperationEnd,
};

use super::error::{BackendError, ErrorKind};
use super::long_work::{CallJob, LongOperation, run_long};
use super::request::operation_error;
use super::source::HostTree;
use super::update_applied::{sentence, word};

/// The timeout of a query: fwupd starts for it and asks every device.
const QUESTION: Duration = Duration::from_mins(2);

/// The timeout for downloading its metadata.
const FETCHING: Duration = Duration::from_mins(10);

/// How long the front waits for an installation; the helper gives the installation itself the time
/// that it needs.
const APPLYING: Duration = Duration::from_hours(6);

/// The maximum number of devices in a result, devices with newer firmware first; the rest is only
/// counted.
const MAX_LISTED: usize = 100;

/// `FWUPD_ERROR_NOTHING_TO_DO` and the update states, from fwupd's libfwupd/fwupd-error.h and
/// fwupd-enums.h.
const NOTHING_TO_DO: u64 = 9;
const PENDING: u64 = 1;
const FAILED: u64 = 3;
const NEEDS_REBOOT: u64 = 4;
const FAILED_FOR_NOW: u64 = 5;

/// The devices whose firmware can be updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirmwareCheck {
    /// The devices, those with newer firmware first, then by name.
    pub devices: Vec<FirmwareDevice>,
    /// The total number of devices.
    pub total: usize,
    /// The number of devices with newer firmware.
    pub updates: usize,
    /// Whether some devices are not shown.
    pub truncated: bool,
    /// The number of devices whose firmware fwupd detects but cannot update.
    pub fixed: usize,
    /// Whether installed firmware takes effect only after a restart of the host.
    pub restart_required: bool,
    /// Why the requested refresh of the metadata failed; the metadata is unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_problem: Option<String>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirmwareDevice {
    /// The id for `firmware_update`.
    pub device: String,
    /// The device's name.
    pub name: String,
    /// The vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The current firmware version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The newest version, if it is newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// The vendor's description of that version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The urgency that the vendor gives it, such as `high` or `critical`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgency: Option<String>,
    /// Whether it takes effect only after a restart of the host.
    pub needs_restart: bool,
    /// Why its last update failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_problem: Option<String>,
}

/// The changes of a firmware update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirmwareUpdateResult {
    /// Whether all updates were done; otherwise the answer lists those that were.
    pub completed: bool,
    /// The devices with a new version.
    pub updated: Vec<FirmwareChange>,
    /// The devices that get a new version at a restart of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<FirmwareChange>,
    /// The devices whose version is unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FirmwareChange>,
    /// Whether firmware takes effect only after a restart of the host.
    pub restart_required: bool,
    /// fwupd's error, if not all updates were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A device's firmware before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirmwareChange {
    /// The device's id.
    pub device: String,
    /// The device's name.
    pub name: String,
    /// The version before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version now; for a waiting or failed update, the intended version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// fwupd's message: a manual step for the device, or the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// fwupd on the host.
#[derive(Debug, Clone)]
pub struct Firmware {
    helper: HelperClient,
}

impl Firmware {
    /// Returns fwupd as this helper runs it.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Whether fwupd is installed and can start: it cannot in a container.
    pub fn is_available() -> bool {
        let tree = HostTree::of_this_machine();
        tree.has("usr/bin/fwupdmgr") && !tree.has("run/systemd/container")
    }

    /// Returns the available updates from fwupd's metadata, which is downloaded first if `refresh`
    /// is set.
    ///
    /// # Errors
    /// When the owner does not allow the helper to query or download, and when fwupd does not
    /// answer.
    pub async fn check(
        &self,
        refresh: bool,
        job: Option<CallJob>,
        reference: &str,
    ) -> Result<FirmwareCheck, BackendError> {
        let mut refresh_problem = None;
        if refresh {
            let action = FirmwareAction::Refresh {};
            let refresh = self.run(action, FETCHING, job, reference).await?;
            if let OperationEnd::Refused(_) | OperationEnd::Killed { .. } = refresh.ending {
                document(&refresh)?;
            }
            refresh_problem = document(&refresh).err().map(|error| error.message);
        }
        let read = async |action| document(&self.run(action, QUESTION, None, reference).await?);
        let devices = read(FirmwareAction::Devices {}).await?;
        let updates = read(FirmwareAction::Updates {}).await?;
        Ok(FirmwareCheck {
            refresh_problem,
            ..list_devices(&devices, &updates)
        })
    }

    /// Installs newer firmware on one device, or on all devices that have an update. Once there is
    /// a job, dropping the future only stops waiting; the installation continues.
    ///
    /// # Errors
    /// When the owner does not allow it, when the named device has no update, and when the result
    /// is unknown.
    pub async fn update(
        &self,
        device: Option<FirmwareId>,
        job: Option<CallJob>,
        reference: &str,
    ) -> Result<FirmwareUpdateResult, BackendError> {
        let look = self.run(FirmwareAction::Updates {}, QUESTION, None, reference);
        let before = document(&look.await?)?;
        let wanted: Vec<&Value> = devices(&before)
            .filter(|one| {
                device
                    .as_ref()
                    .is_none_or(|id| text(one, "DeviceId") == Some(id.as_str()))
            })
            .collect();
        if wanted.is_empty() && device.is_some() {
            let words = "there is no newer firmware for such a device; firmware_check lists devices that have some";
            return Err(BackendError::new(ErrorKind::NotFound, words));
        }
        if wanted.is_empty() {
            return Ok(FirmwareUpdateResult {
                completed: true,
                ..FirmwareUpdateResult::default()
            });
        }
        let action = FirmwareAction::Apply { device };
        let finished = self.run(action, APPLYING, job, reference).await?;
        read_results(&wanted, &finished)
    }

    async fn run(
        &self,
        action: FirmwareAction,
        time: Duration,
        job: Option<CallJob>,
        reference: &str,
    ) -> Result<FinishedOperation, BackendError> {
        let long = LongOperation::new(Operation::Firmware { action }, time);
        run_long(&self.helper, long, job, reference).await
    }
}

/// Returns fwupdmgr's JSON output; `Null` if fwupdmgr has nothing to do.
fn document(finished: &FinishedOperation) -> Result<Value, BackendError> {
    read(&finished.stdout.text_lossy(), finished)
}

fn read(output: &str, finished: &FinishedOperation) -> Result<Value, BackendError> {
    let refused = matches!(
        finished.ending,
        OperationEnd::Refused(_) | OperationEnd::Killed { .. }
    );
    let parsed = serde_json::from_str::<Value>(output).ok();
    let Some(parsed) = parsed.filter(|_| !refused) else {
        let unread = || BackendError::new(ErrorKind::Failed, "fwupd's answer is invalid");
        let ended = operation_error(&finished.ending, &finished.stderr.text_lossy());
        let is_silent = output.trim().is_empty() && ended.is_none();
        return if is_silent {
            Ok(Value::Null)
        } else {
            Err(ended.unwrap_or_else(unread))
        };
    };
    let Some(error) = parsed.get("Error") else {
        return Ok(parsed);
    };
    if number(error, "Code") == Some(NOTHING_TO_DO) {
        return Ok(Value::Null);
    }
    let message = sanitized_text(error, "Message").unwrap_or_default();
    Err(BackendError::new(ErrorKind::Failed, message))
}

fn devices(document: &Value) -> impl Iterator<Item = &Value> {
    let list = document.get("Devices").and_then(Value::as_array);
    list.into_iter().flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

/// Returns a device's or a vendor's name.
fn name(value: &Value, key: &str) -> Option<String> {
    text(value, key).map(word)
}

fn sanitized_text(value: &Value, key: &str) -> Option<String> {
    text(value, key).map(sentence)
}

fn has_flag(device: &Value, flag: &str) -> bool {
    let flags = device.get("Flags").and_then(Value::as_array);
    flags.is_some_and(|flags| flags.iter().any(|one| one.as_str() == Some(flag)))
}

/// Returns the newest release for a device; fwupd lists it first.
fn release(device: &Value) -> Option<&Value> {
    device.get("Releases")?.as_array()?.first()
}

fn with_id<'v>(document: &'v Value, device: &Value) -> Option<&'v Value> {
    devices(document).find(|one| text(one, "DeviceId") == text(device, "DeviceId"))
}

fn is_pending(device: &Value) -> bool {
    matches!(number(device, "UpdateState"), Some(PENDING | NEEDS_REBOOT))
}

fn list_devices(all: &Value, updates: &Value) -> FirmwareCheck {
    let mut fixed = 0;
    let mut listed: Vec<FirmwareDevice> = Vec::new();
    for device in devices(all) {
        let newer = with_id(updates, device).and_then(release);
        if newer.is_none() && !has_flag(device, "updatable") {
            fixed += 1;
            continue;
        }
        let failed = matches!(number(device, "UpdateState"), Some(FAILED | FAILED_FOR_NOW));
        let problem =
            sanitized_text(device, "UpdateError").unwrap_or_else(|| "fwupd gives no reason".into());
        listed.push(FirmwareDevice {
            device: name(device, "DeviceId").unwrap_or_default(),
            name: name(device, "Name").unwrap_or_default(),
            vendor: name(device, "Vendor"),
            version: name(device, "Version"),
            candidate: newer.and_then(|newer| name(newer, "Version")),
            about: newer.and_then(|newer| sanitized_text(newer, "Summary")),
            urgency: newer.and_then(|newer| name(newer, "Urgency")),
            needs_restart: has_flag(device, "needs-reboot") || has_flag(device, "needs-shutdown"),
            last_problem: failed.then_some(problem),
        });
    }
    listed.sort_by(|a, b| {
        let key = |one: &FirmwareDevice| (one.candidate.is_none(), one.name.clone());
        key(a).cmp(&key(b))
    });
    let total = listed.len();
    let updates = listed.iter().filter(|one| one.candidate.is_some()).count();
    listed.truncate(MAX_LISTED);
    FirmwareCheck {
        truncated: listed.len() < total,
        devices: listed,
        total,
        updates,
        fixed,
        restart_required: devices(all).any(is_pending),
        refresh_problem: None,
    }
}

/// fwupdmgr may exit with 0 although a device kept its firmware, so the result is read from the
/// devices.
fn read_results(
    wanted: &[&Value],
    finished: &FinishedOperation,
) -> Result<FirmwareUpdateResult, BackendError> {
    let output = finished.stdout.text_lossy();
    let Some((answer, after)) = output.rsplit_once(FIRMWARE_MARK) else {
        let none = || BackendError::new(ErrorKind::Failed, "fwupd did not report what it did");
        return Err(read(&output, finished).err().unwrap_or_else(none));
    };
    let problem = read(answer, finished).err().map(|error| error.message);
    let after = serde_json::from_str(after).map_err(|_| {
        let words =
            "the firmware may be installed, but its device is missing; check with firmware_check";
        BackendError::new(ErrorKind::Failed, words)
    })?;
    let mut result = FirmwareUpdateResult {
        problem,
        restart_required: devices(&after).any(is_pending),
        ..FirmwareUpdateResult::default()
    };
    for device in wanted {
        let now = with_id(&after, device).unwrap_or(&Value::Null);
        let mut change = FirmwareChange {
            device: name(device, "DeviceId").unwrap_or_default(),
            name: name(device, "Name").unwrap_or_default(),
            from: name(device, "Version"),
            to: release(device).and_then(|newer| name(newer, "Version")),
            message: sanitized_text(now, "UpdateError")
                .or_else(|| sanitized_text(now, "UpdateMessage")),
        };
        let version = name(now, "Version");
        if is_pending(now) {
            result.waiting.push(change);
        } else if version.is_some() && version == change.to {
            result.updated.push(change);
        } else {
            // Another version than intended, or none.
            if let Some(version) = version.filter(|version| Some(version) != change.from.as_ref()) {
                let words = format!("it has {version} now");
                change.message.get_or_insert(words);
            }
            result.failed.push(change);
        }
    }
    result.completed = result.failed.is_empty() && result.problem.is_none();
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper_client::CapturedOutput;

    /// Recorded from fwupdmgr 2.0.20 on Debian 12, whose plugin `test` simulates a webcam;
    /// shortened.
    const DEVICES: &str = include_str!("../../../tests/golden/fwupd-devices.json");
    const UPDATES: &str = include_str!("../../../tests/golden/fwupd-updates.json");
    const NOTHING: &str =
        r#"{"Error":{"Domain":"FwupdError","Code":9,"Message":"No updatable devices"}}"#;
    const OFFLINE: &str = r#"{"Error":{"Domain":"FwupdError","Code":21,"Message":"Failed to download metadata for lvfs: network is unreachable"}}"#;

    fn finished_operation(code: i32, stdout: &str) -> FinishedOperation {
        let captured = |text: &str| CapturedOutput {
            head: text.into(),
            tail: Vec::new(),
            total_bytes: text.len() as u64,
        };
        FinishedOperation {
            ending: OperationEnd::Exited { code },
            duration_ms: 1,
            stdout: captured(stdout),
            stderr: captured(""),
        }
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_can_be_renewed_is_told_and_the_rest_counted() {
        let check = list_devices(&value(DEVICES), &value(UPDATES));
        assert_eq!((check.total, check.updates, check.fixed), (1, 1, 1));
        let webcam = &check.devices[0];
        assert_eq!(webcam.device, "08d460be0f1f9f128413f816022a6439e0078018");
        assert_eq!(webcam.version.as_deref(), Some("1.2.2"));
        assert_eq!(webcam.candidate.as_deref(), Some("1.2.4"));
        assert!(!webcam.needs_restart && !check.restart_required);
        let check = list_devices(&value(DEVICES), &Value::Null);
        assert_eq!((check.total, check.updates), (1, 0));
    }

    #[test]
    fn an_error_is_in_fwupds_words_and_nothing_to_do_is_none() {
        assert_eq!(
            document(&finished_operation(2, NOTHING)).unwrap(),
            Value::Null
        );
        let error = document(&finished_operation(101, OFFLINE)).unwrap_err();
        assert!(error.message.contains("network is unreachable"), "{error}");
        assert!(
            document(&finished_operation(1, "")).is_err()
                && document(&finished_operation(0, "{")).is_err()
        );
        assert_eq!(document(&finished_operation(0, "")).unwrap(), Value::Null);
    }

    /// Returns the devices, one with this version and state.
    fn after(version: &str, state: u64) -> String {
        let now = format!("\"Version\" : \"{version}\",\"UpdateState\" : {state},");
        let devices = DEVICES.replace("\"Version\" : \"1.2.2\",", &now);
        assert!(devices.contains(&now));
        devices
    }

    fn outcome(code: i32, answer: &str, version: &str, state: u64) -> FirmwareUpdateResult {
        let updates = value(UPDATES);
        let wanted: Vec<&Value> = devices(&updates).collect();
        let stdout = format!("{answer}\n{FIRMWARE_MARK}\n{}", after(version, state));
        read_results(&wanted, &finished_operation(code, &stdout)).unwrap()
    }

    #[test]
    fn a_device_that_has_its_version_is_updated_whatever_fwupdmgr_says() {
        let good = outcome(0, "", "1.2.4", 2);
        assert!(good.completed && !good.restart_required, "{good:?}");
        let change = &good.updated[0];
        assert_eq!(
            (change.from.as_deref(), change.to.as_deref()),
            (Some("1.2.2"), Some("1.2.4"))
        );
        // The simulated webcam does this, because it has no version 1.2.4: fwupdmgr exited with 0.
        let other = outcome(0, "", "1.2.3", 3);
        assert!(!other.completed && other.updated.is_empty(), "{other:?}");
        let message = other.failed[0].message.as_deref();
        assert_eq!(message, Some("it has 1.2.3 now"));
    }

    #[test]
    fn what_waits_for_a_restart_is_neither_done_nor_failed() {
        let waits = outcome(0, "", "1.2.2", NEEDS_REBOOT);
        assert!(waits.completed && waits.restart_required, "{waits:?}");
        assert_eq!((waits.waiting.len(), waits.failed.len()), (1, 0));
    }

    #[test]
    fn what_went_wrong_is_told_with_what_was_done() {
        let answer = r#"{"Error":{"Domain":"FwupdError","Code":0,"Message":"device version not updated on success"}}"#;
        let failed = outcome(1, answer, "1.2.2", 3);
        assert!(!failed.completed && failed.failed.len() == 1, "{failed:?}");
        let problem = failed.problem.as_deref();
        assert_eq!(problem, Some("device version not updated on success"));
        let updates = value(UPDATES);
        let wanted: Vec<&Value> = devices(&updates).collect();
        let error = read_results(&wanted, &finished_operation(2, OFFLINE)).unwrap_err();
        assert!(error.message.contains("unreachable"), "{error}");
    }
}
