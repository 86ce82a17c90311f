//! What a policy says to a tool: its preset's word for the class, unless an override says otherwise.

use crate::config::{Mode, Policy, Preset};
use crate::registry::{Risk, Tool};

use Mode::{Allow, Confirm, ConfirmOwner, Deny, Propose};

/// Preset, then read, scan, write, disrupt, execute, reveal, persist.
///
/// What `suggest` may have done it proposes with tools of its own; it calls no other.
#[rustfmt::skip]
const TABLE: [(Preset, [Mode; 7]); 4] = [
    (Preset::Observe, [Allow, Deny,  Deny,    Deny,    Deny,    Deny,    Deny   ]),
    (Preset::Suggest, [Allow, Deny,  Propose, Propose, Propose, Deny,    Deny   ]),
    (Preset::Operate, [Allow, Allow, Allow,   Propose, Propose, Deny,    Deny   ]),
    (Preset::Admin,   [Allow, Allow, Allow,   Confirm, Allow,   Confirm, ConfirmOwner]),
];

/// The tools of the preset `suggest`. Others have better ones for the same, and see these where their owner names
/// them.
const SUGGESTING: [&str; 4] = ["context", "propose_change", "read", "search"];

/// What an agent may ask about its own proposals: for those that make some.
const ASKING_AFTER: [&str; 3] = ["change_get", "change_list", "change_withdraw"];

/// What the preset `operate` lists while nobody has named toolsets for it: a list that a model has in mind with each of
/// its turns is short. The others can be called all the same, and are listed where their toolset is named.
const ESSENTIAL: [&str; 16] = [
    "change_get",
    "container_list",
    "container_restart",
    "container_shell",
    "container_start",
    "container_stop",
    "job_wait",
    "logs_query",
    "server_info",
    "server_metrics",
    "state_get",
    "system_shell",
    "unit_restart",
    "unit_status",
    "update_check",
    "whoami",
];

/// The word for all toolsets.
pub const ALL_TOOLSETS: &str = "all";

/// What a policy looks at in a tool.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// The group that it belongs to.
    pub toolset: &'a str,
    /// Its class.
    pub risk: Risk,
}

impl<'a> From<&'a Tool> for Subject<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            name: tool.name(),
            toolset: tool.toolset(),
            risk: tool.risk(),
        }
    }
}

impl Subject<'_> {
    fn suggests(&self) -> bool {
        SUGGESTING.contains(&self.name)
    }

    fn asks_after(&self) -> bool {
        ASKING_AFTER.contains(&self.name)
    }
}

/// Whether a policy shows a tool: whether it is listed, and can be called.
pub fn shows<'a>(policy: &Policy, tool: impl Into<Subject<'a>>) -> bool {
    let tool = tool.into();
    let overrides = &policy.overrides;
    let suggests = policy.preset == Preset::Suggest;
    let toolsets = overrides.toolsets.as_ref();
    match mode(policy, tool) {
        Deny => false,
        // What its owner lets it call itself.
        Allow | Confirm | ConfirmOwner if overrides.tools.contains_key(tool.name) => true,
        _ if tool.suggests() => {
            suggests || toolsets.is_some_and(|named| names(named, tool.toolset))
        }
        _ if suggests => false,
        _ if tool.asks_after() => proposes_any(policy),
        _ => true,
    }
}

/// Whether a policy has a tool's list short, so that it names only what is essential and how it is called.
pub fn lists_briefly(policy: &Policy) -> bool {
    policy.preset == Preset::Operate && policy.overrides.toolsets.is_none()
}

/// Whether a tool that a policy shows is in its list too.
pub fn lists<'a>(policy: &Policy, tool: impl Into<Subject<'a>>) -> bool {
    let tool = tool.into();
    let named = policy.overrides.tools.contains_key(tool.name);
    !lists_briefly(policy) || named || ESSENTIAL.contains(&tool.name)
}

