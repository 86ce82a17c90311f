//! Keys of `_meta` that are read or written.

/// The request's protocol version.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's capabilities, for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The lowest severity of log messages on the request's stream.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The token that progress notifications carry.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The trace that the request is part of (W3C Trace Context).
pub const TRACE_PARENT: &str = "traceparent";
/// The revision up to which a listener is current; our own key.
pub const SINCE: &str = "gatewren/since";
/// The server that answered.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The `subscriptions/listen` that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
