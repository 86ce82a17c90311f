//! What the host allows at all: the check against the owner's policy file, which the front cannot write.

use gatewren_base::config::{HELPER_POLICY_FILE, HelperClass, HelperPolicy};
use gatewren_wire::operations::{
    KillReason, Operation, OperationEnd, OperationRefusal, RefusalCode,
};

use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// Rejects an operation that the owner's file does not allow, whatever the front's policy is.
pub fn check(policy: &HelperPolicy, operation: &Operation) -> Result<(), OperationRefusal> {
    match operation.facts().class {
        Some(class) if !policy.allows(class) => Err(OperationRefusal::new(
            RefusalCode::Forbidden,
            format!(
                "{class} is off in {HELPER_POLICY_FILE}: {} for every agent; only the owner of this server can change \
                 that",
                refusal_text(class)
            ),
        )),
        _ => Ok(()),
    }
}

/// Sends the enabled classes to the caller, now and after each change, until it disconnects.
pub async fn report(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    let mut policy = context.helper.policy.clone();
    let mut last = None;
    while context.relay.is_reachable() {
        policy.mark_unchanged();
        let in_force = policy.now();
        let now = HelperClass::ALL.map(|class| (class, in_force.allows(class)));
        if last != Some(now) {
            last = Some(now);
            let on = now.into_iter().filter(|(_, on)| *on);
            let keys: Vec<HelperClass> = on.map(|(class, _)| class).collect();
            // Plain strings always serialize.
            let mut line = serde_json::to_vec(&keys).unwrap_or_default();
            line.push(b'\n');
            context.relay.write_stdout(line).await;
        }
        context.relay.wait(policy.changed()).await?;
    }
    Err(StepError::Killed(KillReason::Cancelled))
}