/// Whether a policy lets a tool be proposed.
pub fn lets_propose<'a>(policy: &Policy, tool: impl Into<Subject<'a>>) -> bool {
    let tool = tool.into();
    let about_itself = tool.suggests() || tool.asks_after();
    tool.risk != Risk::Read && !about_itself && mode(policy, tool) != Deny
}

/// Whether something comes into the inbox under a policy.
fn proposes_any(policy: &Policy) -> bool {
    let mut named = policy.overrides.tools.values();
    let mut classes = Risk::ALL.into_iter();
    classes.any(|risk| asks_owner(class(policy, risk))) || named.any(|mode| asks_owner(*mode))
}

/// Whether calls of this mode become changes in the inbox.
pub fn asks_owner(mode: Mode) -> bool {
    matches!(mode, ConfirmOwner | Propose)
}

/// What a policy says to a tool, wherever it is used. The narrower word counts: what is said to the tool by its
/// name, then whether its group is among those that there are, then what is said to its class, then the preset. To
/// ask after a proposal, and to take it back, is of no class: it undoes nothing.
pub fn mode<'a>(policy: &Policy, tool: impl Into<Subject<'a>>) -> Mode {
    let tool = tool.into();
    let overrides = &policy.overrides;
    if let Some(mode) = overrides.tools.get(tool.name) {
        return *mode;
    }
    let own = policy.preset == Preset::Suggest && tool.suggests();
    let toolsets = overrides.toolsets.as_ref().filter(|_| !own);
    if toolsets.is_some_and(|named| !names(named, tool.toolset)) {
        return Deny;
    }
    if tool.asks_after() {
        return Allow;
    }
    class(policy, tool.risk)
}

fn names(toolsets: &[String], toolset: &str) -> bool {
    let mut named = toolsets.iter();
    named.any(|name| name == toolset || name == ALL_TOOLSETS)
}

