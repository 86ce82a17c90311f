//! The mode of a tool under a policy: the preset's mode for its class, unless an override applies.

use serde_json::{Map, Value};

use gatewren_base::config::{Mode, Policy, Preset};
use gatewren_wire::registry::{Risk, Tool};

use Mode::{Allow, Confirm, ConfirmOwner, Deny, Propose};

/// Preset, then read, scan, write, disrupt, execute, reveal, persist.
///
/// The preset `suggest` proposes changes with its own tools, and calls no others.
#[rustfmt::skip]
const TABLE: [(Preset, [Mode; 7]); 4] = [
    (Preset::Observe, [Allow, Deny,  Deny,    Deny,    Deny,    Deny,    Deny   ]),
    (Preset::Suggest, [Allow, Deny,  Propose, Propose, Propose, Deny,    Deny   ]),
    (Preset::Operate, [Allow, Allow, Allow,   Propose, Propose, Deny,    Deny   ]),
    (Preset::Admin,   [Allow, Allow, Allow,   Confirm, Allow,   Confirm, ConfirmOwner]),
];

/// The tools of the preset `suggest`. Other presets have better tools for the same purpose, and see these only if
/// the owner names them.
const SUGGESTING: [&str; 4] = ["context", "propose_change", "read", "search"];

/// The tools for an agent's own proposals, for policies with proposals.
const ASKING_ABOUT_CHANGES: [&str; 3] = ["change_get", "change_list", "change_withdraw"];

/// Tools that do to each container of a stack, or to many items, what the other tool does to one. An override for the
/// other tool holds for them too if it is stricter: what the owner forbids for one is not possible through them.
const THROUGH_A_STACK: [(&str, &str); 5] = [
    ("disk_cleanup", "container_snapshot_delete"),
    ("stack_restart", "container_restart"),
    ("stack_start", "container_start"),
    ("stack_stop", "container_stop"),
    ("update_run", "update_apply"),
];

/// Tools with a lasting effect that `operate` proposes, whatever it does with their class: what they leave behind only
/// makes calls and checks that this policy is asked about again each time.
const PROPOSED_BY_OPERATE: [&str; 2] = ["schedule_create", "watch_create"];

/// The tools in the lists of the presets `observe` and `operate` if the owner has named no toolsets. The lists are
/// short, because a model reads them on every turn. Other tools can still be called, and are listed if their toolset is
/// named.
const ESSENTIAL: [&str; 34] = [
    "backup_create",
    "backup_target_list",
    "change_get",
    "changes_since",
    "container_diagnose",
    "container_list",
    "container_logs",
    "container_move",
    "container_restart",
    "container_shell",
    "container_start",
    "container_stats",
    "container_stop",
    "container_storage",
    "disk_cleanup",
    "disk_report",
    "job_wait",
    "login_list",
    "logs_query",
    "schedule_create",
    "schedule_list",
    "server_info",
    "server_metrics",
    "state_get",
    "system_shell",
    "unit_restart",
    "unit_status",
    "update_check",
    "update_plan",
    "update_run",
    "watch_create",
    "watch_delete",
    "watch_list",
    "whoami",
];

/// More tools in the list of the preset `observe` if the owner has named no toolsets: it has none of those that act.
const ESSENTIAL_TO_OBSERVE: [&str; 17] = [
    "backup_list",
    "container_history",
    "container_info",
    "container_ports",
    "disk_health",
    "disk_list",
    "disk_usage",
    "firewall_rules",
    "kernel_logs",
    "network_addresses",
    "network_listeners",
    "notification_list",
    "server_history",
    "server_processes",
    "stack_list",
    "unit_list",
    "update_history",
];

/// An argument with which a call does what another tool does, too.
struct StricterArgument {
    tool: &'static str,
    argument: &'static str,
    /// The other tool.
    like: PolicySubject<'static>,
}

/// The arguments with which a call of a tool is judged as strictly as a call of another tool.
const STRICTER_ARGUMENTS: [StricterArgument; 1] = [StricterArgument {
    tool: "backup_create",
    argument: "keep",
    like: PolicySubject {
        name: "backup_delete",
        toolset: "backup",
        risk: Risk::Disrupt,
    },
}];

