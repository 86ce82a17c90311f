//! Checks for updates and installs them through apt, on the host and in containers.
//!
//! A check runs only programs of the host; an installation in a container runs the container's own.

use std::collections::BTreeMap;

use gatewren_wire::operations::{
    Command, ContainerName, Operation, OperationEnd, PackageName, Program, UpdateOrder, UpdateScope,
};

use crate::context::helper_context::HelperContext;
use crate::context::output_relay::OutputRelay;
use crate::context::refusal::OperationRefusal;
use crate::context::tools;
use crate::lxc::jailed::{ContainerView, JailedTool};
use crate::processes::commands::{in_container, on_host, require_root};

/// The script of the steps.
const STEPS: &str = include_str!("updates.sh");

/// The most processes: package scripts may start many, such as a compiler for each CPU.
const PROCESSES: u32 = 8192;

/// The most packages in one request.
const NAMES: usize = 200;

/// The longest agent name; a longer one, or one with other than plain characters, is left out.
const AGENT_BYTES: usize = 64;

/// The files of a container that the host's apt reads to simulate an upgrade. The container's apt settings
/// (`apt.conf`) are left out: they can name programs to run.
const PACKAGES: ContainerView = ContainerView {
    needs: &["/var/lib/apt"],
    paths: &[
        "/etc/apt/preferences",
        "/etc/apt/preferences.d",
        "/etc/apt/sources.list",
        "/etc/apt/sources.list.d",
        "/run/reboot-required",
        "/run/reboot-required.pkgs",
        "/var/lib/dpkg",
    ],
    absent: NO_APT,
};

/// The files with the history of a container's apt.
const HISTORY: ContainerView = ContainerView {
    needs: &["/var/lib/apt", "/var/log/apt"],
    paths: &[],
    absent: NO_APT,
};

/// The message if there is nothing to read.
const NO_APT: &str = "has no apt: another program manages its packages";

/// Performs one of the operations on updates.
pub async fn perform(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    let (seen, words) = match operation {
        Operation::UpdateCheck { container: None } => return check(helper, relay).await,
        Operation::UpdateCheck {
            container: Some(name),
        } => (Some((name, &PACKAGES)), vec!["check".to_owned()]),
        Operation::UpdateRefresh { container: None } => (None, vec!["refresh".to_owned()]),
        Operation::UpdateRefresh {
            container: Some(name),
        } => return Err(no_refresh(helper, name)),
        Operation::UpdateHistory { container, file } => {
            let which = (*file > 0).then(|| file.to_string());
            let which = which.unwrap_or_default();
            let seen = container.as_ref().map(|name| (name, &HISTORY));
            (seen, vec!["history".to_owned(), which])
        }
        Operation::UpdateApply(order) => return apply(helper, relay, order).await,
        _ => return Err(OperationRefusal::failed("unsupported update operation")),
    };
    match seen {
        Some(seen) => from_outside(helper, relay, seen, words).await,
        None => step(helper, relay, None, words).await,
    }
}

/// The refusal of a refresh in a container: a read-only tool neither writes lists into a container nor runs its apt.
fn no_refresh(helper: &HelperContext, name: &ContainerName) -> OperationRefusal {
    helper
        .containers
        .check_exists(name)
        .err()
        .unwrap_or_else(|| {
            OperationRefusal::bad_command(format!(
                "a read-only tool cannot refresh the lists of container '{name}', because that runs the container's \
                 own apt; call update_check without refresh, or update_apply, which refreshes them first"
            ))
        })
}

