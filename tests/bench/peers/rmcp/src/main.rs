//! rmcp as its documentation shows it: macros, Streamable HTTP, axum. `gatewren-bench-rmcp PORT [--guarded CERTIFICATE KEY TOKEN DATABASE]`
//!
//! Replies are JSON without sessions, packets are sent at once (no delay), and one handler with its tools is made at
//! the start and cloned: the fastest configuration that was found. The defaults are several times slower.
//!
//! With `--guarded` it is the same service behind TLS, a token and a table of calls.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::serve::ListenerExt as _;
use gatewren_bench_guard::{Arguments, Error};
use rmcp::handler::server::{router::tool::ToolRouter, wrapper::Parameters};
use rmcp::model::{
    ErrorData, Implementation, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Example {
    tool_router: ToolRouter<Self>,
    listeners: Arc<Mutex<Vec<SubscriptionSink>>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Words {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Program {
    command: String,
}

#[tool_router]
impl Example {
    fn new() -> Self {
        let tool_router = Self::tool_router();
        let listeners = Arc::default();
        Self {
            tool_router,
            listeners,
        }
    }

    #[tool(description = "Say the same")]
    async fn echo(&self, Parameters(words): Parameters<Words>) -> String {
        words.text
    }

    #[tool(description = "Run a command with /bin/sh and say what it printed")]
    async fn shell(&self, Parameters(program): Parameters<Program>) -> Result<String, ErrorData> {
        let mut shell = tokio::process::Command::new("/bin/sh");
        let ran = shell
            .args(["-c", &program.command])
            .stdin(Stdio::null())
            .output()
            .await;
        let output = ran.map_err(|cause| ErrorData::internal_error(cause.to_string(), None))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[tool(description = "Say to all who listen that the document has changed")]
    async fn touch(&self) -> String {
        let listeners = self.listeners.lock().unwrap().clone();
        for listener in &listeners {
            let _ = listener.notify_resource_updated("bench://document").await;
        }
        listeners.len().to_string()
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Example {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        let capabilities = capabilities
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("example", "1.0.0"))
    }

    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(asked.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listeners.lock().unwrap().push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let Arguments { port, guard } = Arguments::read()?;
    let settings = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let example = Example::new();
    let service: StreamableHttpService<Example, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(example.clone()), Default::default(), settings);
    let app = axum::Router::new().nest_service("/mcp", service);
    if let Some(guard) = guard {
        return guard.serve(port, app).await;
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let at_once = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(at_once, app).await?;
    Ok(())
}
