//! The report: tables for people, JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::args::Args;
use crate::commits::{Commits, Written};
use crate::common::load::Sample;
use crate::common::machine::{Machine, Pinning};
use crate::common::pair::{Compared, Triple, compare, noise};
use crate::common::spread::{Spread, percentile};
use crate::fan_out::{Change, FanOut};
use crate::reads::Read;

/// Rows in the order of their measurement, with one entry per round.
pub struct Rows<T>(Vec<(String, Vec<T>)>);

impl<T> Rows<T> {
    /// Adds a round to a row.
    pub fn add(&mut self, name: String, round: T) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rounds)) => rounds.push(round),
            None => self.0.push((name, vec![round])),
        }
    }
}

/// All measurements.
pub struct Report {
    machine: Machine,
    /// The assignment of cores.
    pub pinning: Pinning,
    /// The load at the end.
    pub load_after: String,
    rounds: u32,
    seconds: f64,
    /// Commits, by row.
    pub commits: Rows<Commits>,
    /// Reads, by row.
    pub reads: Rows<Read>,
    /// Notifications, by row.
    pub fan_out: Rows<FanOut>,
}

impl Report {
    /// Returns an empty report.
    pub fn new(machine: Machine, pinning: Pinning, args: &Args) -> Self {
        Self {
            machine,
            pinning,
            load_after: String::new(),
            rounds: args.common.rounds,
            seconds: args.common.seconds.as_secs_f64(),
            commits: Rows(Vec::new()),
            reads: Rows(Vec::new()),
            fan_out: Rows(Vec::new()),
        }
    }

    /// Returns the tables for people.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{}, load {} after; {}.\n{} rounds of {} s a sample; medians, in brackets the quartiles of the \
             ratios.\n",
            self.machine.words(),
            self.load_after,
            self.pinning.words(),
            self.rounds,
            self.seconds
        );
        table(&mut text, COMMITS, &self.commits, commits_line);
        table(&mut text, READS, &self.reads, reads_line);
        table(&mut text, FAN_OUT, &self.fan_out, fan_out_line);
        text.push_str(FOOT);
        text
    }

    /// Returns the JSON for programs.
    pub fn json(&self) -> String {
        json!({
            "machine": self.machine,
            "load_after": self.load_after,
            "pinning": self.pinning.words(),
            "rounds": self.rounds,
            "seconds_per_sample": self.seconds,
            "commits": objects(&self.commits, commits_json),
            "reads": objects(&self.reads, reads_json),
            "fan_out": objects(&self.fan_out, fan_out_json),
        })
        .to_string()
    }
}

const COMMITS: &str = "\
| commit | commits/s: SQLite / our writer | share | CPU us: SQLite / our writer | x SQLite \
| another program: commits/s | share | daemon's CPU us per revision | daemon behind, ms |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

const READS: &str = "\
| read | reply bytes | p50 us: hyper / ours | x hyper | CPU us: hyper / ours | x hyper \
| to_vec us | CPU beyond hyper, x to_vec | memory peak, MiB | noise |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

const FAN_OUT: &str = "\
| subscribers | told after ms: p50 hyper / ours | p95 | p99 | last of a change: x hyper \
| CPU us each: hyper / ours | x hyper | KiB each: hyper / ours | x hyper |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

const FOOT: &str = "\nCPU is that of the process that does the work, user and kernel, all threads. The memory \
    peak is what gatewren took above what it held before. Noise: how far hyper's CPU per call differs from \
    itself within a triple. The percentiles are over every notification of every round.";

fn table<T>(text: &mut String, head: &str, rows: &Rows<T>, line: fn(&[T]) -> String) {
    if rows.0.is_empty() {
        return;
    }
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "\n{head}");
    for (name, rounds) in &rows.0 {
        let _ = writeln!(text, "| {name} | {} |", line(rounds));
    }
}

fn objects<T>(rows: &Rows<T>, object: fn(&[T]) -> Value) -> Vec<Value> {
    rows.0
        .iter()
        .map(|(name, rounds)| {
            let mut object = object(rounds);
            if let Some(object) = object.as_object_mut() {
                object.insert("row".to_owned(), json!(name));
            }
            object
        })
        .collect()
}

/// Returns the spread of a figure over rounds.
fn over<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> Spread {
    Spread::of(rounds.iter().map(figure))
}

/// Compares a figure of the two sides in each round.
fn sides<T>(rounds: &[T], anchor: impl Fn(&T) -> f64, subject: impl Fn(&T) -> f64) -> Compared {
    Compared {
        anchor: over(rounds, &anchor),
        subject: over(rounds, &subject),
        ratio: over(rounds, |round| subject(round) / anchor(round)),
    }
}

fn both(compared: &Compared, digits: usize) -> String {
    let (anchor, subject) = (compared.anchor.median, compared.subject.median);
    format!("{anchor:.digits$} / {subject:.digits$}")
}

fn written(
    rounds: &[Commits],
    side: fn(&Commits) -> Written,
    figure: fn(&Written) -> f64,
) -> Compared {
    sides(rounds, |c| figure(&c.bare), |c| figure(&side(c)))
}

