//! MCP messages in every revision that is served: plain types, no I/O, no panic on any bytes.
#![doc = ""]
#![doc = include_str!("checklist.md")]
#![forbid(unsafe_code)]

mod capabilities;
mod content;
mod cursor;
mod encode;
mod error;
mod header;
mod input;
mod json;
mod jsonrpc;
pub mod key;
mod level;
mod meta;
mod notification;
mod outcome;
mod prompt;
mod resource;
mod server;
mod task;
mod template;
mod tool;
mod trace_context;
mod version;

pub use capabilities::{APP_MEDIA_TYPE, APPS_EXTENSION, ClientCapabilities, PATCHES};
pub use content::{Annotations, Content, ResourceContents, Role};
pub use cursor::page;
pub use encode::{error_for_stateful, for_stateful};
pub use error::{RpcError, code};
pub use header::{decode_header_value, matches_argument};
pub use input::{InputAnswers, InputRequired};
pub use json::{MessageBytes, Params, QuotedJson, SerializedJson};
pub use jsonrpc::{
    IncomingNotification, RequestId, RpcBody, RpcMessage, RpcRequest, RpcResponse, read,
};
pub use level::LogSeverity;
pub use meta::{RequestMeta, progress_token};
pub use notification::{Notification, SharedNotification};
pub use outcome::{ReadDocument, ReadResult, ToolResult};
pub use prompt::{Prompt, PromptArgument, PromptMessage};
pub use resource::{Resource, ResourceTemplate};
pub use server::{Implementation, ServerCapabilities, ServerProfile};
pub use task::{TASKS_EXTENSION, Task, TaskState};
pub use template::UriTemplate;
pub use tool::{
    ToolAnnotations, ToolDefinition, check_dialect, header_parameters, is_portable_name,
    is_tool_name,
};
pub use trace_context::TraceParent;
pub use version::{MODERN_VERSIONS, Version};
