//! What changed on the host and in containers that the state document does not have: packages and files of `/etc`.

mod dpkg_log;
mod etc_files;
mod view;

pub use dpkg_log::PackageChange;
pub use etc_files::{ChangedFile, ChangedFiles};
pub use view::{MachineChanges, MachineChangesFound, MachinePackages};
