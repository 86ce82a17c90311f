//! `logs_*`, `kernel_logs` and `boot_list`: what stands in the journals.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{failure::failed, number::Number};
use crate::backends::{
    Boot, BootName, ContainerName, Journal, LogCursor, LogLine, LogMoment, LogOrder, LogPage,
    LogPattern, LogPriority, LogQuery, LogSearch, UnitName,
};
use crate::registry::{Answer, Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The group, as a table.
pub fn tools(journal: Arc<Journal>) -> Toolset<Journal> {
    Toolset::over(journal)
        .named("logs")
        .answering("logs_query", Risk::Read, query)
        .about(Scope::HostOr("container"))
        .through(HelperClass::HostLogs)
        .or_through(HelperClass::LxcReads)
        .titled("Search the logs")
        .returning::<LogPage>()
        .startos("server.logs", &[])
        .tool("logs_wait", Risk::Read, wait)
        .about(Scope::HostOr("container"))
        .through(HelperClass::HostLogs)
        .or_through(HelperClass::LxcReads)
        .titled("Wait for a line in the logs")
        .answering("kernel_logs", Risk::Read, kernel)
        .about(Scope::Host)
        .through(HelperClass::HostLogs)
        .titled("Messages of the kernel")
        .returning::<LogPage>()
        .startos("server.kernel-logs", &[])
        .tool("boot_list", Risk::Read, boots)
        .about(Scope::HostOr("container"))
        .through(HelperClass::HostLogs)
        .or_through(HelperClass::LxcReads)
        .titled("Boots that the logs know")
}

/// How many lines an answer has at most; it has fewer where they are long.
type Limit = Number<1, 200, 50>;

/// Searches the journal of the host, or of a container that runs systemd, and returns the newest lines that fit, the
/// oldest of them first. `start_cursor` with `before: true` returns older ones, `end_cursor` newer ones. Secrets that
/// can be recognised are left out. `logs_wait` waits for a line that is not there yet.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// A running container; the host when absent.
    container: Option<ContainerName>,
    /// Only lines of this unit and about it.
    unit: Option<UnitName>,
    /// Only lines at least as severe.
    priority: Option<LogPriority>,
    /// From then on: a time such as `2026-07-28T09:30:00Z`, or how long ago: `30min`, `2h`, `7d`.
    since: Option<LogMoment>,
    /// Until then; the same.
    until: Option<LogMoment>,
    /// A regular expression (PCRE2) for the message; lower case alone fits upper case too.
    grep: Option<LogPattern>,
    /// Only this boot: `0` for this one, `-1` for the one before, or an id from `boot_list`.
    boot: Option<BootName>,
    /// A cursor from an earlier answer.
    cursor: Option<LogCursor>,
    /// Lines before the cursor, and not those behind it.
    #[serde(default)]
    before: bool,
    /// How many lines at most.
    #[serde(default)]
    limit: Limit,
}

async fn query(journal: Arc<Journal>, asked: Query, cx: Cx) -> Result<Answer> {
    let search = LogSearch {
        container: asked.container,
        most: usize::try_from(asked.limit.get()).unwrap_or(1),
        query: LogQuery {
            unit: asked.unit,
            kernel: false,
            priority: asked.priority,
            since_ms: asked.since.map(LogMoment::ms),
            until_ms: asked.until.map(LogMoment::ms),
            grep: asked.grep,
            boot: asked.boot,
            order: order(asked.cursor.as_ref(), asked.before),
            cursor: asked.cursor,
        },
    };
    search_for(&journal, &search, &cx).await
}

/// Waits until a line is written that fits, at most 45 s, and returns it; or, with the cursor of an earlier answer,
/// the first that fits behind it, so that none is missed in between. Without one in time it says so: call again with
/// the same cursor. `logs_query` returns what was written before.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// A running container; the host when absent.
    container: Option<ContainerName>,
    /// Only lines of this unit and about it.
    unit: Option<UnitName>,
    /// Only lines at least as severe.
    priority: Option<LogPriority>,
    /// A regular expression (PCRE2) for the message; lower case alone fits upper case too.
    grep: Option<LogPattern>,
    /// A cursor from an earlier answer: lines behind it count, and not only those from now on.
    cursor: Option<LogCursor>,
    /// Seconds to wait at most, 1 to 45.
    #[serde(default)]
    timeout_s: Number<1, 45, 30>,
}

#[derive(Serialize, JsonSchema)]
struct Waited {
    /// Whether a line came in time.
    found: bool,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<LogLine>,
    /// Where to go on from: the line's place, or the cursor that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_cursor: Option<LogCursor>,
}

async fn wait(journal: Arc<Journal>, asked: Wait, cx: Cx) -> Result<Waited> {
    let search = LogSearch {
        container: asked.container,
        most: 1,
        query: LogQuery {
            unit: asked.unit,
            priority: asked.priority,
            grep: asked.grep,
            cursor: asked.cursor.clone(),
            ..LogQuery::default()
        },
    };
    let journal = journal.seen_by(&cx.caller().reach, cx.reference());
    let line = journal.wait(search, asked.timeout_s.seconds()).await;
    let line = line.map_err(failed)?;
    let cursor = line.as_ref().map(|line| line.cursor.clone());
    Ok(Waited {
        found: line.is_some(),
        end_cursor: cursor.or(asked.cursor),
        line,
    })
}