fn refusal_text(class: HelperClass) -> &'static str {
    match class {
        HelperClass::HostShell => "commands on the host are refused",
        HelperClass::ContainerShell => "commands in containers are refused",
        HelperClass::HostReads => "reading the state of the host is refused",
        HelperClass::LxcReads => "reading the state of containers is refused",
        HelperClass::LxcWrites => "starting, stopping and freezing containers is refused",
        HelperClass::LxcManage => {
            "creating and removing containers, and changing their snapshots and settings, is refused"
        }
        HelperClass::ContainerFiles => {
            "listing, reading and writing files in containers is refused"
        }
        HelperClass::Power => "restarting and shutting down this server is refused",
        HelperClass::Updates => "reading the state and history of updates is refused",
        HelperClass::UpdatesApply => "fetching and installing updates is refused",
        HelperClass::HostLogs => "reading the host's journal is refused",
        HelperClass::Units => "changing the host's units is refused",
        HelperClass::HostFileReads => "reading files of the host is refused",
        HelperClass::HostFileWrites => "writing files of the host is refused",
        HelperClass::SshKeys => "reading and changing the keys that may log in over SSH is refused",
        HelperClass::Network => "changing the host's network is refused",
        HelperClass::HostSettings => "changing the host's settings is refused",
        HelperClass::MailTo => "sending mail is refused",
        HelperClass::Backup => "making and restoring backups is refused",
        HelperClass::BackupDelete => "deleting backups is refused",
        HelperClass::Storage => "repairing the host's disks is refused",
        HelperClass::Cleanup => "deleting data to free disk space is refused",
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy_check::*;
    use gatewren_base::config::{BackupPolicy, ConfigError, UpdatesPolicy};
    use gatewren_base::sys::Scratch;
    use gatewren_wire::operations::{
        Command, ContainerRef, DiskCleanup, FirmwareAction, HostDiskUsage, HostFileList,
        HostFileRead, HostFileSearch, HostFileWrite, HostProbe, HostRepair, HostSetting, JobId,
        LogQuery, MailMessage, PowerPlan, Probe, ProcessOrder, Program, SshKeyAction, SystemRecord,
        UnitChange, UnitName, UpdateOrder, UpdateProtection, UpdateRunOrder, UpdateScope,
    };

    fn power() -> [Operation; 3] {
        let plan = || PowerPlan {
            delay_s: 60,
            reason: None,
        };
        [
            Operation::Restart { plan: plan() },
            Operation::Shutdown { plan: plan() },
            Operation::CancelShutdown {},
        ]
    }

    /// Operations that read containers.
    fn reads(container: impl Fn() -> ContainerRef) -> [Operation; 10] {
        [
            Operation::RuntimeReport {},
            Operation::ContainerList {},
            Operation::ContainerOverview {},
            Operation::ContainerInfo {
                container: container(),
            },
            Operation::ContainerConfig {
                container: container(),
            },
            Operation::ContainerOsRelease {
                container: container(),
            },
            Operation::ContainerVitals { container: None },
            Operation::ContainerCounters {},
            Operation::ContainerDisk {
                container: container(),
            },
            Operation::ContainerEvents {},
        ]
    }

    /// Operations on one container, as they arrive over the socket.
    fn container_actions() -> impl Iterator<Item = (Operation, Option<HelperClass>)> {
        let (reads, writes, manages, files) = (
            HelperClass::LxcReads,
            HelperClass::LxcWrites,
            HelperClass::LxcManage,
            HelperClass::ContainerFiles,
        );
        let all = [
            (r#"{"what":"snapshots"}"#, reads),
            (r#"{"what":"log","log":"lxc","bytes":1}"#, reads),
            (r#"{"what":"image"}"#, reads),
            (r#"{"what":"storage"}"#, reads),
            (r#"{"what":"move","to":"big","grace_s":1}"#, manages),
            (r#"{"what":"remove_old_copy"}"#, manages),
            (r#"{"what":"record","record":"logins"}"#, reads),
            (r#"{"what":"freeze"}"#, writes),
            (r#"{"what":"unfreeze"}"#, writes),
            (r#"{"what":"autostart","on":true}"#, writes),
            (r#"{"what":"configure","changes":{}}"#, manages),
            (r#"{"what":"snapshot"}"#, manages),
            (r#"{"what":"restore","snapshot":"snap0"}"#, manages),
            (r#"{"what":"forget","snapshot":"snap0"}"#, manages),
            (r#"{"what":"clone","to":"copy"}"#, manages),
            (
                r#"{"what":"destroy","force":true,"snapshots":true}"#,
                manages,
            ),
            (r#"{"what":"list_files","path":"/","limit":1}"#, files),
            (
                r#"{"what":"read_file","path":"/a","offset":0,"bytes":1}"#,
                files,
            ),
            (r#"{"what":"write_file","path":"/a","content":""}"#, files),
        ];
        let operation = |(text, class)| {
            let (container, action) = ("web".parse().unwrap(), serde_json::from_str(text).unwrap());
            (
                Operation::ContainerAction { container, action },
                Some(class),
            )
        };
        let create = Operation::ContainerCreate {
            name: "web".parse().unwrap(),
            template: "busybox".into(),
        };
        let create = (create, Some(manages));
        all.into_iter().map(operation).chain([create])
    }

    /// Units, journals and processes, of the host and of a container.
    fn of_systemd() -> [(Operation, Option<HelperClass>); 11] {
        let container = || -> ContainerRef { "web".parse().unwrap() };
        let unit = || -> UnitName { "a.service".parse().unwrap() };
        let change = UnitChange::Start;
        let (query, order, most) = (LogQuery::default(), ProcessOrder::Cpu, 1);
        let inside = [
            Operation::ContainerLog {
                container: container(),
                query: query.clone(),
            },
            Operation::ContainerBoots {
                container: container(),
            },
            Operation::ContainerUnitList {
                container: container(),
            },
            Operation::ContainerUnit {
                container: container(),
                unit: unit(),
            },
        ];
        let [log, boots, units, one] = inside.map(|read| (read, Some(HelperClass::LxcReads)));
        let inside = Operation::ContainerUnitChange {
            container: container(),
            unit: unit(),
            change,
        };
        let outside = Operation::UnitChange {
            unit: unit(),
            change,
        };
        let processes = Operation::HostProcesses { order, most };
        [
            log,
            boots,
            units,
            one,
            (inside, Some(HelperClass::LxcWrites)),
            (outside, Some(HelperClass::Units)),
            (Operation::HostLog { query }, Some(HelperClass::HostLogs)),
            (Operation::HostBoots {}, Some(HelperClass::HostLogs)),
            (
                Operation::HostRecord {
                    record: SystemRecord::FailedLogins,
                },
                Some(HelperClass::HostLogs),
            ),
            (Operation::HostUptimeHistory {}, Some(HelperClass::HostLogs)),
            (processes, Some(HelperClass::HostReads)),
        ]
    }

    /// The same operation as a job.
    fn job(operation: Operation) -> Operation {
        Operation::JobStart {
            job: JobId::random(),
            owner: "a".into(),
            tool: "t".into(),
            detached: true,
            operation: Box::new(operation),
        }
    }

    /// Operations on the host's files.
    fn files() -> [(Operation, Option<HelperClass>); 4] {
        let path = || "/srv/a".to_owned();
        let reads = Some(HelperClass::HostFileReads);
        let list = HostFileList {
            path: None,
            offset: 0,
            limit: 1,
        };
        let search = HostFileSearch {
            path: path(),
            name: None,
            text: None,
            limit: 1,
        };
        let read = HostFileRead {
            path: path(),
            offset: 0,
            limit: 1,
        };
        let write = HostFileWrite {
            path: path(),
            base64: String::new(),
            new: false,
        };
        [
            (Operation::HostFileList(list), reads),
            (Operation::HostFileSearch(search), reads),
            (Operation::HostFileRead(read), reads),
            (
                Operation::HostFileWrite(write),
                Some(HelperClass::HostFileWrites),
            ),
        ]
    }

    /// Operations that read the host's network and disks.
    fn looks() -> [Operation; 9] {
        [
            Operation::HostProbe(HostProbe {
                address: [127, 0, 0, 1].into(),
                probe: Probe::Port(1),
                wait_ms: 1,
            }),
            Operation::HostFirewall {},
            Operation::HostDiskUsage(HostDiskUsage {
                path: "/".to_owned(),
                depth: 1,
            }),
            Operation::HostSmart {
                disk: "sda".to_owned().try_into().unwrap(),
            },
            Operation::HostPools {},
            Operation::HostBtrfs {
                path: "/srv".to_owned(),
            },
            Operation::HostTunnels {},
            wifi(r#"{"what":"status"}"#),
            wifi(r#"{"what":"scan"}"#),
        ]
    }

    fn wifi(text: &str) -> Operation {
        let action = serde_json::from_str(text).unwrap();
        Operation::Wifi { action }
    }

    /// Operations on backups, as they arrive over the socket.
    fn backups() -> impl Iterator<Item = (Operation, Option<HelperClass>)> {
        let all = [
            r#"{"what":"targets"}"#,
            r#"{"what":"add_target","target":"a"}"#,
            r#"{"what":"remove_target","target":"a"}"#,
            r#"{"what":"mount","target":"a"}"#,
            r#"{"what":"unmount","target":"a"}"#,
            r#"{"what":"list"}"#,
            r#"{"what":"create","target":"a","subject":{"container":"web"},"freeze":true}"#,
            r#"{"what":"verify","target":"a","backup":"web@20260728"}"#,
            r#"{"what":"restore","target":"a","backup":"web@20260728","subject":{"path":"/srv/b"}}"#,
        ];
        let operation = |text| {
            let action = serde_json::from_str(text).unwrap();
            (Operation::Backup { action }, Some(HelperClass::Backup))
        };
        let deletes = [
            r#"{"what":"delete","target":"a","backup":"web@20260728"}"#,
            r#"{"what":"create","target":"a","subject":{"container":"web"},"freeze":true,"keep":{"last":1}}"#,
        ];
        let deletion = |text| {
            let action = serde_json::from_str(text).unwrap();
            (
                Operation::Backup { action },
                Some(HelperClass::BackupDelete),
            )
        };
        all.into_iter()
            .map(operation)
            .chain(deletes.into_iter().map(deletion))
    }

    /// Operations that change the host's network.
    fn switches() -> [Operation; 7] {
        let tunnel = || "wg0".to_owned().try_into().unwrap();
        [
            Operation::HostTunnelUp { tunnel: tunnel() },
            Operation::HostTunnelDown { tunnel: tunnel() },
            Operation::SetNameServers {
                servers: gatewren_wire::operations::NameServers::default(),
            },
            wifi(r#"{"what":"connect","ssid":"a"}"#),
            wifi(r#"{"what":"forget","ssid":"a"}"#),
            wifi(r#"{"what":"enable","enabled":true}"#),
            wifi(r#"{"what":"country","country":"AT"}"#),
        ]
    }

    /// Operations that repair the host's disks.
    fn repairs() -> [Operation; 4] {
        [
            HostRepair::Mounted("/srv".to_owned()),
            HostRepair::Disk("sdb1".to_owned().try_into().unwrap()),
            HostRepair::Array("md0".to_owned().try_into().unwrap()),
            HostRepair::Pool("tank".to_owned().try_into().unwrap()),
        ]
        .map(Operation::HostRepair)
    }

    /// Operations on updates.
    fn updates() -> [(Operation, Option<HelperClass>); 9] {
        let (looks, applies) = (Some(HelperClass::Updates), Some(HelperClass::UpdatesApply));
        let firmware = |action| Operation::Firmware { action };
        let container = None;
        let order = UpdateOrder {
            container: None,
            scope: UpdateScope::All,
            removals: false,
            agent: "a".into(),
        };
        let run = UpdateRunOrder {
            targets: Vec::new(),
            protect: UpdateProtection::Snapshot,
            refresh: false,
            undo_on_failure: true,
            stop_on_failure: false,
            agent: "a".into(),
        };
        [
            (Operation::UpdateCheck { container: None }, looks),
            (Operation::UpdateHistory { container, file: 0 }, looks),
            (Operation::UpdateRefresh { container: None }, applies),
            (Operation::UpdateApply(order), applies),
            (Operation::UpdateRun(run), applies),
            (firmware(FirmwareAction::Devices {}), looks),
            (firmware(FirmwareAction::Updates {}), looks),
            (firmware(FirmwareAction::Refresh {}), applies),
            (firmware(FirmwareAction::Apply { device: None }), applies),
        ]
    }

    /// Operations on SSH keys.
    fn keys() -> [Operation; 3] {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj";
        let fingerprint = "SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ";
        [
            SshKeyAction::List {},
            SshKeyAction::Add {
                account: None,
                key: key.to_owned().try_into().unwrap(),
            },
            SshKeyAction::Remove {
                account: None,
                fingerprint: fingerprint.to_owned().try_into().unwrap(),
            },
        ]
        .map(|action| Operation::SshKeys { action })
    }

    /// Operations that start and stop containers.
    fn writes(container: impl Fn() -> ContainerRef) -> [Operation; 2] {
        [
            Operation::ContainerStart {
                container: container(),
            },
            Operation::ContainerStop {
                container: container(),
                grace_s: 1,
            },
        ]
    }

    fn zone() -> Operation {
        let zone = "UTC".to_owned().try_into().unwrap();
        let setting = HostSetting::Timezone { zone };
        Operation::HostSetting { setting }
    }

    fn mail_operation() -> Operation {
        Operation::Mail(MailMessage {
            subject: String::new(),
            text: String::new(),
            agent: None,
        })
    }

    /// Operations on disk space.
    fn disk_space() -> [(Operation, Option<HelperClass>); 3] {
        let cleanup = DiskCleanup {
            items: Vec::new(),
            agent: String::new(),
        };
        let of = |operation, class| (operation, Some(class));
        [
            of(Operation::HostDiskReport {}, HelperClass::HostReads),
            of(Operation::ContainerDiskReport {}, HelperClass::LxcReads),
            of(Operation::DiskCleanup(cleanup), HelperClass::Cleanup),
        ]
    }

    fn everything() -> Vec<(Operation, Option<HelperClass>)> {
        let container = || -> ContainerRef { "web".parse().unwrap() };
        let command = || Command {
            program: Program::Shell("id".into()),
            user: None,
            cwd: None,
            env: std::collections::BTreeMap::new(),
        };
        let one = |container| Operation::ContainerCommand {
            container,
            command: command(),
            on_host: false,
        };
        let rest = [
            (Operation::Ping {}, None),
            (Operation::Bounds {}, None),
            (Operation::JobEnds {}, None),
            (
                job(Operation::UpdateCheck { container: None }),
                Some(HelperClass::Updates),
            ),
            (
                job(Operation::ContainerList {}),
                Some(HelperClass::LxcReads),
            ),
            (zone(), Some(HelperClass::HostSettings)),
            (mail_operation(), Some(HelperClass::MailTo)),
            (Operation::HostView {}, Some(HelperClass::HostReads)),
            (
                Operation::HostSpace { places: Vec::new() },
                Some(HelperClass::HostReads),
            ),
            (
                Operation::HostPrograms {
                    sockets: Vec::new(),
                },
                Some(HelperClass::HostReads),
            ),
            (
                Operation::HostCommand { command: command() },
                Some(HelperClass::HostShell),
            ),
            (one(container()), Some(HelperClass::ContainerShell)),
        ];
        let reads = reads(container).map(|read| (read, Some(HelperClass::LxcReads)));
        let writes = writes(container).map(|write| (write, Some(HelperClass::LxcWrites)));
        let power = power().map(|power| (power, Some(HelperClass::Power)));
        let containers = reads.into_iter().chain(writes).chain(container_actions());
        let containers = containers.chain(of_systemd());
        rest.into_iter()
            .chain(containers)
            .chain(power)
            .chain(updates())
            .chain(files())
            .chain(backups())
            .chain(disk_space())
            .chain(switches().map(|switch| (switch, Some(HelperClass::Network))))
            .chain(keys().map(|key| (key, Some(HelperClass::SshKeys))))
            .chain(repairs().map(|repair| (repair, Some(HelperClass::Storage))))
            .chain(looks().map(|look| (look, Some(HelperClass::HostReads))))
            .collect()
    }

    /// A policy with all classes on except this one.
    fn without(off: HelperClass) -> HelperPolicy {
        if off == HelperClass::UpdatesApply {
            return HelperPolicy {
                updates: UpdatesPolicy::ReadOnly,
                ..HelperPolicy::everything()
            };
        }
        if off == HelperClass::BackupDelete {
            return HelperPolicy {
                backup: BackupPolicy::On,
                ..HelperPolicy::everything()
            };
        }
        let scratch = Scratch::new();
        let path = scratch.join("helper.toml");
        let keys = HelperClass::ALL.into_iter();
        // They are values of a key that has another class too.
        let second = [HelperClass::UpdatesApply, HelperClass::BackupDelete];
        let keys = keys.filter(|class| !second.contains(class));
        let lines = keys.map(|class| {
            let words = match class {
                HelperClass::HostShell | HelperClass::ContainerShell => ["\"off\"", "\"full\""],
                HelperClass::HostReads
                | HelperClass::LxcReads
                | HelperClass::LxcWrites
                | HelperClass::HostLogs => ["false", "true"],
                HelperClass::LxcManage
                | HelperClass::ContainerFiles
                | HelperClass::Power
                | HelperClass::Units
                | HelperClass::Network
                | HelperClass::HostSettings
                | HelperClass::Cleanup
                | HelperClass::Storage => ["\"off\"", "\"on\""],
                HelperClass::Updates | HelperClass::UpdatesApply => ["\"off\"", "\"apply\""],
                HelperClass::Backup | HelperClass::BackupDelete => ["\"off\"", "\"delete\""],
                HelperClass::HostFileReads | HelperClass::HostFileWrites => ["[]", "[\"/srv\"]"],
                HelperClass::SshKeys | HelperClass::MailTo => ["[]", "[\"root\"]"],
            };
            format!("{class} = {}\n", words[usize::from(class != off)])
        });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let policy: Result<_, ConfigError> = HelperPolicy::load(&path);
        policy.unwrap()
    }

    #[test]
    fn each_class_is_switched_by_its_own_word_and_by_no_other() {
        for (operation, class) in everything() {
            let all = HelperPolicy::everything();
            assert_eq!(check(&all, &operation), Ok(()), "{operation:?}");
            for off in HelperClass::ALL {
                let refused = check(&without(off), &operation).is_err();
                // Without permission to read updates, installing them is off too; deleting backups likewise.
                let with_it = match class {
                    Some(HelperClass::UpdatesApply) => off == HelperClass::Updates,
                    Some(HelperClass::BackupDelete) => off == HelperClass::Backup,
                    _ => false,
                };
                assert_eq!(
                    refused,
                    class == Some(off) || with_it,
                    "{operation:?} without {off}"
                );
            }
        }
        for class in HelperClass::ALL {
            let mut all = everything().into_iter();
            assert!(
                all.any(|(_, of)| of == Some(class)),
                "{class} switches nothing"
            );
        }
    }

    #[test]
    fn a_refusal_names_the_file_the_word_and_who_can_change_it() {
        for (operation, class) in everything() {
            let Some(class) = class else { continue };
            let refused = check(&without(class), &operation).unwrap_err();
            let OperationRefusal { code, message } = refused;
            assert_eq!(code, RefusalCode::Forbidden);
            let begins = format!("{class} is off in /etc/gatewren/helper.toml: ");
            assert!(message.starts_with(&begins), "{message}");
            assert!(message.contains("only the owner"), "{message}");
        }
    }
}
