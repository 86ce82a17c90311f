//! The page of one container: its usage over time, its ports, what happened to it, its log, snapshots and backups.

use std::collections::HashMap;

use maud::{Markup, html};

use super::call_table::calls_table;
use super::change_table::ListedChanges;
use super::container_action::buttons;
use super::container_host_parts::host_parts;
use super::container_in_state::ContainerInState;
use super::container_parts::{container_path, description, since, since_words, status_tag};
use super::container_ports::ports_section;
use super::container_texts;
use super::header::Tab;
use super::page_error::PageError;
use super::parts::name;
use super::site::{OwnerSite, PageResult, SignedInRequest};
use super::status_times::status_times;
use super::usage_charts::{ChartSpan, container_charts};
use gatewren_store::vault::{AuditCall, CallFilter};

/// The number of listed calls.
const CALLS: usize = 10;

/// The number of calls that are read to name the authors of changes.
const READ_CALLS: u32 = 40;

/// The number of listed changes.
const CHANGES: usize = 10;

/// Renders the page.
pub async fn page(asked: &SignedInRequest<'_>, part: &str) -> PageResult {
    let site = asked.site;
    let found = ContainerInState::of(site, part)?;
    let (id, status) = (found.id.as_str(), found.status());
    let entry = found.entry().ok_or(PageError::Absent)?;
    let span = ChartSpan::named(&asked.visit.query("period").unwrap_or_default());
    let (calls, run_after) = calls_about(site, id).await?;
    let callers = calls.iter().filter_map(|call| {
        let caller = call.agent_name.as_ref().or(call.agent.as_ref())?;
        Some((call.call.clone(), caller.clone()))
    });
    let changes = ListedChanges {
        label: container_texts::STATES,
        scope: found.place(),
        most: CHANGES,
        callers: callers.collect::<HashMap<_, _>>(),
    };
    let (charts, host_parts) = tokio::join!(
        container_charts(site, id, span),
        host_parts(&site.host, &found.id)
    );
    let since_ms = since(entry, status_times(site)?.get(id).copied());
    let all_calls: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let content = html! {
        h1 { (name(id)) " " (status_tag(status)) }
        (asked.render_notice())
        p { (since_words(status, since_ms)) }
        (description(id, entry))
        (buttons(asked, &found))
        section { h2 { (container_texts::USAGE) } (periods(id, span)) (charts) }
        (ports_section(entry, asked.visit.host()))
        section { h2 { (container_texts::STATES) } (changes.render(site)?) }
        section {
            h2 { (container_texts::CALLS) }
            (calls_table(container_texts::CALLS, calls.get(..CALLS).unwrap_or(&calls), run_after))
            p { a href=(format!("/owner/activity?target={all_calls}")) { (container_texts::ALL_CALLS) } }
        }
        (host_parts)
    };
    asked.page(Tab::Containers, id, true, content)
}

/// Renders the choice of the period of the charts. Not a `nav`: that one is the bar of a phone.
fn periods(id: &str, current: ChartSpan) -> Markup {
    html! {
        div class="shortcuts row" role="group" aria-label=(container_texts::PERIODS) {
            @for span in ChartSpan::ALL {
                @let path = format!("{}?period={}", container_path(id), span.word());
                a class="tag" href=(path) aria-current=[(span == current).then_some("true")] { (span.title()) }
            }
        }
    }
}

/// The newest calls about a container, on a blocking thread: the audit has no index of targets.
async fn calls_about(site: &OwnerSite, id: &str) -> Result<(Vec<AuditCall>, i64), PageError> {
    let readers = site.audit.clone();
    let wanted = CallFilter {
        target: Some(id.to_owned()),
        limit: READ_CALLS,
        ..CallFilter::default()
    };
    let read = move || readers.read(|audit| Ok((audit.calls(&wanted)?, audit.run_after()?)));
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|_| PageError::Unavailable)?
}
