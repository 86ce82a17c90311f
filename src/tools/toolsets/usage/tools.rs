//! `server_history` and `container_history`: usage over time.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{UsageColumns, UsageSubject, points};
use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_base::sys::now_ms;
use gatewren_host::backends::{ContainerRef, LogMoment, Lxc};
use gatewren_store::history::{KEPT_QUARTERS_S, UsageHistory, UsageMetric, UsageRange};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The most metrics of one answer, which keep it below 40 kB.
const MAX_METRICS: usize = 4;

/// The metrics of an answer without a choice.
const USUAL: [UsageMetric; 2] = [UsageMetric::CpuPercent, UsageMetric::MemoryBytes];

/// What the tools read.
pub struct HistorySources {
    /// The containers, to distinguish a removed one from one that never existed.
    pub lxc: Arc<Lxc>,
    /// The history.
    pub history: UsageHistory,
}

/// The tool about the host.
pub fn server_tools(sources: Arc<HistorySources>) -> Toolset<HistorySources> {
    Toolset::new(sources)
        .with_name("server")
        .tool("server_history", Risk::Read, of_host)
        .about(Scope::Host)
        .titled("Server usage over time")
}

/// The tool about containers.
pub fn container_tools(sources: Arc<HistorySources>) -> Toolset<HistorySources> {
    Toolset::new(sources)
        .with_name("containers")
        .tool("container_history", Risk::Read, of_container)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Container usage over time")
}

/// Show the host's usage over time: CPU in percent of all CPUs, memory, disks, network, pressure, load.
/// `server_metrics` measures now.
///
/// Minutes are kept 24 h, 15 minutes 30 d. Mean and maximum of each point; times without samples are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfHost {
    /// The begin: RFC 3339, or how long ago, such as 2h or 7d; default: 24h.
    since: Option<LogMoment>,
    /// The end; default: now.
    until: Option<LogMoment>,
    /// At most 4; default: `cpu_percent` and `memory_bytes`.
    #[serde(default)]
    #[schemars(extend("maxItems" = MAX_METRICS))]
    metrics: Vec<UsageMetric>,
    /// The most points.
    #[serde(default)]
    limit: BoundedNumber<1, 120, 60>,
}

/// Show a container's usage over time: CPU in percent of one CPU, throttling, memory, disks, network, pressure.
/// `container_diagnose` explains why it is slow.
///
/// Minutes are kept 24 h, 15 minutes 30 d. Mean and maximum of each point; times without samples are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfContainer {
    /// The container's name, also of a removed one.
    container: ContainerRef,
    /// The begin: RFC 3339, or how long ago, such as 2h or 7d; default: 24h.
    since: Option<LogMoment>,
    /// The end; default: now.
    until: Option<LogMoment>,
    /// At most 4; default: `cpu_percent` and `memory_bytes`.
    #[serde(default)]
    #[schemars(extend("maxItems" = MAX_METRICS))]
    metrics: Vec<UsageMetric>,
    /// The most points.
    #[serde(default)]
    limit: BoundedNumber<1, 120, 60>,
}

/// The part of a history that a call asks for.
struct AskedPart {
    range: UsageRange,
    metrics: Vec<UsageMetric>,
}

/// The arguments that both tools have.
struct Period {
    since: Option<LogMoment>,
    until: Option<LogMoment>,
    metrics: Vec<UsageMetric>,
    limit: u32,
}

impl Period {
    fn part(self) -> Result<AskedPart> {
        let now_s = now_ms() / 1000;
        let second = |moment: LogMoment| moment.ms() / 1000;
        let until_s = self.until.map_or(now_s, second).min(now_s);
        let since_s = self
            .since
            .map_or_else(|| until_s.saturating_sub(86_400), second);
        if since_s >= until_s {
            return Err(ToolError::new("`since` must be before `until` and before now").into());
        }
        let mut metrics = self.metrics;
        metrics.sort_unstable();
        metrics.dedup();
        if metrics.len() > MAX_METRICS {
            let message = format!("`metrics` may name at most {MAX_METRICS} in one call");
            return Err(ToolError::new(message).into());
        }
        if metrics.is_empty() {
            metrics = USUAL.to_vec();
        }
        let range = UsageRange {
            since_s: since_s
                .max(now_s.saturating_sub(KEPT_QUARTERS_S))
                .min(until_s),
            until_s,
            now_s,
            points: self.limit,
        };
        Ok(AskedPart { range, metrics })
    }
}

async fn of_host(sources: Arc<HistorySources>, asked: OfHost, _: Cx) -> Result<UsageColumns> {
    let part = Period {
        since: asked.since,
        until: asked.until,
        metrics: asked.metrics,
        limit: asked.limit.get(),
    }
    .part()?;
    let points = points(&sources.history, UsageSubject::Host, part.range).await?;
    Ok(UsageColumns::of(&points, &part.metrics))
}

async fn of_container(
    sources: Arc<HistorySources>,
    asked: OfContainer,
    cx: Cx,
) -> Result<UsageColumns> {
    let part = Period {
        since: asked.since,
        until: asked.until,
        metrics: asked.metrics,
        limit: asked.limit.get(),
    }
    .part()?;
    let name = asked.container;
    let reach = &cx.caller().reach;
    let points = if reach.container(name.as_str()) {
        let subject = UsageSubject::Container(name.to_string());
        points(&sources.history, subject, part.range).await?
    } else {
        Vec::new()
    };
    if points.is_empty() {
        // One outside the caller's reach looks like one that never existed; one that exists has no samples yet.
        let lxc = sources.lxc.view_for(reach, cx.reference());
        lxc.status(&name).await.map_err(failed)?;
    }
    Ok(UsageColumns::of(&points, &part.metrics))
}
