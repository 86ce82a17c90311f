//! The LXC tool and its arguments for an operation on containers.

use std::path::Path;

use gatewren_wire::operations::{ContainerRef, Operation};

use super::limits::GRACE_SECONDS;
use super::tools::HostTool;

/// Stops a tool from writing a log file in addition to stderr. If no container has the name, as with the pattern of
/// lxc-monitor, the tool would create a directory for it among the containers.
const NO_LOG_FILE: [&str; 2] = ["-o", "none"];

/// Tools that keep their log file: the owner reads it when a start or stop failed.
const WITH_LOG: [&str; 2] = ["lxc-start", "lxc-stop"];

/// Returns the tool for an operation; `None` if no tool performs it.
///
/// Always with `-l ERROR`: without it some tools fail and print nothing.
pub fn tool_for(operation: &Operation, lxcpath: &Path) -> Option<HostTool> {
    Some(match operation {
        Operation::ContainerInfo { container } => tool("lxc-info", lxcpath, Some(container), &[]),
        Operation::ContainerStart { container } => {
            tool("lxc-start", lxcpath, Some(container), &["-d"])
        }
        Operation::ContainerStop {
            container,
            grace_s: 0,
        } => tool("lxc-stop", lxcpath, Some(container), &["--kill"]),
        Operation::ContainerStop { container, grace_s } => {
            let grace = (*grace_s).min(GRACE_SECONDS).to_string();
            tool("lxc-stop", lxcpath, Some(container), &["-t", &grace])
        }
        Operation::ContainerEvents {} => tool("lxc-monitor", lxcpath, None, &["-n", ".*"]),
        _ => return None,
    })
}

/// Returns the tool that freezes or unfreezes a container.
pub fn freezer(name: &'static str, container: &ContainerRef, lxcpath: &Path) -> HostTool {
    tool(name, lxcpath, Some(container), &[])
}

/// Returns a tool on the containers in `lxcpath`, with arguments that name them.
pub fn with_path(name: &'static str, lxcpath: &Path, args: &[&str]) -> HostTool {
    tool(name, lxcpath, None, args)
}

/// Returns the tool that prints a container's state and init process.
pub fn question(container: &ContainerRef, lxcpath: &Path) -> HostTool {
    tool("lxc-info", lxcpath, Some(container), &["-s", "-p"])
}

/// Returns the tool that stops the daemon which lxc-monitor leaves behind.
pub fn end_monitor_daemon(lxcpath: &Path) -> HostTool {
    tool("lxc-monitor", lxcpath, None, &["-Q"])
}

fn tool(
    name: &'static str,
    lxcpath: &Path,
    container: Option<&ContainerRef>,
    more: &[&str],
) -> HostTool {
    let lxcpath = lxcpath.to_string_lossy();
    let fixed = ["-P", &lxcpath, "-l", "ERROR"];
    let log: &[&str] = if WITH_LOG.contains(&name) {
        &[]
    } else {
        &NO_LOG_FILE
    };
    // A name begins with a letter or a digit, so it cannot be taken for an option.
    let named = container.into_iter().flat_map(|name| ["-n", name.as_str()]);
    let extra = log.iter().chain(more).copied();
    let args = fixed.into_iter().chain(named).chain(extra);
    HostTool::new(name, args)
}

#[cfg(test)]
mod tests {
    use super::super::lxc_tools::*;

    #[test]
    fn every_tool_gets_the_path_and_speaks_of_its_errors() {
        let stop = |grace_s| {
            let container = "alpha".parse().unwrap();
            let operation = Operation::ContainerStop { container, grace_s };
            tool_for(&operation, Path::new("/c"))
                .unwrap()
                .args
                .join(" ")
        };
        assert_eq!(stop(0), "-P /c -l ERROR -n alpha --kill");
        assert_eq!(stop(7), "-P /c -l ERROR -n alpha -t 7");
        assert_eq!(stop(u32::MAX), "-P /c -l ERROR -n alpha -t 120");
        let events = tool_for(&Operation::ContainerEvents {}, Path::new("/c")).unwrap();
        assert_eq!(events.args.join(" "), "-P /c -l ERROR -o none -n .*");
        assert_eq!(tool_for(&Operation::Ping {}, Path::new("/c")), None);
    }
}
