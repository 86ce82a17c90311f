//! The report: a table for people, JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::common::load::Sample;
use crate::common::machine::Machine;
use crate::common::pair::{Compared, Triple, compare, noise};

/// A client this busy may have been the limit itself: then only CPU per call compares the servers.
const CLIENT_BUSY: f64 = 0.9;

/// One row at one number of connections.
pub struct Cell {
    /// The row.
    pub row: &'static str,
    /// Connections with one call in flight each.
    pub connections: u32,
    /// The length of a reply's body in bytes.
    pub bytes: usize,
    /// One triple per round.
    pub triples: Vec<Triple>,
}

/// All measurements.
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The load at the end.
    pub load_after: String,
    /// The cores that ran the programs.
    pub pinning: &'static str,
    /// The number of rounds.
    pub rounds: u32,
    /// The length of a sample in seconds.
    pub seconds: f64,
    /// The figures.
    pub cells: Vec<Cell>,
}

impl Cell {
    /// Returns an empty cell.
    pub fn new(row: &'static str, connections: u32) -> Self {
        Self {
            row,
            connections,
            bytes: 0,
            triples: Vec::new(),
        }
    }

    fn compare(&self, figure: fn(&Sample) -> f64) -> Compared {
        compare(&self.triples, figure)
    }

    fn line(&self) -> String {
        let rate = self.compare(|s| s.rate);
        let cpu = self.compare(|s| s.cpu_us);
        let p50 = self.compare(|s| s.p50_us);
        let p99 = self.compare(|s| s.p99_us);
        let client = self.compare(|s| s.client);
        let limit = client.anchor.median.max(client.subject.median);
        let mark = if limit > CLIENT_BUSY { " *" } else { "" };
        format!(
            "| {} | {} | {:.0} / {:.0} | {}{mark} | {:.1} / {:.1} | {} | {:.0} / {:.0} | {:.0} / {:.0} | {:.0} % |",
            self.row,
            self.connections,
            rate.anchor.median,
            rate.subject.median,
            rate.ratio.words(),
            cpu.anchor.median,
            cpu.subject.median,
            cpu.ratio.words(),
            p50.anchor.median,
            p50.subject.median,
            p99.anchor.median,
            p99.subject.median,
            noise(&self.triples).median * 100.0
        )
    }

    fn json(&self) -> Value {
        let figure = |figure: fn(&Sample) -> f64| {
            let Compared {
                anchor,
                subject,
                ratio,
            } = self.compare(figure);
            json!({ "anchor": anchor, "subject": subject, "ratio": ratio })
        };
        json!({
            "row": self.row,
            "connections": self.connections,
            "reply_bytes": self.bytes,
            "calls_per_second": figure(|s| s.rate),
            "server_cpu_us_per_call": figure(|s| s.cpu_us),
            "p50_us": figure(|s| s.p50_us),
            "p99_us": figure(|s| s.p99_us),
            "client_cores": figure(|s| s.client),
            "anchor_cpu_noise": noise(&self.triples),
        })
    }
}

impl Report {
    /// Returns the table for people.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{}, load {} after; {}.\n\
             {} rounds of anchor, subject, anchor, {} s each; medians, in brackets the quartiles.\n\n\
             | row | connections | calls/s: anchor / ours | share of the anchor \
             | CPU us per call: anchor / ours | x anchor \
             | p50 us: anchor / ours | p99 us: anchor / ours | noise |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            self.machine.words(),
            self.load_after,
            self.pinning,
            self.rounds,
            self.seconds
        );
        for cell in &self.cells {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{}", cell.line());
        }
        text.push_str(
            "\nCPU is the server process's, user and kernel, all threads. Noise: how far the anchor's CPU \
             per call differs from itself within a triple.\n\
             * the client was busy more than 90 % of the time, so the share flatters the slower server; \
             go by CPU per call.",
        );
        text
    }

    /// Returns the JSON for programs.
    pub fn json(&self) -> String {
        let cells: Vec<Value> = self.cells.iter().map(Cell::json).collect();
        json!({
            "machine": self.machine,
            "load_after": self.load_after,
            "pinning": self.pinning,
            "rounds": self.rounds,
            "seconds_per_sample": self.seconds,
            "cells": cells,
        })
        .to_string()
    }
}
