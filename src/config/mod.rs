//! Settings: read once from files, checked, then plain values; each has a default, so no file is needed.
#![forbid(unsafe_code)]

mod error;
mod glob;
mod helper_policy;
mod key;
mod level;
mod load;
mod nearest;
mod preset;
mod reading;
mod reference;
mod settings;
mod shape;
mod trust;

pub use error::{ConfigError, Problem};
pub use glob::{Glob, InvalidGlob};
pub use helper_policy::{HELPER_POLICY_FILE, HelperPolicy, Shell};
pub use level::LogLevel;
pub use load::SETTINGS_FILE;
pub use preset::Preset;
pub use reference::{helper_sample, settings_sample};
pub use settings::{Limits, Settings, Tasks, TlsMode};
