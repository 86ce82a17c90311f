//! Tools with unusual input schemas.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::registry::{Answer, Cx, Result, Risk, Toolset};

/// These tools have no state.
pub struct Schemas;

/// The toolset, as a table.
pub fn tools() -> Toolset<Schemas> {
    Toolset::over(Arc::new(Schemas))
        .answering("json_schema_2020_12_tool", Risk::Read, rich)
        .with_schema(rich_schema())
        .answering("test_header_parameter", Risk::Read, header)
}

/// Use an input schema of JSON Schema 2020-12 that servers must send, and clients must accept, unchanged.
#[derive(Deserialize, JsonSchema)]
struct Rich {
    #[serde(flatten)]
    given: Map<String, Value>,
}

async fn rich(_: Arc<Schemas>, asked: Rich, _: Cx) -> Result<Answer> {
    let names: Vec<&str> = asked.given.keys().map(String::as_str).collect();
    Ok(Answer::text(format!("Given: [{}]", names.join(", "))))
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Use a parameter that clients of 2026-07-28 repeat in the header Mcp-Param-Region.
#[derive(Deserialize, JsonSchema)]
struct Header {
    /// Any text.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

async fn header(_: Arc<Schemas>, asked: Header, _: Cx) -> Result<Answer> {
    let region = asked.region.as_deref().unwrap_or("none");
    Ok(Answer::text(format!("Region: {region}")))
}
