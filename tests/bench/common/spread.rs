//! Medians, quartiles and percentiles.

use serde::{Deserialize, Serialize};

/// How values lie: the median, and the quartiles around it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Spread {
    /// A quarter of the values is not above this.
    pub low: f64,
    /// The middle; the mean of the two in the middle where they are two.
    pub median: f64,
    /// A quarter of the values is not below this.
    pub high: f64,
}

impl Spread {
    /// The spread of some values; of none, nothing but NaN.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let from_above: Vec<f64> = sorted.iter().rev().copied().collect();
        let at = |sorted: &[f64], percent| percentile(sorted, percent).unwrap_or(f64::NAN);
        Self {
            low: at(&sorted, 25),
            median: f64::midpoint(at(&sorted, 50), at(&from_above, 50)),
            high: at(&from_above, 25),
        }
    }

    /// For a cell of a table: the median, in brackets the quartiles.
    pub fn words(self) -> String {
        let Self { low, median, high } = self;
        format!("**{median:.2}** ({low:.2}-{high:.2})")
    }
}

/// Nearest rank: the first value that so many per cent of all do not exceed.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
