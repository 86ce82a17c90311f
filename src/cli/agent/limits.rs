//! The overrides of a preset as command line options: they fill an agent's overrides or change them.

use std::collections::BTreeSet;
use std::str::FromStr;

use gatewren_base::config::{Glob, IpNetwork, Mode, Overrides, Risk, nearest};
use gatewren_gate::owner_actions::sanitize;
use gatewren_gate::policy::ALL_TOOLSETS;
use gatewren_store::vault::OfferedTool;

/// The maximum number of values of one kind; more are rejected.
const MAX_NAMED: usize = 64;

/// The upper bound of the call limits. In most settings, the limits for all agents are lower.
const MAX_CALLS: i64 = 1_000_000;

/// The options. A list replaces the old list; a mode sets one tool or class and leaves the others.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Overrides of the preset")]
pub struct PolicyOverrideArgs {
    /// Allow only the tools of this toolset, and list all of them; repeat it for more toolsets, `all` for every
    /// one
    #[arg(long = "toolset", value_name = "NAME")]
    toolsets: Vec<String>,

    /// Allow only containers that match this pattern, such as 'arr-*'; repeat it for more
    #[arg(long = "container", value_name = "GLOB")]
    containers: Vec<Glob>,

    /// Mode of one tool: allow, confirm, confirm-owner, propose, deny, or default
    #[arg(long = "tool", value_name = "TOOL=MODE")]
    tools: Vec<EditedValue<String>>,

    /// Mode of a class of tools: allow, confirm, confirm-owner, propose, deny, or default
    #[arg(long = "mode", value_name = "CLASS=MODE")]
    modes: Vec<EditedValue<Risk>>,

    /// Accept calls only from these addresses, such as 192.168.1.0/24; repeat it for more
    #[arg(long = "network", value_name = "CIDR")]
    networks: Vec<IpNetwork>,

    /// The maximum number of calls a minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_CALLS))]
    rate: Option<u32>,

    /// The maximum number of concurrent calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_CALLS))]
    concurrent: Option<u32>,
}

/// `NAME=MODE`; `None` removes the override.
#[derive(Debug, Clone)]
struct EditedValue<T> {
    to: T,
    mode: Option<Mode>,
}

impl<T: FromStr<Err: ToString>> FromStr for EditedValue<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (to, mode) = text.split_once('=').ok_or(
            "expected NAME=MODE with a mode of allow, confirm, confirm-owner, propose, deny, default",
        )?;
        let mode = match mode {
            "default" => None,
            word => Some(
                word.parse::<Mode>()
                    .map_err(|error| format!("{error}, default"))?,
            ),
        };
        let to = to.parse().map_err(|error: T::Err| error.to_string())?;
        Ok(Self { to, mode })
    }
}

impl PolicyOverrideArgs {
    /// Applies the options to `overrides`. `known` are the tools of the server, empty if unknown.
    pub fn apply(&self, overrides: &mut Overrides, known: &[OfferedTool]) -> Result<(), String> {
        self.check(known)?;
        replace(&mut overrides.toolsets, &self.toolsets);
        replace(&mut overrides.containers, &self.containers);
        replace(&mut overrides.networks, &self.networks);
        for EditedValue { to, mode } in &self.tools {
            match mode {
                Some(mode) => drop(overrides.tools.insert(to.clone(), *mode)),
                None => drop(overrides.tools.remove(to)),
            }
        }
        for EditedValue { to, mode } in &self.modes {
            match mode {
                Some(mode) => drop(overrides.modes.insert(*to, *mode)),
                None => drop(overrides.modes.remove(to)),
            }
        }
        overrides.calls_per_minute = self.rate.or(overrides.calls_per_minute);
        overrides.concurrent_calls = self.concurrent.or(overrides.concurrent_calls);
        if overrides.tools.len() > MAX_NAMED {
            return Err(format!(
                "too many tools: an agent has at most {MAX_NAMED} tool overrides"
            ));
        }
        Ok(())
    }

    fn check(&self, known: &[OfferedTool]) -> Result<(), String> {
        let lists = [
            self.toolsets.len(),
            self.containers.len(),
            self.networks.len(),
        ];
        if lists.into_iter().any(|length| length > MAX_NAMED) {
            return Err(format!(
                "too many values: each option can be repeated at most {MAX_NAMED} times"
            ));
        }
        let toolsets: BTreeSet<&str> = known.iter().map(|tool| tool.toolset.as_str()).collect();
        let tools: BTreeSet<&str> = known.iter().map(|tool| tool.name.as_str()).collect();
        let named = self.tools.iter().filter(|said| said.mode.is_some());
        for tool in named {
            check_known("tool", &tool.to, &tools)?;
        }
        for toolset in self.toolsets.iter().filter(|name| *name != ALL_TOOLSETS) {
            check_known("toolset", toolset, &toolsets)?;
        }
        Ok(())
    }
}

