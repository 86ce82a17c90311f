//! The effects of background work that is off in `[workers]`: refused tools, a note in the instructions, the state.

use serde_json::json;

use gatewren_base::config::WorkerSettings;
use gatewren_store::state::{Author, Pointer, State, StateError};

/// Why a tool is refused while the observer is off.
const OBSERVER: &str =
    "the usage is not sampled: the owner has switched the observer off ([workers] observer)";

/// Why a tool is refused while schedules and watches are off.
const JOBS: &str =
    "schedules and watches do not run: the owner has switched them off ([workers] jobs)";

/// Returns the tools that need the missing work, each with the reason.
pub fn refused_tools(workers: WorkerSettings) -> Vec<(&'static str, &'static str)> {
    let tools = [
        (workers.observer, "server_history", OBSERVER),
        (workers.observer, "container_history", OBSERVER),
        (workers.jobs, "schedule_create", JOBS),
        (workers.jobs, "watch_create", JOBS),
    ];
    let off = tools.into_iter().filter(|(is_on, ..)| !is_on);
    off.map(|(_, tool, why)| (tool, why)).collect()
}

/// Adds the missing work to the instructions for models.
pub fn add_to_instructions(instructions: &str, workers: WorkerSettings) -> String {
    let mut text = instructions.to_owned();
    let notes = [
        (
            workers.observer,
            "the state document and the usage history are not kept up to date",
        ),
        (
            workers.notifier,
            "the owner is not notified of what happens or waits",
        ),
        (
            workers.jobs,
            "schedules do not run, and watches are not checked",
        ),
    ];
    for (_, note) in notes.into_iter().filter(|(is_on, _)| !is_on) {
        text.push_str("- Switched off by the owner: ");
        text.push_str(note);
        text.push_str(".\n");
    }
    text
}

/// Writes the list into the state, where clients and `gatewren status` find it. With all on, nothing is written.
///
/// # Errors
/// If the state cannot be written.
pub async fn record(state: &State, workers: WorkerSettings) -> Result<(), StateError> {
    let observer = Pointer::root().child("public").child("observer");
    let off = workers.switched_off();
    if !workers.observer {
        // As after a failure, the last known values stay.
        let why = json!({ "available": false, "why": "switched off in [workers]" });
        for part in ["containers", "units"] {
            let at = observer.child(part);
            state
                .put(&Author::observer(), &at, Some(why.clone()))
                .await?;
        }
    }
    let at = observer.child("switched_off");
    let is_recorded = state.document().root.pointer(&at.to_string()).is_some();
    if is_recorded || !off.is_empty() {
        let value = (!off.is_empty()).then(|| json!(off));
        state.put(&Author::observer(), &at, value).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tables::tables;
    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn what_is_refused_exists() {
        let catalog = tables().unwrap();
        for (name, _) in refused_tools(WorkerSettings::NONE) {
            assert!(catalog.tool(name).is_some(), "{name}");
        }
        assert!(refused_tools(WorkerSettings::default()).is_empty());
        assert_eq!(add_to_instructions("x\n", WorkerSettings::default()), "x\n");
    }

    #[tokio::test]
    async fn the_state_has_what_is_off_until_it_is_on_again() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        record(&state, WorkerSettings::default()).await.unwrap();
        assert_eq!(state.document().revision, 0, "nothing is written");
        let jobs_off = WorkerSettings {
            jobs: false,
            ..WorkerSettings::default()
        };
        record(&state, jobs_off).await.unwrap();
        let off = |state: &State| {
            let document = state.document();
            document
                .root
                .pointer("/public/observer/switched_off")
                .cloned()
        };
        assert_eq!(off(&state), Some(json!(["jobs"])));
        record(&state, WorkerSettings::default()).await.unwrap();
        assert_eq!(off(&state), None);
    }
}
