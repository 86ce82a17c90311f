//! The server's announcement on the local network: the file for avahi-daemon, and its ownership.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::json;

use crate::support::command::{refused, tell, words};
use crate::support::server::{Directory, server};

#[test]
fn it_is_announced_shown_and_announced_no_more() {
    let server = server().start();
    let (directory, home) = (server.state_dir(), Directory::new());
    let folder = home.join("services");
    let services = folder.to_str().unwrap();
    let told = |what: &str| tell(&directory, &["mdns", what, "--services", services]).0;
    let file = folder.join("gatewren.service");
    assert_eq!(told("show")["enabled"], false);

    let enabled = told("enable");
    assert_eq!(
        (&enabled["enabled"], &enabled["changed"]),
        (&json!(true), &json!(true))
    );
    let pin = tell(&directory, &["cert", "show"]).0["pin"].clone();
    assert_eq!(enabled["service"]["port"], server.address().port());
    assert_eq!(enabled["service"]["pin"], pin);
    assert_eq!(
        enabled["service"]["only_this_box"], true,
        "it listens at 127.0.0.1"
    );
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
    let text = fs::read_to_string(&file).unwrap();
    let port = format!("<port>{}</port>", server.address().port());
    let pin = format!("<txt-record>pin={}</txt-record>", pin.as_str().unwrap());
    for (part, count) in [
        ("<type>_https._tcp</type>", 1),
        ("<type>_mcp._tcp</type>", 1),
        (port.as_str(), 2),
        ("<txt-record>path=/mcp</txt-record>", 2),
        (
            "<txt-record>revisions=2024-11-05,2025-03-26,2025-06-18,2025-11-25,2026-07-28</txt-record>",
            2,
        ),
        (pin.as_str(), 2),
        ("<txt-record>tls=1</txt-record>", 2),
    ] {
        assert_eq!(text.matches(part).count(), count, "{part}: {text}");
    }

    assert_eq!(told("enable")["changed"], false);
    assert_eq!(told("show")["stale"], false);
    let said = words(&directory, &["mdns", "show", "--services", services]);
    assert!(
        said.contains("avahi-daemon") && said.contains("tls=1"),
        "{said}"
    );
    // A new certificate of the same authority has the same pin.
    tell(&directory, &["cert", "renew"]);
    assert_eq!(told("show")["stale"], false);
    fs::write(&file, text.replace("tls=1", "tls=0")).unwrap();
    assert_eq!(told("show")["stale"], true);
    assert_eq!(told("disable")["changed"], true);
    assert!(!file.exists());
    assert_eq!(told("disable")["changed"], false);
}

#[test]
fn a_file_of_somebody_elses_is_left_alone() {
    let server = server().start();
    let home = Directory::new();
    let file = home.join("gatewren.service");
    let theirs = "<service-group><name>mine</name></service-group>";
    fs::write(&file, theirs).unwrap();
    for what in ["enable", "disable", "show"] {
        let services = home.0.to_str().unwrap();
        let said = refused(&server.state_dir(), &["mdns", what, "--services", services]);
        assert!(said.contains("left alone; remove it first"), "{said}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
    let nothing = home.join("nothing");
    let said = refused(&nothing, &["mdns", "enable"]);
    assert!(said.contains("start gatewren once"), "{said}");
}
