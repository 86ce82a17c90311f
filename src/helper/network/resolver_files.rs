//! Determines which service manages the host's name servers, and reads and writes its configuration file.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gatewren_base::sys::source::{names, word};
use gatewren_base::sys::{InsideRoot, neutralise, own_pid};
use gatewren_wire::operations::OperationRefusal;

use crate::lxc::network::same_network;

/// The most bytes of such a file that are read.
const FILE_BYTES: u64 = 64 * 1024;

/// The file that programs read (resolv.conf(5)), below `/etc`.
const RESOLV_CONF: &str = "resolv.conf";

/// The lines around gatewren's block in it.
const BEGIN: &str = "# BEGIN gatewren (dns_set_static)";
const END: &str = "# END gatewren";

/// The prefix of a line in the block that was in force before.
const WAS: &str = "#was ";

/// The first line of a file that gatewren writes.
const HEAD: &str =
    "# Written by gatewren's dns_set_static. Without this file the network sets the name servers.";

/// Other programs that write `/etc/resolv.conf`: the sign of each, and where its name servers are set.
const WRITERS: [(&str, &str); 5] = [
    (
        "resolvconf",
        "dns-nameservers in /etc/network/interfaces, or name_servers in /etc/resolvconf.conf",
    ),
    (
        "dhclient",
        "supersede domain-name-servers in /etc/dhcp/dhclient.conf",
    ),
    ("dhcpcd", "static domain_name_servers in /etc/dhcpcd.conf"),
    (
        "connman",
        "nameservers in connman's own settings (connmanctl)",
    ),
    ("udhcpc", "the script that udhcpc runs"),
];

/// The service that manages the name servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolverManager {
    /// systemd-resolved (resolved.conf(5)).
    Resolved,
    /// `NetworkManager`, through its `global-dns`.
    NetworkManager,
    /// No service: the file itself.
    File,
}

impl ResolverManager {
    /// Returns its file below `/etc`, as directory and name.
    fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Resolved => ("systemd/resolved.conf.d", "50-gatewren.conf"),
            Self::NetworkManager => ("NetworkManager/conf.d", "50-gatewren-dns.conf"),
            Self::File => (".", RESOLV_CONF),
        }
    }

    /// Returns the contents of its file for these servers; `None` if the file is to be removed.
    pub fn text(self, servers: &[IpAddr], now: &str, search: &[String]) -> Option<String> {
        let all = |between: &str| {
            let all: Vec<String> = servers.iter().map(IpAddr::to_string).collect();
            all.join(between)
        };
        match self {
            Self::File => Some(with_servers(now, servers)),
            _ if servers.is_empty() => None,
            // An empty `DNS=` first: otherwise the owner's servers would be asked too. `Domains=~.`: those of the
            // links are asked only for their own domains.
            Self::Resolved => Some(format!(
                "{HEAD}\n[Resolve]\nDNS=\nDNS={}\nDomains=~.\n",
                all(" ")
            )),
            // Without `searches`, the search domains that the network announces would be lost.
            Self::NetworkManager => Some(format!(
                "{HEAD}\n[global-dns]\nsearches={}\n\n[global-dns-domain-*]\nservers={}\n",
                search.join(","),
                all(",")
            )),
        }
    }

    /// Returns the current contents of its file.
    pub fn read_contents(self, etc: &Path) -> Result<Option<Vec<u8>>, OperationRefusal> {
        let (folder, name) = self.place();
        let read = InsideRoot::open(etc)
            .and_then(|etc| etc.read(&format!("{folder}/{name}"), 0, FILE_BYTES));
        match read {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.unchangeable(&e)),
        }
    }

    /// Writes its file atomically, or removes it.
    pub fn put(self, etc: &Path, bytes: Option<&[u8]>) -> Result<(), OperationRefusal> {
        let (folder, name) = self.place();
        let done = match bytes {
            Some(bytes) => open_to_all(&etc.join(folder))
                .and_then(|()| InsideRoot::open(etc))
                .and_then(|etc| etc.write(folder, name, bytes, None).map(drop)),
            None => match fs::remove_file(etc.join(folder).join(name)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            },
        };
        done.map_err(|e| self.unchangeable(&e))
    }

    fn unchangeable(self, cause: &io::Error) -> OperationRefusal {
        let (folder, name) = self.place();
        let path = format!("/etc/{folder}/{name}").replace("/./", "/");
        OperationRefusal::failed(format!("{path} cannot be changed: {cause}"))
    }
}

