//! pmcp as its documentation shows it: handlers, its own HTTP.
//! `gatewren-bench-pmcp PORT [--guarded CERTIFICATE KEY TOKEN DATABASE]`
//!
//! Without sessions, so that replies are JSON: with sessions it responds with event streams, which are slower. With
//! `--guarded` it is the same service behind TLS, a token and a table of calls.

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use gatewren_bench_guard::{Arguments, Error};
use pmcp::axum::{RouterConfig, router_with_config};
use pmcp::server::streamable_http_server::{StreamableHttpServer, StreamableHttpServerConfig};
use pmcp::types::ToolInfo;
use pmcp::types::capabilities::ServerCapabilities;
use pmcp::types::protocol::{
    LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28, ProtocolVersion,
};
use pmcp::{RequestHandlerExtra, Server, ToolHandler};
use serde_json::{Value, json};
use tokio::sync::Mutex;

struct Echo;
struct Shell;

fn text<'a>(arguments: &'a Value, name: &str) -> pmcp::Result<&'a str> {
    let value = arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| pmcp::Error::validation(format!("{name} is missing")))
}

fn info(name: &str, description: &str, argument: &str) -> Option<ToolInfo> {
    let schema = json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]});
    Some(ToolInfo::new(name, Some(description.to_owned()), schema))
}

#[async_trait]
impl ToolHandler for Echo {
    async fn handle(&self, arguments: Value, _: RequestHandlerExtra) -> pmcp::Result<Value> {
        Ok(text(&arguments, "text")?.into())
    }

    fn metadata(&self) -> Option<ToolInfo> {
        info("echo", "Say the same", "text")
    }
}

#[async_trait]
impl ToolHandler for Shell {
    async fn handle(&self, arguments: Value, _: RequestHandlerExtra) -> pmcp::Result<Value> {
        let mut shell = tokio::process::Command::new("/bin/sh");
        let shell = shell
            .args(["-c", text(&arguments, "command")?])
            .stdin(Stdio::null());
        let output = shell
            .output()
            .await
            .map_err(|cause| pmcp::Error::Internal(cause.to_string()))?;
        Ok(String::from_utf8_lossy(&output.stdout).into())
    }

    fn metadata(&self) -> Option<ToolInfo> {
        info(
            "shell",
            "Run a command with /bin/sh and say what it printed",
            "command",
        )
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let Arguments { port, guard } = Arguments::read()?;
    let versions = [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28];
    let server = Server::builder()
        .name("example")
        .version("1.0.0")
        .capabilities(ServerCapabilities::tools_only())
        .with_supported_protocol_versions(
            versions.map(|version| ProtocolVersion(version.to_string())),
        )
        .tool("echo", Echo)
        .tool("shell", Shell)
        .build()?;
    let (server, settings) = (
        Arc::new(Mutex::new(server)),
        StreamableHttpServerConfig::stateless(),
    );
    if let Some(guard) = guard {
        let config = RouterConfig {
            server_config: settings,
            ..RouterConfig::default()
        };
        return guard.serve(port, router_with_config(server, config)).await;
    }
    let http = StreamableHttpServer::with_config(([127, 0, 0, 1], port).into(), server, settings);
    let (_, serving) = http.start().await?;
    serving.await?;
    Ok(())
}
