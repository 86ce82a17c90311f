//! The history: one file, opened at its first use.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, params};

use super::codec::{RowKind, RowReader, write_sample, write_summary};
use super::error::UsageHistoryError;
use super::file;
use super::points::{self, UsagePoint, UsageRange};
use super::retention::{KEPT_MINUTES_S, KEPT_QUARTERS_S, MAX_CONTAINERS, QUARTER_S, quarter_of};
use super::sample::UsageSample;
use super::series::{SeriesCache, find};
use super::summary::UsageSummary;
use gatewren_base::sys::lock;

/// How many old rows are deleted with each new one at most. A clock that is wrong for a minute then deletes few, and
/// after a long time without samples the old ones go within hours.
const DELETED_AT_ONCE: i64 = 8;

/// A row that is later than this after now was written while the clock was wrong, and is deleted.
const MAX_FUTURE_S: i64 = 24 * 3600;

/// The name of the host's series. No container has an empty name.
const HOST: &str = "";

/// All samples of one time.
#[derive(Debug, Clone, Default)]
pub struct UsageTick {
    /// The time in seconds since 1970.
    pub at_s: u64,
    /// The host's sample.
    pub host: Option<UsageSample>,
    /// The containers' samples.
    pub containers: Vec<SampledContainer>,
}

/// A container's sample.
#[derive(Debug, Clone)]
pub struct SampledContainer {
    /// Its reference.
    pub name: String,
    /// The sample.
    pub sample: UsageSample,
}

/// The usage of the host and its containers over time. Clones share the file. Its functions block on the disk.
#[derive(Clone)]
pub struct UsageHistory {
    path: Arc<Path>,
    open: Arc<Mutex<Option<OpenHistory>>>,
}

struct OpenHistory {
    connection: Connection,
    series: SeriesCache,
}

impl fmt::Debug for UsageHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UsageHistory").field(&self.path).finish()
    }
}

impl UsageHistory {
    /// Returns the history in this file. It is opened, or created, when it is first used.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path: path.into(),
            open: Arc::default(),
        }
    }

    /// Writes the samples of one time, and deletes what is too old. Samples of the same time are replaced.
    ///
    /// # Errors
    /// Fails if the disk is full, or the file cannot be written. A damaged file is set aside, and a new one begins.
    pub fn add(&self, tick: &UsageTick) -> Result<(), UsageHistoryError> {
        self.with(|open| open.add(tick))
    }

    /// Returns the host's samples of a range, summed up to at most its number of points.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn host(&self, range: UsageRange) -> Result<Vec<UsagePoint>, UsageHistoryError> {
        self.points(HOST, range)
    }

    /// The same for a container; empty for one that was never sampled.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn container(
        &self,
        name: &str,
        range: UsageRange,
    ) -> Result<Vec<UsagePoint>, UsageHistoryError> {
        if name == HOST {
            return Ok(Vec::new());
        }
        self.points(name, range)
    }

    /// Whether a container has samples.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn knows(&self, name: &str) -> Result<bool, UsageHistoryError> {
        self.with(|open| Ok(find(&open.connection, name)?.is_some() && name != HOST))
    }

    fn points(&self, name: &str, range: UsageRange) -> Result<Vec<UsagePoint>, UsageHistoryError> {
        self.with(|open| match find(&open.connection, name)? {
            Some(series) => points::read(&open.connection, series, range),
            None => Ok(Vec::new()),
        })
    }

    /// Runs a function on the open file. If the file is damaged, it is set aside and the function runs once more.
    fn with<T>(
        &self,
        run: impl Fn(&mut OpenHistory) -> Result<T, rusqlite::Error>,
    ) -> Result<T, UsageHistoryError> {
        let mut slot = lock(&self.open);
        let mut repaired = false;
        loop {
            let open = match slot.as_mut() {
                Some(open) => open,
                None => slot.insert(OpenHistory {
                    connection: file::open(&self.path)?,
                    series: SeriesCache::default(),
                }),
            };
            let cause = match run(open) {
                Ok(found) => return Ok(found),
                Err(cause) => UsageHistoryError::sqlite(&self.path, &cause),
            };
            if repaired || !matches!(cause, UsageHistoryError::Damaged { .. }) {
                open.series.clear();
                return Err(cause);
            }
            *slot = None;
            file::set_aside(&self.path, &cause)?;
            repaired = true;
        }
    }
}

