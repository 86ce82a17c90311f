//! What a client may ask for: a file a group, each a table and the functions behind it.
#![forbid(unsafe_code)]

mod access;
mod containers;
mod disks;
mod failure;
mod files;
mod jobs;
mod library;
mod logs;
mod network;
mod number;
mod power;
mod probes;
mod processes;
mod proposals;
mod resources;
mod server;
mod shell;
mod state;
mod storage;
mod units;
mod updates;

pub use access::tools as access;
pub use containers::tools as containers;
pub use disks::tools as disks;
pub use files::tools as files;
pub use jobs::tools as jobs;
pub use library::tools as library;
pub use logs::tools as logs;
pub use network::tools as network;
pub use power::tools as power;
pub use probes::tools as probes;
pub use processes::tools as processes;
pub use proposals::tools as proposals;
pub use resources::StateResources;
pub use server::tools as server;
pub use shell::tools as shell;
pub use state::tools as state;
pub use storage::tools as storage;
pub use units::tools as units;
pub use updates::tools as updates;