/// Leaves the list as it is if no option names it.
fn replace<T: Clone>(list: &mut Option<Vec<T>>, asked: &[T]) {
    if !asked.is_empty() {
        *list = Some(asked.to_vec());
    }
}

/// Rejects unknown names: such an override has no effect, and the owner would rely on it.
fn check_known(kind: &str, name: &str, known: &BTreeSet<&str>) -> Result<(), String> {
    if known.is_empty() || known.contains(name) {
        return Ok(());
    }
    let shown = sanitize(name);
    if let Some(meant) = nearest(name, known.iter().copied()) {
        return Err(format!(
            "there is no {kind} \"{shown}\"; did you mean \"{meant}\"?"
        ));
    }
    let known: Vec<&str> = known.iter().copied().collect();
    let known = known.join(", ");
    Err(format!("there is no {kind} \"{shown}\"; there are {known}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: PolicyOverrideArgs,
    }

    fn options(words: &[&str]) -> PolicyOverrideArgs {
        let words = [&["agent"], words].concat();
        Line::try_parse_from(words).unwrap().options
    }

    fn offered_tools() -> Vec<OfferedTool> {
        let tool = |name: &str, toolset: &str| OfferedTool {
            name: name.to_owned(),
            toolset: toolset.to_owned(),
            risk: Risk::Read,
            needs_host: false,
            needs_everything: false,
            off: None,
        };
        vec![
            tool("container_stop", "containers"),
            tool("server_info", "server"),
        ]
    }

    #[test]
    fn options_become_overrides_and_later_ones_change_them() {
        let mut overrides = Overrides::default();
        let first = options(&[
            "--toolset",
            "containers",
            "--container",
            "arr-*",
            "--tool",
            "container_stop=allow",
            "--mode",
            "execute=deny",
            "--mode",
            "read=confirm",
            "--network",
            "10.0.0.0/8",
            "--rate",
            "60",
            "--concurrent",
            "2",
        ]);
        first.apply(&mut overrides, &offered_tools()).unwrap();
        let text = r#"{"toolsets":["containers"],"tools":{"container_stop":"allow"},"modes":{"read":"confirm","execute":"deny"},"containers":["arr-*"],"calls_per_minute":60,"concurrent_calls":2,"networks":["10.0.0.0/8"]}"#;
        assert_eq!(overrides.to_text(), text);
        let second = options(&[
            "--toolset",
            "server",
            "--tool",
            "container_stop=default",
            "--mode",
            "read=default",
            "--rate",
            "5",
        ]);
        second.apply(&mut overrides, &offered_tools()).unwrap();
        let text = r#"{"toolsets":["server"],"modes":{"execute":"deny"},"containers":["arr-*"],"calls_per_minute":5,"concurrent_calls":2,"networks":["10.0.0.0/8"]}"#;
        assert_eq!(overrides.to_text(), text);
    }

    #[test]
    fn a_mistyped_name_is_refused_where_the_names_are_known() {
        let try_options = |words: &[&str], known: &[OfferedTool]| {
            options(words).apply(&mut Overrides::default(), known)
        };
        assert_eq!(
            try_options(&["--tool", "container_stp=allow"], &offered_tools()).unwrap_err(),
            "there is no tool \"container_stp\"; did you mean \"container_stop\"?"
        );
        assert_eq!(
            try_options(&["--toolset", "files"], &offered_tools()).unwrap_err(),
            "there is no toolset \"files\"; there are containers, server"
        );
        assert_eq!(
            try_options(&["--tool", "x=allow", "--toolset", "y"], &[]),
            Ok(())
        );
        assert_eq!(
            try_options(&["--tool", "gone=default"], &offered_tools()),
            Ok(())
        );
    }

    #[test]
    fn what_is_no_option_is_said() {
        for (words, hint) in [
            (["--mode", "run=deny"], "read, scan, write"),
            (["--mode", "read"], "="),
            (
                ["--mode", "read=maybe"],
                "allow, confirm, confirm-owner, propose, deny, default",
            ),
            (["--network", "10.0.0.1/8"], "192.168.1.0/24"),
            (["--container", "a/b"], "pattern"),
            (["--rate", "0"], "1.."),
        ] {
            let words = [&["agent"][..], &words].concat();
            let Err(error) = Line::try_parse_from(words.clone()) else {
                panic!("{words:?}");
            };
            assert!(error.to_string().contains(hint), "{words:?}: {error}");
        }
    }
}