impl OpenHistory {
    fn add(&mut self, tick: &UsageTick) -> Result<(), rusqlite::Error> {
        let at_s = i64::try_from(tick.at_s).unwrap_or(i64::MAX);
        let change = self.connection.transaction()?;
        let mut row = Vec::new();
        if let Some(host) = &tick.host {
            let series = self.series.number(&change, HOST, at_s)?;
            write_sample(&mut row, series, host);
        }
        for container in tick.containers.iter().take(MAX_CONTAINERS) {
            let series = self.series.number(&change, &container.name, at_s)?;
            write_sample(&mut row, series, &container.sample);
        }
        change.execute(
            "INSERT OR REPLACE INTO minutes VALUES (?1, ?2)",
            params![at_s, row],
        )?;
        sum_up(&change, at_s)?;
        delete_old(&change, at_s)?;
        self.series.forget_old(&change, at_s)?;
        change.commit()
    }
}

/// Sums up the quarters that have ended and have no summary yet.
fn sum_up(connection: &Connection, now_s: i64) -> Result<(), rusqlite::Error> {
    let current_s = quarter_of(now_s);
    // A clock that was set back may have left later summaries.
    let summed_s: Option<i64> = connection.query_row(
        "SELECT max(at_s) FROM quarters WHERE at_s < ?1",
        [current_s],
        |row| row.get(0),
    )?;
    let from_s = summed_s.map_or(i64::MIN, |summed_s| summed_s.saturating_add(QUARTER_S));
    let first: Option<i64> = connection.query_row(
        "SELECT min(at_s) FROM minutes WHERE at_s >= ?1 AND at_s < ?2",
        [from_s, current_s],
        |row| row.get(0),
    )?;
    let mut next = first.map(quarter_of);
    while let Some(quarter_s) = next {
        write_quarter(connection, quarter_s)?;
        next = connection
            .query_row(
                "SELECT min(at_s) FROM minutes WHERE at_s >= ?1 AND at_s < ?2",
                [quarter_s.saturating_add(QUARTER_S), current_s],
                |row| row.get::<_, Option<i64>>(0),
            )?
            .map(quarter_of);
    }
    Ok(())
}

fn write_quarter(connection: &Connection, quarter_s: i64) -> Result<(), rusqlite::Error> {
    let mut summaries: BTreeMap<u32, UsageSummary> = BTreeMap::new();
    let mut query =
        connection.prepare_cached("SELECT samples FROM minutes WHERE at_s >= ?1 AND at_s < ?2")?;
    let mut rows = query.query([quarter_s, quarter_s.saturating_add(QUARTER_S)])?;
    while let Some(row) = rows.next()? {
        for entry in RowReader::new(row.get_ref(0)?.as_blob()?, RowKind::Minutes) {
            summaries.entry(entry.series).or_default().add(&entry);
        }
    }
    let mut row = Vec::new();
    for (series, summary) in &summaries {
        write_summary(&mut row, *series, summary);
    }
    connection.execute(
        "INSERT OR REPLACE INTO quarters VALUES (?1, ?2)",
        params![quarter_s, row],
    )?;
    Ok(())
}

