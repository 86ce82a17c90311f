//! The limits of the root helper: the operations that it allows, whatever the front requests.

use std::path::{Path, PathBuf};

use super::backup_target::{BackupTargetSettings, PLACES};
use super::container_store::ContainerStore;
use super::error::ConfigError;
use super::glob::Glob;
use super::helper_class::HelperClass;
use super::helper_lists::{ACCOUNTS, DIRECTORIES, GLOBS, RUNTIMES, STORES, TEMPLATES, USERS};
use super::helper_switches::{BackupPolicy, ShellPolicy, Switch, UpdatesPolicy};
use super::key::{Key, key};
use super::reading;
use super::recipient::{RECIPIENTS, Recipient};
use super::runtime_kind::RuntimeKind;
use super::shape::{AbsolutePath, Flag, Shape as _, Word};
use super::template::ContainerTemplate;
use super::trust::find_distrust;
use super::wifi_network::{NETWORKS, WifiCredentials};

/// The default path of `gatewren helper`.
pub const HELPER_POLICY_FILE: &str = "/etc/gatewren/helper.toml";

/// The sockets of the runtimes, unless the owner names others.
const DOCKER_SOCKET: &str = "/run/docker.sock";
const PODMAN_SOCKET: &str = "/run/podman/podman.sock";

/// The limits that also hold if an attacker controls the front.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the file")]
pub struct HelperPolicy {
    /// Commands on the host.
    pub host_shell: ShellPolicy,
    /// Commands in containers.
    pub container_shell: ShellPolicy,
    /// The runtimes whose containers are served.
    pub runtimes: Vec<RuntimeKind>,
    /// The socket of Docker's daemon.
    pub docker_socket: PathBuf,
    /// The socket of Podman's service.
    pub podman_socket: PathBuf,
    /// The users whose own Podman is served.
    pub podman_users: Vec<String>,
    /// The containers that agents may see and change.
    pub containers: Vec<Glob>,
    /// Whether more of the host may be read than an unprivileged user can.
    pub host_reads: bool,
    /// Whether containers may be listed, read and watched.
    pub lxc_reads: bool,
    /// Whether containers may be started, stopped and frozen, and their autostart changed.
    pub lxc_writes: bool,
    /// Whether containers may be created, destroyed and restored, and their definitions changed.
    pub lxc_manage: Switch,
    /// Whether files in containers may be listed, read and written.
    pub container_files: Switch,
    /// The templates for new containers.
    pub templates: Vec<ContainerTemplate>,
    /// The places where containers may be moved, in addition to LXC's own directory.
    pub container_stores: Vec<ContainerStore>,
    /// Restarting the host and shutting it down.
    pub power: Switch,
    /// Package updates.
    pub updates: UpdatesPolicy,
    /// Whether the host's journal may be read.
    pub host_logs: bool,
    /// Changing the host's systemd units.
    pub units: Switch,
    /// The directories of the host whose files may be listed, searched and read.
    pub host_file_reads: Vec<String>,
    /// The directories of the host whose files may be written.
    pub host_file_writes: Vec<String>,
    /// Changing the host's network.
    pub network: Switch,
    /// The wireless networks whose passwords may be used.
    pub wifi_networks: Vec<WifiCredentials>,
    /// Whether the host's disks may be checked and repaired.
    pub storage: Switch,
    /// Whether what a disk report finds may be deleted.
    pub cleanup: Switch,
    /// The users, or files, whose SSH keys may be listed and changed.
    pub ssh_keys: Vec<String>,
    /// Changing the host's settings.
    pub host_settings: Switch,
    /// Making, restoring and deleting backups.
    pub backup: BackupPolicy,
    /// The backup targets.
    pub backup_targets: Vec<BackupTargetSettings>,
    /// The directories in which clients may add backup targets.
    pub backup_roots: Vec<String>,
    /// The directories of the host that may be backed up.
    pub backup_paths: Vec<String>,
    /// The recipients of mail.
    pub mail_to: Vec<Recipient>,
}