/// Returns the newest messages of the host's kernel, the oldest of them first: disks and networks that fail, processes
/// that were killed because memory was short. `start_cursor` with `before: true` returns older ones, `end_cursor`
/// newer ones. What services write is not among them: `logs_query` searches that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Kernel {
    /// Only lines at least as severe.
    priority: Option<LogPriority>,
    /// A regular expression (PCRE2) for the message; lower case alone fits upper case too.
    grep: Option<LogPattern>,
    /// Only this boot: `0` for this one, `-1` for the one before, or an id from `boot_list`.
    boot: Option<BootName>,
    /// A cursor from an earlier answer.
    cursor: Option<LogCursor>,
    /// Lines before the cursor, and not those behind it.
    #[serde(default)]
    before: bool,
    /// How many lines at most.
    #[serde(default)]
    limit: Limit,
}

async fn kernel(journal: Arc<Journal>, asked: Kernel, cx: Cx) -> Result<Answer> {
    let search = LogSearch {
        container: None,
        most: usize::try_from(asked.limit.get()).unwrap_or(1),
        query: LogQuery {
            kernel: true,
            priority: asked.priority,
            grep: asked.grep,
            boot: asked.boot,
            order: order(asked.cursor.as_ref(), asked.before),
            cursor: asked.cursor,
            ..LogQuery::default()
        },
    };
    search_for(&journal, &search, &cx).await
}

/// Lists the boots that the journal of the host, or with `container` of a container, still has lines of, the newest
/// first, each with the times of its first and its last line. Boots whose lines were dropped are not known any more.
/// Their ids and numbers are what `boot` takes in `logs_query`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Boots {
    /// A running container; the host when absent.
    container: Option<ContainerName>,
}

/// The most boots that are listed.
const MAX_BOOTS: usize = 100;

#[derive(Serialize, JsonSchema)]
struct KnownBoots {
    /// The newest first.
    boots: Vec<Boot>,
    /// How many there are in all.
    total: usize,
    /// Whether some are not shown.
    truncated: bool,
}

async fn boots(journal: Arc<Journal>, Boots { container }: Boots, cx: Cx) -> Result<KnownBoots> {
    let journal = journal.seen_by(&cx.caller().reach, cx.reference());
    let mut boots = journal.boots(container.as_ref()).await.map_err(failed)?;
    let total = boots.len();
    boots.truncate(MAX_BOOTS);
    Ok(KnownBoots {
        truncated: boots.len() < total,
        boots,
        total,
    })
}

/// Without a cursor the newest are wanted.
fn order(cursor: Option<&LogCursor>, before: bool) -> LogOrder {
    if cursor.is_some() && !before {
        LogOrder::Newer
    } else {
        LogOrder::Older
    }
}

async fn search_for(journal: &Journal, search: &LogSearch, cx: &Cx) -> Result<Answer> {
    let journal = journal.seen_by(&cx.caller().reach, cx.reference());
    let page = journal.search(search).await.map_err(failed)?;
    answer(&page)
}

/// The lines as a log shows them; as JSON they would be three times as long.
fn answer(page: &LogPage) -> Result<Answer> {
    let mut text = String::new();
    // Writing to a string does not fail.
    for line in &page.lines {
        let _ = writeln!(text, "{line}");
    }
    if page.lines.is_empty() {
        text.push_str("No line fits.\n");
    }
    let more = if page.truncated { "yes" } else { "no" };
    let _ = write!(text, "-- more: {more}");
    for (name, cursor) in [("start", &page.start_cursor), ("end", &page.end_cursor)] {
        if let Some(cursor) = cursor {
            let _ = write!(text, "\n-- {name}_cursor: {}", cursor.as_str());
        }
    }
    let data = serde_json::to_value(page).map_err(|cause| {
        ToolError::new(format!("the answer cannot be written as JSON: {cause}"))
    })?;
    Ok(Answer::text(text).with_data(&data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let asked: Query = serde_json::from_str("{}").unwrap();
        assert_eq!((asked.limit.get(), asked.before), (50, false));
        assert_eq!(order(None, false), LogOrder::Older);
        let asked: Query = serde_json::from_str(
            r#"{"unit":"a.service","priority":"err","since":"2h","cursor":"s=1","limit":7}"#,
        )
        .unwrap();
        assert_eq!(order(asked.cursor.as_ref(), false), LogOrder::Newer);
        assert_eq!(order(asked.cursor.as_ref(), true), LogOrder::Older);
        for bad in [
            r#"{"unit":"nginx"}"#,
            r#"{"priority":"loud"}"#,
            r#"{"since":"a while"}"#,
            r#"{"cursor":"--merge "}"#,
            r#"{"boot":"--all"}"#,
            r#"{"grep":"a\nb"}"#,
            r#"{"limit":201}"#,
            r#"{"container":"../x"}"#,
        ] {
            assert!(serde_json::from_str::<Query>(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Wait>(r#"{"timeout_s":46}"#).is_err());
    }
}
