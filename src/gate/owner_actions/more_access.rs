//! Determines whether a change of an agent extends its permissions or its token's lifetime.

use crate::auth::policy_of;
use crate::policy::class;
use gatewren_base::config::{Mode, Overrides, Policy, Risk};
use gatewren_store::vault::Agent;

/// Returns whether an agent may do anything after a change that it may not do before. If that cannot be determined,
/// returns true.
pub fn gives_more_access(before: &Agent, after: &Agent) -> bool {
    let (Ok(old), Ok(new)) = (policy_of(before), policy_of(after)) else {
        return true;
    };
    after.space != before.space
        || after.preset > before.preset
        || after.expires_ms.unwrap_or(u64::MAX) > before.expires_ms.unwrap_or(u64::MAX)
        || classes_give_more(&old, &new)
        || overrides_give_more(&old.overrides, &new.overrides)
}

fn classes_give_more(old: &Policy, new: &Policy) -> bool {
    let mut classes = Risk::ALL.into_iter();
    classes.any(|risk| rank(class(new, risk)) > rank(class(old, risk)))
}

fn overrides_give_more(old: &Overrides, new: &Overrides) -> bool {
    widens(old.toolsets.as_deref(), new.toolsets.as_deref())
        || widens(old.containers.as_deref(), new.containers.as_deref())
        || widens(old.networks.as_deref(), new.networks.as_deref())
        || old.tools != new.tools
        || raises(old.calls_per_minute, new.calls_per_minute)
        || raises(old.concurrent_calls, new.concurrent_calls)
}

/// Returns whether the new list allows an entry that the old one did not. No list allows everything.
fn widens<T: PartialEq>(old: Option<&[T]>, new: Option<&[T]>) -> bool {
    match (old, new) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(old), Some(new)) => new.iter().any(|one| !old.contains(one)),
    }
}

/// Returns whether an agent's own limit is raised; no limit is the highest.
fn raises(old: Option<u32>, new: Option<u32>) -> bool {
    new.unwrap_or(u32::MAX) > old.unwrap_or(u32::MAX)
}

/// The higher the rank, the more an agent may do without its owner. In two modes of equal rank the owner decides.
fn rank(mode: Mode) -> u8 {
    match mode {
        Mode::Deny => 0,
        Mode::Propose | Mode::ConfirmOwner => 1,
        Mode::Confirm => 2,
        Mode::Allow => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Preset;

    fn agent(preset: Preset, overrides: &str, expires_ms: Option<u64>) -> Agent {
        Agent {
            id: "agent_1".to_owned(),
            name: "a".to_owned(),
            token_sha256: [0; 32],
            preset,
            overrides: overrides.to_owned(),
            space: Some("media".to_owned()),
            created_ms: 0,
            expires_ms,
            revoked_ms: None,
            last_used_ms: None,
        }
    }

    #[test]
    fn what_lets_an_agent_do_more_is_told_from_what_lets_it_do_less() {
        use Preset::{Admin, Observe, Operate, Suggest};
        let bounded = r#"{"toolsets":["files"],"containers":["a","b"],"networks":["10.0.0.0/8"],"calls_per_minute":5}"#;
        #[rustfmt::skip]
        let table = [
            // before, after, whether it may do more
            (Operate, "{}",                                Observe, "{}",                                 false),
            (Observe, "{}",                                Suggest, "{}",                                 true),
            (Operate, "{}",                                Admin,   "{}",                                 true),
            (Admin,   "{}",                                Admin,   r#"{"modes":{"disrupt":"propose"}}"#, false),
            (Operate, "{}",                                Operate, r#"{"modes":{"execute":"confirm"}}"#, true),
            (Admin,   "{}",                                Observe, r#"{"modes":{"reveal":"allow"}}"#,    true),
            (Operate, r#"{"modes":{"write":"deny"}}"#,     Operate, "{}",                                 true),
            (Operate, "{}",                                Operate, bounded,                              false),
            (Operate, bounded,                             Operate, "{}",                                 true),
            (Operate, r#"{"containers":["a","b"]}"#,       Operate, r#"{"containers":["b"]}"#,            false),
            (Operate, r#"{"containers":["a"]}"#,           Operate, r#"{"containers":["a","c"]}"#,        true),
            (Operate, r#"{"tools":{"unit_start":"deny"}}"#, Operate, "{}",                                true),
            (Operate, "?",                                 Operate, "{}",                                 true),
        ];
        for (old, old_overrides, new, new_overrides, more) in table {
            let (before, after) = (
                agent(old, old_overrides, None),
                agent(new, new_overrides, None),
            );
            assert_eq!(
                gives_more_access(&before, &after),
                more,
                "{before:?} {after:?}"
            );
        }
        let until = |ms| agent(Operate, "{}", ms);
        assert!(
            gives_more_access(&until(Some(5)), &until(Some(6)))
                && gives_more_access(&until(Some(5)), &until(None))
        );
        assert!(
            !gives_more_access(&until(None), &until(Some(5)))
                && !gives_more_access(&until(Some(6)), &until(Some(5)))
        );
        let renamed = Agent {
            name: "b".to_owned(),
            ..until(None)
        };
        assert!(!gives_more_access(&until(None), &renamed));
        let elsewhere = Agent {
            space: Some("*".to_owned()),
            ..until(None)
        };
        assert!(gives_more_access(&until(None), &elsewhere));
    }
}
