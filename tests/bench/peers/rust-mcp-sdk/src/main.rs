//! rust-mcp-sdk as its documentation shows it: macros, its axum server.
//! `gatewren-bench-rust-mcp-sdk PORT [--guarded CERTIFICATE KEY TOKEN DATABASE]`
//!
//! With JSON replies, its faster form. It supports only 2026-07-28. With `--guarded` it is the same
//! service behind TLS, a token and a table of calls.

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use gatewren_bench_guard::{Arguments, Error};
use rust_mcp_axum::{AxumServerOptions, create_axum_server, mcp_routes};
use rust_mcp_sdk::macros::{JsonSchema, mcp_tool};
use rust_mcp_sdk::mcp_http::McpHttpHandler;
use rust_mcp_sdk::mcp_server::{ServerHandler, ToMcpServerHandler as _};
use rust_mcp_sdk::schema::schema_utils::CallToolError;
use rust_mcp_sdk::schema::{
    CallToolRequestParams, CallToolResult, Implementation, ListToolsResult,
    ListToolsResultCacheScope, PaginatedRequestParams, RpcError, ServerCapabilities,
    ServerCapabilitiesTools, ServerResult, TextContent,
};
use rust_mcp_sdk::{McpServer, RequestContext, ServerDetails, tool_box};

#[mcp_tool(name = "echo", description = "Say the same")]
#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
pub struct Echo {
    text: String,
}

#[mcp_tool(
    name = "shell",
    description = "Run a command with /bin/sh and say what it printed"
)]
#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
pub struct Shell {
    command: String,
}

tool_box!(Tools, [Echo, Shell]);

struct Example;

#[async_trait]
impl ServerHandler for Example {
    async fn handle_list_tools_request(
        &self,
        _: Option<PaginatedRequestParams>,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            cache_scope: ListToolsResultCacheScope::Private,
            result_type: "complete".to_owned(),
            ttl_ms: 0,
            meta: None,
            next_cursor: None,
            tools: Tools::tools(),
        })
    }

    async fn handle_call_tool_request(
        &self,
        asked: CallToolRequestParams,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        let tool = Tools::try_from(asked).map_err(CallToolError::new)?;
        let text = match tool {
            Tools::Echo(Echo { text }) => text,
            Tools::Shell(Shell { command }) => {
                let mut shell = tokio::process::Command::new("/bin/sh");
                let ran = shell
                    .args(["-c", &command])
                    .stdin(Stdio::null())
                    .output()
                    .await;
                String::from_utf8_lossy(&ran.map_err(CallToolError::new)?.stdout).into_owned()
            }
        };
        Ok(CallToolResult::text_content(vec![TextContent::from(text)]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let Arguments { port, guard } = Arguments::read()?;
    let details = ServerDetails {
        server_info: Implementation {
            name: "example".to_owned(),
            version: "1.0.0".to_owned(),
            title: None,
            description: None,
            icons: vec![],
            website_url: None,
        },
        capabilities: ServerCapabilities {
            tools: Some(ServerCapabilitiesTools { list_changed: None }),
            ..ServerCapabilities::default()
        },
        meta: None,
        instructions: None,
    };
    let options = AxumServerOptions {
        host: "127.0.0.1".to_owned(),
        port,
        enable_json_response: Some(true),
        ..AxumServerOptions::default()
    };
    let server = create_axum_server(details, Example.to_mcp_server_handler(), options);
    if let Some(guard) = guard {
        let mounted = server.options().resolve_mount_options();
        let handler = McpHttpHandler::new(None, vec![], None);
        let app = mcp_routes(server.state(), &mounted, handler);
        return guard.serve(port, app).await;
    }
    server.start().await?;
    Ok(())
}
