//! Which tools a demo runs: those that only use the server's own stores. All others would reach the host.

use gatewren_wire::registry::ToolError;

/// The tools that a demo runs, sorted.
const TOOLS: [&str; 22] = [
    "change_get",
    "change_list",
    "change_withdraw",
    "container_history",
    "notification_list",
    "notification_mark",
    "notification_remove",
    "propose_change",
    "read",
    "schedule_create",
    "schedule_delete",
    "schedule_list",
    "schedule_pause",
    "search",
    "server_history",
    "session_kill",
    "session_list",
    "state_blame",
    "state_get",
    "state_put",
    "watch_list",
    "whoami",
];

/// Returns why a demo does not run a tool; `None` if it does.
pub fn refusal_in_demo(tool: &str) -> Option<ToolError> {
    if TOOLS.binary_search(&tool).is_ok() {
        return None;
    }
    let words = format!("This is a demo: {tool} was not run, and no real server was asked.");
    let hint = "Read the invented server with state_get, server_history and container_history.";
    Some(ToolError::new(words).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tables;

    #[test]
    fn the_tools_of_a_demo_exist_and_are_sorted() {
        assert!(TOOLS.is_sorted());
        let catalog = tables().unwrap();
        for tool in TOOLS {
            assert!(catalog.tool(tool).is_some(), "{tool}");
            assert!(refusal_in_demo(tool).is_none());
        }
        assert!(refusal_in_demo("system_shell").is_some());
    }
}
