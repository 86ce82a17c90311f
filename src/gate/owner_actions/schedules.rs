//! What the owner does with schedules: deletes, pauses and runs them. Each action is recorded in the audit.

use serde_json::json;

use super::owner_context::{OwnerCommand, OwnerContext};
use crate::policy;
use gatewren_store::vault::Change;

/// Describes the schedule that a change creates: its exact call, and its times in words. `None` for other changes.
pub fn schedule_words(change: &Change) -> Option<String> {
    policy::schedule_words(&change.tool, &change.proven_arguments()?)
}

/// Deletes a schedule of any agent with its runs; false if there is none.
pub async fn delete_schedule(owner: &OwnerContext<'_>, id: &str) -> Result<bool, String> {
    let delete = async { found(owner.vault.schedules().delete(id).await) };
    owner
        .run_audited_as(command("schedule delete", id), delete)
        .await
}

/// Pauses or resumes a schedule of any agent; false if there is none that is active.
pub async fn pause_schedule(
    owner: &OwnerContext<'_>,
    id: &str,
    paused: bool,
) -> Result<bool, String> {
    let name = if paused {
        "schedule pause"
    } else {
        "schedule resume"
    };
    let pause = async { found(owner.vault.schedules().pause(id, paused).await) };
    owner.run_audited_as(command(name, id), pause).await
}

/// Asks the server for a run of a schedule now; false if there is none that is active.
pub async fn run_schedule(owner: &OwnerContext<'_>, id: &str) -> Result<bool, String> {
    let run = async { found(owner.vault.schedules().request_run(id).await) };
    owner.run_audited_as(command("schedule run", id), run).await
}

fn command(name: &'static str, id: &str) -> OwnerCommand<'static> {
    OwnerCommand {
        command: name,
        what: json!({ "schedule": id }),
        target: None,
        change: None,
    }
}

fn found<E>(done: Result<bool, E>) -> Result<(bool, &'static str), E> {
    done.map(|found| (found, if found { "ok" } else { "refused" }))
}
