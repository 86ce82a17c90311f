//! `container_logs`: the journal, console log or LXC log of a container.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    BackendError, BootName, ContainerRef, ErrorKind, Journal, LogCursor, LogFile, LogOrder,
    LogPart, LogQuery, LogSearch, LogSource, Lxc, RuntimeKind,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The sources of container logs.
pub struct ContainerLogs {
    lxc: Arc<Lxc>,
    journal: Arc<Journal>,
}

/// The toolset.
pub fn tools(lxc: Arc<Lxc>, journal: Arc<Journal>) -> Toolset<ContainerLogs> {
    Toolset::new(Arc::new(ContainerLogs { lxc, journal }))
        .with_name("containers")
        .tool("container_logs", Risk::Read, logs)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Container logs")
        .startos("package.logs", &[("id", "container"), ("limit", "lines")])
}

/// Show the last lines of a container's log: what it printed (Docker, Podman), else its journal, its console, or LXC's
/// log. Pass an answer's `cursor` or `next_offset` to get only newer lines, or its `start_cursor` and `before: true`
/// for older ones. `logs_query` searches the journal.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Logs {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The log to read; default: the first available.
    ///
    /// LXC's log shows why a start failed.
    source: Option<LogSource>,
    /// The number of lines, at most 1000.
    #[serde(default)]
    lines: BoundedNumber<1, 1000, 100>,
    /// Journal and output only: return lines after this cursor of an earlier answer.
    cursor: Option<LogCursor>,
    /// Journal and output only: return lines before the cursor, not after it.
    #[serde(default)]
    before: bool,
    /// Journal only: `0` (current), `-1` (previous), or the id of a boot.
    boot: Option<BootName>,
    /// Console and LXC logs only: the byte to start at.
    offset: Option<u64>,
}

async fn logs(on: Arc<ContainerLogs>, asked: Logs, cx: Cx) -> Result<LogPart> {
    // Only a journal has cursors and boots: another log could not honour them.
    let of_journal = asked.cursor.is_some() || asked.boot.is_some();
    let default = match asked.container.runtime() {
        RuntimeKind::Lxc => of_journal.then_some(LogSource::Journal),
        RuntimeKind::Docker | RuntimeKind::Podman | RuntimeKind::DockerInLxc => {
            Some(LogSource::Output)
        }
    };
    let named = asked.source.or(default);
    if let Some(source) = named {
        return log(&on, &asked, source, &cx).await.map_err(failed);
    }
    match log(&on, &asked, LogSource::Journal, &cx).await {
        Err(cause) if matches!(cause.kind, ErrorKind::NotFound | ErrorKind::Unavailable) => {
            return Err(failed(cause));
        }
        Ok(part) if !part.text.is_empty() => {
            return Ok(part);
        }
        // The container does not run, or has no journal.
        Ok(_) | Err(_) => {}
    }
    match log(&on, &asked, LogSource::Console, &cx).await {
        Ok(part) => Ok(part),
        Err(_) => log(&on, &asked, LogSource::Lxc, &cx).await.map_err(failed),
    }
}

async fn log(
    on: &ContainerLogs,
    asked: &Logs,
    source: LogSource,
    cx: &Cx,
) -> std::result::Result<LogPart, BackendError> {
    let log = match source {
        LogSource::Journal => return journal(&on.journal, asked, cx).await,
        LogSource::Console => LogFile::Console,
        LogSource::Lxc => LogFile::Lxc,
        LogSource::Output => return printed(on, asked, cx).await,
    };
    let lxc = on.lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.log_file(&asked.container, log, asked.lines.get(), asked.offset)
        .await
}

/// Reads what a container of Docker or Podman printed.
async fn printed(
    on: &ContainerLogs,
    asked: &Logs,
    cx: &Cx,
) -> std::result::Result<LogPart, BackendError> {
    let lxc = on.lxc.view_for(&cx.caller().reach, cx.reference());
    let cursor = asked.cursor.clone();
    let (after, before) = if asked.before {
        (None, cursor)
    } else {
        (cursor, None)
    };
    lxc.printed(&asked.container, asked.lines.get(), after, before)
        .await
}

/// Reads the last lines of a journal, or the first ones after a cursor.
async fn journal(
    journal: &Journal,
    asked: &Logs,
    cx: &Cx,
) -> std::result::Result<LogPart, BackendError> {
    let cursor = asked.cursor.clone();
    let search = LogSearch {
        container: Some(asked.container.clone()),
        most: usize::try_from(asked.lines.get()).unwrap_or(1),
        query: LogQuery {
            order: if cursor.is_some() && !asked.before {
                LogOrder::Newer
            } else {
                LogOrder::Older
            },
            boot: asked.boot.clone(),
            cursor: cursor.clone(),
            ..LogQuery::default()
        },
    };
    let journal = journal.view_for(&cx.caller().reach, cx.reference());
    let page = journal.search(&search).await?;
    let mut text = String::new();
    for line in &page.lines {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{line}");
    }
    Ok(LogPart {
        source: LogSource::Journal,
        text,
        truncated: page.truncated,
        start_cursor: page.start_cursor,
        cursor: page.end_cursor.or(cursor),
        offset: None,
        next_offset: None,
    })
}
