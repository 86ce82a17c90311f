//! `logs_*`, `kernel_logs`, `boot_list` and `host_uptime_history`: the journals.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use gatewren_host::backends::{
    Boot, BootName, ContainerRef, Journal, LogCursor, LogLine, LogMoment, LogOrder, LogPage,
    LogPattern, LogPriority, LogQuery, LogSearch, UnitName, UptimeHistory,
};
use gatewren_wire::registry::{Answer, Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(journal: Arc<Journal>) -> Toolset<Journal> {
    Toolset::new(journal)
        .with_name("logs")
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
        .titled("Wait for a log line")
        .tool("boot_list", Risk::Read, boots)
        .about(Scope::HostOr("container"))
        .through(HelperClass::HostLogs)
        .or_through(HelperClass::LxcReads)
        .titled("List boots")
        .tool("host_uptime_history", Risk::Read, uptime)
        .about(Scope::Host)
        .through(HelperClass::HostLogs)
        .titled("When the host was up")
}

/// The tool that needs no journal.
pub fn kernel_tools(journal: Arc<Journal>) -> Toolset<Journal> {
    Toolset::new(journal)
        .with_name("logs")
        .answering("kernel_logs", Risk::Read, kernel)
        .about(Scope::Host)
        .through(HelperClass::HostLogs)
        .titled("Kernel messages")
        .returning::<LogPage>()
        .startos("server.kernel-logs", &[])
}

/// Maximum lines in an answer; long lines reduce it.
type Limit = BoundedNumber<1, 200, 50>;

/// Search the journal of the host, or of a container with systemd. Returns the newest matching lines, oldest first.
/// Page to older lines with `start_cursor` and `before: true`, to newer ones with `end_cursor`. `logs_wait` waits for a
/// new line.
///
/// Recognised secrets are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Default: the host.
    ///
    /// A container must run.
    container: Option<ContainerRef>,
    /// Only lines written by or about this unit.
    unit: Option<UnitName>,
    /// This severity or higher.
    priority: Option<LogPriority>,
    /// Start: a time (RFC 3339), or an age such as `30min`, `2h` or `7d`.
    since: Option<LogMoment>,
    /// End; same format.
    until: Option<LogMoment>,
    /// PCRE2 regular expression for the message; an all-lowercase one ignores case.
    grep: Option<LogPattern>,
    /// Only this boot: `0` (current), `-1` (previous), or its id. `boot_list` lists the ids.
    boot: Option<BootName>,
    /// A cursor from an earlier answer.
    cursor: Option<LogCursor>,
    /// Return lines before the cursor, not after.
    #[serde(default)]
    before: bool,
    /// Maximum lines.
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
            most: None,
        },
    };
    search_for(&journal, &search, &cx).await
}

/// Wait for a matching new line, at most 45 s, and return it. With a cursor from an earlier answer, returns the first
/// match after it, so no line is missed. On timeout, says so: call again with the same cursor. `logs_query` returns
/// earlier lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Default: the host.
    ///
    /// A container must run.
    container: Option<ContainerRef>,
    /// Only lines written by or about this unit.
    unit: Option<UnitName>,
    /// This severity or higher.
    priority: Option<LogPriority>,
    /// PCRE2 regular expression for the message; an all-lowercase one ignores case.
    grep: Option<LogPattern>,
    /// A cursor from an earlier answer: match lines after it, not only new ones.
    cursor: Option<LogCursor>,
    /// Timeout in seconds, 1 to 45.
    #[serde(default)]
    timeout_s: BoundedNumber<1, 45, 30>,
}

#[derive(Serialize, JsonSchema)]
struct LogWaitResult {
    /// Whether a line matched.
    found: bool,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<LogLine>,
    /// Cursor to continue from: the line's, or the one given.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_cursor: Option<LogCursor>,
}

async fn wait(journal: Arc<Journal>, asked: Wait, cx: Cx) -> Result<LogWaitResult> {
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
    let journal = journal.view_for(&cx.caller().reach, cx.reference());
    let line = journal.wait(search, asked.timeout_s.seconds()).await;
    let line = line.map_err(failed)?;
    let cursor = line.as_ref().map(|line| line.cursor.clone());
    Ok(LogWaitResult {
        found: line.is_some(),
        end_cursor: cursor.or(asked.cursor),
        line,
    })
}

