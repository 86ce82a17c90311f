//! The addresses of the static assets. Each has the version in its query, which only caches look at: after an upgrade,
//! no page is shown with a script or style of the version before.

pub const STYLE: &str = concat!("/owner/style.css?v=", env!("CARGO_PKG_VERSION"));
pub const SCRIPT: &str = concat!("/owner/page.js?v=", env!("CARGO_PKG_VERSION"));
pub const ICONS: &str = concat!("/owner/icons.svg?v=", env!("CARGO_PKG_VERSION"));