/// Creates a missing directory. It must be readable by all: services without root read its files.
fn open_to_all(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// Returns the service that manages the name servers below this root. `proc` below it has the processes.
///
/// # Errors
/// Fails if it is a program that is not supported here; the error states where its name servers are set.
pub fn owner(root: &Path) -> Result<ResolverManager, OperationRefusal> {
    let path = root.join("etc").join(RESOLV_CONF);
    if fs::symlink_metadata(&path).is_err() {
        return Err(OperationRefusal::failed(
            "/etc/resolv.conf does not exist, so the program that writes it is unknown; if there is none, create an \
             empty file",
        ));
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    if let Ok(link) = fs::read_link(&path) {
        let link = link.to_string_lossy();
        return match &*link {
            link if link.contains("systemd/resolve") => Ok(ResolverManager::Resolved),
            link if link.contains("NetworkManager") => Ok(ResolverManager::NetworkManager),
            link => Err(writer_refusal(link).unwrap_or_else(|| {
                let link = neutralise(link);
                OperationRefusal::failed(format!(
                    "/etc/resolv.conf links to {link}, and the program that writes it is unknown; set the name \
                     servers in that program"
                ))
            })),
        };
    }
    if addresses(&text) == [IpAddr::from([127, 0, 0, 53])] {
        return Ok(ResolverManager::Resolved);
    }
    let comments: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let comments = comments.join("\n").replace(BEGIN, "");
    if comments.contains("NetworkManager") {
        return Ok(ResolverManager::NetworkManager);
    }
    let refused = writer_refusal(&comments).or_else(|| running(&root.join("proc")));
    refused.map_or(Ok(ResolverManager::File), Err)
}

/// Returns a refusal that names a writer, if the text contains a sign of one.
fn writer_refusal(sign: &str) -> Option<OperationRefusal> {
    let (name, place) = WRITERS.iter().find(|(name, _)| sign.contains(name))?;
    Some(OperationRefusal::failed(format!(
        "{name} writes /etc/resolv.conf on this host and would overwrite a change; the owner sets the name servers \
         in its settings: {place}"
    )))
}

/// The same for a writer that runs in this network namespace. Those in containers write their own file.
fn running(proc: &Path) -> Option<OperationRefusal> {
    let ours = own_pid();
    let pids = names(proc)
        .into_iter()
        .filter_map(|name| name.parse::<i32>().ok());
    let mut found = pids.filter_map(|pid| {
        let name = word(proc.join(pid.to_string()).join("comm"))?;
        let known = WRITERS.iter().any(|(writer, _)| name.starts_with(writer));
        (known && same_network(pid, ours)).then_some(name)
    });
    writer_refusal(&found.next()?)
}

/// Returns the name servers in the text of such a file.
pub fn addresses(text: &str) -> Vec<IpAddr> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().parse().ok()).collect()
}

/// Returns the search domains in the text, limited to plain characters.
pub fn search(text: &str) -> Vec<String> {
    let mut lines = text.lines().rev();
    let words = lines.find_map(|line| {
        line.strip_prefix("search ")
            .or_else(|| line.strip_prefix("domain "))
    });
    let plain = |word: &&str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        word.chars().any(|c| c.is_ascii_alphanumeric()) && word.chars().all(fits)
    };
    let words = words.unwrap_or_default().split_whitespace();
    words.filter(plain).take(6).map(str::to_owned).collect()
}

