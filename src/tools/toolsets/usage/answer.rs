//! A history as an answer: columns, so that many points stay short.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::spawn_blocking;
use tracing::warn;

use gatewren_base::sys::rfc3339;
use gatewren_store::history::{UsageHistory, UsageMetric, UsagePoint, UsageRange};
use gatewren_wire::registry::{Result, ToolError};

/// The history of some metrics.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageColumns {
    /// The length of a point in seconds.
    pub step_s: u64,
    /// The begin of each point; a time without samples has no point.
    pub times: Vec<String>,
    /// By metric the value of each point; null where it was not measured.
    // Its members are not in the schema: they would be in the list of tools.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub metrics: BTreeMap<&'static str, MetricColumns>,
}

/// The values of one metric.
#[derive(Debug, Serialize)]
pub struct MetricColumns {
    /// The mean of each point.
    pub mean: Vec<Option<f64>>,
    /// The maximum of each point.
    pub max: Vec<Option<f64>>,
}

/// Whose history is read.
#[derive(Debug, Clone)]
pub enum UsageSubject {
    /// The host's.
    Host,
    /// That of the container with this reference.
    Container(String),
}

impl UsageColumns {
    /// Returns the columns of these metrics.
    pub fn of(points: &[UsagePoint], metrics: &[UsageMetric]) -> Self {
        let column = |metric: &UsageMetric| {
            let mean = points.iter().map(|point| point.mean.get(*metric));
            let max = points.iter().map(|point| point.max.get(*metric));
            let columns = MetricColumns {
                mean: mean.map(|value| value.map(rounded)).collect(),
                max: max.map(|value| value.map(rounded)).collect(),
            };
            (metric.name(), columns)
        };
        let begin = |point: &UsagePoint| rfc3339(point.from_s.saturating_mul(1000));
        Self {
            step_s: points.first().map_or(0, |point| point.length_s),
            times: points.iter().map(begin).collect(),
            metrics: metrics.iter().map(column).collect(),
        }
    }
}

/// Reads a history on a blocking thread.
pub async fn read(
    history: &UsageHistory,
    subject: UsageSubject,
    range: UsageRange,
) -> std::result::Result<Vec<UsagePoint>, String> {
    let history = history.clone();
    let read = spawn_blocking(move || match subject {
        UsageSubject::Host => history.host(range),
        UsageSubject::Container(name) => history.container(&name, range),
    });
    let cause = match read.await {
        Ok(Ok(points)) => return Ok(points),
        Ok(Err(cause)) => cause.to_string(),
        Err(_) => "the task that reads it was aborted".to_owned(),
    };
    // The cause has a path of the host, which not every caller may see.
    warn!(%cause, "the usage history could not be read");
    Err("the usage history could not be read; the server's log has the cause".to_owned())
}

/// The same for a tool.
pub async fn points(
    history: &UsageHistory,
    subject: UsageSubject,
    range: UsageRange,
) -> Result<Vec<UsagePoint>> {
    let read = read(history, subject, range).await;
    read.map_err(|cause| ToolError::new(cause).into())
}

/// Rounds to one digit after the point below 1000, and else to a whole number.
pub fn rounded(value: f64) -> f64 {
    if value < 1000.0 {
        (value * 10.0).round() / 10.0
    } else {
        value.round()
    }
}
