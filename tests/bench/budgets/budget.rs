//! The accepted counts, and how they compare with the measured ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::common::Error;
use crate::share::Share;

/// The file lists a function if it has this share of its path.
const NAMED_FROM: f64 = 0.004;

/// The number of functions in the report when a path has become more expensive.
const NAMED: usize = 8;

/// The file of accepted counts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Budgets {
    /// The compiler: another one makes other code from the same source.
    pub compiler: String,
    /// The budgets, by path.
    pub paths: BTreeMap<String, Budget>,
}

/// The budget of one path.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Instructions of a call.
    pub instructions: f64,
    /// Allocations of a call.
    pub allocations: Option<f64>,
    /// Instructions by function, of those with a large enough share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, f64>,
}

/// The result of a comparison.
pub struct Verdict {
    /// Whether the counts are within the budget.
    pub holds: bool,
    /// A line about the path, followed by the functions that grew.
    pub words: String,
}

const HEAD: &str = "\
# What the paths of a call and the owner's pages may cost: instructions and allocations, counted by callgrind
# (`tests/run budgets`). More than 3 % above an entry fails, 10 % of a page. After a change that is meant to cost more,
# or that costs less, this builds what ships for all three architectures, counts and writes anew:
#   tests/bench/budgets/run --accept
";

impl Budgets {
    /// Reads the file; empty if it does not exist.
    pub fn read(file: &Path) -> Result<Self, Error> {
        match fs::read_to_string(file) {
            Ok(text) => Ok(toml::from_str(&text)?),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(cause) => Err(format!("{}: {cause}", file.display()).into()),
        }
    }

    /// Accepts the new counts and writes them; paths that were not counted keep their entries.
    pub fn accept(&mut self, shares: &[Share], compiler: String, file: &Path) -> Result<(), Error> {
        self.compiler = compiler;
        for share in shares {
            let budget = Budget {
                instructions: share.instructions.round(),
                allocations: share.allocations.map(|count| (count * 10.0).round() / 10.0),
                functions: share
                    .functions
                    .iter()
                    .filter(|(_, own)| **own >= share.instructions * NAMED_FROM)
                    .map(|(name, own)| (name.clone(), own.round()))
                    .collect(),
            };
            self.paths.insert(share.name.clone(), budget);
        }
        let text = format!("{HEAD}\n{}", toml::to_string(self)?);
        fs::write(file, text).map_err(|cause| format!("{}: {cause}", file.display()).into())
    }

    /// Compares a share with its entry.
    pub fn judge(&self, share: &Share, compiler: &str) -> Verdict {
        let Some(budget) = self.paths.get(&share.name) else {
            return Verdict {
                holds: false,
                words: format!(
                    "{}: there is no budget; write one with --accept",
                    share.name
                ),
            };
        };
        let ratio = share.instructions / budget.instructions;
        // One in ten calls may allocate once more: a map or a buffer grows occasionally.
        let (asks, may_ask) = (
            share.allocations.unwrap_or(0.0),
            budget.allocations.unwrap_or(0.0),
        );
        let asks_more = asks > (may_ask + 0.1) * share.tolerated;
        let holds = ratio <= share.tolerated && !asks_more;
        let mut words = format!(
            "{}: {:.0} instructions, {:+.1} % of the accepted {:.0}",
            share.name,
            share.instructions,
            (ratio - 1.0) * 100.0,
            budget.instructions
        );
        if share.allocations.is_some() {
            // Writing to a `String` cannot fail.
            let _ = write!(words, "; {asks:.1} allocations, accepted {may_ask:.1}");
        }
        if !holds {
            words += &growth(share, budget);
            if self.compiler != compiler {
                let accepted = &self.compiler;
                // Writing to a `String` cannot fail.
                let _ = write!(
                    words,
                    "\n  the budget was accepted with {accepted}, this is {compiler}"
                );
            }
        }
        Verdict { holds, words }
    }
}

/// Returns the functions that grew most.
fn growth(share: &Share, budget: &Budget) -> String {
    let mut grown: Vec<(f64, &str)> = share
        .functions
        .iter()
        .map(|(name, own)| {
            let before = budget.functions.get(name).copied().unwrap_or(0.0);
            (own - before, name.as_str())
        })
        // Functions that were not listed then are counted from 0, so a small growth proves nothing.
        .filter(|(more, _)| *more >= budget.instructions * NAMED_FROM)
        .collect();
    grown.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut words = String::new();
    for (more, name) in grown.into_iter().take(NAMED) {
        // Writing to a `String` cannot fail.
        let _ = write!(words, "\n  {more:+.0} {name}");
    }
    words
}

/// Returns the compiler of a binary, as the binary names it beside its symbols.
pub fn compiler(binary: &Path) -> Result<String, Error> {
    const SAID: &[u8] = b"rustc version ";
    let bytes = fs::read(binary)?;
    let found = bytes.windows(SAID.len()).position(|part| part == SAID);
    let words = found.and_then(|at| bytes.get(at..)?.split(|byte| *byte == 0).next());
    let words = words.ok_or_else(|| format!("{}: no compiler is named", binary.display()))?;
    Ok(String::from_utf8_lossy(words).into_owned())
}