/// The name for all toolsets.
pub const ALL_TOOLSETS: &str = "all";

/// The properties of a tool that a policy depends on.
#[derive(Debug, Clone, Copy)]
pub struct PolicySubject<'a> {
    /// Its name.
    pub name: &'a str,
    /// The toolset that it belongs to.
    pub toolset: &'a str,
    /// Its risk class.
    pub risk: Risk,
}

impl<'a> From<&'a Tool> for PolicySubject<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            name: tool.name(),
            toolset: tool.toolset(),
            risk: tool.risk(),
        }
    }
}

impl PolicySubject<'_> {
    fn suggests(&self) -> bool {
        SUGGESTING.contains(&self.name)
    }

    fn asks_about_changes(&self) -> bool {
        ASKING_ABOUT_CHANGES.contains(&self.name)
    }
}

/// Returns whether a policy shows a tool, so that it can be called.
pub fn shows<'a>(policy: &Policy, tool: impl Into<PolicySubject<'a>>) -> bool {
    let tool = tool.into();
    let overrides = &policy.overrides;
    let suggests = policy.preset == Preset::Suggest;
    let toolsets = overrides.toolsets.as_ref();
    match mode(policy, tool) {
        Deny => false,
        // The owner allows these tools by name.
        Allow | Confirm | ConfirmOwner if overrides.tools.contains_key(tool.name) => true,
        _ if tool.suggests() => {
            suggests || toolsets.is_some_and(|named| names(named, tool.toolset))
        }
        _ if suggests => false,
        _ if tool.asks_about_changes() => proposes_any(policy),
        _ => true,
    }
}

/// Returns whether a policy has a short list of tools, with only the essential and the explicitly named ones.
pub fn has_short_list(policy: &Policy) -> bool {
    has_brief_entries(policy) && matches!(policy.preset, Preset::Observe | Preset::Operate)
}

/// Returns whether the entries of a policy's list have only what is needed to choose and call a tool. The owner has
/// everything listed by naming toolsets.
pub fn has_brief_entries(policy: &Policy) -> bool {
    policy.overrides.toolsets.is_none()
}

/// Returns whether a visible tool is also listed.
pub fn lists<'a>(policy: &Policy, tool: impl Into<PolicySubject<'a>>) -> bool {
    let tool = tool.into();
    let named = policy.overrides.tools.contains_key(tool.name);
    let observes = policy.preset == Preset::Observe && ESSENTIAL_TO_OBSERVE.contains(&tool.name);
    !has_short_list(policy) || named || observes || ESSENTIAL.contains(&tool.name)
}

/// Returns whether a policy allows calls of a tool to be proposed.
pub fn lets_propose<'a>(policy: &Policy, tool: impl Into<PolicySubject<'a>>) -> bool {
    let tool = tool.into();
    let about_itself = tool.suggests() || tool.asks_about_changes();
    tool.risk != Risk::Read && !about_itself && mode(policy, tool) != Deny
}

/// Returns whether any call becomes a change in the inbox under a policy.
fn proposes_any(policy: &Policy) -> bool {
    let mut named = policy.overrides.tools.values();
    let mut classes = Risk::ALL.into_iter();
    classes.any(|risk| asks_owner(class(policy, risk))) || named.any(|mode| asks_owner(*mode))
}

/// Returns whether calls of this mode become changes in the inbox.
pub fn asks_owner(mode: Mode) -> bool {
    matches!(mode, ConfirmOwner | Propose)
}

/// Returns the mode of a tool under a policy. The most specific setting wins: the tool's name, then its toolset,
/// then its class, then the preset. Listing and withdrawing the agent's own proposals has no class, because it
/// undoes nothing. Of a tool for a stack and the override for the same tool for one container, the stricter wins.
pub fn mode<'a>(policy: &Policy, tool: impl Into<PolicySubject<'a>>) -> Mode {
    let tool = tool.into();
    let mut covered = THROUGH_A_STACK.iter();
    let of_one = covered.find(|(of_stack, _)| *of_stack == tool.name);
    let of_one = of_one.and_then(|(_, of_one)| policy.overrides.tools.get(*of_one));
    // Ordered from the most permissive to the strictest.
    own_mode(policy, tool).max(of_one.copied().unwrap_or(Allow))
}