/// Runs a step with the host's programs on files of a container.
async fn from_outside(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    (name, view): (&ContainerName, &ContainerView),
    words: Vec<String>,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let shell = ["-c", STEPS, STEPS].map(str::to_owned);
    let tool = tools::HostTool {
        name: "sh",
        args: shell.into_iter().chain(words).collect(),
    };
    let running = match relay.wait(helper.containers.alive(name)).await {
        Ok(running) => running?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    let jailed = JailedTool {
        tool: &tool,
        view,
        container: name,
        running: &running,
    };
    jailed.carry(relay, &helper.orphans).await
}

/// Prints a simulated upgrade. The options override apt settings of the owner, such as a quieter output or other
/// upgrade rules.
async fn check(
    helper: &HelperContext,
    relay: &mut OutputRelay,
) -> Result<OperationEnd, OperationRefusal> {
    let tool = tools::HostTool {
        name: "apt-get",
        args: [
            "--simulate",
            "--quiet=1",
            "--option=Debug::NoLocking=true",
            "--option=APT::Get::Show-User-Simulation-Note=false",
            "dist-upgrade",
        ]
        .map(str::to_owned)
        .into(),
    };
    tools::carry(&tool, relay, &helper.orphans).await
}

/// Installs updates. The caller can cancel until everything is downloaded. After that the installation runs to its
/// end: a half-installed package is worse than an unwanted one.
async fn apply(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    order: &UpdateOrder,
) -> Result<OperationEnd, OperationRefusal> {
    let words = words(order)?;
    let container = order.container.as_ref();
    let with = |first: &str| [vec![first.to_owned()], words.clone()].concat();
    // If a repository does not respond, updates from the others are installed; apt's output names it.
    let refreshed = step(helper, relay, container, vec!["refresh".to_owned()]).await?;
    if matches!(refreshed, OperationEnd::Killed { .. }) {
        return Ok(refreshed);
    }
    // In a container without systemd, an installation ends with the helper.
    relay.set_steadfast(true);
    let mended = step(helper, relay, container, vec!["mend".to_owned()]).await;
    relay.set_steadfast(false);
    mended?;
    let fetched = step(helper, relay, container, with("download")).await?;
    if fetched != (OperationEnd::Exited { code: 0 }) {
        return Ok(fetched);
    }
    relay.set_steadfast(true);
    let installed = step(helper, relay, container, with("install")).await;
    relay.set_steadfast(false);
    installed
}

/// The arguments after the step's name.
fn words(order: &UpdateOrder) -> Result<Vec<String>, OperationRefusal> {
    let (scope, names): (_, &[_]) = match &order.scope {
        UpdateScope::All => ("all", &[]),
        UpdateScope::Security => ("security", &[]),
        UpdateScope::Named(names) => ("named", names),
    };
    if names.len() > NAMES {
        return Err(OperationRefusal::bad_command(format!(
            "at most {NAMES} packages can be named at once"
        )));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@".contains(&b);
    let agent = order.agent.bytes().all(plain) && order.agent.len() <= AGENT_BYTES;
    let agent = if agent { order.agent.as_str() } else { "" };
    let removals = if order.removals { "allow" } else { "keep" };
    let names = names.iter().map(PackageName::as_str);
    let words = [scope, removals, agent].into_iter().chain(names);
    Ok(words.map(str::to_owned).collect())
}

/// Runs a step of the script. It ends, with all processes it started, when the caller cancels.
async fn step(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    container: Option<&ContainerName>,
    words: Vec<String>,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let shell = ["/bin/sh", "-c", STEPS, STEPS].map(str::to_owned);
    let command = Command {
        program: Program::Argv(shell.into_iter().chain(words).collect()),
        user: None,
        cwd: Some("/".to_owned()),
        env: BTreeMap::new(),
    };
    match container {
        Some(container) => in_container(helper, relay, (container, &command), PROCESSES).await,
        None => on_host(helper, relay, &command, PROCESSES).await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::updates::*;

    fn order(scope: &str, agent: &str) -> UpdateOrder {
        let order = format!(r#"{{"scope":{scope},"removals":false,"agent":"{agent}"}}"#);
        serde_json::from_str(&order).unwrap()
    }

    #[test]
    fn an_order_becomes_words_of_which_none_is_more_than_it_says() {
        let named = order(r#"{"named":["libc6","g++:i386"]}"#, "agent:ada");
        assert_eq!(
            words(&named).unwrap(),
            ["named", "keep", "agent:ada", "libc6", "g++:i386"]
        );
        let hostile = order("\"security\"", "x -o=a; $(y)");
        assert_eq!(words(&hostile).unwrap(), ["security", "keep", ""]);
        let many = order("\"all\"", "a");
        let name = "aa".to_owned().try_into().unwrap();
        let scope = UpdateScope::Named(vec![name; NAMES + 1]);
        assert!(words(&UpdateOrder { scope, ..many }).is_err());
    }
}
