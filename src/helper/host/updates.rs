//! Checks for updates and installs them through apt, on the host and in containers.
//!
//! A check runs only programs of the host; an installation in a container runs the container's own.

use std::collections::BTreeMap;

use gatewren_wire::operations::{
    Command, ContainerRef, Operation, OperationEnd, OperationRefusal, PackageName, Program,
    UpdateOrder, UpdateScope,
};

use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::lxc::jailed::{ContainerView, JailedTool};
use crate::processes::commands::{require_root, run_in_container, run_on_host};
use crate::processes::step_error::{StepError, step_end};

/// The script of the steps.
const STEPS: &str = include_str!("updates.sh");

/// The line that reports lists which could not be fetched.
const UNFETCHED: &[u8] = b"\ngatewren: unfetched\n";

/// The most processes: package scripts may start many, such as a compiler for each CPU.
pub const PROCESSES: u32 = 8192;

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
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    context.processes = PROCESSES;
    match operation {
        Operation::UpdateCheck { container: None } => check(context).await,
        Operation::UpdateCheck {
            container: Some(name),
        } => {
            let words = vec!["check".to_owned()];
            step_end(run_on_files(context, name, &PACKAGES, words).await)
        }
        Operation::UpdateRefresh { container: None } => {
            run_step(context, None, vec!["refresh".to_owned()]).await
        }
        Operation::UpdateRefresh {
            container: Some(name),
        } => Err(no_refresh(context.helper, name)),
        Operation::UpdateHistory { container, file } => {
            let which = (*file > 0).then(|| file.to_string());
            let words = vec!["history".to_owned(), which.unwrap_or_default()];
            match container {
                Some(name) => step_end(run_on_files(context, name, &HISTORY, words).await),
                None => run_step(context, None, words).await,
            }
        }
        Operation::UpdateApply(order) => apply(context, order).await,
        _ => Err(OperationRefusal::failed("unsupported update operation")),
    }
}

/// The refusal of a refresh in a container: a read-only tool neither writes lists into a container nor runs its apt.
fn no_refresh(helper: &HelperContext, name: &ContainerRef) -> OperationRefusal {
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
async fn run_on_files(
    context: &mut OperationContext<'_>,
    name: &ContainerRef,
    view: &ContainerView,
    words: Vec<String>,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    let shell = ["-c", STEPS, STEPS].map(str::to_owned);
    let tool = tools::HostTool {
        name: "sh",
        args: shell.into_iter().chain(words).collect(),
    };
    let alive = context.helper.containers.alive(name);
    let running = context.relay.wait(alive).await??;
    let jailed = JailedTool {
        tool: &tool,
        view,
        container: name,
        running: &running,
    };
    Ok(jailed.run(context).await?)
}

/// Prints a simulated upgrade, and the space that it needs.
async fn check(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    let tool = tools::HostTool::new("sh", ["-c", STEPS, STEPS, "check"]);
    context.run_tool(&tool).await
}

/// Installs updates. The caller can cancel until everything is downloaded. After that the installation runs to its
/// end: a half-installed package is worse than an unwanted one.
async fn apply(
    context: &mut OperationContext<'_>,
    order: &UpdateOrder,
) -> Result<OperationEnd, OperationRefusal> {
    let words = words(order)?;
    let container = order.container.as_ref();
    let with = |first: &str| [vec![first.to_owned()], words.clone()].concat();
    // If a repository does not respond, updates from the others are installed, and the front reports what was not
    // fetched.
    let refreshed = run_step(context, container, vec!["refresh".to_owned()]).await?;
    if matches!(refreshed, OperationEnd::Killed { .. }) {
        return Ok(refreshed);
    }
    if refreshed != OperationEnd::SUCCESS {
        context.relay.write_stdout(UNFETCHED.to_vec()).await;
    }
    // In a container without systemd, an installation ends with the helper.
    context.relay.set_uninterruptible(true);
    let repaired = run_step(context, container, vec!["mend".to_owned()]).await;
    context.relay.set_uninterruptible(false);
    repaired?;
    let fetched = run_step(context, container, with("download")).await?;
    if fetched != OperationEnd::SUCCESS {
        return Ok(fetched);
    }
    context.relay.set_uninterruptible(true);
    let installed = run_step(context, container, with("install")).await;
    context.relay.set_uninterruptible(false);
    installed
}

/// Purges exactly these packages; fails if apt would have to remove another one too. Once apt has begun, it runs to its
/// end.
pub async fn purge(
    context: &mut OperationContext<'_>,
    packages: &[PackageName],
    agent: &str,
) -> Result<OperationEnd, OperationRefusal> {
    context.processes = PROCESSES;
    let names = packages.iter().map(PackageName::as_str);
    let words = ["purge", plain_agent(agent)].into_iter().chain(names);
    let words = words.map(str::to_owned).collect();
    context.relay.set_uninterruptible(true);
    let purged = run_step(context, None, words).await;
    context.relay.set_uninterruptible(false);
    purged
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
    let agent = plain_agent(&order.agent);
    let removals = if order.removals { "allow" } else { "keep" };
    let names = names.iter().map(PackageName::as_str);
    let words = [scope, removals, agent].into_iter().chain(names);
    Ok(words.map(str::to_owned).collect())
}

/// Returns an agent's name for apt's history, or nothing if it has other than plain characters.
pub fn plain_agent(agent: &str) -> &str {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@".contains(&b);
    let is_plain = agent.bytes().all(plain) && agent.len() <= AGENT_BYTES;
    if is_plain { agent } else { "" }
}

/// Runs a step of the script. It ends, with all processes it started, when the caller cancels.
pub async fn run_step(
    context: &mut OperationContext<'_>,
    container: Option<&ContainerRef>,
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
        Some(container) => run_in_container(context, container, &command, false).await,
        None => run_on_host(context, &command).await,
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
