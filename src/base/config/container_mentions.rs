//! Finds the containers that a text of the host is about, by the marks that LXC, systemd and the kernel leave in
//! it.
//!
//! A name by itself is not a mark: a container may be called `web`, and most lines with that word are about
//! something else. A mark is a unit, a control group, a profile, a path or a command line in which the name has a
//! certain position. A text about an unknown container is shown only to callers that can see all containers.

use serde_json::{Map, Value};

use super::space::{OF_ALL_CONTAINERS, container_of_unit};

/// The fields of a journal entry (systemd.journal-fields(7)) that may contain marks.
pub const TRACED_FIELDS: [&str; 15] = [
    "MESSAGE",
    "SYSLOG_IDENTIFIER",
    "UNIT",
    "_COMM",
    "_CMDLINE",
    "_SYSTEMD_UNIT",
    "_SYSTEMD_SLICE",
    "_SYSTEMD_CGROUP",
    "OBJECT_CMDLINE",
    "OBJECT_SYSTEMD_UNIT",
    "OBJECT_SYSTEMD_CGROUP",
    "COREDUMP_CMDLINE",
    "COREDUMP_UNIT",
    "COREDUMP_CGROUP",
    "_MACHINE_ID",
];

/// The id of the machine that wrote the entry.
const MACHINE: &str = "_MACHINE_ID";

/// The prefixes of a container's control groups.
const GROUPS: [&str; 2] = ["lxc.payload.", "lxc.monitor."];

/// Directories, and control groups, with an entry for each container.
const PARENTS: [&str; 3] = ["lxc", "lxc.payload", "lxc.monitor"];

/// Programs and units that work for every container of Docker and Podman. Their lines name containers in many forms.
const ENGINES: [&str; 10] = [
    "conmon",
    "containerd",
    "containerd.service",
    "crun",
    "docker.service",
    "docker.socket",
    "dockerd",
    "libpod_parent",
    "podman",
    "runc",
];

/// The prefixes of control groups and processes of those containers. The name is not among them: they have its id.
const ENGINE_PREFIXES: [&str; 4] = ["containerd-shim", "docker-", "libpod-", "podman-"];

/// The minimum length of hexadecimal digits that are decoded: the kernel's audit writes command lines this way.
const HEX_DIGITS: usize = 10;

/// The containers that a text mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerMentions {
    names: Vec<String>,
    /// Whether it mentions any container, named or not.
    of_some: bool,
}

impl ContainerMentions {
    /// Finds the marks in a text.
    pub fn in_text(text: &str) -> Self {
        let mut traces = Self::default();
        traces.scan(text);
        for word in words(text) {
            if let Some(hidden) = out_of_hex(word) {
                traces.scan(&hidden);
            }
        }
        traces
    }

    /// Returns whether a text mentions only containers that may be shown.
    pub fn show(text: &str, shows: impl Fn(&str) -> bool) -> bool {
        let Self { names, of_some } = Self::in_text(text);
        !(of_some && names.is_empty()) && names.iter().all(|name| shows(name))
    }

    /// Returns whether an entry of the host's journal mentions only containers that may be shown. `machine` is the
    /// host's machine id.
    pub fn show_line(
        line: &Map<String, Value>,
        machine: &str,
        shows: impl Fn(&str) -> bool,
    ) -> bool {
        let fields = TRACED_FIELDS.into_iter();
        let mut fields = fields.filter_map(|name| Some((name, line.get(name)?)));
        fields.all(|(name, value)| {
            texts(value).is_some_and(|texts| {
                texts.iter().all(|text| match name {
                    MACHINE => text == machine,
                    _ => Self::show(text, &shows),
                })
            })
        })
    }

    /// Returns whether there are no marks.
    pub fn is_none(&self) -> bool {
        !self.of_some && self.names.is_empty()
    }