/// Returns `resolv.conf` with only these servers and the previous ones as comments; without servers, as it was
/// before.
fn with_servers(text: &str, servers: &[IpAddr]) -> String {
    let before = without_ours(text);
    if servers.is_empty() {
        return before;
    }
    let is_server = |line: &&str| line.trim_start().starts_with("nameserver");
    let new = servers.iter().map(|server| format!("nameserver {server}"));
    let was = before
        .lines()
        .filter(is_server)
        .map(|line| format!("{WAS}{line}"));
    let rest = before
        .lines()
        .filter(|line| !is_server(line))
        .map(str::to_owned);
    let block = [BEGIN.to_owned()].into_iter().chain(new).chain(was);
    let lines = block.chain([END.to_owned()]).chain(rest);
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

fn without_ours(text: &str) -> String {
    if !text.lines().any(|line| line == BEGIN) {
        return text.to_owned();
    }
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        match line {
            BEGIN => inside = true,
            END if inside => inside = false,
            line if inside => lines.extend(line.strip_prefix(WAS)),
            line => lines.push(line),
        }
    }
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::resolver_files::*;
    use gatewren_base::sys::Scratch;

    fn servers(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn the_file_has_ours_and_gives_back_what_was() {
        let text =
            "# by hand\nnameserver 192.168.1.1\nsearch lan\nnameserver fd00::1\noptions rotate\n";
        let set = with_servers(text, &servers(&["9.9.9.9"]));
        assert_eq!(addresses(&set), servers(&["9.9.9.9"]));
        assert_eq!(
            set,
            "# BEGIN gatewren (dns_set_static)\nnameserver 9.9.9.9\n#was nameserver 192.168.1.1\n#was nameserver fd00::1\n\
             # END gatewren\n# by hand\nsearch lan\noptions rotate\n"
        );
        let again = with_servers(&set, &servers(&["1.1.1.1", "::1"]));
        assert_eq!(addresses(&again), servers(&["1.1.1.1", "::1"]));
        let back = with_servers(&again, &[]);
        assert_eq!(addresses(&back), servers(&["192.168.1.1", "fd00::1"]));
        assert_eq!(back.lines().count(), text.lines().count());
        assert_eq!(with_servers(text, &[]), text);
        assert_eq!(search(&set), ["lan"]);
        assert_eq!(search("search a.lan $(id) b\n"), ["a.lan", "b"]);
        assert!(search("search .\n").is_empty());
    }

    #[test]
    fn the_owner_shows_in_link_and_comments() {
        let scratch = Scratch::new();
        let path = scratch.join("etc/resolv.conf");
        fs::create_dir_all(scratch.join("etc")).unwrap();
        let with_text = |text: &str| {
            fs::write(&path, text).unwrap();
            owner(scratch.path())
        };
        assert!(owner(scratch.path()).is_err(), "there is none");
        assert_eq!(with_text(""), Ok(ResolverManager::File));
        assert_eq!(
            with_text("nameserver 192.168.1.1\n"),
            Ok(ResolverManager::File)
        );
        assert_eq!(
            with_text("nameserver 127.0.0.53\n"),
            Ok(ResolverManager::Resolved)
        );
        // Recorded: the first line that NetworkManager 1.42.4 writes.
        assert_eq!(
            with_text("# Generated by NetworkManager\n"),
            Ok(ResolverManager::NetworkManager)
        );
        for (text, place) in [
            ("# Generated by resolvconf\n", "dns-nameservers"),
            ("# Generated by dhcpcd from eth0.dhcp\n", "dhcpcd.conf"),
            ("# Generated by Connection Manager connman\n", "connman"),
        ] {
            let refused = with_text(text).unwrap_err();
            assert!(refused.message.contains(place), "{refused}");
        }
        for (link, expected) in [
            (
                "../run/systemd/resolve/stub-resolv.conf",
                Ok(ResolverManager::Resolved),
            ),
            (
                "/run/NetworkManager/resolv.conf",
                Ok(ResolverManager::NetworkManager),
            ),
            ("/run/resolvconf/resolv.conf", Err("resolvconf writes")),
            ("/run/other/\u{1b}[2J", Err("links to /run/other/^[[2J")),
        ] {
            fs::remove_file(&path).unwrap();
            symlink(link, &path).unwrap();
            match (owner(scratch.path()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{link}"),
                (Err(refused), Err(words)) => assert!(refused.message.contains(words), "{refused}"),
                (found, _) => panic!("{link}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_file_of_ours_is_written_and_taken_away() {
        let scratch = Scratch::new();
        fs::create_dir(scratch.join("systemd")).unwrap();
        let of = ResolverManager::Resolved;
        assert_eq!(of.read_contents(scratch.path()), Ok(None));
        let text = of.text(&servers(&["9.9.9.9", "::1"]), "", &[]).unwrap();
        assert!(
            text.ends_with("[Resolve]\nDNS=\nDNS=9.9.9.9 ::1\nDomains=~.\n"),
            "{text}"
        );
        of.put(scratch.path(), Some(text.as_bytes())).unwrap();
        assert_eq!(
            of.read_contents(scratch.path()),
            Ok(Some(text.into_bytes()))
        );
        let mode = |path: &str| {
            fs::metadata(scratch.join(path))
                .unwrap()
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(
            (
                mode("systemd/resolved.conf.d"),
                mode("systemd/resolved.conf.d/50-gatewren.conf")
            ),
            (0o755, 0o644)
        );
        of.put(scratch.path(), None).unwrap();
        of.put(scratch.path(), None).unwrap();
        assert_eq!(of.read_contents(scratch.path()), Ok(None));
        assert_eq!(of.text(&[], "", &[]), None);
        let text =
            ResolverManager::NetworkManager.text(&servers(&["::1"]), "", &["lan".to_owned()]);
        assert!(
            text.unwrap()
                .ends_with("[global-dns]\nsearches=lan\n\n[global-dns-domain-*]\nservers=::1\n")
        );
        let refused = ResolverManager::NetworkManager
            .put(scratch.path(), Some(b"x"))
            .unwrap_err();
        assert!(
            refused
                .message
                .starts_with("/etc/NetworkManager/conf.d/50-gatewren-dns.conf cannot"),
            "{refused}"
        );
    }
}
