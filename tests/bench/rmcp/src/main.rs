//! A server as rmcp's documentation shows one: a tool, Streamable HTTP, axum. It prints its port.
//!
//! It answers with JSON and without sessions, as gatewren answers the same request.

use rmcp::handler::server::{router::tool::ToolRouter, wrapper::Parameters};
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Example {
    tool_router: ToolRouter<Self>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Words {
    text: String,
}

#[tool_router]
impl Example {
    fn new() -> Self {
        Self {
            tool_router: Self::tool_router(),
        }
    }

    #[tool(description = "Say the same")]
    async fn echo(&self, Parameters(words): Parameters<Words>) -> String {
        words.text
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Example {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("example", "1.0.0"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let service: StreamableHttpService<Example, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Example::new()), Default::default(), settings);
    let app = axum::Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    axum::serve(listener, app).await?;
    Ok(())
}
