//! What a part has found, as it is kept between the programs that measure and the one that reports.

use serde::{Deserialize, Serialize};

use crate::common::machine::Machine;
use crate::common::spread::Spread;

/// One figure of the tables.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The key of its row.
    pub key: String,
    /// What gatewren reaches, in the row's unit; none where it cannot be measured here.
    pub ours: Option<Spread>,
    /// What others reach, in the same unit.
    pub peers: Vec<(String, Spread)>,
    /// What is to be known of it: absolute values, or why it is not there.
    pub note: String,
}

/// A line in a drawing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its points, from the left.
    pub points: Vec<(f64, f64)>,
}

/// A drawing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Curve {
    /// The name of its file.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// What grows.
    pub across: String,
    /// What that costs.
    pub upwards: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// Everything that one part has found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Found {
    /// The part.
    pub part: String,
    /// Where.
    pub machine: Machine,
    /// Which core ran what.
    pub pinning: String,
    /// The load when all was done.
    pub load_after: String,
    /// Cores that everything else on the machine used meanwhile, on average.
    pub others: f64,
    /// How far the anchor's CPU per call differs from itself within a triple, where there are triples.
    pub noise: Option<Spread>,
    /// How often.
    pub rounds: u32,
    /// How long a sample, in seconds.
    pub seconds: f64,
    /// How long it all took, in seconds.
    pub took: f64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The drawings.
    pub curves: Vec<Curve>,
}

/// What the measuring code of a part gives back.
#[derive(Debug, Default)]
pub struct Findings {
    /// The figures.
    pub figures: Vec<Figure>,
    /// The drawings.
    pub curves: Vec<Curve>,
    /// The anchor's distance from itself.
    pub noise: Option<Spread>,
}

impl Figure {
    /// What gatewren reaches.
    pub fn of(key: impl Into<String>, ours: Spread) -> Self {
        Self {
            key: key.into(),
            ours: Some(ours),
            ..Self::default()
        }
    }

    /// One that cannot be measured here, and why.
    pub fn without(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            note: why.into(),
            ..Self::default()
        }
    }

    /// With others.
    #[must_use]
    pub fn beside(mut self, peers: Vec<(String, Spread)>) -> Self {
        self.peers = peers;
        self
    }

    /// With words.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}
