//! The introduction to these fixtures, for a client and its model.

/// The instructions, and the result of the tool `about`.
pub const ABOUT: &str = "\
Fixtures for testing MCP clients: every tool, prompt and resource shows one feature of the protocol, and none of \
them reads or changes anything of the machine that it runs on.

- `get-roots-list`, `trigger-sampling-request` and the elicitation tools ask the client for something; a client that \
has not declared the capability gets an error that names it.
- `toggle-subscriber-updates` makes every resource that can be subscribed to report a change every five seconds; \
`test_trigger_resource_update` does so once, for one of them.
- `toggle-simulated-logging` sends log messages, as many as the level that the client has set lets pass.
- What `gzip-file-as-resource` makes is kept in memory as demo://resource/session/NAME, for a while.
- The documents below demo://resource/static/document/ say more.";
