//! A complete HTTP response, and what tests read from it.

use hyper::header::HeaderMap;
use hyper::http::response::Parts;
use serde_json::Value;

use super::stream::Event;

/// A complete HTTP response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn new(head: &Parts, body: Vec<u8>) -> Self {
        Self {
            status: head.status.as_u16(),
            headers: head.headers.clone(),
            body: String::from_utf8(body).expect("UTF-8"),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Returns the messages, from a JSON body or from a stream.
    pub fn messages(&self) -> Vec<Value> {
        if !self.is_stream() {
            return vec![self.json()];
        }
        let events = self.body.split("\n\n").filter_map(Event::parse);
        let events = events.filter(|event| !event.data.is_empty());
        events.map(|event| event.json()).collect()
    }

    /// Returns the JSON-RPC response: the last message.
    pub fn rpc(&self) -> Value {
        self.messages().pop().expect("a message")
    }

    /// Returns the status and the code of the JSON-RPC error; 0 if there is none.
    pub fn verdict(&self) -> (u16, i64) {
        let code = if self.body.is_empty() {
            None
        } else {
            self.rpc()["error"]["code"].as_i64()
        };
        (self.status, code.unwrap_or(0))
    }

    /// Returns the message of the JSON-RPC error.
    pub fn message(&self) -> String {
        let rpc = self.rpc();
        let words = rpc["error"]["message"].as_str();
        words
            .unwrap_or_else(|| panic!("no error: {rpc}"))
            .to_owned()
    }

    /// Returns the result.
    pub fn result(&self) -> Value {
        let mut rpc = self.rpc();
        assert!(rpc.get("result").is_some(), "no result: {rpc}");
        rpc["result"].take()
    }

    /// Returns the structured content of a tool's result.
    pub fn data(&self) -> Value {
        let result = self.result();
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Returns the text of a tool's error.
    pub fn failure(&self) -> String {
        let result = self.result();
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Returns the names of the items in a list of the result.
    pub fn names(&self, list: &str) -> Vec<String> {
        let result = self.result();
        let items = result[list].as_array().unwrap().iter();
        items
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    }
}
