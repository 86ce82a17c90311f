//! The host as one JSON document: a log of patches in SQLite, read from memory, which other programs may write too.
#![forbid(unsafe_code)]

mod aside;
mod author;
mod author_seal;
mod blame;
mod changes;
mod checkup;
mod cursor;
mod diff;
mod document;
mod effect;
mod error;
mod follow;
mod guest;
mod history;
mod log;
mod migration;
mod notifications;
mod once;
mod operation;
mod patch;
mod pointer;
mod recent;
mod replay;
mod schema;
mod seen;
mod shared;
mod sight;
mod size;
mod store;
mod tail;
#[cfg(test)]
mod testing;
mod traces;
mod trouble;
mod ui;
mod view;
mod writer;

pub use author::{Actor, Author};
pub use blame::Writing;
pub use changes::{Changes, Revision};
pub use checkup::{Checkup, checkup};
pub use document::Document;
pub use error::StateError;
pub use history::{Entry, Filter, History};
pub use log::Retention;
pub use notifications::{Change, Kept, Notice, Notifications};
pub use once::apply_once;
pub use operation::Operation;
pub use patch::Patch;
pub use pointer::Pointer;
pub use seen::{Edition, Seen};
pub use store::State;
pub use tail::{News, Tail};
pub use ui::{Ui, UiError};
pub use view::{View, Views};

#[cfg(feature = "testing")]
pub use diff::{diff, put};

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scrutiny;