/// Show the host's newest kernel messages, oldest first: disk and network failures, out-of-memory kills. `logs_query`
/// has those of services.
///
/// Page to older lines with `start_cursor` and `before: true`, to newer ones with `end_cursor`. Without a journal, only those of this boot, and no `grep`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Kernel {
    /// This severity or higher.
    priority: Option<LogPriority>,
    /// PCRE2 regular expression for the message; an all-lowercase one ignores case.
    grep: Option<LogPattern>,
    /// Only this boot: `0` (current), `-1` (previous), or its id. `boot_list` lists the ids.
    boot: Option<BootName>,
    /// A cursor from an earlier answer.
    cursor: Option<LogCursor>,
    /// Return lines before the cursor, not after.
    #[serde(default)]
    before: bool,
    /// Maximum lines.
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

/// List the boots in the journal of the host, or of a `container`, newest first, with the times of their first and last
/// lines. Pass a boot's id or number as `boot` to `logs_query`.
///
/// Boots without remaining lines are not listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Boots {
    /// Default: the host.
    ///
    /// A container must run.
    container: Option<ContainerRef>,
}

/// The maximum number of listed boots.
const MAX_BOOTS: usize = 100;

#[derive(Serialize, JsonSchema)]
struct KnownBoots {
    /// Newest first.
    boots: Vec<Boot>,
    /// Total number of boots.
    total: usize,
    /// Whether some are left out.
    truncated: bool,
}

async fn boots(journal: Arc<Journal>, Boots { container }: Boots, cx: Cx) -> Result<KnownBoots> {
    let journal = journal.view_for(&cx.caller().reach, cx.reference());
    let mut boots = journal.boots(container.as_ref()).await.map_err(failed)?;
    let total = boots.len();
    boots.truncate(MAX_BOOTS);
    Ok(KnownBoots {
        truncated: boots.len() < total,
        boots,
        total,
    })
}

/// Show when the host was up, how long it was down between boots, and whether each boot ended by a shutdown or without
/// one (crash, reset, power failure).
///
/// For the reason of a crash, pass its `boot` to `kernel_logs` or `logs_query`. Goes back as far as the journal.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Uptime {
    /// Maximum boots, newest first.
    #[serde(default)]
    limit: BoundedNumber<1, 100, 20>,
}

async fn uptime(journal: Arc<Journal>, Uptime { limit }: Uptime, cx: Cx) -> Result<UptimeHistory> {
    let journal = journal.view_for(&cx.caller().reach, cx.reference());
    let limit = usize::try_from(limit.get()).unwrap_or(1);
    let history = journal.uptime_history(limit).await.map_err(failed)?;
    history.ok_or_else(|| ToolError::new("the host's journal has no lines").into())
}

/// Without a cursor, the newest lines are returned.
fn order(cursor: Option<&LogCursor>, before: bool) -> LogOrder {
    if cursor.is_some() && !before {
        LogOrder::Newer
    } else {
        LogOrder::Older
    }
}

async fn search_for(journal: &Journal, search: &LogSearch, cx: &Cx) -> Result<Answer> {
    let journal = journal.view_for(&cx.caller().reach, cx.reference());
    let page = journal.search(search).await.map_err(failed)?;
    Ok(answer(&page, cx))
}

/// The lines as plain text; JSON would be three times as long.
fn answer(page: &LogPage, cx: &Cx) -> Answer {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    for line in &page.lines {
        let _ = writeln!(text, "{line}");
    }
    if page.lines.is_empty() {
        text.push_str("No line matches.\n");
    }
    let more = if page.truncated { "yes" } else { "no" };
    let _ = write!(text, "-- more: {more}");
    for (name, cursor) in [("start", &page.start_cursor), ("end", &page.end_cursor)] {
        if let Some(cursor) = cursor {
            let _ = write!(text, "\n-- {name}_cursor: {}", cursor.as_str());
        }
    }
    Answer::text(text).with_data_of_text(page, &["lines"], cx)
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
