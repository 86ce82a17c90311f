//! `container_diagnose`: one look that explains why a container is slow, or does not run.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::evidence::{DiagnosisSources, Evidence};
use super::findings;
use super::log_excerpt::LogExcerpt;
use super::table::MetricOverTime;
use crate::toolsets::failure::failed;
use gatewren_base::sys::{DiskSpace, rfc3339, shorten};
use gatewren_host::backends::{ContainerRef, ContainerState, EngineFacts, Process};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The size of an answer in bytes, as a model reads it; above it the least important parts are left out.
const MAX_BYTES: usize = 8000;

/// The longest command line of a process, in characters.
const COMMAND_CHARS: usize = 80;

/// The longest reason why a part was not read, in characters.
const REASON_CHARS: usize = 200;

/// The toolset.
pub fn tools(sources: Arc<DiagnosisSources>) -> Toolset<DiagnosisSources> {
    Toolset::new(sources)
        .with_name("containers")
        .tool("container_diagnose", Risk::Read, diagnose)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Why a container is slow")
}

/// Explain why a container is slow or not running, in one call: findings, CPU, throttling, memory, disk and pressure
/// now and over the last hour and day, top processes, last errors of its log, and the host. `container_logs` shows more
/// of the log.
///
/// What cannot be read is named.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Diagnose {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

/// What was found.
// The members of the parts are not in the schema: they would be in the list of tools.
#[derive(Serialize, JsonSchema)]
struct Diagnosis {
    /// The container.
    container: ContainerRef,
    /// Its state.
    state: ContainerState,
    /// What was found, a sentence each.
    findings: Vec<String>,
    /// Each metric now, rates over the last 1 to 10 seconds, and its mean and maximum over the last hour and day.
    #[schemars(with = "Map<String, Value>")]
    usage: BTreeMap<&'static str, MetricOverTime>,
    /// How many minutes were sampled in the last hour and day.
    #[schemars(with = "Map<String, Value>")]
    samples: SampleCounts,
    /// The file system of its root directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    root_disk: Option<DiskSpace>,
    /// How its main process ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    ended: Option<EndedProcess>,
    /// Its processes that use the most CPU.
    #[schemars(with = "Vec<Value>")]
    processes: Vec<BusyProcess>,
    /// The last errors in its log, or its last lines if it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    log: Option<LogExcerpt>,
    /// The host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    host: Option<HostUsage>,
    /// Whether something was left out to keep the answer short.
    truncated: bool,
    /// What could not be read, and why.
    not_read: Vec<String>,
}

#[derive(Serialize)]
struct SampleCounts {
    hour: u32,
    day: u32,
}

#[derive(Serialize)]
struct EndedProcess {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

#[derive(Serialize)]
struct BusyProcess {
    pid: i32,
    command: String,
    state: char,
    cpu_percent: f64,
    memory_bytes: u64,
}

#[derive(Serialize)]
struct HostUsage {
    cpus: usize,
    usage: BTreeMap<&'static str, MetricOverTime>,
}

async fn diagnose(
    sources: Arc<DiagnosisSources>,
    Diagnose { container }: Diagnose,
    cx: Cx,
) -> Result<Diagnosis> {
    // Boxed: the future of all parts is large.
    let evidence = Box::pin(sources.read(&container, &cx));
    let evidence = evidence.await.map_err(failed)?;
    let mut diagnosis = explain(container, evidence);
    diagnosis.fit();
    Ok(diagnosis)
}

fn explain(container: ContainerRef, evidence: Evidence) -> Diagnosis {
    let engine = evidence.status.engine.as_ref();
    let mut found = findings::of_state(evidence.status.state, engine);
    found.extend(findings::of_container(&evidence.container));
    if let Some(host) = &evidence.host {
        found.extend(findings::of_host(host));
    }
    if found.is_empty() {
        let words = if evidence.not_read.is_empty() {
            "Nothing unusual was measured."
        } else {
            "Nothing unusual was measured; `not_read` names what is unknown."
        };
        found.push(words.to_owned());
    }
    let usage = &evidence.container.usage;
    let reasons = evidence.not_read.iter();
    Diagnosis {
        container,
        state: evidence.status.state,
        findings: found,
        usage: usage.rows(),
        samples: SampleCounts {
            hour: usage.hour_samples(),
            day: usage.day_samples(),
        },
        root_disk: evidence.container.root_space,
        ended: engine.and_then(ended),
        processes: evidence.processes.iter().map(busy).collect(),
        log: evidence.log,
        host: evidence.host.map(|host| HostUsage {
            cpus: host.cpus,
            usage: host.usage.rows(),
        }),
        truncated: false,
        not_read: reasons.map(|why| shorten(why, REASON_CHARS)).collect(),
    }
}

fn ended(engine: &EngineFacts) -> Option<EndedProcess> {
    engine.exit_code?;
    Some(EndedProcess {
        exit_code: engine.exit_code,
        time: engine.finished_ms.map(rfc3339),
    })
}

fn busy(process: &Process) -> BusyProcess {
    let command = if process.command.is_empty() {
        &process.name
    } else {
        &process.command
    };
    BusyProcess {
        pid: process.pid,
        command: shorten(command, COMMAND_CHARS),
        state: process.state,
        cpu_percent: process.cpu_percent,
        memory_bytes: process.memory_bytes,
    }
}

impl Diagnosis {
    fn fit(&mut self) {
        while self.is_too_long() && self.shorten() {}
    }

    fn is_too_long(&self) -> bool {
        // Plain numbers and strings always serialize.
        let text = serde_json::to_string_pretty(self);
        text.is_ok_and(|text| text.len() > MAX_BYTES)
    }

    /// Leaves out what matters least: old lines of the log, then processes, then the host. False if nothing is left.
    fn shorten(&mut self) -> bool {
        self.truncated = true;
        if let Some(log) = self.log.as_mut().filter(|log| !log.lines.is_empty()) {
            log.lines.remove(0);
            return true;
        }
        self.processes.pop().is_some() || self.host.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_host::backends::LogSource;
    use gatewren_store::history::UsageMetric;

    #[test]
    fn an_answer_is_at_most_eight_kilobytes_however_much_was_found() {
        let row = MetricOverTime {
            now: Some(123_456_789_012.0),
            hour_mean: Some(123_456_789_012.0),
            hour_max: Some(123_456_789_012.0),
            day_mean: Some(123_456_789_012.0),
            day_max: Some(123_456_789_012.0),
        };
        let rows = || UsageMetric::ALL.map(|metric| (metric.name(), row)).into();
        let process = |pid| BusyProcess {
            pid,
            command: "\"".repeat(COMMAND_CHARS),
            state: 'R',
            cpu_percent: 100.0,
            memory_bytes: u64::MAX,
        };
        let mut diagnosis = Diagnosis {
            container: "docker:web".parse().unwrap(),
            state: ContainerState::Running,
            findings: vec!["x".repeat(200); 10],
            usage: rows(),
            samples: SampleCounts {
                hour: 60,
                day: 1440,
            },
            root_disk: None,
            ended: None,
            processes: (0..5).map(process).collect(),
            log: Some(LogExcerpt {
                source: LogSource::Output,
                lines: vec!["\u{1}".repeat(160); 20],
            }),
            host: Some(HostUsage {
                cpus: 4,
                usage: rows(),
            }),
            truncated: false,
            not_read: vec!["x".repeat(REASON_CHARS)],
        };
        assert!(diagnosis.is_too_long());
        diagnosis.fit();
        assert!(!diagnosis.is_too_long() && diagnosis.truncated);
        assert_eq!(diagnosis.findings.len(), 10);
    }
}
