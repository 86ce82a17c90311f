//! Medians, quartiles and percentiles.

use serde::{Deserialize, Serialize};

/// The distribution of values: the median and the quartiles.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Spread {
    /// The first quartile.
    pub low: f64,
    /// The median; the mean of the middle two for an even number of values.
    pub median: f64,
    /// The third quartile.
    pub high: f64,
}

impl Spread {
    /// Returns the spread of some values; NaN for none.
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

    /// Returns the text for a cell of a table: the median, with the quartiles in brackets.
    pub fn words(self) -> String {
        let Self { low, median, high } = self;
        format!("**{median:.2}** ({low:.2}-{high:.2})")
    }
}

/// Returns the nearest-rank percentile: the first value that at least this per cent of all do not exceed.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
