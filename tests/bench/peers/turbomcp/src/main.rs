//! turbomcp as its documentation shows it: one macro, its own HTTP.
//! `gatewren-bench-turbomcp PORT [--guarded CERTIFICATE KEY TOKEN DATABASE]`
//!
//! With `--guarded` it is the same service behind TLS, a token and a table of calls.

use std::process::Stdio;
use std::sync::OnceLock;

use gatewren_bench_guard::{Arguments, Error};
use turbomcp::http::{HttpConfig, router, serve_http};
use turbomcp::prelude::*;

static NOTIFIER: OnceLock<turbomcp::ServerNotifier> = OnceLock::new();

#[derive(Clone)]
struct Example;

#[server(name = "example", version = "1.0.0")]
impl Example {
    #[tool(description = "Say the same")]
    async fn echo(&self, text: String) -> String {
        text
    }

    #[tool(description = "Run a command with /bin/sh and say what it printed")]
    async fn shell(&self, command: String) -> McpResult<String> {
        let mut shell = tokio::process::Command::new("/bin/sh");
        let ran = shell
            .args(["-c", &command])
            .stdin(Stdio::null())
            .output()
            .await;
        let output = ran.map_err(|cause| McpError::internal(cause.to_string()))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[tool(description = "Say to all who listen that the document has changed")]
    async fn touch(&self) -> McpResult<String> {
        let notifier = NOTIFIER
            .get()
            .ok_or_else(|| McpError::internal("too early"))?;
        notifier.resource_updated("bench://document").await;
        Ok("told".to_owned())
    }

    #[resource("bench://document")]
    async fn document(&self) -> McpResult<String> {
        Ok("unchanged".to_owned())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let Arguments { port, guard } = Arguments::read()?;
    let service = Example.into_server().build();
    let _ = NOTIFIER.set(service.notifier());
    if let Some(guard) = guard {
        return guard.serve(port, router(service, HttpConfig::new())).await;
    }
    serve_http(([127, 0, 0, 1], port).into(), service, HttpConfig::new()).await?;
    Ok(())
}
