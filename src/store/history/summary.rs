//! The mean and the maximum of several samples, for each metric.

use super::sample::{UsageMetric, UsageSample};

/// One entry of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowEntry {
    /// Its series.
    pub series: u32,
    /// How many samples it sums up.
    pub samples: u32,
    /// The values, or their means.
    pub mean: UsageSample,
    /// The values, or their maxima.
    pub max: UsageSample,
}

/// The sum of the values of one metric, and how many samples have it.
#[derive(Debug, Clone, Copy, Default)]
struct MetricSum {
    sum: f64,
    samples: u32,
    max: f64,
}

/// Sums up samples.
#[derive(Debug, Clone, Default)]
pub struct UsageSummary {
    sums: [MetricSum; UsageMetric::ALL.len()],
    samples: u32,
}

impl UsageSummary {
    /// Adds an entry of a row.
    pub fn add(&mut self, entry: &RowEntry) {
        self.samples = self.samples.saturating_add(entry.samples);
        for (metric, sum) in UsageMetric::ALL.into_iter().zip(&mut self.sums) {
            let (Some(mean), Some(max)) = (entry.mean.get(metric), entry.max.get(metric)) else {
                continue;
            };
            sum.sum += mean * f64::from(entry.samples);
            sum.samples = sum.samples.saturating_add(entry.samples);
            sum.max = sum.max.max(max);
        }
    }

    /// How many samples were added.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// The mean of each metric over the samples that have it.
    pub fn mean(&self) -> UsageSample {
        self.sample(|sum| sum.sum / f64::from(sum.samples))
    }

    /// The maximum of each metric.
    pub fn max(&self) -> UsageSample {
        self.sample(|sum| sum.max)
    }

    fn sample(&self, value: impl Fn(&MetricSum) -> f64) -> UsageSample {
        let mut sample = UsageSample::default();
        for (metric, sum) in UsageMetric::ALL.into_iter().zip(&self.sums) {
            sample.set(metric, (sum.samples > 0).then(|| value(sum)));
        }
        sample
    }
}
