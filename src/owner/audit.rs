//! The audit page: the recorded calls, with agent and outcome, and the verification of the record.

use std::ops::ControlFlow;

use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use maud::{Markup, html};
use serde_json::Value;

use super::activity_filter::{ActivityFilter, filter_form};
use super::call_table::runs_table;
use super::frame::add_guards;
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{exact_time, name, notice};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_base::sys::sanitize_lines;
use gatewren_gate::http::ResponseBody;
use gatewren_gate::owner_actions::{CallStatus, export_header};
use gatewren_store::vault::{AuditCall, AuditLine, ChainVerification, ExactArguments};

/// The number of calls that are listed; an earlier time shows earlier ones.
const LISTED: u32 = 100;

/// The maximum size of an export in bytes; the command line has no such limit.
const MAX_EXPORT: usize = 64 << 20;

/// Renders the page.
pub async fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let ActivityFilter {
        calls: wanted,
        wrong,
    } = ActivityFilter::of(asked, LISTED);
    let verify = asked.visit.query("verify").is_some();
    let readers = asked.site.audit.clone();
    // On a blocking thread: verification reads every row.
    let read = tokio::task::spawn_blocking(move || {
        readers.read(|audit| {
            let chain = verify.then(|| audit.verify()).transpose()?;
            Ok::<_, PageError>((audit.calls(&wanted)?, audit.run_after()?, chain))
        })
    });
    let (calls, run_after, chain) = read.await.map_err(|_| PageError::Unavailable)??;
    let content = html! {
        h1 { (texts::ACTIVITY) }
        @if let Some(words) = &wrong { (notice(words, true)) }
        @if let Some(chain) = &chain { (chain_words(chain)) }
        (filter_form(asked)?)
        details class="more" {
            summary class="button plain" aria-label=(MENU) title=(MENU) { "⋯" }
            p class="row" {
                a class="button plain" href="/owner/activity?verify=1" { (texts::VERIFY) }
                a class="button plain" href="/owner/activity/export" download="gatewren-audit.jsonl" { (texts::EXPORT) }
            }
        }
        (runs_table(texts::ACTIVITY, &calls, run_after))
        @if calls.len() >= LISTED as usize { p class="soft" { (texts::MORE_CALLS) } }
    };
    asked.page(Tab::Activity, texts::ACTIVITY, false, content)
}

fn chain_words(chain: &ChainVerification) -> Markup {
    match chain {
        ChainVerification::Intact { rows, trimmed } => {
            let words = format!(
                "{} {rows} {} {trimmed}",
                texts::CHAIN_INTACT,
                texts::CHAIN_TRIMMED
            );
            notice(&words, false)
        }
        ChainVerification::Broken { seq, fault } => notice(
            &format!("{} {seq}: {}", texts::CHAIN_BROKEN, fault.as_str()),
            true,
        ),
    }
}

fn text(text: Option<&String>) -> Markup {
    name(text.map_or("-", String::as_str))
}

fn ms(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

/// The name of the menu.
const MENU: &str = "More: verify the chain, or export all";

/// The name of the reason that the agent gave for a call.
const REASON: &str = "Reason";

/// Renders one call in full.
pub fn call(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    let (call, run_after) = asked.site.audit.read(|audit| {
        let call = audit.call(id)?.ok_or(PageError::Absent)?;
        Ok::<_, PageError>((call, audit.run_after()?))
    })?;
    let status = CallStatus::of(&call, run_after);
    let end = call.ended.as_ref();
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let rows = [
        (texts::ID, Some(call.call.clone())),
        (texts::ROW, Some(call.seq.to_string())),
        (texts::REQUEST, call.request.clone()),
        (
            texts::AGENT,
            call.agent_name.clone().or_else(|| call.agent.clone()),
        ),
        (texts::SPACE, call.space.clone()),
        (texts::SESSION, call.session.clone()),
        (texts::ADDRESS, call.address.clone()),
        (texts::TOOL, call.tool.clone()),
        (texts::RISK, call.risk.clone()),
        (texts::TARGET, call.target.clone()),
        (REASON, call.reason.clone()),
        (texts::MODE, call.mode.clone()),
        (texts::DECISION, call.decision.clone()),
        (texts::OUTCOME, Some(status.words().to_owned())),
        (texts::ERROR, end.and_then(|end| end.error.clone())),
        (texts::TOOK_MS, number(end.and_then(|end| end.duration_ms))),
        (texts::REVISION, number(end.and_then(|end| end.revision))),
        ("SHA-256", call.arguments_sha256.clone()),
    ];
    let content = html! {
        h1 { (text(call.tool.as_ref())) }
        section {
            dl {
                dt { (texts::BEGAN) } dd { (exact_time(ms(call.at_ms))) }
                @if let Some(end) = end { dt { (texts::ENDED_AT) } dd { (exact_time(ms(end.at_ms))) } }
                @for (what, value) in rows { @if let Some(value) = value { dt { (what) } dd { (name(&value)) } } }
                @if let Some(change) = &call.change {
                    @if change.starts_with("sch_") {
                        dt { (texts::SCHEDULE) } dd { code { (change) } }
                    } @else {
                        dt { (texts::CHANGE) } dd { a href=(format!("/owner/changes/{change}")) { (change) } }
                    }
                }
            }
            h2 { (texts::ARGUMENTS) }
            pre { bdi { (sanitize_lines(&pretty_print(call.arguments.as_deref().unwrap_or("{}")))) } }
            (exact_words(&call))
        }
        p { a href="/owner/activity" { (texts::ACTIVITY) } }
    };
    asked.page(Tab::Activity, texts::ACTIVITY, false, content)
}

/// Renders how to see the exact arguments, if the page does not show them in full.
fn exact_words(call: &AuditCall) -> Markup {
    html! {
        @match &call.exact {
            ExactArguments::Shown => {}
            ExactArguments::Sealed(_) => {
                p { (texts::EXACT_SEALED) }
                pre { "sudo gatewren audit show " (call.seq) " --exact" }
            }
            ExactArguments::None(why) => p class="soft" { (texts::EXACT_NONE) " " (name(why)) }
        }
    }
}

fn pretty_print(arguments: &str) -> String {
    let value: Option<Value> = serde_json::from_str(arguments).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    text.unwrap_or_else(|| arguments.to_owned())
}

/// Returns every row with its hashes, as `gatewren audit export` prints them.
pub fn export(asked: &SignedInRequest<'_>) -> PageResult {
    let (mut lines, mut is_whole) = (Vec::new(), true);
    let take = |line| {
        let value = match line {
            AuditLine::Beginning(beginning) => export_header(&beginning),
            AuditLine::Row(row) => Value::Object(row),
        };
        lines.extend_from_slice(value.to_string().as_bytes());
        lines.push(b'\n');
        is_whole = lines.len() <= MAX_EXPORT;
        if is_whole {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let readers = &asked.site.audit;
    readers.read(|audit| audit.rows(None, take))?;
    if !is_whole {
        return Err(PageError::Refused(texts::LARGE_EXPORT.to_owned()));
    }
    let mut response = Response::new(ResponseBody::whole(lines));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let name = HeaderValue::from_static("attachment; filename=\"gatewren-audit.jsonl\"");
    headers.insert(CONTENT_DISPOSITION, name);
    add_guards(&mut response);
    Ok(response)
}
