//! The part of the counts that belongs to one call.

use std::collections::BTreeMap;

use crate::profile::{Function, Profile};

/// The cost of one call of a path.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Share {
    /// The path.
    pub name: String,
    /// Instructions of a call.
    pub instructions: f64,
    /// Allocations of a call; unknown for a part of a call.
    pub allocations: Option<f64>,
    /// Instructions of a call by function, without callees.
    pub functions: BTreeMap<String, f64>,
    /// Allocations of a call by function.
    pub askers: BTreeMap<String, f64>,
    /// The factor above the accepted count that is a regression.
    #[serde(skip)]
    pub tolerated: f64,
}

/// The factor above the accepted count that is a regression. Counts of the same program differ by less than one per
/// cent, those of the audit's row by two.
const TOLERATED: f64 = 1.03;

/// That of a page, which has more words and points at some times of a day and a week than at others.
const TOLERATED_OF_PAGE: f64 = 1.1;

impl Share {
    /// Returns the share of all counts.
    pub fn of_all(name: &str, profile: &Profile, calls: u32) -> Self {
        Self::of_difference(name, profile, &Profile::default(), calls)
    }

    /// Returns the share of the difference between two counts.
    pub fn of_difference(name: &str, more: &Profile, less: &Profile, calls: u32) -> Self {
        let share = |more: u64, less: u64| (number(more) - number(less)) / f64::from(calls);
        let each = |figure: fn(&Function) -> u64| {
            let functions = more.functions.iter().map(|(name, function)| {
                let before = less.functions.get(name).map_or(0, figure);
                (name.clone(), share(figure(function), before))
            });
            functions.filter(|(_, share)| *share > 0.0).collect()
        };
        Self {
            name: name.to_owned(),
            instructions: share(more.instructions, less.instructions),
            allocations: Some(share(more.allocations, less.allocations)),
            functions: each(|function| function.own),
            askers: each(|function| function.allocations),
            tolerated: TOLERATED,
        }
    }

    /// Returns the share of all counts of a page.
    pub fn of_page(name: &str, profile: &Profile, requests: u32) -> Self {
        Self {
            tolerated: TOLERATED_OF_PAGE,
            ..Self::of_all(name, profile, requests)
        }
    }

    /// Returns the cost of one call of a function, with all its callees.
    pub fn of_part(name: &str, function: Function) -> Self {
        Self {
            name: name.to_owned(),
            instructions: number(function.whole) / number(function.called),
            allocations: None,
            functions: BTreeMap::new(),
            askers: BTreeMap::new(),
            tolerated: TOLERATED,
        }
    }

    /// Returns the cost of one of `calls` calls, where only instructions were counted.
    pub fn of_count(name: String, instructions: u64, calls: u32) -> Self {
        Self {
            name,
            instructions: number(instructions) / f64::from(calls),
            allocations: None,
            functions: BTreeMap::new(),
            askers: BTreeMap::new(),
            tolerated: TOLERATED,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no measurement reaches 2^53 instructions"
)]
fn number(count: u64) -> f64 {
    count as f64
}
