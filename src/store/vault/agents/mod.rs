//! Agents, the owner, and everything that authenticates them.

pub mod grants;
pub mod keys;
pub mod logins;
pub mod metrics_token;
pub mod names;
pub mod oauth_clients;
pub mod oauth_links;
pub mod owner;
pub mod owner_key;
pub mod pairings;
pub mod table;
pub mod token_warnings;
