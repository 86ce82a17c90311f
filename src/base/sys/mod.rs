//! Every system call and every unsafe line of gatewren.

mod access;
mod activation;
mod audit_session;
mod burst_rate;
mod calendar;
mod cgroup;
mod child;
mod clock;
mod clone;
mod container_root;
mod datagram;
mod db_backup;
mod db_uri;
mod db_watch;
mod descriptors;
mod disk_space;
mod drop_privileges;
mod earlier_samples;
mod exact_text;
mod exclusive;
mod executable;
mod failure_log;
mod folder_watch;
mod fork_server;
mod host_name;
mod jail;
mod jail_mounts;
mod kernel_events;
mod kernel_ring;
mod local_time;
mod lock;
mod lxc_programs;
#[cfg(all(target_arch = "x86_64", any(test, target_env = "musl")))]
mod memory_routines;
mod mount_table;
mod names;
mod neighbors;
mod netlink;
mod netlink_list;
mod network;
mod open_beneath;
mod open_files;
mod open_ports;
mod page_release;
mod probe;
mod proc_dir;
mod process_table;
mod quarantine;
mod relocation;
mod requester;
mod returned_memory;
mod sanitize;
mod secret_file;
mod shorten;
mod socket_owners;
pub mod source;
mod spawn;
mod spawn_plan;
mod spawn_process;
mod subreaper;
mod swap;
mod terminal;
mod unwritten_intent;
mod user_namespace;

pub use access::may_use;
pub use activation::{InheritedSocket, accepts_over_ip, inherited_sockets, started_by_systemd};
pub use audit_session::{AuditSession, audit_session, has_only};
pub use burst_rate::{BurstRate, BurstUsage};
pub use calendar::{Calendar, CalendarError};
pub use cgroup::{
    Cgroup, LIMITING_CONTROLLERS, cgroup_paths, cgroup2_mount, freezer_state, groups_named,
    limiting_controllers, limiting_groups, own_cgroup, processes_in_group, set_frozen,
    share_controllers, stale_cgroups,
};
pub use child::{Child, Exit, wait_for_end};
pub use clock::{PastClock, clock_is_synchronised, moment_ms, now_ms, rfc3339};
pub use container_root::{FileEnd, InsideRoot};
pub use datagram::send_datagram;
pub use db_backup::keep_copy;
pub use db_uri::immutable_database_uri;
pub use db_watch::{FileWaiter, FileWaker};
pub use descriptors::{adopt_socket, launch_pipes, pipe};
pub use disk_space::{DiskSpace, disk_space};
pub use drop_privileges::{act_as_owner_of, as_owner_of, was_started_by_root};
pub use earlier_samples::{EarlierSamples, LEAST_BETWEEN};
pub use exact_text::{exact_line, exact_lines, text_notes};
pub use exclusive::is_free;
pub use executable::{is_static, sealed_bytes, sealed_copy};
pub use failure_log::FailureLog;
pub use folder_watch::{FolderEvent, FolderWatch};
pub use fork_server::{FORKED_FDS, ForkError, ForkServer};
pub use gatewren_portable::{
    FileError, FoundAddress, LineReader, LineTooLong, RandomError, Secret, ZeroizeOnDrop,
    Zeroizing, end_when_gone, end_when_stalled, files, from_letters, lock, normalized_letters,
    random_bytes, random_letters, read_lock, to_letters, write_lock,
};
pub use host_name::host_name;
pub use jail::{Jail, JailCommand, run_in_jail};
pub use kernel_events::KernelEvents;
pub use kernel_ring::read_kernel_ring;
pub use local_time::LocalZone;
pub use lock::{
    DirectoryLock, LockHolder, lock_directory, lock_instance, lock_workers,
    wait_for_directory_lock, wait_for_workers_lock,
};
pub use lxc_programs::lxc_containers_that_run;
pub use mount_table::{mount_places, unescape_mount};
pub use neighbors::{FoundNeighbor, neighbors};
pub use network::interface_addresses;
pub use open_beneath::place_beneath;
pub use open_files::{raise_descriptor_limit, usual_descriptor_limit};
pub use open_ports::{OpenPort, open_ports, open_ports_beside, open_ports_of};
pub use page_release::{allow_huge_pages, hold_few_program_pages, refuse_huge_pages};
pub use probe::{ask_name_server, connect_tcp, echo};
pub use proc_dir::hold_proc;
pub use process_table::{
    ProcessStat, all_processes, children, descendants, descendants_among, has_in_environment,
    is_root, kill_exactly, nested_pids, offspring, own_pid, own_uid, pid_namespace, process,
    process_name, terminate, user_processes,
};
pub use quarantine::move_aside;
pub use requester::{Requester, current_requester, on_behalf_of, on_same_behalf};
pub use returned_memory::MappedPages;
pub use sanitize::{is_hostile, neutralise, neutralise_line, plain_line, sanitize, sanitize_lines};
pub use secret_file::read_secret;
pub use shorten::shorten;
pub use socket_owners::socket_programs;
pub use spawn::{HugePages, OnParentExit, ProcessCredentials, Spawn, SpawnError, SpawnStage};
pub use subreaper::{REAPER_NAME, Subreaper, SubreaperEvent, adopt_orphans, reap, reap_any};
pub use swap::swap;
pub use terminal::{PressedKeys, is_asked, read_hidden, terminal_size, wants_color};
pub use unwritten_intent::{beside_intent, intent_is_pending, intent_is_written};
pub use user_namespace::is_in_namespace_of;

#[cfg(any(test, feature = "testing"))]
mod skip;
#[cfg(any(test, feature = "testing"))]
pub use gatewren_portable::Scratch;
#[cfg(any(test, feature = "testing"))]
pub use skip::skip;