/// Returns the mode of a call with these arguments: that of its tool, or of the other tool that an argument is like
/// if that is stricter.
pub fn mode_of_call(policy: &Policy, tool: &Tool, arguments: &Map<String, Value>) -> Mode {
    let own = mode(policy, tool);
    let stricter = stricter_arguments(tool, arguments).map(|stricter| mode(policy, stricter.like));
    stricter.fold(own, Mode::max)
}

/// Returns the argument, if any, that makes the call do more than its tool does without it.
pub fn stricter_argument(tool: &Tool, arguments: &Map<String, Value>) -> Option<&'static str> {
    let mut stricter = stricter_arguments(tool, arguments);
    stricter.next().map(|stricter| stricter.argument)
}

/// Returns whether some call of a tool has this mode.
pub fn may_have_mode(policy: &Policy, tool: &Tool, wanted: Mode) -> bool {
    let mut others = STRICTER_ARGUMENTS.iter();
    mode(policy, tool) == wanted
        || others.any(|other| other.tool == tool.name() && mode(policy, other.like) == wanted)
}

fn stricter_arguments<'a>(
    tool: &'a Tool,
    arguments: &'a Map<String, Value>,
) -> impl Iterator<Item = &'static StricterArgument> + 'a {
    let is_given = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
    STRICTER_ARGUMENTS
        .iter()
        .filter(move |stricter| stricter.tool == tool.name() && is_given(stricter.argument))
}

fn own_mode(policy: &Policy, tool: PolicySubject<'_>) -> Mode {
    let overrides = &policy.overrides;
    if let Some(mode) = overrides.tools.get(tool.name) {
        return *mode;
    }
    let own = policy.preset == Preset::Suggest && tool.suggests();
    let toolsets = overrides.toolsets.as_ref().filter(|_| !own);
    if toolsets.is_some_and(|named| !names(named, tool.toolset)) {
        return Deny;
    }
    if tool.asks_about_changes() {
        return Allow;
    }
    let is_proposed = policy.preset == Preset::Operate
        && PROPOSED_BY_OPERATE.contains(&tool.name)
        && !overrides.modes.contains_key(&tool.risk);
    if is_proposed {
        return Propose;
    }
    class(policy, tool.risk)
}

fn names(toolsets: &[String], toolset: &str) -> bool {
    let mut named = toolsets.iter();
    named.any(|name| name == toolset || name == ALL_TOOLSETS)
}

/// Returns the mode of a class under a policy, for tools without an override.
pub fn class(policy: &Policy, risk: Risk) -> Mode {
    let override_mode = policy.overrides.modes.get(&risk);
    override_mode
        .copied()
        .unwrap_or_else(|| preset(policy.preset, risk))
}

