//! The cursor of a request for the next page of a list.

use serde_json::Value;

use gatewren_wire::protocol::{Params, RpcError};

/// The cursor in the parameters of a list method.
pub fn cursor(params: &Params) -> Result<Option<&str>, RpcError> {
    match params.get("cursor") {
        None => Ok(None),
        Some(Value::String(cursor)) => Ok(Some(cursor)),
        Some(_) => Err(RpcError::invalid_params("cursor must be a string")),
    }
}