    fn scan(&mut self, text: &str) {
        let mut words = words(text);
        let mut with_tool = false;
        while let Some(word) = words.next() {
            match word {
                "-n" | "--name" if with_tool => self.name(words.next().unwrap_or_default()),
                // The title of LXC's monitor process: [lxc monitor] /var/lib/lxc web
                "lxc" if words.clone().next() == Some("monitor") => {
                    self.name(words.nth(2).unwrap_or_default());
                }
                _ => with_tool |= self.word(word),
            }
        }
    }

    /// Returns whether the word is one of LXC's tools.
    fn word(&mut self, word: &str) -> bool {
        let mut with_tool = false;
        let mut parent = "";
        self.of_some |= word.contains("/docker/");
        for part in word.split('/') {
            if PARENTS.contains(&parent) && !part.is_empty() {
                self.name(part.strip_suffix(".log").unwrap_or(part));
            }
            parent = part;
            let named = GROUPS.iter().find_map(|group| text_after(part, group));
            if let Some(name) = named {
                self.name(name);
            } else if let Some(name) = container_of_unit(part) {
                self.name(&name);
            } else if let Some(rest) = text_after(part, "lxc-") {
                // An AppArmor profile: lxc-web_</var/lib/lxc>
                if let Some(name) = rest.strip_suffix('_') {
                    self.name(name);
                } else {
                    (with_tool, self.of_some) = (true, true);
                }
            }
            self.of_some |= OF_ALL_CONTAINERS.contains(&part) || part.contains("lxc@");
            self.of_some |= ENGINES.contains(&part.trim_end_matches(['.', ':']));
            self.of_some |= ENGINE_PREFIXES.iter().any(|begin| part.starts_with(begin));
        }
        with_tool
    }

    fn name(&mut self, name: &str) {
        self.of_some = true;
        let name = name.trim_end_matches(['.', ':']);
        self.names
            .extend((!name.is_empty()).then(|| name.to_owned()));
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> + Clone {
    let between = |c: char| c.is_whitespace() || c.is_control() || "\"'`=,;()[]{}<>|&".contains(c);
    text.split(between).filter(|word| !word.is_empty())
}

/// Returns the text after a mark, if the mark does not begin inside a word.
fn text_after<'a>(part: &'a str, mark: &str) -> Option<&'a str> {
    part.match_indices(mark).find_map(|(at, _)| {
        let inside = part
            .get(..at)?
            .ends_with(|c: char| c.is_ascii_alphanumeric());
        (!inside).then(|| part.get(at + mark.len()..))?
    })
}

