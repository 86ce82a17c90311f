//! Reads the journal of the host or of a container, through the host's `journalctl`.
//!
//! Callers cannot add options to it.

use std::fs;

use gatewren_base::config::{ContainerMentions, TRACED_FIELDS};
use gatewren_wire::operations::{
    ContainerRef, LogOrder, LogQuery, Operation, OperationEnd, OperationRefusal,
};

use crate::context::line_filter::LineFilter;
use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::lxc::jailed::{ContainerView, JailedTool};
use crate::processes::commands::require_root;
use crate::processes::step_error::{StepError, step_end};

/// The program, for the journals of the host and of containers.
const JOURNALCTL: &str = "journalctl";

/// The fields to print, in addition to the cursor, times and boot, and the fields that identify containers.
const FIELDS: &str = "PRIORITY,_PID,_TRANSPORT";

/// The file with this host's id, as in the lines of its journal (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

/// The files of a container that `journalctl` sees: its journals, and the ids to find them by. LXC gives each start
/// of a container its own boot id.
const JOURNALS: ContainerView = ContainerView {
    needs: &["/var/log/journal", "/run/log/journal"],
    paths: &["/etc/machine-id", "/proc/sys/kernel/random/boot_id"],
    absent: "has no journal: it does not run systemd",
};

/// Prints lines, one JSON object each, until there are no more or the caller disconnects; or the boots in a journal.
/// Lines of the host's journal about containers that the policy file hides are left out.
pub async fn read(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    let policy = context.helper.policy.now();
    let (container, args) = match operation {
        Operation::HostLog { query } if !policy.shows_all_containers() => {
            // Lines that are left out must not count.
            let query = LogQuery {
                most: None,
                ..query.clone()
            };
            (None, arguments(&query))
        }
        Operation::HostLog { query } => (None, arguments(query)),
        Operation::ContainerLog { container, query } => (Some(container), arguments(query)),
        Operation::ContainerBoots { container } => (Some(container), list_of_boots()),
        Operation::HostUptimeHistory {} => (None, shutdowns()),
        _ => (None, list_of_boots()),
    };
    let tool = tools::HostTool {
        name: JOURNALCTL,
        args,
    };
    if let Some(container) = container {
        return step_end(of_container(context, container, &tool).await);
    }
    if policy.shows_all_containers() || !matches!(operation, Operation::HostLog { .. }) {
        return context.run_tool(&tool).await;
    }
    let machine = fs::read_to_string(MACHINE_ID).unwrap_or_default();
    let filter = LineFilter::new(move |line| {
        let fields = serde_json::from_slice(line);
        let shows = |name: &str| policy.shows_container(name);
        fields.is_ok_and(|fields| ContainerMentions::show_line(&fields, machine.trim(), shows))
    });
    context.run_filtered_tool(&tool, filter).await
}

/// Runs the host's `journalctl` on a container's journals. Works for a frozen container too.
async fn of_container(
    context: &mut OperationContext<'_>,
    name: &ContainerRef,
    tool: &tools::HostTool,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    let alive = context.helper.containers.alive(name);
    let running = context.relay.wait(alive).await??;
    let jailed = JailedTool {
        tool,
        view: &JOURNALS,
        container: name,
        running: &running,
    };
    Ok(jailed.run(context).await?)
}

fn list_of_boots() -> Vec<String> {
    ["--no-pager", "--quiet", "--list-boots", "--output=json"]
        .map(str::to_owned)
        .into()
}

/// The lines that root's programs wrote about a shutdown: systemd's `SD_MESSAGE_SHUTDOWN` and
/// `SD_MESSAGE_JOURNAL_STOP` (sd-messages.h). Other users can write such lines, but not with `_UID=0`.
fn shutdowns() -> Vec<String> {
    [
        "--no-pager",
        "--quiet",
        "--output=json",
        "--output-fields=MESSAGE",
        "MESSAGE_ID=98268866d1d54a499c4e98921d93bc40",
        "MESSAGE_ID=d93fb3c9c24d451a97cea615ce59c00b",
        "_UID=0",
    ]
    .map(str::to_owned)
    .into()
}

