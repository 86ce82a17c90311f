//! Settings: read from files, validated, then plain values. Each key has a default, so no file is needed.
#![forbid(unsafe_code)]

mod backup_target;
mod change;
mod channel;
mod channel_keys;
mod container_mentions;
mod container_store;
mod dialect;
mod did_you_mean;
mod edge_jwt;
mod error;
mod glob;
mod health_path;
mod helper_class;
mod helper_lists;
mod helper_policy;
mod helper_reach;
mod helper_switches;
mod instance_name;
mod key;
mod live_settings;
mod load;
mod mode;
mod named;
mod network;
mod policy;
mod preset;
mod reading;
mod recipient;
mod reference;
mod resolved;
mod risk;
mod runtime_kind;
mod settings;
mod shape;
mod space;
mod space_keys;
mod template;
mod tls_settings;
mod trust;
mod watched_path;
mod wifi_network;
mod workers;

pub use backup_target::BackupStore;
pub use change::SettingsReload;
pub use channel::{Channel, ChannelKind, Channels, Occasion};
pub use container_mentions::{ContainerMentions, TRACED_FIELDS};
pub use container_store::{ContainerStore, DEFAULT_STORE, InvalidContainerStore};
pub use dialect::Dialect;
pub use did_you_mean::nearest;
pub use edge_jwt::{EdgeJwt, KeyLocation};
pub use error::{ConfigError, Problem};
pub use gatewren_portable::LogLevel;
pub use glob::{Glob, InvalidGlob, fits};
#[cfg(feature = "testing")]
pub use health_path::may_be_health_path;
pub use helper_class::HelperClass;
pub use helper_policy::{HELPER_POLICY_FILE, HelperPolicy};
#[cfg(any(test, feature = "testing"))]
pub use helper_switches::{BackupPolicy, UpdatesPolicy};
pub use instance_name::{INSTANCE_NAME_FORM, is_instance_name};
pub use live_settings::{LiveSettings, LiveSettingsSender};
pub use load::SETTINGS_FILE;
pub use mode::Mode;
pub use network::{IpNetwork, ip_prefix};
pub use policy::{Overrides, Policy};
pub use preset::Preset;
pub use reference::{helper_sample, settings_sample};
pub use resolved::ResolvedSetting;
pub use risk::Risk;
pub use runtime_kind::RuntimeKind;
pub use settings::{
    AccessSettings, InboxSettings, LimitSettings, Settings, StateLogSettings, TaskSettings,
};
pub use space::{Reach, Space, Spaces, WHOLE_SERVER, is_host_unit};
pub use template::ContainerTemplate;
pub use tls_settings::TlsMode;
pub use trust::find_distrust;
pub use watched_path::WatchedPath;
pub use workers::WorkerSettings;
