//! What a demo answers instead of the helper: the invented logs, snapshots and backups; all else is refused.

use serde_json::{Value, json};

use super::made_up::{MadeUpContainer, MadeUpServer};
use gatewren_base::sys::rfc3339;
use gatewren_host::helper_client::{
    BackupAction, BackupId, ContainerAction, ContainerRef, Operation, OperationRefusal, RefusalCode,
};

/// Why an operation is refused.
pub const REFUSED: &str = "this is a demo: nothing was done, and no real server was asked";

const MB: u64 = 1_000_000;
const SECOND_MS: u64 = 1_000;

/// Answers an operation.
///
/// # Errors
/// For every operation that changes something, and for those that the demo has no data for.
pub fn answer(
    made_up: &MadeUpServer,
    operation: &Operation,
    now_ms: u64,
) -> Result<Vec<u8>, OperationRefusal> {
    match operation {
        Operation::ContainerAction { container, action } => {
            let name = container.as_str();
            let container = made_up.containers.get(name).ok_or_else(|| {
                let words = format!("the demo has no container {name}");
                OperationRefusal::new(RefusalCode::NoSuchContainer, words)
            })?;
            of_container(container, action, now_ms).ok_or_else(refusal)
        }
        Operation::Backup {
            action: BackupAction::List { .. },
        } => Ok(backups(made_up)?.to_string().into_bytes()),
        _ => Err(refusal()),
    }
}

fn refusal() -> OperationRefusal {
    OperationRefusal::new(RefusalCode::Forbidden, REFUSED)
}

fn of_container(
    container: &MadeUpContainer,
    action: &ContainerAction,
    now_ms: u64,
) -> Option<Vec<u8>> {
    match action {
        ContainerAction::Snapshots {} => {
            let lines = container.snapshots.iter().map(
                |one| json!({ "name": one.name, "made": rfc3339(one.at), "comment": one.comment }),
            );
            Some(in_lines(lines))
        }
        ContainerAction::Printed { .. } => Some(printed(&container.log, now_ms)),
        ContainerAction::Log { .. } => {
            let text = container.log.join("\n") + "\n";
            let header = json!({ "size_bytes": text.len(), "offset": 0 });
            Some(format!("{header}\n{text}").into_bytes())
        }
        _ => None,
    }
}

/// The lines that a container of an engine printed, one in each of the last minutes.
fn printed(log: &[String], now_ms: u64) -> Vec<u8> {
    let past = (0..log.len() as u64)
        .rev()
        .map(|line| line * 61 * SECOND_MS);
    let lines = log.iter().zip(past).map(|(text, past_ms)| {
        json!({
            "cursor": past_ms.to_string(), "time_ms": now_ms.saturating_sub(past_ms), "is_stderr": false, "text": text,
            "is_cut": false,
        })
    });
    in_lines([json!({ "has_more": true })].into_iter().chain(lines))
}

fn in_lines(lines: impl Iterator<Item = Value>) -> Vec<u8> {
    let lines: Vec<String> = lines.map(|line| format!("{line}\n")).collect();
    lines.concat().into_bytes()
}

/// All backups, newest first.
fn backups(made_up: &MadeUpServer) -> Result<Value, OperationRefusal> {
    let invalid = |name: &str| OperationRefusal::failed(format!("{name} is no container's name"));
    let mut all = Vec::new();
    for (name, container) in &made_up.containers {
        let of: ContainerRef = name.parse().map_err(|_| invalid(name))?;
        for backup in &container.backups {
            let made = rfc3339(backup.at);
            let id = BackupId::new(Some(of.clone()), &made);
            all.push(json!({
                "backup": id, "target": "usb-disk", "container": name, "made": made, "host": "demo",
                "archive_bytes": backup.size_mb * MB, "was_running": true,
            }));
        }
    }
    all.sort_by_key(|backup| std::cmp::Reverse(backup["made"].to_string()));
    Ok(json!({ "backups": all, "truncated": false, "unseen": [] }))
}
