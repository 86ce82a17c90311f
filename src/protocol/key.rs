//! Keys of `_meta` that are read or written.

/// The request's protocol version.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do, for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// From which severity on the request's stream carries log messages.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// What reports of progress are to name.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Whose work the request is part of (W3C Trace Context).
pub const TRACE_PARENT: &str = "traceparent";
/// Up to which revision a listener knows what it listens to; ours.
pub const SINCE: &str = "gatewren/since";
/// Which server answered.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which `subscriptions/listen` a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
