//! The introduction for an agent: its identity, its access, and how its calls are treated.

use std::fmt::Write as _;

use super::rules::{class, has_short_list};
use crate::auth::Principal;
use gatewren_base::config::{Mode, Preset, Risk};

/// Returns a few sentences for a model, with the host's name if it is known.
pub fn introduce(who: &Principal, name: Option<&str>) -> String {
    let policy = who.policy();
    let place = name.map_or_else(String::new, |name| format!(" of the server {name:?}"));
    let mut text = format!(
        "You are the agent {:?}{place}, with the policy `{}`",
        who.name(),
        policy.preset.as_str()
    );
    if who.reach().is_everything() {
        text += ".";
    } else {
        let _ = write!(
            text,
            ". Your access is limited to the space {:?}: you cannot see anything outside it.",
            who.space()
        );
    }
    if policy.preset == Preset::Suggest {
        return text + " You read, and propose changes: the owner decides on them.";
    }
    let of = |mode: Mode| {
        let mut classes = Risk::ALL.into_iter();
        let named = classes.by_ref().filter(|risk| class(policy, *risk) == mode);
        named.map(Risk::as_str).collect::<Vec<_>>().join(", ")
    };
    for (mode, words) in [
        (Mode::Allow, "run at once"),
        (Mode::Confirm, "run after the person at your client agrees"),
        (Mode::ConfirmOwner, "run after the owner agrees"),
        (Mode::Propose, "wait in the owner's inbox for approval"),
        (Mode::Deny, "are not available to you"),
    ] {
        let classes = of(mode);
        if !classes.is_empty() {
            let _ = write!(text, " Tools of the class {classes} {words}.");
        }
    }
    if has_short_list(policy) {
        text += " The list contains only the most important tools; the owner can have more toolsets listed.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_told_in_its_own_words() {
        let introduction =
            |preset| introduce(&Principal::without_token("ada", preset), Some("nest"));
        let operator = introduction(Preset::Operate);
        assert!(operator.starts_with(
            "You are the agent \"ada\" of the server \"nest\", with the policy `operate`."
        ));
        assert!(
            operator.contains("Tools of the class read, scan, write run at once."),
            "{operator}"
        );
        assert!(operator.contains("toolsets"), "{operator}");
        let observer = introduction(Preset::Observe);
        assert!(observer.contains("are not available to you"), "{observer}");
        assert!(!observer.contains("inbox"), "{observer}");
        assert!(introduction(Preset::Suggest).contains("the owner decides"));
        assert!(introduction(Preset::Admin).len() < 400, "it is short");
    }
}