/// Deletes a few old rows. One statement for each end of the time: one for both would read the whole table.
fn delete_old(connection: &Connection, now_s: i64) -> Result<(), rusqlite::Error> {
    let before = |kept_s: u64| now_s.saturating_sub(i64::try_from(kept_s).unwrap_or(i64::MAX));
    let after_s = now_s.saturating_add(MAX_FUTURE_S);
    for (delete, border_s) in [
        (
            "DELETE FROM minutes WHERE at_s IN
             (SELECT at_s FROM minutes WHERE at_s < ?1 ORDER BY at_s LIMIT ?2)",
            before(KEPT_MINUTES_S),
        ),
        (
            "DELETE FROM quarters WHERE at_s IN
             (SELECT at_s FROM quarters WHERE at_s < ?1 ORDER BY at_s LIMIT ?2)",
            before(KEPT_QUARTERS_S),
        ),
        (
            "DELETE FROM minutes WHERE at_s IN
             (SELECT at_s FROM minutes WHERE at_s > ?1 ORDER BY at_s DESC LIMIT ?2)",
            after_s,
        ),
        (
            "DELETE FROM quarters WHERE at_s IN
             (SELECT at_s FROM quarters WHERE at_s > ?1 ORDER BY at_s DESC LIMIT ?2)",
            after_s,
        ),
    ] {
        let mut delete = connection.prepare_cached(delete)?;
        delete.execute([border_s, DELETED_AT_ONCE])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sample::UsageMetric;
    use super::*;
    use gatewren_base::sys::Scratch;

    /// A time at the begin of a quarter of an hour.
    const BEGIN_S: u64 = 1_785_196_800;

    fn sample(cpu_percent: f64) -> UsageSample {
        let mut sample = UsageSample::default();
        sample.set(UsageMetric::CpuPercent, Some(cpu_percent));
        sample
    }

    fn tick(at_s: u64, cpu_percent: f64) -> UsageTick {
        UsageTick {
            at_s,
            host: Some(sample(1.0)),
            containers: vec![SampledContainer {
                name: "web".to_owned(),
                sample: sample(cpu_percent),
            }],
        }
    }

    fn range(since_s: u64, until_s: u64) -> UsageRange {
        UsageRange {
            since_s,
            until_s,
            now_s: until_s,
            points: 120,
        }
    }

    fn cpu(point: &UsagePoint) -> (f64, f64) {
        let of = |sample: &UsageSample| sample.get(UsageMetric::CpuPercent).unwrap();
        (of(&point.mean), of(&point.max))
    }

    /// The bytes of the file and what SQLite keeps beside it.
    fn size(scratch: &Scratch) -> u64 {
        let files = fs::read_dir(scratch.path()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    }

    #[test]
    fn samples_survive_a_restart_and_a_gap_is_no_point() {
        let scratch = Scratch::new();
        let path = scratch.join("usage.db");
        let history = UsageHistory::at(path.clone());
        for minute in (0..10).chain(40..50) {
            let tick = tick(BEGIN_S + minute * 60, if minute == 5 { 90.0 } else { 10.0 });
            history.add(&tick).unwrap();
        }
        drop(history);
        let history = UsageHistory::at(path);
        let hour = range(BEGIN_S, BEGIN_S + 3600);
        let points = history.container("web", hour).unwrap();
        assert_eq!(points.len(), 20);
        assert_eq!(points[0].length_s, 60);
        assert_eq!(cpu(&points[5]), (90.0, 90.0));
        assert_eq!(points[10].from_s, BEGIN_S + 40 * 60);
        let few = UsageRange { points: 2, ..hour };
        let points = history.container("web", few).unwrap();
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].samples, points[0].length_s), (10, 1800));
        assert_eq!(cpu(&points[0]), (18.0, 90.0));
        assert_eq!(history.host(hour).unwrap().len(), 20);
        assert!(history.container("", hour).unwrap().is_empty());
        assert!(history.container("never", hour).unwrap().is_empty());
        assert!(history.knows("web").unwrap());
        assert!(!history.knows("").unwrap() && !history.knows("never").unwrap());
    }

    #[test]
    fn a_month_of_fifty_containers_stays_below_20_mb_and_old_samples_go() {
        let scratch = Scratch::new();
        let history = UsageHistory::at(scratch.join("usage.db"));
        let mut full = UsageSample::default();
        for metric in UsageMetric::ALL {
            full.set(metric, Some(12_345_678.0));
        }
        let containers: Vec<SampledContainer> = (0..50)
            .map(|n| SampledContainer {
                name: format!("docker:container-with-a-long-name-{n}"),
                sample: full,
            })
            .collect();
        // A summary has the same size for one sample in its quarter of an hour as for fifteen.
        let month = (0..29 * 24 * 60).step_by(15);
        let last_day = 29 * 24 * 60..30 * 24 * 60 + 120;
        let mut last_s = BEGIN_S;
        for minute in month.chain(last_day) {
            last_s = BEGIN_S + minute * 60;
            let tick = UsageTick {
                at_s: last_s,
                host: Some(full),
                containers: containers.clone(),
            };
            history.add(&tick).unwrap();
        }
        let bytes = size(&scratch);
        assert!(bytes < 20_000_000, "{bytes} bytes");
        let name = &containers[7].name;
        let all = range(BEGIN_S, last_s + 60);
        let points = history.container(name, all).unwrap();
        assert!((60..=120).contains(&points.len()), "{}", points.len());
        let (mean, max) = cpu(&points[50]);
        assert!((mean / 12_345_678.0 - 1.0).abs() < 0.001 && (mean - max).abs() < 1.0);
        let oldest = points[0].from_s + points[0].length_s;
        assert!(oldest > last_s - KEPT_QUARTERS_S, "{}", last_s - oldest);
        let rows = |table: &str| -> i64 {
            let open = Connection::open(scratch.join("usage.db")).unwrap();
            let count = format!("SELECT count(*) FROM {table}");
            open.query_row(&count, [], |row| row.get(0)).unwrap()
        };
        assert!(rows("minutes") <= 1442 && rows("quarters") <= 2882);
        println!("a month of 50 containers: {bytes} bytes");
    }

    #[test]
    fn a_removed_containers_samples_age_out_with_its_name() {
        let scratch = Scratch::new();
        let history = UsageHistory::at(scratch.join("usage.db"));
        history.add(&tick(BEGIN_S, 5.0)).unwrap();
        let alone = |at_s| UsageTick {
            at_s,
            host: Some(sample(1.0)),
            containers: Vec::new(),
        };
        history.add(&alone(BEGIN_S + 29 * 86_400)).unwrap();
        let all = range(BEGIN_S, BEGIN_S + 29 * 86_400);
        let points = history.container("web", all).unwrap();
        assert_eq!(points.iter().map(cpu).collect::<Vec<_>>(), [(5.0, 5.0)]);
        let later = BEGIN_S + 32 * 86_400;
        history.add(&alone(later)).unwrap();
        assert!(!history.knows("web").unwrap());
        assert!(
            history
                .container("web", range(BEGIN_S, later))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_clock_that_jumps_for_a_minute_costs_few_samples() {
        let scratch = Scratch::new();
        let history = UsageHistory::at(scratch.join("usage.db"));
        for minute in 0..60 {
            history.add(&tick(BEGIN_S + minute * 60, 5.0)).unwrap();
        }
        let far = BEGIN_S + 10 * 365 * 86_400;
        history.add(&tick(far, 99.0)).unwrap();
        history.add(&tick(1000, 98.0)).unwrap();
        let now_s = BEGIN_S + 3600;
        history.add(&tick(now_s, 5.0)).unwrap();
        let points = history
            .container("web", range(BEGIN_S, now_s + 60))
            .unwrap();
        // Eight for each of the two wrong minutes.
        assert!(points.len() >= 61 - 16, "{}", points.len());
        assert!(points.iter().all(|point| cpu(point) == (5.0, 5.0)));
        history.add(&tick(now_s, 7.0)).unwrap();
        let again = history.container("web", range(now_s, now_s + 60)).unwrap();
        assert_eq!(again.iter().map(cpu).collect::<Vec<_>>(), [(7.0, 7.0)]);
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_begun_anew() {
        let scratch = Scratch::new();
        let path = scratch.join("usage.db");
        fs::write(&path, "this is no database. ".repeat(500)).unwrap();
        let history = UsageHistory::at(path.clone());
        for minute in 0..200 {
            history.add(&tick(BEGIN_S + minute * 60, 5.0)).unwrap();
        }
        drop(history);
        let mut bytes = fs::read(&path).unwrap();
        for byte in bytes.iter_mut().skip(4096) {
            *byte = 0xa5;
        }
        fs::write(&path, &bytes).unwrap();
        let history = UsageHistory::at(path);
        history.add(&tick(BEGIN_S + 300 * 60, 6.0)).unwrap();
        let all = range(BEGIN_S, BEGIN_S + 301 * 60);
        assert_eq!(history.container("web", all).unwrap().len(), 1);
        let names = fs::read_dir(scratch.path()).unwrap();
        let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
        let aside = names.filter(|name| name.contains(".damaged-") && !name.ends_with("-wal"));
        assert_eq!(aside.filter(|name| !name.ends_with("-shm")).count(), 2);
    }

    /// Writes a history of one sample, as another version of the program marks it; returns a connection to it.
    fn with_version(path: &Path, version: i64) -> Connection {
        let history = UsageHistory::at(path.to_owned());
        history.add(&tick(BEGIN_S, 1.0)).unwrap();
        let open = Connection::open(path).unwrap();
        open.pragma_update(None, "user_version", version).unwrap();
        open
    }

    #[test]
    fn a_file_of_the_first_version_is_read_and_then_refused_by_programs_that_know_no_other() {
        let scratch = Scratch::new();
        let path = scratch.join("usage.db");
        let open = with_version(&path, 1);
        let mut minute = tick(BEGIN_S + 60, 2.0);
        let mut host = UsageSample::default();
        host.set(UsageMetric::DiskPercent, Some(7.0));
        minute.host = Some(host);
        let history = UsageHistory::at(path);
        history.add(&minute).unwrap();
        let all = range(BEGIN_S, BEGIN_S + 120);
        assert_eq!(history.container("web", all).unwrap().len(), 2);
        let disk = |point: &UsagePoint| point.mean.get(UsageMetric::DiskPercent);
        let disks: Vec<_> = history.host(all).unwrap().iter().map(disk).collect();
        assert_eq!(disks, [None, Some(7.0)]);
        let version = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let version = open.query_row("PRAGMA user_version", [], version);
        assert_eq!(version, Ok(2));
    }

    #[test]
    fn a_newer_file_and_a_foreign_one_are_treated_apart() {
        let scratch = Scratch::new();
        let path = scratch.join("usage.db");
        drop(with_version(&path, 9));
        let refused = UsageHistory::at(path.clone()).add(&tick(BEGIN_S, 1.0));
        assert_eq!(
            refused,
            Err(UsageHistoryError::Newer {
                path: path.clone(),
                schema: 9
            })
        );
        assert!(path.exists());
    }
}
