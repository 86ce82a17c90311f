//! The supported clients: what each is configured with, as its own documentation says.

mod all;
mod chat_apps;
mod editors;
mod profile;
mod programs;
mod terminal;

pub(super) use all::all_clients;
pub use profile::SnippetFormat;
pub(super) use profile::{CaSetting, ClientFile, ClientProfile, InstallLink, TokenSource, Trust};
