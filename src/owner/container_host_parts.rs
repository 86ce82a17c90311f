//! What a container's page shows from the host itself: the last log lines, the snapshots and the backups.

use std::fmt::Write as _;
use std::time::Duration;

use maud::{Markup, html};
use tokio::time::timeout;

use super::chart::bytes;
use super::container_texts as texts;
use super::owner_host::OwnerHost;
use super::parts::{exact_time, name};
use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::{moment_ms, sanitize_lines};
use gatewren_host::backends::{BackendError, ContainerRef, LogFile, LogOrder, LogQuery, LogSearch};

/// The number of log lines.
const LINES: u32 = 30;

/// The number of listed snapshots, and of backups.
const LISTED: usize = 10;

/// How long the page waits for the host.
const PATIENCE: Duration = Duration::from_secs(3);

/// Renders the parts; each is read while the others are.
pub async fn host_parts(host: &OwnerHost, container: &ContainerRef) -> Markup {
    let (log, snapshots, backups) = tokio::join!(
        in_time(last_lines(host, container)),
        in_time(snapshots(host, container)),
        in_time(backups(host, container)),
    );
    let list = |list: &Result<Vec<ListedCopy>, String>| {
        html! {
            @match list {
                Ok(copies) if copies.is_empty() => p class="soft" { (texts::NONE) },
                Ok(copies) => ul {
                    @for copy in copies.iter().take(LISTED) { li {
                        @if let Some(ms) = copy.made_ms { (exact_time(ms)) " " }
                        (name(&copy.words))
                    } }
                    @if copies.len() > LISTED { li { "+" (copies.len() - LISTED) } }
                },
                Err(why) => (not_ready(why)),
            }
        }
    };
    html! {
        section {
            h2 { (texts::LOG) }
            @match &log {
                Ok(text) if text.trim().is_empty() => p class="soft" { (texts::LOG_EMPTY) },
                Ok(text) => pre tabindex="0" role="region" aria-label=(texts::LOG) { bdi { (sanitize_lines(text)) } },
                Err(why) => (not_ready(why)),
            }
        }
        div class="tiles" {
            section { h2 { (texts::SNAPSHOTS) } (list(&snapshots)) }
            section { h2 { (texts::BACKUPS) } (list(&backups)) }
        }
    }
}

/// A snapshot or a backup.
struct ListedCopy {
    made_ms: Option<u64>,
    words: String,
}

fn not_ready(why: &str) -> Markup {
    html! { p class="soft" { (texts::NOT_READY) " " (name(why)) } }
}

async fn in_time<T>(work: impl Future<Output = Result<T, BackendError>>) -> Result<T, String> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|cause| cause.message),
        Err(_) => Err(texts::TOOK_LONG.to_owned()),
    }
}

/// What a container of an engine printed; of LXC its journal, or else its console.
async fn last_lines(host: &OwnerHost, container: &ContainerRef) -> Result<String, BackendError> {
    if container.runtime() != RuntimeKind::Lxc {
        let part = host.lxc.printed(container, LINES, None, None).await?;
        return Ok(part.text);
    }
    let search = LogSearch {
        container: Some(container.clone()),
        most: LINES as usize,
        query: LogQuery {
            order: LogOrder::Older,
            ..LogQuery::default()
        },
    };
    let of_journal = host.journal.search(&search).await;
    if let Ok(page) = &of_journal
        && !page.lines.is_empty()
    {
        let mut text = String::new();
        for line in &page.lines {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        }
        return Ok(text);
    }
    let console = host.lxc.log_file(container, LogFile::Console, LINES, None);
    match console.await {
        Ok(part) => Ok(part.text),
        Err(_) => of_journal.map(|_| String::new()),
    }
}

async fn snapshots(
    host: &OwnerHost,
    container: &ContainerRef,
) -> Result<Vec<ListedCopy>, BackendError> {
    let found = host.lxc.snapshots(container).await?.into_iter().rev();
    let copies = found.map(|one| ListedCopy {
        made_ms: one.made.as_deref().and_then(moment_ms),
        words: format!("{} {}", one.name, one.comment.unwrap_or_default()),
    });
    Ok(copies.collect())
}

async fn backups(
    host: &OwnerHost,
    container: &ContainerRef,
) -> Result<Vec<ListedCopy>, BackendError> {
    let list = host.backups.list(None).await?;
    let of_it = list
        .backups
        .into_iter()
        .filter(|one| one.container.as_ref() == Some(container));
    let copies = of_it.map(|one| ListedCopy {
        made_ms: moment_ms(&one.made),
        words: format!("{} {}", one.backup, size(one.archive_bytes)),
    });
    Ok(copies.collect())
}

#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
fn size(archive_bytes: Option<u64>) -> String {
    archive_bytes.map_or_else(String::new, |count| bytes(count as f64))
}
