//! Compressed swap on the host: a kernel device, enabled and disabled again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::add_agent;
use crate::support::machine::{IN_TIME, is_root, skip, wait_until};
use crate::support::server::{Server, server};

const CONTROL: &str = "/sys/class/zram-control";

/// One test at a time: the machine has one list of swap devices.
static TURN: Mutex<()> = Mutex::new(());

/// A host whose owner allows changes to its settings, and an agent that may make them.
struct Home {
    client: Client,
    _server: Server,
    _turn: MutexGuard<'static, ()>,
}

impl Home {
    /// Skips the test and returns `None` where compressed swap is not available.
    fn new() -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_root() || !Path::new(CONTROL).exists() || !swaps().is_empty() {
            skip(
                "NO COMPRESSED SWAP WAS MADE: it needs root, a kernel with zram, and that there is none yet",
            );
            return None;
        }
        let server = server()
            .policy("admin")
            .settings("")
            .bounds("host_settings = \"on\"\n")
            .start();
        let options = ["--policy", "admin", "--mode", "write=allow"];
        let agent = add_agent(&server.state_dir(), "wren", &options);
        let client = server.client().with_token(agent["token"].as_str().unwrap());
        let list = client.modern("tools/list");
        wait_until("it comes in, and the helper is heard", IN_TIME, || {
            let answer = list.send();
            answer.status == 200 && answer.names("tools").contains(&"server_zram".to_owned())
        });
        Some(Self {
            client,
            _server: server,
            _turn: turn,
        })
    }

    fn zram(&self, arguments: Value) -> Value {
        self.client.call("server_zram", arguments).send().data()
    }
}

/// Returns the active swap devices.
fn swaps() -> Vec<String> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let lines = swaps.lines().skip(1);
    let names = lines.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name.starts_with("/dev/zram")).collect()
}

fn blocks() -> Vec<String> {
    let entries = fs::read_dir("/sys/block").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("zram")).collect();
    names.sort();
    names
}

/// Compressed swap that gatewren has not made, removed on drop even if the test fails.
struct Others {
    name: String,
}

impl Others {
    fn new() -> Self {
        let number = fs::read_to_string(format!("{CONTROL}/hot_add")).unwrap();
        let others = Self {
            name: format!("zram{}", number.trim()),
        };
        fs::write(others.block().join("disksize"), "16M").unwrap();
        let node = others.node();
        for words in [["mkswap", &node], ["swapon", &node]] {
            assert!(
                Command::new(words[0])
                    .arg(words[1])
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
        }
        others
    }

    fn block(&self) -> PathBuf {
        Path::new("/sys/block").join(&self.name)
    }

    fn node(&self) -> String {
        format!("/dev/{}", self.name)
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.node()).output();
        let _ = fs::write(self.block().join("reset"), "1");
        let number = self.name.trim_start_matches("zram");
        let _ = fs::write(format!("{CONTROL}/hot_remove"), number);
    }
}

/// Disables it on drop, even if the test fails.
struct Off<'h>(&'h Home);

impl Drop for Off<'_> {
    fn drop(&mut self) {
        self.0
            .client
            .call("server_zram", json!({ "enabled": false }))
            .send();
    }
}

#[test]
fn compressed_swap_is_made_once_and_taken_away_and_that_of_others_is_left_alone() {
    let Some(home) = Home::new() else {
        return;
    };
    let before = blocks();
    let _off = Off(&home);
    assert_eq!(home.zram(json!({})), json!({ "on": false, "devices": [] }));

    let said = home.zram(json!({ "enabled": true }));
    let device = &said["devices"][0];
    assert_eq!(said["on"], json!(true), "{said}");
    assert_eq!(
        (&device["algorithm"], &device["priority"]),
        (&json!("lz4"), &json!(100))
    );
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap();
    let half: u64 = total.parse::<u64>().unwrap() * 1024 / 2;
    let size = device["size_bytes"].as_u64().unwrap();
    assert!(
        (half - 64 * 1024..=half).contains(&size),
        "{size} of {half}"
    );
    let node = format!("/dev/{}", device["name"].as_str().unwrap());
    assert_eq!(swaps(), std::slice::from_ref(&node));
    let metrics = home.client.call("server_metrics", json!({})).send().data();
    assert_eq!(
        metrics["swap"]["total_bytes"], device["size_bytes"],
        "{metrics}"
    );

    let again = home.zram(json!({ "enabled": true }));
    assert_eq!(again["devices"].as_array().unwrap().len(), 1, "{again}");
    assert_eq!(swaps(), [node]);
    for _ in 0..2 {
        let off = home.zram(json!({ "enabled": false }));
        assert_eq!(off, json!({ "on": false, "devices": [] }));
        assert_eq!((swaps(), blocks()), (Vec::new(), before.clone()));
    }

    let others = Others::new();
    for enable in [true, false] {
        let refused = home
            .client
            .call("server_zram", json!({ "enabled": enable }))
            .send();
        let refused = refused.failure();
        assert!(refused.contains("gatewren did not create"), "{refused}");
    }
    let said = home.zram(json!({}));
    assert_eq!(said["devices"][0]["name"], json!(others.name), "{said}");
    assert_eq!(swaps(), [others.node()]);
}

// A helper that was killed between two steps, or a manual swapoff.
#[test]
fn what_was_left_half_made_is_found_by_its_name() {
    let Some(home) = Home::new() else {
        return;
    };
    let before = blocks();
    let _off = Off(&home);
    let said = home.zram(json!({ "enabled": true }));
    let node = format!("/dev/{}", said["devices"][0]["name"].as_str().unwrap());
    assert!(
        Command::new("swapoff")
            .arg(&node)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(blocks().len(), before.len() + 1);
    home.zram(json!({ "enabled": true }));
    assert_eq!((swaps().len(), blocks().len()), (1, before.len() + 1));
    let by_hand = swaps().remove(0);
    assert!(
        Command::new("swapoff")
            .arg(&by_hand)
            .status()
            .unwrap()
            .success()
    );
    home.zram(json!({ "enabled": false }));
    assert_eq!(blocks(), before);
}
