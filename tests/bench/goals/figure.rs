//! The findings of a part, as stored between the programs that measure and the one that reports.

use serde::{Deserialize, Serialize};

use crate::common::machine::Machine;
use crate::common::spread::Spread;

/// One figure of the tables.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The key of its row.
    pub key: String,
    /// gatewren's figure, in the row's unit; `None` if it cannot be measured here.
    pub ours: Option<Spread>,
    /// The others' figures, in the same unit.
    pub peers: Vec<(String, Spread)>,
    /// The figures of the others behind TLS, a token and a table of calls, by hyper over TLS.
    #[serde(default)]
    pub guarded: Vec<(String, Spread)>,
    /// A note: absolute values, or why the figure is missing.
    pub note: String,
}

/// A line in a drawing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points, from the left.
    pub points: Vec<(f64, f64)>,
}

/// A drawing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Curve {
    /// The name of its file.
    pub file: String,
    /// Its title.
    pub title: String,
    /// The label of the horizontal axis: what grows.
    pub across: String,
    /// The label of the vertical axis: the cost.
    pub upwards: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// Everything that one part has found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Found {
    /// The part.
    pub part: String,
    /// The machine.
    pub machine: Machine,
    /// The cores that ran the programs.
    pub pinning: String,
    /// The load at the end.
    pub load_after: String,
    /// Cores that all other programs on the machine used during the part, on average.
    pub others: f64,
    /// The difference in CPU per call between the anchor's samples within a triple, if there are triples.
    pub noise: Option<Spread>,
    /// The number of rounds.
    pub rounds: u32,
    /// The length of a sample, in seconds.
    pub seconds: f64,
    /// The length of the part, in seconds.
    pub took: f64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The drawings.
    pub curves: Vec<Curve>,
}

/// The result of a part's measuring code.
#[derive(Debug, Default)]
pub struct Findings {
    /// The figures.
    pub figures: Vec<Figure>,
    /// The drawings.
    pub curves: Vec<Curve>,
    /// The noise of the anchor.
    pub noise: Option<Spread>,
}

impl Figure {
    /// Returns a figure of gatewren.
    pub fn of(key: impl Into<String>, ours: Spread) -> Self {
        Self {
            key: key.into(),
            ours: Some(ours),
            ..Self::default()
        }
    }

    /// Returns a figure that cannot be measured here, with the reason.
    pub fn without(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            note: why.into(),
            ..Self::default()
        }
    }

    /// Adds the others' figures.
    #[must_use]
    pub fn beside(mut self, peers: Vec<(String, Spread)>) -> Self {
        self.peers = peers;
        self
    }

    /// Adds the figures of the others' guarded form.
    #[must_use]
    pub fn guarded(mut self, peers: Vec<(String, Spread)>) -> Self {
        self.guarded = peers;
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}