/// Returns the mode of a class under a preset. Anything that the table does not contain is denied.
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
    fn a_call_that_also_deletes_is_judged_as_strictly_as_the_tool_that_deletes() {
        use gatewren_wire::registry::{Answer, Cx, Result, Toolset};

        #[derive(serde::Deserialize, schemars::JsonSchema)]
        struct AnyArguments {}

        async fn create(
            _: std::sync::Arc<()>,
            AnyArguments {}: AnyArguments,
            _: Cx,
        ) -> Result<Answer> {
            Ok(Answer::text("done"))
        }

        let rows = Toolset::new(().into()).with_name("backup");
        let tools = rows
            .answering("backup_create", Risk::Write, create)
            .into_tools();
        let with = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let (plain, keep) = (with(r#"{"keep":null}"#), with(r#"{"keep":{"last":1}}"#));
        #[rustfmt::skip]
        let table = [
            (Preset::Operate, NOTHING,                                Allow,        Propose),
            (Preset::Admin,   NOTHING,                                Allow,        Confirm),
            (Preset::Suggest, NOTHING,                                Propose,      Propose),
            (Preset::Admin,   r#"{"tools":{"backup_create":"allow"}}"#, Allow,      Confirm),
            (Preset::Admin,   r#"{"tools":{"backup_delete":"allow"}}"#, Allow,      Allow),
            (Preset::Admin,   r#"{"tools":{"backup_delete":"deny"}}"#,  Allow,      Deny),
            (Preset::Admin,   r#"{"modes":{"write":"confirm-owner"}}"#, ConfirmOwner, ConfirmOwner),
        ];
        for (preset, overrides, without, with_keep) in table {
            let overrides = serde_json::from_str(overrides).unwrap();
            let policy = Policy { preset, overrides };
            let [tool] = tools.as_slice() else {
                panic!("one tool")
            };
            assert_eq!(mode_of_call(&policy, tool, &plain), without, "{policy:?}");
            assert_eq!(mode_of_call(&policy, tool, &keep), with_keep, "{policy:?}");
        }
    }

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
    fn what_lasts_after_its_call_waits_for_the_owner_of_an_operator() {
        let watch = PolicySubject {
            name: "watch_create",
            toolset: "watches",
            risk: Risk::Write,
        };
        #[rustfmt::skip]
        let table = [
            (Preset::Observe, NOTHING,                                Deny),
            (Preset::Suggest, NOTHING,                                Propose),
            (Preset::Operate, NOTHING,                                Propose),
            (Preset::Admin,   NOTHING,                                Allow),
            (Preset::Operate, r#"{"modes":{"write":"allow"}}"#,       Allow),
            (Preset::Operate, r#"{"modes":{"write":"deny"}}"#,        Deny),
            (Preset::Operate, r#"{"tools":{"watch_create":"allow"}}"#, Allow),
            (Preset::Operate, r#"{"toolsets":["units"]}"#,            Deny),
        ];
        for (preset, overrides, expected) in table {
            let overrides = serde_json::from_str(overrides).unwrap();
            let policy = Policy { preset, overrides };
            assert_eq!(mode(&policy, watch), expected, "{policy:?}");
        }
    }

    #[test]
    fn an_agent_that_observes_or_suggests_scans_nothing_until_its_owner_allows_it() {
        let ping = PolicySubject {
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
        let subject = |name: &'static str, toolset: &'static str, risk| PolicySubject {
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
    fn what_an_override_forbids_for_one_container_is_not_possible_through_its_stack() {
        use Preset::{Admin, Operate};
        let stack = |name: &'static str, risk| PolicySubject {
            name,
            toolset: "containers",
            risk,
        };
        let start = stack("stack_start", Risk::Write);
        let stop = stack("stack_stop", Risk::Disrupt);
        let restart = stack("stack_restart", Risk::Disrupt);
        let update = stack("update_run", Risk::Disrupt);
        #[rustfmt::skip]
        let table = [
            (Admin,   NOTHING,                                                   stop,    Confirm),
            (Admin,   r#"{"tools":{"container_stop":"deny"}}"#,                  stop,    Deny),
            (Admin,   r#"{"tools":{"container_stop":"deny"}}"#,                  start,   Allow),
            (Admin,   r#"{"tools":{"container_start":"propose"}}"#,              start,   Propose),
            (Admin,   r#"{"tools":{"container_restart":"deny"}}"#,               restart, Deny),
            (Admin,   r#"{"tools":{"update_apply":"deny"}}"#,                    update,  Deny),
            (Admin,   r#"{"tools":{"container_stop":"deny","stack_stop":"allow"}}"#, stop, Deny),
            (Admin,   r#"{"tools":{"container_stop":"confirm"},"modes":{"disrupt":"allow"}}"#, stop, Confirm),
            // It is never looser: for a stack, the owner has said nothing.
            (Operate, r#"{"tools":{"container_stop":"allow"}}"#,                 stop,    Propose),
            (Operate, r#"{"tools":{"stack_stop":"allow"}}"#,                     stop,    Allow),
        ];
        for (preset, overrides, tool, expected) in table {
            let policy = Policy {
                preset,
                overrides: serde_json::from_str(overrides).unwrap(),
            };
            assert_eq!(
                mode(&policy, tool),
                expected,
                "{preset} {overrides} {}",
                tool.name
            );
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
            let subject = PolicySubject {
                name,
                toolset,
                risk,
            };
            assert_eq!(mode(&policy, subject), expected, "{name}");
        }
    }
}
