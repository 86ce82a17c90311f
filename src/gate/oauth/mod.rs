//! The authorization server: programs without a token ask the owner for access, and then use `/connect/mcp`.
#![forbid(unsafe_code)]

mod authorize;
mod client;
mod confirm_page;
mod consent;
mod consent_page;
mod document;
mod error;
mod form;
mod login_redirect;
mod metadata;
mod page;
mod redirect;
mod register;
mod server;
mod site;
mod texts;
mod token;

pub use login_redirect::{sign_in, step_inside};
pub use metadata::{resource as resource_metadata, server as server_metadata};
pub use server::{AuthorizationServer, MAX_BODY, SignedInOwner};
pub use site::IssuerOrigin;
