//! What the server says of itself to every client.

use gatewren_wire::protocol::{Implementation, ServerProfile};

/// The server's description of itself.
pub fn identity() -> Implementation {
    Implementation {
        name: "gatewren".to_owned(),
        title: Some("gatewren".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: Some(ServerProfile {
            description: "Operate a home server and its containers, within limits that its owner sets.",
            icon: include_str!("../../owner/assets/icon.svg"),
        }),
    }
}
