//! What each preset says to each class of tool.

use crate::config::Preset;
use crate::registry::Risk;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It runs.
    Allow,
    /// It waits for the owner.
    Propose,
    /// The tool does not exist for this agent.
    Deny,
}

use Mode::{Allow, Deny, Propose};

/// Preset, then read, write, disrupt, execute, reveal, persist.
///
/// `admin` runs what disrupts without asking the person at the client: there is no confirmation yet.
/// `suggest` sees four tools that come with the inbox, so nothing until then.
#[rustfmt::skip]
const TABLE: [(Preset, [Mode; 6]); 4] = [
    (Preset::Observe, [Allow, Deny,  Deny,    Deny,    Deny,    Deny   ]),
    (Preset::Suggest, [Deny,  Deny,  Deny,    Deny,    Deny,    Deny   ]),
    (Preset::Operate, [Allow, Allow, Propose, Propose, Deny,    Deny   ]),
    (Preset::Admin,   [Allow, Allow, Allow,   Allow,   Propose, Propose]),
];

/// What a preset says to a class; what the table does not hold is denied.
pub fn mode(preset: Preset, risk: Risk) -> Mode {
    let column = Risk::ALL.iter().position(|r| *r == risk);
    let row = TABLE.iter().find(|(p, _)| *p == preset);
    row.zip(column)
        .and_then(|((_, modes), at)| modes.get(at))
        .copied()
        .unwrap_or(Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_only_looks_and_an_operator_runs_no_code() {
        for risk in Risk::ALL {
            let expected = if risk == Risk::Read { Allow } else { Deny };
            assert_eq!(mode(Preset::Observe, risk), expected, "{risk:?}");
            assert_eq!(mode(Preset::Suggest, risk), Deny, "{risk:?}");
        }
        assert_eq!(mode(Preset::Operate, Risk::Execute), Propose);
        assert_eq!(mode(Preset::Admin, Risk::Execute), Allow);
    }
}
