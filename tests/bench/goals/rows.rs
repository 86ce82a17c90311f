//! The goals: the targets, and the gates that let a release fail.

use serde::Serialize;

use crate::common::spread::Spread;

/// The better direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

/// One row of the tables.
#[derive(Debug)]
pub struct Row {
    /// The goal that it belongs to.
    pub goal: &'static str,
    /// Its figure's key.
    pub key: &'static str,
    /// What it measures.
    pub what: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The better direction.
    pub better: Better,
    /// The measured limit: the least code on hyper that responds correctly, or the operating system.
    pub limit: Option<f64>,
    /// The gate: a worse value fails a release.
    pub gate: f64,
    /// The target.
    pub target: f64,
}

/// Whether a bound is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Met {
    /// It is met.
    Yes,
    /// It is missed.
    No,
    /// It was not measured.
    Unknown,
}

impl Row {
    /// Returns whether a value meets a bound; the median decides.
    pub fn met(&self, ours: Option<Spread>, bound: f64) -> Met {
        let kept = ours.map(|ours| match self.better {
            Better::Less => ours.median <= bound,
            Better::More => ours.median >= bound,
        });
        match kept {
            None => Met::Unknown,
            Some(true) => Met::Yes,
            Some(false) => Met::No,
        }
    }

    /// Returns the best of the peers.
    pub fn best<'a>(&self, peers: &'a [(String, Spread)]) -> Option<&'a (String, Spread)> {
        peers.iter().min_by(|(_, one), (_, other)| {
            let order = one.median.total_cmp(&other.median);
            if self.better == Better::More {
                order.reverse()
            } else {
                order
            }
        })
    }
}

/// A row whose better direction is down.
const fn row(
    goal: &'static str,
    key: &'static str,
    what: &'static str,
    unit: &'static str,
    bounds: (Option<f64>, f64, f64),
) -> Row {
    let (limit, gate, target) = bounds;
    Row {
        goal,
        key,
        what,
        unit,
        better: Better::Less,
        limit,
        gate,
        target,
    }
}

impl Row {
    /// The same with the better direction up.
    const fn upwards(self) -> Self {
        Self {
            better: Better::More,
            ..self
        }
    }
}

