//! The usage of one container, or of the host: each metric now, over the last hour and over the last day.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::{UsageSubject, read, rounded};
use gatewren_base::sys::now_ms;
use gatewren_store::history::{UsageHistory, UsageMetric, UsagePoint, UsageRange, UsageSample};

/// The seconds of an hour and of a day.
const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;

/// One metric; values that were not measured are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MetricOverTime {
    /// Now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<f64>,
    /// The mean of the last hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour_mean: Option<f64>,
    /// The maximum of the last hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour_max: Option<f64>,
    /// The mean of the last day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_mean: Option<f64>,
    /// The maximum of the last day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_max: Option<f64>,
}

/// The usage over time.
#[derive(Debug, Clone, Default)]
pub struct UsageTable {
    /// The values now.
    pub now: UsageSample,
    /// The samples of the last hour, summed up.
    pub hour: Option<UsagePoint>,
    /// The samples of the last day, summed up.
    pub day: Option<UsagePoint>,
}

impl UsageTable {
    /// Reads the last hour and day.
    pub async fn read(history: &UsageHistory, subject: UsageSubject) -> Result<Self, String> {
        let now_s = now_ms() / 1000;
        let last = |length_s: u64| UsageRange {
            since_s: now_s.saturating_sub(length_s),
            until_s: now_s,
            now_s,
            points: 1,
        };
        let hour = read(history, subject.clone(), last(HOUR_S)).await?;
        let day = read(history, subject, last(DAY_S)).await?;
        Ok(Self {
            now: UsageSample::default(),
            hour: hour.into_iter().next(),
            day: day.into_iter().next(),
        })
    }

    /// How many minutes of the last hour were sampled.
    pub fn hour_samples(&self) -> u32 {
        self.hour.map_or(0, |point| point.samples)
    }

    /// How many minutes of the last day were sampled.
    pub fn day_samples(&self) -> u32 {
        self.day.map_or(0, |point| point.samples)
    }

    /// Returns one metric.
    pub fn metric(&self, metric: UsageMetric) -> MetricOverTime {
        MetricOverTime {
            now: self.now.get(metric),
            hour_mean: self.hour.and_then(|point| point.mean.get(metric)),
            hour_max: self.hour.and_then(|point| point.max.get(metric)),
            day_mean: self.day.and_then(|point| point.mean.get(metric)),
            day_max: self.day.and_then(|point| point.max.get(metric)),
        }
    }

    /// Returns how often something happened in the last day, of a metric that counts it by the minute.
    pub fn day_count(&self, metric: UsageMetric) -> f64 {
        let day = self
            .day
            .map(|point| (point.mean.get(metric), point.samples));
        match day {
            Some((Some(mean), samples)) => (mean * f64::from(samples)).round(),
            _ => 0.0,
        }
    }

    /// Returns all metrics that were measured, by name, rounded.
    pub fn rows(&self) -> BTreeMap<&'static str, MetricOverTime> {
        let rows = UsageMetric::ALL.into_iter().map(|metric| {
            let row = self.metric(metric);
            let row = MetricOverTime {
                now: row.now.map(rounded),
                hour_mean: row.hour_mean.map(rounded),
                hour_max: row.hour_max.map(rounded),
                day_mean: row.day_mean.map(rounded),
                day_max: row.day_max.map(rounded),
            };
            (metric.name(), row)
        });
        rows.filter(|(_, row)| *row != MetricOverTime::default())
            .collect()
    }
}
