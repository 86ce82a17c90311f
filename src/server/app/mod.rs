//! Builds the server and keeps it running.
#![forbid(unsafe_code)]

mod audit;
mod background_work;
mod build;
mod build_error;
mod catalog;
mod connect;
mod demo;
mod directory;
mod disk_notices;
#[cfg(feature = "everything")]
mod fixtures;
mod front;
mod helper_capabilities;
mod helper_plan;
mod host_parts;
mod identity;
mod inbox_notices;
mod job_ends;
mod lifecycle;
mod limits;
mod names;
mod notice_logs;
mod notifier;
mod open_changes;
mod own_logins;
mod owner_site;
mod pair;
mod push_title;
mod reload;
mod running_server;
mod scrape;
mod serving;
mod session_notices;
mod signals;
mod stdio;
mod switched_off;
mod tables;
#[cfg(test)]
mod tables_classes;
#[cfg(test)]
mod tables_startos;
#[cfg(test)]
mod tables_texts;
#[cfg(test)]
mod tables_words;
mod token_warnings;
mod unguarded_agents;
mod watchdog;
mod watched_paths;
mod workers_lock;

pub use build::{ServerPlan, build};
#[cfg(feature = "everything")]
pub use fixtures::{FixturePlan, FixtureServer, run_fixtures};
pub use helper_plan::{EngineSockets, HelperPlan};
pub use lifecycle::{open_sockets, reject_connections, run};
pub use names::{server_addresses, server_names};
pub use running_server::{Server, certificate};
pub use session_notices::{NoticeTarget, OwnerNotice, send_notice};
#[cfg(feature = "everything")]
pub use stdio::run_fixtures_stdio;
pub use stdio::run_stdio;
pub use tables::tables;