impl HelperPolicy {
    /// Reads the policy. A missing file is an error, except for [`HELPER_POLICY_FILE`], where the defaults apply.
    ///
    /// A file that users other than root and our own user can write or replace is rejected: it limits nobody.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_or(path, Self::default())
    }

    /// Like `load`, for a trial: if the default file is missing, everything is allowed. An existing file limits it too.
    pub fn load_for_trial(path: &Path) -> Result<Self, ConfigError> {
        Self::load_or(path, Self::everything())
    }

    fn load_or(path: &Path, absent: Self) -> Result<Self, ConfigError> {
        let mut policy = Self::default();
        let may_be_missing = path == Path::new(HELPER_POLICY_FILE);
        let problems = match reading::load(path, may_be_missing) {
            Ok(None) => {
                policy = absent;
                Vec::new()
            }
            Ok(Some(file)) => reading::apply(&file, Self::KEYS, &mut policy),
            Err(problem) => vec![problem],
        };
        ConfigError::of(problems.into_iter().chain(find_distrust(path)).collect()).map(|()| policy)
    }

    /// Returns a policy without limits. It is for a trial, on a host without an installation.
    pub fn everything() -> Self {
        Self {
            host_shell: ShellPolicy::Full,
            runtimes: RuntimeKind::ALL.to_vec(),
            lxc_manage: Switch::On,
            container_files: Switch::On,
            templates: ContainerTemplate::of_lxc("busybox").into_iter().collect(),
            power: Switch::On,
            updates: UpdatesPolicy::Apply,
            units: Switch::On,
            host_file_reads: vec!["/".to_owned()],
            host_file_writes: vec!["/".to_owned()],
            network: Switch::On,
            storage: Switch::On,
            cleanup: Switch::On,
            ssh_keys: vec!["root".to_owned()],
            host_settings: Switch::On,
            backup: BackupPolicy::Delete,
            backup_paths: vec!["/".to_owned()],
            mail_to: "root".parse().into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns whether the operations of a class are allowed.
    pub fn allows(&self, class: HelperClass) -> bool {
        match class {
            HelperClass::HostShell => self.host_shell == ShellPolicy::Full,
            HelperClass::ContainerShell => self.container_shell == ShellPolicy::Full,
            HelperClass::HostReads => self.host_reads,
            HelperClass::LxcReads => self.lxc_reads,
            HelperClass::LxcWrites => self.lxc_writes,
            HelperClass::LxcManage => self.lxc_manage == Switch::On,
            HelperClass::ContainerFiles => self.container_files == Switch::On,
            HelperClass::Power => self.power == Switch::On,
            HelperClass::Updates => self.updates != UpdatesPolicy::Off,
            HelperClass::UpdatesApply => self.updates == UpdatesPolicy::Apply,
            HelperClass::HostLogs => self.host_logs,
            HelperClass::Units => self.units == Switch::On,
            HelperClass::HostFileReads => !self.host_file_reads.is_empty(),
            HelperClass::HostFileWrites => !self.host_file_writes.is_empty(),
            HelperClass::Network => self.network == Switch::On,
            HelperClass::Storage => self.storage == Switch::On,
            HelperClass::Cleanup => self.cleanup == Switch::On,
            HelperClass::SshKeys => !self.ssh_keys.is_empty(),
            HelperClass::HostSettings => self.host_settings == Switch::On,
            HelperClass::Backup => self.backup != BackupPolicy::Off,
            HelperClass::BackupDelete => self.backup == BackupPolicy::Delete,
            HelperClass::MailTo => !self.mail_to.is_empty(),
        }
    }

    pub(super) const INTRODUCTION: &'static str = "\
Limits of gatewren's root helper. They apply to every request of the front, whatever an agent's policy allows.
This file belongs to root: the front cannot change it, and the helper rejects a file that another user can write or
replace. The helper reads it at its start and after `systemctl reload gatewren-helper`. A reload does not stop
running work, and an invalid file changes nothing.
Each operation of the helper belongs to one key. What a key disables, and a container that is not in the list, is
rejected for everyone, and clients do not see the tools that need it. Otherwise the helper only reports that it
runs, and which keys are on.
Every value below is the default: uncomment a line to change it.";

    /// The keys, in the order of the sample.
    #[rustfmt::skip]
    pub(super) const KEYS: &'static [Key<Self>] = &[
        key!("", "host_shell", host_shell, Word,
            "Commands on the host as root: \"off\", or \"full\" for agents whose policy allows them. With \"full\", an\n\
             agent can do everything that root can do on this server; no other key limits it."),
        key!("", "container_shell", container_shell, Word,
            "Commands in containers as root: \"full\" or \"off\". Root in a container without id maps has almost the\n\
             rights of the host's root."),
        key!("", "runtimes", runtimes, RUNTIMES,
            "Runtimes whose containers are served: \"lxc\", \"docker\" and \"podman\" (containers of root), and\n\
             \"docker-in-lxc\" with \"lxc\": those of a Docker inside a running container of LXC. Containers of another\n\
             runtime are invisible. A container that has the host's devices, files or processes gives a command in it\n\
             the rights of the host's root; commands there also need host_shell."),
        key!("", "docker_socket", docker_socket, AbsolutePath,
            "The socket of Docker's daemon. It must belong to root, in a directory that only root can write."),
        key!("", "podman_socket", podman_socket, AbsolutePath,
            "The socket of Podman's service (podman.socket), with the same rule."),
        key!("", "podman_users", podman_users, USERS,
            "Users whose own Podman is served, without root: none, or for example [\"alice\"]. Each needs podman.socket\n\
             and, for commands, systemd of the user (loginctl enable-linger). A reference is \"podman:web@alice\". A\n\
             command has at most the user's rights; with all of them, as with the home directory, it needs host_shell."),
        key!("", "containers", containers, GLOBS,
            "Containers that agents may see and change; * matches any characters, ? matches one. A pattern without a\n\
             runtime is about the names in all runtimes, \"docker:arr-*\" about those of one. Lines and processes of\n\
             other containers are removed from the host's journal and process list."),
        key!("", "host_reads", host_reads, Flag,
            "Reading more about the host than an unprivileged user can: mounts and their usage, directory sizes, time\n\
             synchronisation, the programs behind open ports, disk health, firewall rules, tunnels without their\n\
             keys, and whether other machines answer."),
        key!("", "lxc_reads", lxc_reads, Flag,
            "Listing, reading and watching containers: state, definition, addresses, open ports, operating system,\n\
             units, journal and resource usage. With false, containers are invisible."),
        key!("", "lxc_writes", lxc_writes, Flag,
            "Starting, stopping, restarting and freezing containers, their autostart, and changes of the systemd\n\
             units in them."),
        key!("", "lxc_manage", lxc_manage, Word,
            "Creating, copying and destroying containers, creating and restoring snapshots, and changing limits and\n\
             names: \"off\" or \"on\"."),
        key!("", "container_files", container_files, Word,
            "Listing, reading and writing files in containers as root, running or not: \"off\" or \"on\". A client that\n\
             writes a file in a container can run any program as root in it."),
        key!("", "templates", templates, TEMPLATES,
            "Templates for new containers: the name of an LXC template, such as \"busybox\", or a name with its\n\
             arguments, such as \"debian: download -d debian -r trixie -a amd64\". A template is a program that root\n\
             runs, and many download files."),
        key!("", "container_stores", container_stores, STORES,
            "Places where containers of LXC may be moved with lxc_manage, not only LXC's own directory: a name, and a\n\
             directory that only root can write, such as [\"big: /srv/containers\"]."),
        key!("", "power", power, Word,
            "Restarting the server, shutting it down, and cancelling both: \"off\" or \"on\". systemd executes it a few\n\
             seconds later, and not while a program holds an inhibitor lock."),
        key!("", "updates", updates, Word,
            "Updates of packages, of the host and of containers, and of the host's firmware: \"off\", \"read-only\" to\n\
             list available updates and the history, or \"apply\" to download and install them. Package scripts run as\n\
             root then, regardless of the other keys. The sources and keys of apt, and the remotes of fwupd, decide\n\
             which packages and firmware are accepted."),
        key!("", "host_logs", host_logs, Flag,
            "Reading the host's journal, kernel messages included. Text that looks like a secret is redacted where\n\
             gatewren recognises it."),
        key!("", "units", units, Word,
            "Starting, stopping, restarting, enabling and disabling systemd units of the host: \"off\" or \"on\". This\n\
             never includes gatewren's own units or units that shut the server down. Units of containers follow\n\
             lxc_writes."),
        key!("", "host_file_reads", host_file_reads, DIRECTORIES,
            "Directories of the host with files that may be listed, searched and read as root: none, or for example\n\
             [\"/etc\", \"/srv\"]. gatewren's own files, containers, /proc, /sys and /dev are always excluded, and links\n\
             cannot lead out of the directories."),
        key!("", "host_file_writes", host_file_writes, DIRECTORIES,
            "Directories of the host where files may be created and replaced as root, with the same exclusions. A\n\
             client that may write in /etc or in a home directory can gain all rights of root."),
        key!("", "network", network, Word,
            "Changing the host's network: \"off\" or \"on\". Start and stop WireGuard tunnels that have a profile here,\n\
             with the commands in the profile; join and forget wireless networks; switch the radio; set name servers.\n\
             A change can disconnect the client that makes it."),
        key!("", "wifi_networks", wifi_networks, NETWORKS,
            "Wireless networks that may be joined with a password: a name, and a file with the password in one line,\n\
             such as [\"Home: /root/wifi-home\"]. Only root may have access to the file. Networks that NetworkManager\n\
             already knows need no entry."),
        key!("", "storage", storage, Word,
            "Checking file systems, md arrays and ZFS pools of the host for damage, and repairing them, at once or at\n\
             the next boot: \"off\" or \"on\". A check of a large disk takes hours and slows the server down. A\n\
             repair can lose files that it cannot recover."),
        key!("", "cleanup", cleanup, Word,
            "Deleting what disk_report finds, to free disk space: apt's cache, old entries of the journal, kernels that\n\
             are neither running nor the newest, core dumps, and of Docker and Podman volumes and images that no\n\
             container uses and the build cache: \"off\" or \"on\". Snapshots also need lxc_manage, kernels\n\
             updates = \"apply\"."),
        key!("", "ssh_keys", ssh_keys, ACCOUNTS,
            "SSH keys that may be listed, added and removed: none, those of users such as [\"root\"] in\n\
             .ssh/authorized_keys of their home directories, or those in files with absolute paths. A client that may\n\
             add a key for root can log in as root. Keys that were added by other means are never changed."),
        key!("", "host_settings", host_settings, Word,
            "Changing the host name, time zone, language, keyboard layout, CPU frequency governor and compressed swap\n\
             in memory: \"off\" or \"on\"."),
        key!("", "backup", backup, Word,
            "Creating, verifying and restoring backups of containers, and of the directories in backup_paths, on the\n\
             targets in backup_targets: \"off\", \"on\", or \"delete\" to delete them too. A client that may do this\n\
             can return a container to an older state; with \"delete\" it can delete every backup."),
        key!("", "backup_targets", backup_targets, PLACES,
            "Where backups are stored: a name, and a directory that root owns (\"local: /srv/backup\"), a disk that is\n\
             mounted for it (\"usb: disk LABEL=backup\"), a share (\"nas: smb //host/share credentials=/root/nas\"), or a\n\
             restic repository (\"safe: restic /srv/restic password=/root/restic\", or sftp:, rest: or s3:, with\n\
             \"credentials=/root/s3\" for the server's login). Only root may have access to files with passwords."),
        key!("", "backup_roots", backup_roots, DIRECTORIES,
            "Directories that root owns, where clients may add backup targets; each target is a directory in one of\n\
             them."),
        key!("", "backup_paths", backup_paths, DIRECTORIES,
            "Directories of the host that may be backed up as root, with everything in them on the same file system,\n\
             also as part of a container of Docker or Podman that has one of them mounted. A backup of them is\n\
             restored only to a new directory in one of host_file_writes."),
        key!("", "mail_to", mail_to, RECIPIENTS,
            "Recipients of mail from channels of kind \"mail\" in gatewren.toml, sent with the server's own sendmail:\n\
             none, or addresses such as [\"me@example.org\"]. Mail to any other address is rejected."),
    ];
}