/// Memory per stream, notification times and the rest are in the units of the rows. "x hyper" is the ratio to hyper
/// alone in the same round: over TLS with the same certificate for gatewren and the guarded peers, plain for the peers
/// as they are, which serve plain HTTP.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("G1", "instructions-2026", "instructions of a call, 2026-07-28", "x hyper", (Some(2.05), 4.0, 2.6)),
    row("G2", "instructions-2025", "instructions of a call, 2025-11-25", "x hyper", (Some(1.74), 3.5, 2.6)),
    row("G3", "system-calls", "system calls of a call, 1 connection", "", (Some(3.0), 4.0, 3.3)),
    row("G4", "cpu-2026-16", "CPU of a call, 2026-07-28, 16 connections", "x hyper", (Some(1.25), 1.9, 1.9)),
    row("G4", "cpu-2026-64", "the same, 64 connections", "x hyper", (Some(1.23), 1.7, 1.45)),
    row("G4", "cpu-2025-16", "the same, 2025-11-25, 16 connections", "x hyper", (Some(1.15), 1.9, 1.9)),
    row("G4", "cpu-2025-64", "the same, 64 connections", "x hyper", (Some(1.09), 1.7, 1.45)),
    row("G5", "rate-2026-16", "calls/s, 2026-07-28, 16 connections", "of hyper", (Some(0.81), 0.55, 0.68)).upwards(),
    row("G5", "rate-2026-64", "the same, 64 connections", "of hyper", (Some(0.81), 0.55, 0.68)).upwards(),
    row("G5", "rate-2025-16", "the same, 2025-11-25, 16 connections", "of hyper", (Some(0.87), 0.55, 0.68)).upwards(),
    row("G5", "rate-2025-64", "the same, 64 connections", "of hyper", (Some(0.91), 0.55, 0.68)).upwards(),
    row("G6", "guarded-lead-2026-16", "calls/s by the best guarded peer's, 2026-07-28, 16 connections", "x", (None, 2.5, 2.5)).upwards(),
    row("G6", "guarded-lead-2026-64", "the same, 64 connections", "x", (None, 2.5, 2.5)).upwards(),
    row("G6", "guarded-lead-2025-16", "the same, 2025-11-25, 16 connections", "x", (None, 2.0, 2.5)).upwards(),
    row("G6", "guarded-lead-2025-64", "the same, 64 connections", "x", (None, 2.0, 2.5)).upwards(),
    row("G6", "plain-lead-2026-16", "calls/s by the best peer's as it is, 2026-07-28, 16 connections", "x", (None, 1.5, 1.5)).upwards(),
    row("G6", "plain-lead-2026-64", "the same, 64 connections", "x", (None, 1.5, 1.5)).upwards(),
    row("G6", "plain-lead-2025-16", "the same, 2025-11-25, 16 connections", "x", (None, 1.5, 1.5)).upwards(),
    row("G6", "plain-lead-2025-64", "the same, 64 connections", "x", (None, 1.5, 1.5)).upwards(),
    row("G7", "p50-2026-1", "median of a call, 1 connection", "x hyper", (Some(1.1), 1.4, 1.25)),
    row("G7", "p99-2026-1", "99th percentile of a call, 1 connection", "x hyper", (Some(1.1), 1.4, 1.4)),
    row("G7", "p99-2026-16", "the same, 16 connections", "x hyper", (None, 3.0, 3.0)),
    row("G7", "p99-2025-16", "the same, 2025-11-25", "x hyper", (None, 3.0, 3.0)),
    row("G8", "shell-cpu-1", "CPU of a shell command and its server, 1 connection", "x posix_spawn", (Some(1.14), 1.8, 1.8)),
    row("G8", "shell-cpu-8", "the same, 8 connections", "x posix_spawn", (Some(1.06), 1.30, 1.15)),
    row("G9", "shell-p50", "median of a shell command beyond posix_spawn's", "us", (Some(55.0), 600.0, 600.0)),
    row("G10", "stream-memory", "memory of an idle stream", "x hyper", (Some(1.0), 1.18, 1.10)),
    row("G11", "idle-memory", "resident memory at rest, front", "MB", (Some(3.5), 8.0, 5.0)),
    row("G12", "loaded-memory", "the same after 500,000 calls on 64 connections", "MB", (Some(4.8), 12.0, 12.0)),
    row("G13", "told-cpu", "CPU of telling one of 1,000 subscribers", "x hyper", (Some(1.0), 1.5, 1.3)),
    row("G13", "told-last", "until the last of 1,000 is told", "x hyper", (Some(1.0), 1.5, 1.3)),
    row("G14", "told-one-ms", "until a single subscriber is told, median", "ms", (Some(0.22), 1.0, 0.5)),
    row("G14", "told-last-ms", "until the last of 1,000 is told, median", "ms", (Some(7.2), 12.0, 10.0)),
    row("G15", "known-p99", "until another program's commit is known, 99th percentile", "ms", (Some(0.06), 1.0, 0.2)),
    row("G16", "tls-call", "CPU of a call over TLS by the same without", "x", (Some(1.13), 1.25, 1.18)),
    row("G16", "tls-handshake", "CPU of a full handshake and a call", "x hyper", (Some(1.0), 1.15, 1.08)),
    row("G17", "start", "from the start to the first right answer", "ms", (Some(2.3), 20.0, 8.0)),
    row("G18", "echo-64k", "CPU of an echo of 64 KiB, 4 connections", "x floor", (Some(1.0), 1.65, 1.4)),
    row("G19", "read", "CPU of a resource read by that of a call", "x", (None, 1.5, 1.3)),
    row("G20", "idle-cpu", "CPU with 1,000 idle streams", "ms/s", (Some(0.0), 2.0, 1.0)),
    row("W1", "list", "CPU of tools/list", "x hyper", (None, 1.5, 1.25)),
    row("W2", "read-1-kB", "CPU of reading 1 kB", "x hyper", (None, 1.8, 1.4)),
    row("W2", "read-100-kB", "the same, 100 kB", "x hyper", (None, 1.8, 1.4)),
    row("W2", "read-10-MB", "the same, 10 MB", "x hyper", (None, 1.8, 1.4)),
    row("W2", "read-10-MB-memory", "how far reading 10 MB moves resident memory", "MiB", (None, 16.0, 12.0)),
    row("W3", "host-shell", "system_shell: median beyond posix_spawn's", "ms", (None, 1.0, 0.6)),
    row("W4", "container-shell", "container_shell: median beyond lxc-attach's", "ms", (None, 2.0, 1.0)),
    row("W5", "flood-memory", "how far a command that prints 1 GB moves the front's memory", "MiB", (None, 12.0, 8.0)),
    row("W5", "flood-rate", "bytes a second of it", "of a pipe to cat", (None, 0.4, 0.6)).upwards(),
    row("W6", "stream-kib", "memory of an idle stream over TLS", "KiB", (None, 40.0, 32.0)),
    row("W7", "both-memory", "resident memory at rest, front and helper", "MB", (None, 14.0, 9.0)),
    row("W8", "both-start", "from the start to the first right answer, with the helper", "ms", (None, 60.0, 25.0)),
    row("W9", "audited-reads", "audited reads, sustained on 64 connections", "/s", (None, 10_000.0, 30_000.0)).upwards(),
    row("W10", "growth-sessions", "CPU of a call with 10,000 sessions by that with one", "x", (None, 1.10, 1.05)),
    row("W10", "growth-revisions", "the same, 100,000 revisions by 10", "x", (None, 1.10, 1.05)),
    row("W10", "growth-containers", "the same, 200 containers by one", "x", (None, 1.10, 1.05)),
    row("W10", "list-200-containers", "container_list with 200 containers, median", "ms", (None, 30.0, 30.0)),
    row("W11", "flooded-call", "system_shell of one agent while another asks for 150 long commands", "x without", (None, 2.0, 1.3)),
    row("W12", "besieged-call", "a call on a new connection beside 4,400 silent ones, by one without", "x", (None, 3.0, 1.5)),
    row("W13", "balanced-nginx", "a call in a session through nginx, without nginx's own hop, by one without nginx, median", "x", (Some(1.0), 1.10, 1.05)),
    row("W13", "balanced-haproxy", "the same through HAProxy", "x", (Some(1.0), 1.10, 1.05)),
    row("O1", "page-ms", "the owner's first page", "ms", (None, 5.0, 2.0)),
];