/// What a policy says to a class, where nothing is said to the tool.
pub fn class(policy: &Policy, risk: Risk) -> Mode {
    let said = policy.overrides.modes.get(&risk);
    said.copied().unwrap_or_else(|| preset(policy.preset, risk))
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
        }
        assert_eq!(preset(Preset::Operate, Risk::Execute), Propose);
        assert_eq!(preset(Preset::Admin, Risk::Execute), Allow);
    }

    #[test]
    fn an_agent_that_observes_or_suggests_scans_nothing_until_its_owner_allows_it() {
        let ping = Subject {
            name: "network_ping",
            toolset: "network",
            risk: Risk::Scan,
        };
        #[rustfmt::skip]
        let table = [
            (Preset::Observe, NOTHING,                                false),
            (Preset::Suggest, NOTHING,                                false),
            (Preset::Operate, NOTHING,                                true),
            (Preset::Admin,   NOTHING,                                true),
            (Preset::Observe, r#"{"modes":{"read":"allow"}}"#,        false),
            (Preset::Observe, r#"{"modes":{"scan":"allow"}}"#,        true),
            (Preset::Suggest, r#"{"tools":{"network_ping":"allow"}}"#, true),
            (Preset::Operate, r#"{"modes":{"scan":"deny"}}"#,         false),
        ];
        for (preset, overrides, shown) in table {
            let overrides = serde_json::from_str(overrides).unwrap();
            let policy = Policy { preset, overrides };
            assert_eq!(shows(&policy, ping), shown, "{policy:?}");
            assert!(!lets_propose(&policy, ping) || shown, "{policy:?}");
        }
    }

    #[test]
    fn an_admin_is_asked_before_it_cuts_shows_or_leaves_something() {
        for risk in Risk::ALL {
            let expected = match risk {
                Risk::Disrupt | Risk::Reveal => Confirm,
                Risk::Persist => ConfirmOwner,
                _ => Allow,
            };
            assert_eq!(preset(Preset::Admin, risk), expected, "{risk:?}");
        }
    }

    const NOTHING: &str = "{}";

    #[test]
    fn who_suggests_sees_its_own_tools_and_proposes_the_others() {
        use Preset::{Admin, Observe, Operate, Suggest};
        let subject = |name: &'static str, toolset: &'static str, risk| Subject {
            name,
            toolset,
            risk,
        };
        let search = subject("search", "suggest", Risk::Read);
        let list = subject("container_list", "containers", Risk::Read);
        let stop = subject("container_stop", "containers", Risk::Disrupt);
        let shell = subject("system_shell", "shell", Risk::Execute);
        let reveal = subject("file_read", "files", Risk::Reveal);
        let withdraw = subject("change_withdraw", "changes", Risk::Write);
        let containers = r#"{"toolsets":["containers"]}"#;
        #[rustfmt::skip]
        let table = [
            (Suggest, NOTHING,                                   search,   true,  false),
            (Suggest, NOTHING,                                   list,     false, false),
            (Suggest, NOTHING,                                   stop,     false, true),
            (Suggest, NOTHING,                                   shell,    false, true),
            (Suggest, NOTHING,                                   reveal,   false, false),
            (Suggest, NOTHING,                                   withdraw, false, false),
            (Suggest, r#"{"tools":{"change_withdraw":"allow"}}"#, withdraw, true,  false),
            (Suggest, r#"{"tools":{"container_list":"allow"}}"#, list,     true,  false),
            (Suggest, r#"{"tools":{"container_stop":"propose"}}"#, stop,   false, true),
            (Suggest, containers,                                search,   true,  false),
            (Suggest, containers,                                stop,     false, true),
            (Suggest, containers,                                shell,    false, false),
            (Operate, NOTHING,                                   search,   false, false),
            (Operate, NOTHING,                                   withdraw, true,  false),
            (Operate, r#"{"modes":{"write":"propose"}}"#,        withdraw, true,  false),
            (Operate, r#"{"tools":{"search":"allow"}}"#,         search,   true,  false),
            (Operate, r#"{"toolsets":["suggest"]}"#,             search,   true,  false),
            (Observe, NOTHING,                                   withdraw, false, false),
            (Admin,   NOTHING,                                   withdraw, true,  false),
            (Admin,   r#"{"modes":{"persist":"confirm"}}"#,      withdraw, false, false),
            (Admin,   r#"{"modes":{"disrupt":"propose"}}"#,      withdraw, true,  false),
            (Suggest, r#"{"tools":{"container_stop":"confirm-owner"}}"#, stop, true, true),
        ];
        for (preset, overrides, tool, shown, proposed) in table {
            let policy = Policy {
                preset,
                overrides: serde_json::from_str(overrides).unwrap(),
            };
            let got = (shows(&policy, tool), lets_propose(&policy, tool));
            assert_eq!(got, (shown, proposed), "{preset} {overrides} {}", tool.name);
        }
    }

    #[test]
    fn the_narrower_word_counts() {
        let overrides = r#"{"toolsets":["containers"],"tools":{"server_time":"allow","container_stop":"deny"},
            "modes":{"disrupt":"confirm","read":"deny"}}"#;
        let policy = Policy {
            preset: Preset::Operate,
            overrides: serde_json::from_str(overrides).unwrap(),
        };
        #[rustfmt::skip]
        let table = [
            ("server_time",       "server",     Risk::Read,    Allow),
            ("server_info",       "server",     Risk::Read,    Deny),
            ("container_list",    "containers", Risk::Read,    Deny),
            ("container_start",   "containers", Risk::Write,   Allow),
            ("container_stop",    "containers", Risk::Disrupt, Deny),
            ("container_restart", "containers", Risk::Disrupt, Confirm),
            ("system_shell",      "shell",      Risk::Execute, Deny),
            ("nameless",          "",           Risk::Write,   Deny),
        ];
        for (name, toolset, risk, expected) in table {
            let subject = Subject {
                name,
                toolset,
                risk,
            };
            assert_eq!(mode(&policy, subject), expected, "{name}");
        }
    }
}