fn out_of_hex(word: &str) -> Option<String> {
    let is_hex = word.len() >= HEX_DIGITS && word.bytes().all(|b| b.is_ascii_hexdigit());
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = word.as_bytes().chunks(2).map(byte).collect();
    is_hex.then(|| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
}

/// Returns the texts of a field, which may have several values. journalctl writes a value that is not text as a
/// list of bytes. Returns `None` for any other form.
fn texts(value: &Value) -> Option<Vec<String>> {
    let Value::Array(list) = value else {
        return value.as_str().map(|text| vec![text.to_owned()]);
    };
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let bytes: Option<Vec<u8>> = list.iter().map(byte).collect();
    if let Some(bytes) = bytes {
        return Some(vec![String::from_utf8_lossy(&bytes).into_owned()]);
    }
    let all: Option<Vec<Vec<String>>> = list.iter().map(texts).collect();
    Some(all?.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_about_a_container_is_known_by_its_marks_and_not_by_its_name() {
        for (text, names) in [
            (
                "/lxc.payload.vault/system.slice/nginx.service",
                &["vault"][..],
            ),
            ("0::/lxc.monitor.vault", &["vault"]),
            ("/lxc/101/ns", &["101"]),
            ("lxc@my\\x2ddb.service: Succeeded.", &["my-db"]),
            ("pve-container@101.service", &["101"]),
            (
                "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/lxc.payload.vault,task=nginx",
                &["vault"],
            ),
            ("Memory cgroup stats for /lxc.payload.vault:", &["vault"]),
            (
                "apparmor=\"DENIED\" profile=\"lxc-vault_</var/lib/lxc>\" comm=\"mount\"",
                &["vault"],
            ),
            ("[lxc monitor] /var/lib/lxc vault", &["vault"]),
            ("COMMAND=/usr/bin/lxc-attach -n vault -- id", &["vault"]),
            ("lxc-start\0--name=vault\0-F", &["vault"]),
            ("mount of /var/lib/lxc/vault/rootfs on /mnt", &["vault"]),
            ("see /var/log/lxc/vault.log", &["vault"]),
            // lxc-attach -n vault
            (
                "proctitle=6C78632D617474616368002D6E007661756C74",
                &["vault"],
            ),
        ] {
            assert_eq!(ContainerMentions::in_text(text).names, names, "{text}");
            assert!(
                !ContainerMentions::show(text, |name| name == "web"),
                "{text}"
            );
            assert!(ContainerMentions::show(text, |_| true), "{text}");
        }
        for text in [
            "",
            "the web is down, and so is the vault",
            "nginx.service: web: vault",
            "GET /vault/lxc",
            "lxcbr0: port 1(vethAb12) entered blocking state",
            "eth0 0123456789abcdef",
            "/system.slice/ssh.service",
            "relxc-web_",
            "pull the docker image",
        ] {
            assert!(ContainerMentions::in_text(text).is_none(), "{text}");
            assert!(ContainerMentions::show(text, |_| false), "{text}");
        }
    }

    #[test]
    fn what_is_about_some_container_and_does_not_say_which_is_shown_to_nobody() {
        for text in [
            "lxc-start",
            "/usr/bin/lxc-autostart",
            "lxc-start vault 20261122 ERROR start - start.c:lxc_spawn",
            "lxc.service",
            "lxcfs.service",
            "lxc@.service",
            "profile=\"lxc-container-default-cgns\"",
            "lxc.payload.",
            "[lxc monitor]",
            "0::/docker/4e5f",
            "/system.slice/docker-4e5f.scope",
            "libpod-4e5f.scope: Consumed 2s CPU time",
            "docker.service: Main process exited",
            "containerd-shim-runc-v2 -namespace moby",
            "/usr/bin/podman start web",
        ] {
            assert!(!ContainerMentions::show(text, |_| true), "{text}");
        }
    }

    #[test]
    fn each_field_of_a_line_is_looked_at() {
        let shows = |fields: &Value| {
            let line = fields.as_object().unwrap();
            ContainerMentions::show_line(line, "0d47", |name| name == "web")
        };
        assert!(shows(
            &json!({ "MESSAGE": "the vault is open", "_PID": "1", "_MACHINE_ID": "0d47" })
        ));
        assert!(shows(
            &json!({ "MESSAGE": "hello", "_SYSTEMD_UNIT": "lxc@web.service" })
        ));
        let bytes = |text: &str| Value::from(text.as_bytes());
        for hidden in [
            json!({ "MESSAGE": "hello", "_SYSTEMD_CGROUP": "/lxc.payload.vault" }),
            json!({ "MESSAGE": "hello", "_CMDLINE": "lxc-attach -n vault" }),
            json!({ "MESSAGE": "hello", "_MACHINE_ID": "ffff" }),
            json!({ "MESSAGE": "hello", "UNIT": ["lxc@web.service", "lxc@vault.service"] }),
            json!({ "MESSAGE": bytes("\u{1b} lxc.payload.vault") }),
            json!({ "MESSAGE": null }),
            json!({ "MESSAGE": { "a": 1 } }),
            json!({ "SYSLOG_IDENTIFIER": "lxc-start", "MESSAGE": "a line" }),
        ] {
            assert!(!shows(&hidden), "{hidden}");
        }
    }
}
