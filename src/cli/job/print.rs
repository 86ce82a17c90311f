//! Prints a job for the owner. Its command is an agent's text, which may not move the cursor.

use serde_json::{Value, json};

use super::super::console::moment::moment_of;
use super::super::console::table::field_lines;
use super::super::inbox::InboxContext;
use super::context::JOB;
use gatewren_gate::owner_actions::sanitize;
use gatewren_host::backends::JobStatus;

/// The maximum number of characters of a command in a line; the rest is cut.
const IN_A_LINE: usize = 60;

/// The column headings of a list.
pub const HEAD: [&str; 7] = ["id", "state", "began", "agent", "tool", "about", "command"];

/// A job as a row.
pub fn cells(inbox: &InboxContext, job: &JobStatus) -> [String; 7] {
    let container = job.container.as_ref().map(ToString::to_string);
    let command = sanitize(job.command.as_deref().unwrap_or("-"));
    [
        JOB.shown(&job.job.to_string()),
        job.state.to_owned(),
        moment_of(&job.began_at),
        sanitize(inbox.name(&job.owner)),
        sanitize(&job.tool),
        sanitize(container.as_deref().unwrap_or("host")),
        command.chars().take(IN_A_LINE).collect(),
    ]
}

/// A job as JSON: the fields of `job_get`, and its agent.
pub fn as_json(inbox: &InboxContext, job: &JobStatus) -> Value {
    let mut value = json!(job);
    if let Some(object) = value.as_object_mut() {
        object.insert("agent".into(), json!(job.owner));
        object.insert("agent_name".into(), json!(inbox.name(&job.owner)));
    }
    value
}

/// A job in full, one field a line.
pub fn page(inbox: &InboxContext, job: &JobStatus) -> String {
    field_lines(&as_json(inbox, job))
}

/// The state of a job, in a line.
pub fn state_line(inbox: &InboxContext, job: &JobStatus) -> String {
    let how = match (job.exit_code, job.signal, job.killed_because, &job.error) {
        (Some(code), ..) => format!(", exit code {code}"),
        (_, Some(signal), ..) => format!(", signal {signal}"),
        (_, _, Some(why), _) => format!(", because {why}"),
        (.., Some(error)) => format!(", {error}"),
        _ => String::new(),
    };
    sanitize(&format!(
        "{} of {}, {}: {}{how}",
        job.job,
        inbox.name(&job.owner),
        job.tool,
        job.state
    ))
}