/// Builds the arguments. Each value follows the `=` of its option, so that it cannot be an option itself.
fn arguments(query: &LogQuery) -> Vec<String> {
    let mut args: Vec<String> = ["--no-pager", "--quiet", "--output=json", "--all"]
        .map(str::to_owned)
        .into();
    let mut option = |name: &str, value: &str| args.push(format!("--{name}={value}"));
    let fields = format!("{FIELDS},{}", TRACED_FIELDS.join(","));
    option("output-fields", &fields);
    if let Some(unit) = &query.unit {
        option("unit", unit.as_str());
    }
    if let Some(priority) = query.priority {
        option("priority", priority.as_str());
    }
    if let Some(grep) = &query.grep {
        option("grep", grep.as_str());
    }
    if let Some(boot) = &query.boot {
        option("boot", boot.as_str());
    }
    if let Some(ms) = query.until_ms {
        option("until", &moment(ms));
    }
    match (&query.cursor, query.since_ms) {
        // journalctl accepts only one of the two. The caller stops when it has read enough.
        (Some(cursor), _) => option("after-cursor", cursor.as_str()),
        (None, Some(ms)) => option("since", &moment(ms)),
        (None, None) => {}
    }
    let more: &[&str] = match query.order {
        LogOrder::Older => &["--reverse"],
        LogOrder::Newer => &[],
        LogOrder::Follow if query.cursor.is_some() => &["--follow", "--no-tail"],
        LogOrder::Follow => &["--follow", "--lines=0"],
    };
    args.extend(more.iter().map(|&word| word.to_owned()));
    // In the other order, journalctl would print the newest lines, not those after the cursor.
    if let Some(most) = query.most.filter(|_| query.order == LogOrder::Older) {
        args.push(format!("--lines={most}"));
    }
    if query.kernel {
        args.push("_TRANSPORT=kernel".to_owned());
    }
    args
}

/// Formats a time as in systemd.time(7).
fn moment(ms: u64) -> String {
    format!("@{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::super::journal::*;

    fn query(json: &str) -> LogQuery {
        serde_json::from_str(json).unwrap()
    }

    /// The arguments after the fixed ones.
    fn varying(json: &str) -> String {
        arguments(&query(json))[5..].join(" ")
    }

    #[test]
    fn a_question_becomes_options() {
        assert_eq!(varying(r#"{"order":"older"}"#), "--reverse");
        assert_eq!(varying(r#"{"order":"newer"}"#), "");
        assert_eq!(varying(r#"{"order":"newer","most":7}"#), "");
        assert_eq!(
            varying(r#"{"order":"older","most":7}"#),
            "--reverse --lines=7"
        );
        assert_eq!(
            varying(
                r#"{"unit":"-.mount","priority":"err","since_ms":1500,"until_ms":2000,"boot":"-1","order":"newer"}"#
            ),
            "--unit=-.mount --priority=err --boot=-1 --until=@2.000 --since=@1.500"
        );
        assert_eq!(
            varying(r#"{"kernel":true,"order":"follow"}"#),
            "--follow --lines=0 _TRANSPORT=kernel"
        );
        assert_eq!(
            varying(r#"{"cursor":"s=1;i=2","since_ms":1,"order":"follow"}"#),
            "--after-cursor=s=1;i=2 --follow --no-tail"
        );
    }

    #[test]
    fn no_value_is_an_option() {
        let query = query(r#"{"grep":"--merge","unit":"--merge.service","order":"older"}"#);
        let args = arguments(&query);
        assert!(args.contains(&"--grep=--merge".to_owned()), "{args:?}");
        assert!(args.contains(&"--unit=--merge.service".to_owned()));
        assert!(!args.contains(&"--merge".to_owned()));
    }
}
