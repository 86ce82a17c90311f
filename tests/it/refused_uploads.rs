//! A refusal that comes before the request's body was read reaches the client, over both versions of HTTP.

use std::process::Command;

use serde_json::Value;

use crate::support::machine::skip;
use crate::support::server::{Server, server};

/// The number of requests for each kind: without draining, four of five fail.
const RUNS: usize = 50;

/// Sends a request with curl, and returns its exit status, its status code and its body.
fn curl(server: &Server, protocol: &str, options: &[&str]) -> (i32, u16, String) {
    let url = format!("https://{}", server.address());
    let mut command = Command::new("curl");
    command.args([
        "-sS",
        "--cacert",
        server.text("ca"),
        protocol,
        "-w",
        "\n%{http_code}",
    ]);
    let path = options[0];
    let output = command
        .args(&options[1..])
        .arg(url + path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, code) = text.rsplit_once('\n').unwrap_or(("", "0"));
    (
        output.status.code().unwrap_or(-1),
        code.parse().unwrap_or(0),
        body.to_owned(),
    )
}

#[test]
fn curl_prints_each_early_refusal() {
    let known = Command::new("curl").arg("--version").output();
    if !known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains("HTTP2")) {
        return skip("there is no curl with HTTP/2");
    }
    // Without a limit for strangers: all of these requests are theirs.
    let limits = "[limits]\naddress_rate = 100000\naddress_burst = 100000\n";
    let server = server().settings(limits).start();
    let body = ["-d", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#];
    let large = ["-d", &"x".repeat(40_000)];
    let json = ["-H", "content-type: application/json"];
    let wrong = ["-H", "authorization: Bearer gw_wrong"];
    let cases: [(&str, u16, Vec<&str>); 5] = [
        ("/mcp", 401, [json, wrong, body].concat()),
        ("/mcp", 401, [json, body].concat()),
        ("/mcp", 401, [json, wrong, large].concat()),
        ("/nowhere", 404, [json, body].concat()),
        ("/mcp", 405, [json, body, ["-X", "PUT"]].concat()),
    ];
    for protocol in ["--http2", "--http1.1"] {
        for (path, status, options) in &cases {
            let options = [&[*path][..], options].concat();
            for run in 0..RUNS {
                let (exit, code, said) = curl(&server, protocol, &options);
                let is_json = serde_json::from_str::<Value>(&said).is_ok();
                assert!(
                    (exit, code) == (0, *status) && is_json,
                    "{protocol} {options:?}, run {run}: exit {exit}, {code}: {said}"
                );
            }
        }
    }
}
