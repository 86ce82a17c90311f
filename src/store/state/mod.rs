//! The host as one JSON document: a log of patches in SQLite, read from memory, which other programs may write too.
#![forbid(unsafe_code)]

mod author;
mod author_seal;
mod blame;
mod blame_tree;
mod changes;
mod checkup;
mod cursor;
mod diff;
mod document;
mod effect;
mod error;
mod external_open;
mod follow;
mod follow_log;
mod history;
mod log;
mod log_limiter;
mod log_reader;
mod migration;
mod notifications;
mod once;
mod operation;
mod patch;
mod pointer;
mod recent;
mod replay;
mod schema;
mod shared;
mod size;
mod store;
#[cfg(test)]
mod testing;
mod ui;
mod view;
mod visibility;
mod visible_value;
mod writer;

pub use author::{Actor, Author};
pub use blame::RevisionInfo;
pub use changes::{Revision, RevisionsSince, TimeCursor};
pub use checkup::{Checkup, checkup};
pub use document::Document;
pub use error::StateError;
pub use follow_log::{StateLogFollower, StateLogUpdate};
pub use history::{History, HistoryEntry, HistoryFilter, KeptRevisions};
pub use log::StateLogRetention;
pub use log_reader::StateLogReader;
pub use notifications::{
    KeptNotification, Notice, NotificationChange, NotificationReader, Notifications,
};
pub use once::apply_once;
pub use operation::PatchOperation;
pub use patch::Patch;
pub use pointer::Pointer;
pub use store::State;
pub use ui::{Ui, UiError};
pub use view::{StateView, StateViews};
pub use visible_value::{DocumentIdentity, VisibleValue};

#[cfg(feature = "testing")]
pub use diff::{diff, put};

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod integrity;
#[cfg(test)]
mod properties;
