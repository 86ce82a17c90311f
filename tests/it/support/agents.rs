//! Agents that tests add to a running server, each with its own client.

use super::client::Client;
use super::command::tell_by;
use super::machine::{IN_TIME, wait_until};
use super::server::Server;

/// The options of an agent that may do disruptive things without a confirmation.
pub const UNASKED: [&str; 4] = ["--policy", "admin", "--mode", "disrupt=allow"];

/// Adds an agent with these options of `agent add`, and returns its client once the server admits it.
pub fn admit(server: &Server, name: &str, options: &[&str]) -> Client {
    let args = [&["agent", "add", name], options].concat();
    let added = tell_by(&server.settings_file(), &args);
    let client = server.client().elsewhere();
    let client = client.with_token(added["token"].as_str().unwrap());
    wait_until("it comes in", IN_TIME, || {
        client.modern("tools/list").send().status == 200
    });
    client
}

/// Adds an agent that may do everything without confirmation, within these options, once backups are listed for it.
pub fn admit_to_everything(server: &Server, name: &str, options: &[&str]) -> Client {
    let modes = [
        "read", "scan", "write", "disrupt", "execute", "reveal", "persist",
    ];
    let modes = modes.map(|class| format!("{class}=allow"));
    let modes = modes.iter().flat_map(|mode| ["--mode", mode.as_str()]);
    let args = ["--policy", "admin"].into_iter().chain(modes);
    let args: Vec<&str> = args.chain(options.iter().copied()).collect();
    let client = admit(server, name, &args);
    wait_for_tool(&client, "backup_list");
    client
}

/// Waits until a tool is listed, which for some tools needs an answer of the helper.
pub fn wait_for_tool(client: &Client, tool: &str) {
    let list = client.modern("tools/list");
    wait_until("the helper has answered", IN_TIME, || {
        list.send().names("tools").contains(&tool.to_owned())
    });
}
