//! Compares the names and parameters of the `StartOS` dialect with those of `StartOS`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::tables::tables;
use gatewren_wire::registry::Tool;

/// The tools of `StartOS`, with the parameters of each.
const THEIRS: &str = include_str!("../../../tests/golden/startos-parameters.txt");

/// The tools without a counterpart here, with the reason.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "credentials never pass a model",
        &[
            "auth.reset-password",
            "backup.target.cifs.add",
            "backup.target.cifs.update",
            "net.tunnel.add",
            "server.clear-smtp",
            "server.set-smtp",
            "server.test-smtp",
            "wifi.add",
        ],
    ),
    (
        "the owner makes and removes what a model switches only",
        &[
            "net.acme.init",
            "net.acme.remove",
            "net.gateway.forget",
            "net.gateway.set-name",
            "net.tunnel.remove",
            "package.set-outbound-gateway",
        ],
    ),
    (
        "gatewren is no proxy",
        &[
            "net.vhost.add-passthrough",
            "net.vhost.dump-table",
            "net.vhost.list-passthrough",
            "net.vhost.remove-passthrough",
            "server.set-echoip-urls",
        ],
    ),
    (
        "containers of LXC have no such thing",
        &[
            "package.action.clear-task",
            "package.action.get-input",
            "package.action.run",
            "server.rebuild",
        ],
    ),
    ("it runs foreign code", &["package.sideload-by-url"]),
];

fn theirs() -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = THEIRS.lines().filter(|line| !line.starts_with('#'));
    let mut all = BTreeMap::new();
    for row in rows {
        let mut words = row.split(' ');
        let name = words.next().unwrap();
        let bare = |word: &'static str| word.split(['*', ':']).next().unwrap();
        all.insert(name, words.map(bare).collect());
    }
    all
}

#[test]
fn each_of_their_tools_is_callable_or_has_a_reason_why_not() {
    let catalog = tables().unwrap();
    let ours = catalog.tools().flat_map(|tool| tool.aliases());
    let ours: BTreeSet<&str> = ours.map(|alias| alias.name).collect();
    let without = WITHOUT.iter().flat_map(|(_, names)| *names).copied();
    let without: BTreeSet<&str> = without.collect();
    let both: Vec<_> = ours.intersection(&without).collect();
    assert_eq!(both, [&""; 0], "callable, and without a counterpart");
    let theirs: BTreeSet<&str> = theirs().into_keys().collect();
    let expected: BTreeSet<&str> = ours.union(&without).copied().collect();
    let differ: Vec<_> = theirs.symmetric_difference(&expected).collect();
    assert_eq!(
        differ, [&""; 0],
        "neither callable nor explained, or not theirs"
    );
}

#[test]
fn each_takes_the_parameters_that_it_has_there() {
    let theirs = theirs();
    let catalog = tables().unwrap();
    let mut missing = Vec::new();
    for tool in catalog.tools() {
        for alias in tool.aliases() {
            let listed = alias.applied_to(tool.list_entry()).input_schema;
            for name in &theirs[alias.name] {
                let known = listed["properties"].get(*name).is_some();
                if !known && !alias.secrets.contains(name) {
                    missing.push(format!("{} does not know {name}", alias.name));
                }
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn a_password_is_refused_and_what_has_no_use_is_left_aside() {
    let catalog = tables().unwrap();
    let tool = catalog.tool("backup.target.mount").unwrap();
    let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
    let mut plain = read(r#"{"targetId":"nas","serverId":"x","allowPartial":true,"password":""}"#);
    Tool::translate(tool.alias("backup.target.mount"), &mut plain).unwrap();
    assert_eq!(plain, read(r#"{"target":"nas"}"#));
    let mut secret = read(r#"{"targetId":"nas","password":"hunter2"}"#);
    let refused = Tool::translate(tool.alias("backup.target.mount"), &mut secret);
    let words = refused.unwrap_err().to_string();
    assert!(
        words.contains("`password`") && !words.contains("hunter2"),
        "{words}"
    );
    let repair = catalog.tool("disk.repair").unwrap();
    let mut bare = Map::new();
    Tool::translate(repair.alias("disk_repair"), &mut bare).unwrap();
    assert!(bare.is_empty(), "by our own name something must be named");
    Tool::translate(repair.alias("disk.repair"), &mut bare).unwrap();
    assert_eq!(bare, read(r#"{"path":"/"}"#));
    // Under our own name, parameters are not translated.
    let mut ours = read(r#"{"target":"nas","serverId":"x"}"#);
    Tool::translate(tool.alias("backup_target_mount"), &mut ours).unwrap();
    assert!(ours.contains_key("serverId"));
}