#[cfg(feature = "testing")]
impl HelperPolicy {
    /// Parses a policy from the text of its file.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        let mut policy = Self::default();
        let file = reading::SettingsText::new(Path::new(HELPER_POLICY_FILE), text);
        let problems = reading::apply(&file, Self::KEYS, &mut policy);
        ConfigError::of(problems).map(|()| policy)
    }

    /// Returns all keys with their values, as a file.
    pub fn to_text(&self) -> String {
        super::key::write_keys(Self::KEYS, self)
    }
}

/// The defaults: reading containers and running commands in them is on; creating and removing containers and
/// changing the host is off.
impl Default for HelperPolicy {
    fn default() -> Self {
        Self {
            host_shell: ShellPolicy::Off,
            container_shell: ShellPolicy::Full,
            runtimes: vec![RuntimeKind::Lxc],
            docker_socket: DOCKER_SOCKET.into(),
            podman_socket: PODMAN_SOCKET.into(),
            podman_users: Vec::new(),
            containers: "*".parse().into_iter().collect(),
            host_reads: true,
            lxc_reads: true,
            lxc_writes: true,
            lxc_manage: Switch::Off,
            container_files: Switch::Off,
            templates: Vec::new(),
            container_stores: Vec::new(),
            power: Switch::Off,
            updates: UpdatesPolicy::ReadOnly,
            host_logs: true,
            units: Switch::Off,
            host_file_reads: Vec::new(),
            host_file_writes: Vec::new(),
            network: Switch::Off,
            wifi_networks: Vec::new(),
            storage: Switch::Off,
            cleanup: Switch::Off,
            ssh_keys: Vec::new(),
            host_settings: Switch::Off,
            backup: BackupPolicy::Off,
            backup_targets: Vec::new(),
            backup_roots: Vec::new(),
            backup_paths: Vec::new(),
            mail_to: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::super::reference::helper_sample;
    use super::*;
    use crate::sys::Scratch;

    fn write_policy(scratch: &Scratch, text: &str) -> PathBuf {
        let path = scratch.join("helper.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        path
    }

    #[test]
    fn what_a_file_does_not_say_is_strict_even_in_a_trial() {
        let scratch = Scratch::new();
        let empty = write_policy(&scratch, "");
        let policy = HelperPolicy::load_for_trial(&empty);
        assert_eq!(policy, Ok(HelperPolicy::default()));
        assert_eq!(HelperPolicy::default().host_shell, ShellPolicy::Off);
        let absent = HelperPolicy::load_for_trial(&scratch.join("absent"));
        assert!(absent.is_err(), "only the standard file may be missing");
    }

    #[test]
    fn each_class_is_a_key_with_a_word_about_it_and_a_value_that_switches_it() {
        let scratch = Scratch::new();
        let sample = helper_sample();
        for class in HelperClass::ALL {
            let answers = class.to_string();
            let name = answers.split(' ').next().unwrap();
            let key = HelperPolicy::KEYS.iter().find(|key| key.name == name);
            assert!(!key.unwrap().help.is_empty(), "{name}");
            assert!(sample.contains(&format!("\n#{name} = ")), "{name}");
            assert_eq!(serde_json::to_value(class).unwrap(), class.key());
            let list = match class {
                HelperClass::MailTo => "[\"root\"]",
                _ => "[\"/srv\"]",
            };
            let allowed = [
                "false",
                "true",
                "\"off\"",
                "\"on\"",
                "\"full\"",
                "\"read-only\"",
                "\"apply\"",
                "\"delete\"",
                "[]",
                list,
            ];
            let allowed = allowed.iter().filter_map(|value| {
                let path = write_policy(&scratch, &format!("{name} = {value}\n"));
                HelperPolicy::load(&path).ok()
            });
            let answers: Vec<bool> = allowed.map(|policy| policy.allows(class)).collect();
            let expected: &[bool] = match class {
                HelperClass::UpdatesApply | HelperClass::BackupDelete => &[false, false, true],
                HelperClass::Updates | HelperClass::Backup => &[false, true, true],
                _ => &[false, true],
            };
            assert_eq!(answers, expected, "{name}");
            assert!(HelperPolicy::everything().allows(class));
        }
        let others = [
            "runtimes",
            "docker_socket",
            "podman_socket",
            "podman_users",
            "containers",
            "templates",
            "backup_targets",
            "backup_roots",
            "backup_paths",
            "wifi_networks",
            "container_stores",
        ]
        .len();
        // Two keys have two classes, one for each of two values.
        assert_eq!(
            HelperPolicy::KEYS.len() + 2,
            HelperClass::ALL.len() + others
        );
    }

    #[test]
    fn the_sample_uncommented_is_the_defaults_and_stands_in_etc() {
        let scratch = Scratch::new();
        // A commented-out default has a "#" without a space.
        let sample = helper_sample();
        let lines = sample.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key,
            _ => line,
        });
        let keys: Vec<&str> = lines.collect();
        assert!(keys.contains(&"lxc_reads = true"), "{sample}");
        let path = write_policy(&scratch, &keys.join("\n"));
        let policy = HelperPolicy::load_for_trial(&path);
        assert_eq!(policy, Ok(HelperPolicy::default()));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../etc/helper.toml");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, helper_sample()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), helper_sample());
    }

    #[test]
    fn a_stricter_policy_is_read() {
        let scratch = Scratch::new();
        let text = "host_shell = \"off\"\ncontainer_shell = \"off\"\ncontainers = [\"web\", \"arr-*\"]\n\
                    lxc_reads = false\nlxc_writes = false\npower = \"on\"\nupdates = \"off\"\n";
        let policy = HelperPolicy::load(&write_policy(&scratch, text)).unwrap();
        assert_eq!(policy.host_shell, ShellPolicy::Off);
        assert_eq!(policy.container_shell, ShellPolicy::Off);
        assert!(!policy.lxc_reads && !policy.lxc_writes);
        assert_eq!(
            (policy.power, policy.updates),
            (Switch::On, UpdatesPolicy::Off)
        );
        assert!(policy.allows_container("web") && policy.allows_container("arr-sonarr"));
        assert!(!policy.allows_container("webs") && !policy.allows_container("vault"));
    }

    #[test]
    fn no_container_is_allowed_by_an_empty_list() {
        let scratch = Scratch::new();
        let policy = HelperPolicy::load(&write_policy(&scratch, "containers = []\n")).unwrap();
        assert!(!policy.allows_container("web"));
        assert!(HelperPolicy::default().allows_container("web"));
    }

    #[test]
    fn a_typing_error_never_loosens() {
        let scratch = Scratch::new();
        let path = write_policy(&scratch, "host_shel = \"off\"\ncontainers = [\"a/b\"]\n");
        let error = HelperPolicy::load(&path).unwrap_err().to_string();
        let shown = path.display();
        assert_eq!(
            error,
            format!(
                "{shown}:1: unknown key \"host_shel\" in the head of the file; did you mean \
                 \"host_shell\"?\n{shown}:2: containers must be a list of 0 to 64 entries, each a \
                 container's name or a pattern, such as \"web\", \"arr-*\" or \
                 \"docker:arr-*\", but is [\"a/b\"]"
            )
        );
    }
}
