//! Reads a range of one series as a bounded number of points.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::codec::{RowKind, RowReader};
use super::retention::{KEPT_MINUTES_S, QUARTER_S, quarter_of};
use super::sample::UsageSample;
use super::summary::UsageSummary;

/// The most points of an answer; a longer range has longer points.
pub const MAX_POINTS: u32 = 120;

/// The length of a sample in seconds: no point is shorter.
const MINUTE_S: i64 = 60;

/// A range of time.
#[derive(Debug, Clone, Copy)]
pub struct UsageRange {
    /// Its begin in seconds since 1970.
    pub since_s: u64,
    /// Its end.
    pub until_s: u64,
    /// The current time.
    pub now_s: u64,
    /// The most points; at most [`MAX_POINTS`] are returned.
    pub points: u32,
}

/// The samples of a part of a range. A part without samples has no point.
#[derive(Debug, Clone, Copy)]
pub struct UsagePoint {
    /// Its begin in seconds since 1970.
    pub from_s: u64,
    /// Its length in seconds.
    pub length_s: u64,
    /// How many samples it sums up.
    pub samples: u32,
    /// The mean of each metric.
    pub mean: UsageSample,
    /// The maximum of each metric.
    pub max: UsageSample,
}

/// The part of the file that a query reads.
struct PartQuery {
    text: &'static str,
    kind: RowKind,
    from_s: i64,
    until_s: i64,
}

/// Reads the points of a series.
pub fn read(
    connection: &Connection,
    series: u32,
    range: UsageRange,
) -> Result<Vec<UsagePoint>, rusqlite::Error> {
    let signed = |s: u64| i64::try_from(s).unwrap_or(i64::MAX);
    let (since_s, until_s) = (
        signed(range.since_s),
        signed(range.until_s.min(range.now_s)),
    );
    // Minutes as far back as they are kept, summaries before.
    let minutes_s = signed(range.now_s.saturating_sub(KEPT_MINUTES_S));
    let is_long = since_s < minutes_s;
    let border_s = if is_long {
        end_of_summaries(connection, until_s)?.unwrap_or(since_s)
    } else {
        since_s
    };
    let (since_s, step_s) = if is_long {
        (quarter_of(since_s), QUARTER_S)
    } else {
        (since_s, MINUTE_S)
    };
    let points = i64::from(range.points.clamp(1, MAX_POINTS));
    let length_s = until_s.saturating_sub(since_s).max(1);
    let per_point = (length_s.saturating_add(points * step_s - 1) / (points * step_s)).max(1);
    let mut buckets = PointBuckets {
        since_s,
        length_s: per_point * step_s,
        summaries: BTreeMap::new(),
    };
    let parts = [
        PartQuery {
            text: "SELECT at_s, samples FROM quarters WHERE at_s >= ?1 AND at_s < ?2 ORDER BY at_s",
            kind: RowKind::Quarters,
            from_s: since_s,
            until_s: border_s.min(until_s),
        },
        PartQuery {
            text: "SELECT at_s, samples FROM minutes WHERE at_s >= ?1 AND at_s < ?2 ORDER BY at_s",
            kind: RowKind::Minutes,
            from_s: border_s.max(since_s),
            until_s,
        },
    ];
    for part in parts.iter().filter(|part| part.from_s < part.until_s) {
        add_part(connection, series, part, &mut buckets)?;
    }
    Ok(buckets.into_points())
}

/// Returns the end of the last summary before a time.
fn end_of_summaries(connection: &Connection, until_s: i64) -> Result<Option<i64>, rusqlite::Error> {
    let last: Option<i64> = connection.query_row(
        "SELECT max(at_s) FROM quarters WHERE at_s <= ?1",
        [until_s],
        |row| row.get(0),
    )?;
    Ok(last.map(|last| last.saturating_add(QUARTER_S)))
}

fn add_part(
    connection: &Connection,
    series: u32,
    part: &PartQuery,
    buckets: &mut PointBuckets,
) -> Result<(), rusqlite::Error> {
    let mut query = connection.prepare_cached(part.text)?;
    let mut rows = query.query([part.from_s, part.until_s])?;
    while let Some(row) = rows.next()? {
        let at_s: i64 = row.get(0)?;
        let samples = row.get_ref(1)?.as_blob()?;
        let mut entries = RowReader::new(samples, part.kind);
        if let Some(entry) = entries.find(|entry| entry.series == series) {
            buckets.at(at_s).add(&entry);
        }
    }
    Ok(())
}

/// Sums up samples by the parts of the range.
struct PointBuckets {
    since_s: i64,
    length_s: i64,
    /// By the begin of each part.
    summaries: BTreeMap<i64, UsageSummary>,
}

impl PointBuckets {
    fn at(&mut self, at_s: i64) -> &mut UsageSummary {
        let past_s = at_s.saturating_sub(self.since_s);
        let from_s = at_s.saturating_sub(past_s.rem_euclid(self.length_s.max(1)));
        self.summaries.entry(from_s).or_default()
    }

    fn into_points(self) -> Vec<UsagePoint> {
        let length_s = u64::try_from(self.length_s).unwrap_or_default();
        let summaries = self.summaries.into_iter();
        summaries
            .map(|(from_s, summary)| UsagePoint {
                from_s: u64::try_from(from_s).unwrap_or_default(),
                length_s,
                samples: summary.samples(),
                mean: summary.mean(),
                max: summary.max(),
            })
            .collect()
    }
}
