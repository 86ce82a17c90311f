//! The machine: processes, cgroups, descriptors; all unsafe code and all of `nix` live here.

mod cgroup;
mod child;
mod descriptors;
mod executable;
mod keeper;
mod process_table;
mod rooted;
mod spawn;

pub use cgroup::{
    Cgroup, cgroup2_mount, freezer_state, limiting_groups, own_cgroup, stale_cgroups,
};
pub use child::{Child, Exit};
pub use descriptors::{adopt_socket, close_from, launch_pipes, pipe};
pub use executable::{is_static, sealed_copy};
pub use keeper::{Keeper, Wake, adopt_orphans, reap, reap_any};
pub use process_table::{
    Process, children, descendants, is_root, own_pid, own_uid, pid_namespace, process, terminate,
};
pub use rooted::read_in_root;
pub use spawn::{Identity, Spawn, SpawnError, Stage, WithParent};
