//! Questions of a call to a stateful client: requests on the call's stream, answers as POSTs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::sessions::session::{ClientAnswer, Session};
use super::wire::ClientMessage;
use gatewren_wire::protocol::{RequestId, RpcError, RpcRequest};

/// Sends a call's questions to the client and collects the answers by key. A question that is not answered within
/// the timeout fails the call.
pub async fn gather(
    session: &Session,
    stream: &mpsc::Sender<ClientMessage>,
    questions: &BTreeMap<String, (&'static str, Value)>,
    timeout: Duration,
) -> Result<Map<String, Value>, RpcError> {
    let mut answers = Map::new();
    for (key, (method, params)) in questions {
        let answer = ask(session, stream, method, params).await?;
        let answer = tokio::time::timeout(timeout, answer).await;
        answers.insert(key.clone(), read_answer(method, answer)?);
    }
    Ok(answers)
}

/// In the stateful revisions, an elicitation of the mode `url` has its own id (2025-11-25, client/elicitation).
fn name_visit(params: &mut Map<String, Value>) {
    params
        .entry("elicitationId")
        .or_insert_with(|| Value::String(Uuid::new_v4().to_string()));
}

async fn ask(
    session: &Session,
    stream: &mpsc::Sender<ClientMessage>,
    method: &str,
    params: &Value,
) -> Result<oneshot::Receiver<ClientAnswer>, RpcError> {
    let (id, answer) = session
        .question()
        .ok_or_else(|| RpcError::invalid_request("too many open questions to this client"))?;
    let mut params = params.as_object().cloned().unwrap_or_default();
    if params.get("mode").and_then(Value::as_str) == Some("url") {
        name_visit(&mut params);
    }
    let request = RpcRequest {
        id: RequestId::Number(id),
        method: method.to_owned().into(),
        params: params.into(),
    };
    stream
        .send(ClientMessage::Ask(request))
        .await
        .map_err(|_| {
            RpcError::invalid_request("the client cannot be asked because its stream has ended")
        })?;
    Ok(answer)
}

fn read_answer<E1, E2>(
    method: &str,
    answer: Result<Result<Result<Value, Value>, E1>, E2>,
) -> Result<Value, RpcError> {
    match answer {
        Ok(Ok(Ok(result))) => Ok(result),
        Ok(Ok(Err(error))) => {
            let words = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("no message");
            let words: String = words.chars().take(200).collect();
            Err(RpcError::invalid_request(format!(
                "the client answered {method} with an error: {words}"
            )))
        }
        Ok(Err(_)) | Err(_) => Err(RpcError::invalid_request(format!(
            "the client did not answer {method}; nothing was done"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transport::sessions::session_token::SessionClaims;
    use gatewren_wire::protocol::Version;

    const WAIT: Duration = Duration::from_secs(40);

    #[tokio::test(start_paused = true)]
    async fn p5_a_question_that_nobody_answers_fails_its_call() {
        let none = Map::new();
        let claims = SessionClaims::new("a", Version::V2025_11_25, &none);
        let session = Session::new("id", claims);
        let (stream, mut heard) = mpsc::channel(4);
        let questions = BTreeMap::from([("who".to_owned(), ("elicitation/create", json!({})))]);
        let began = tokio::time::Instant::now();
        let error = gather(&session, &stream, &questions, WAIT)
            .await
            .unwrap_err();
        assert!(error.message.contains("did not answer"), "{error}");
        assert_eq!(began.elapsed().as_secs(), WAIT.as_secs());
        assert!(matches!(heard.recv().await, Some(ClientMessage::Ask(_))));
    }
}
