//! Settings: read from files, checked, then plain values; each has a default, so no file is needed.
#![forbid(unsafe_code)]

mod backup_target;
mod change;
mod dialect;
mod edge;
mod error;
mod glob;
mod helper_class;
mod helper_lists;
mod helper_policy;
mod helper_reach;
mod key;
mod level;
mod live;
mod load;
mod mode;
mod nearest;
mod network;
mod policy;
mod preset;
mod reading;
mod reference;
mod resolved;
mod risk;
mod settings;
mod shape;
mod space;
mod space_keys;
mod template;
mod traces;
mod trust;

pub use backup_target::BackupStore;
pub use change::Change;
pub use dialect::Dialect;
pub use edge::{EdgeJwt, KeysAt};
pub use error::{ConfigError, Problem};
pub use glob::{Glob, InvalidGlob, fits};
pub use helper_class::HelperClass;
#[cfg(test)]
pub use helper_policy::Updates;
pub use helper_policy::{HELPER_POLICY_FILE, HelperPolicy};
pub use level::LogLevel;
pub use live::{InForce, Live};
pub use load::SETTINGS_FILE;
pub use mode::Mode;
pub use nearest::nearest;
pub use network::Network;
pub use policy::{Overrides, Policy};
pub use preset::Preset;
pub use reference::{helper_sample, settings_sample};
pub use resolved::Resolved;
pub use risk::Risk;
pub use settings::{Inbox, Limits, Settings, StateLog, Tasks, TlsMode};
pub use space::{Reach, Space, Spaces, WHOLE_BOX};
pub use template::Template;
pub use traces::{TRACED_FIELDS, Traces};