fn commits_line(rounds: &[Commits]) -> String {
    let rate = written(rounds, |c| c.writer, Written::rate);
    let cpu = written(rounds, |c| c.writer, Written::cpu_us);
    let foreign = written(rounds, |c| c.foreign, Written::rate);
    format!(
        "{} | {} | {} | {} | {:.0} | {} | {:.0} | {:.1}",
        both(&rate, 0),
        rate.ratio.words(),
        both(&cpu, 1),
        cpu.ratio.words(),
        foreign.subject.median,
        foreign.ratio.words(),
        over(rounds, |c| c.follow_us).median,
        over(rounds, |c| c.behind_ms).median,
    )
}

fn commits_json(rounds: &[Commits]) -> Value {
    json!({
        "commits_per_second": two(&written(rounds, |c| c.writer, Written::rate)),
        "cpu_us_per_commit": two(&written(rounds, |c| c.writer, Written::cpu_us)),
        "foreign_commits_per_second": two(&written(rounds, |c| c.foreign, Written::rate)),
        "daemon_cpu_us_per_revision": over(rounds, |c| c.follow_us),
        "daemon_behind_ms": over(rounds, |c| c.behind_ms),
    })
}

fn triples(rounds: &[Read]) -> Vec<Triple> {
    rounds.iter().map(|read| read.triple).collect()
}

fn reads_line(rounds: &[Read]) -> String {
    let triples = triples(rounds);
    let p50 = compare(&triples, |s| s.p50_us);
    let cpu = compare(&triples, |s| s.cpu_us);
    format!(
        "{} | {} | {} | {} | {} | {:.1} | {} | {:.1} | {:.0} %",
        rounds.first().map_or(0, |read| read.bytes),
        both(&p50, 0),
        p50.ratio.words(),
        both(&cpu, 1),
        cpu.ratio.words(),
        over(rounds, |read| read.to_vec_us).median,
        over(rounds, Read::serialisations).words(),
        over(rounds, |read| read.peak_kib / 1024.0).median,
        noise(&triples).median * 100.0,
    )
}

fn reads_json(rounds: &[Read]) -> Value {
    let triples = triples(rounds);
    let figure = |figure: fn(&Sample) -> f64| two(&compare(&triples, figure));
    json!({
        "reply_bytes": rounds.first().map(|read| read.bytes),
        "p50_us": figure(|s| s.p50_us),
        "p99_us": figure(|s| s.p99_us),
        "server_cpu_us_per_read": figure(|s| s.cpu_us),
        "to_vec_us": over(rounds, |read| read.to_vec_us),
        "cpu_beyond_anchor_by_to_vec": over(rounds, Read::serialisations),
        "memory_peak_kib": over(rounds, |read| read.peak_kib),
        "anchor_cpu_noise": noise(&triples),
    })
}

/// Returns the changes of all rounds, each with the anchor's that followed it.
fn changes(rounds: &[FanOut]) -> Vec<(&Change, &Change)> {
    let pairs = rounds
        .iter()
        .map(|round| round.bare.iter().zip(&round.ours));
    pairs.flatten().collect()
}

fn told_ms(changes: &[(&Change, &Change)], percent: usize) -> (f64, f64) {
    let of = |side: &dyn Fn(&(&Change, &Change)) -> Vec<f64>| {
        let mut all: Vec<f64> = changes.iter().flat_map(side).collect();
        all.sort_by(f64::total_cmp);
        percentile(&all, percent).unwrap_or(f64::NAN) / 1e3
    };
    (
        of(&|(bare, _)| bare.told_us.clone()),
        of(&|(_, ours)| ours.told_us.clone()),
    )
}

fn fan_out_line(rounds: &[FanOut]) -> String {
    let changes = changes(rounds);
    let told = |percent| {
        let (bare, ours) = told_ms(&changes, percent);
        format!("{bare:.2} / {ours:.2}")
    };
    let last = sides(
        &changes,
        |(bare, _)| bare.last_us(),
        |(_, ours)| ours.last_us(),
    );
    let cpu = sides(&changes, |(bare, _)| bare.cpu_us, |(_, ours)| ours.cpu_us);
    let memory = sides(rounds, |r| r.bare_kib, |r| r.ours_kib);
    let weighed = !memory.ratio.median.is_nan();
    let memory = weighed.then(|| format!("{} | {}", both(&memory, 1), memory.ratio.words()));
    format!(
        "{} | {} | {} | {} | {} | {} | {}",
        told(50),
        told(95),
        told(99),
        last.ratio.words(),
        both(&cpu, 1),
        cpu.ratio.words(),
        memory.as_deref().unwrap_or("- | -"),
    )
}

fn fan_out_json(rounds: &[FanOut]) -> Value {
    let changes = changes(rounds);
    let told = |percent| {
        let (bare, ours) = told_ms(&changes, percent);
        json!({ "anchor": bare, "subject": ours })
    };
    json!({
        "changes": changes.len(),
        "told_after_ms": { "p50": told(50), "p95": told(95), "p99": told(99) },
        "last_told_us": two(&sides(&changes, |(bare, _)| bare.last_us(), |(_, ours)| ours.last_us())),
        "server_cpu_us_each": two(&sides(&changes, |(bare, _)| bare.cpu_us, |(_, ours)| ours.cpu_us)),
        "memory_kib_each": two(&sides(rounds, |r| r.bare_kib, |r| r.ours_kib)),
    })
}

fn two(compared: &Compared) -> Value {
    let Compared {
        anchor,
        subject,
        ratio,
    } = compared;
    json!({ "anchor": anchor, "subject": subject, "ratio": ratio })
}
