//! What a policy says to a tool: its preset's word for the class, unless an override says otherwise.

use crate::config::{Mode, Policy, Preset};
use crate::registry::{Risk, Tool};

use Mode::{Allow, Confirm, Deny, Propose};

/// Preset, then read, write, disrupt, execute, reveal, persist.
///
/// `suggest` sees four tools that come with the inbox, so nothing until then.
#[rustfmt::skip]
const TABLE: [(Preset, [Mode; 6]); 4] = [
    (Preset::Observe, [Allow, Deny,  Deny,    Deny,    Deny,    Deny   ]),
    (Preset::Suggest, [Deny,  Deny,  Deny,    Deny,    Deny,    Deny   ]),
    (Preset::Operate, [Allow, Allow, Propose, Propose, Deny,    Deny   ]),
    (Preset::Admin,   [Allow, Allow, Confirm, Allow,   Confirm, Confirm]),
];

/// What a policy says to a tool, wherever it is used.
pub fn mode(policy: &Policy, tool: &Tool) -> Mode {
    let overrides = &policy.overrides;
    let named = overrides.tools.get(tool.name());
    let class = named.or_else(|| overrides.modes.get(&tool.risk()));
    class
        .copied()
        .unwrap_or_else(|| preset(policy.preset, tool.risk()))
}

/// What a preset says to a class; what the table does not hold is denied.
fn preset(preset: Preset, risk: Risk) -> Mode {
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
            assert_eq!(preset(Preset::Observe, risk), expected, "{risk:?}");
            assert_eq!(preset(Preset::Suggest, risk), Deny, "{risk:?}");
        }
        assert_eq!(preset(Preset::Operate, Risk::Execute), Propose);
        assert_eq!(preset(Preset::Admin, Risk::Execute), Allow);
    }

    #[test]
    fn an_admin_is_asked_before_it_cuts_shows_or_leaves_something() {
        for risk in Risk::ALL {
            let asked = matches!(risk, Risk::Disrupt | Risk::Reveal | Risk::Persist);
            let expected = if asked { Confirm } else { Allow };
            assert_eq!(preset(Preset::Admin, risk), expected, "{risk:?}");
        }
    }
}
