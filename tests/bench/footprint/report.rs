//! The report: a table for people, JSON for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::common::machine::Machine;
use crate::common::spread::Spread;
use crate::cost::{Held, Memory};

/// One server.
#[derive(Serialize)]
pub struct Row {
    /// Its name.
    pub server: &'static str,
    /// The size of its file.
    pub binary_bytes: u64,
    /// From the start to the first correct reply.
    pub start_ms: Spread,
    /// At the end of the idle period.
    pub idle: Held,
    /// Right after the calls that followed.
    pub after_calls: Held,
    /// The share of one core, with all programs that it has started.
    pub idle_cpu_percent: f64,
}

/// All measurements.
#[derive(Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The load at the end.
    pub load_after: String,
    /// The cores that ran the programs.
    pub pinning: &'static str,
    /// Starts of each server.
    pub starts: u32,
    /// The length of the idle period.
    pub idle_seconds: f64,
    /// Calls after it.
    pub calls: usize,
    /// The figures.
    pub rows: Vec<Row>,
}

impl Row {
    fn line(&self) -> String {
        format!(
            "| {} | {} | {} | {} | {:.3} % | {:.1} MB |",
            self.server,
            words(&self.idle),
            words(&self.after_calls),
            self.start_ms.words(),
            self.idle_cpu_percent,
            megabytes(self.binary_bytes),
        )
    }
}

impl Report {
    /// Returns the table for people.
    pub fn markdown(&self) -> String {
        let Self {
            load_after,
            pinning,
            starts,
            idle_seconds,
            calls,
            ..
        } = self;
        let mut text = format!(
            "{}, load {load_after} after; {pinning}.\n\
             {starts} starts of each in turn, then both at rest for {idle_seconds} s, then {calls} calls each.\n\n\
             | server | memory at rest: RSS (PSS) | after {calls} calls | start to first right answer, ms \
             | CPU at rest, of one core | binary |\n\
             | --- | ---: | ---: | ---: | ---: | ---: |\n",
            self.machine.words(),
        );
        for row in &self.rows {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{}", row.line());
        }
        text.push_str(
            "\nMemory is of the front and the helper, together and each; a page that both have is in both RSS, and \
             by half in each PSS.\n\
             Starts are medians, in brackets the quartiles; gatewren's are second starts: its first also makes keys.",
        );
        text
    }

    /// Returns the JSON for programs.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn words(held: &Held) -> String {
    let [front, helper] = [held.front, held.helper].map(|memory| memory.rss / 1024.0);
    let sum = |figure: fn(&Memory) -> f64| (figure(&held.front) + figure(&held.helper)) / 1024.0;
    let (rss, pss) = (sum(|memory| memory.rss), sum(|memory| memory.pss));
    if helper > 0.0 {
        format!("**{rss:.1} MiB** ({pss:.1}): {front:.1} + {helper:.1}")
    } else {
        format!("**{rss:.1} MiB** ({pss:.1})")
    }
}

#[expect(clippy::cast_precision_loss, reason = "no binary is that large")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
