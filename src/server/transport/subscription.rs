//! Sends the notifications of a subscription of the stateless era, on its own stream or on a shared connection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::relay::{ClientLine, ReplyRelay, end_notification};
use super::response_end::ResponseEnd;
use crate::dispatch::{
    Call, ClientSubscription, HeldResource, SubscriptionNotice, WakeIsolated, subscription_ended,
};
use gatewren_gate::guard::{Principal, Refusal};
use gatewren_gate::http::{EventSender, StreamClosed};
use gatewren_wire::protocol::{RequestId, RpcError};

/// A subscription that has begun. It ends when the server stops, or when the reach of its agent changes.
pub struct HeldSubscription {
    endpoint: Arc<Endpoint>,
    /// Boxed: a moved argument would be stored twice in the future.
    subscription: Box<ClientSubscription>,
    id: RequestId,
    who: Principal,
    /// The slot among the agent's streams.
    _place: HeldResource,
}

impl HeldSubscription {
    /// Begins a subscription. The error in the result is for its request.
    pub fn begin(endpoint: &Arc<Endpoint>, call: Call) -> Result<Result<Self, RpcError>, Refusal> {
        let place = endpoint.stream(&call.context)?;
        let begun = ClientSubscription::begin(endpoint.engine(), &call);
        Ok(begun.map(|subscription| Self {
            endpoint: endpoint.clone(),
            subscription: Box::new(subscription),
            id: call.id,
            who: call.context.who,
            _place: place,
        }))
    }

    /// Sends everything on a stream, with the final result, until the client disconnects.
    pub async fn send(mut self, sender: EventSender) -> Result<(), StreamClosed> {
        {
            let subscription = &mut self.subscription;
            // These futures are rarely woken, unlike the stream that polls them.
            let sending = WakeIsolated::new(async {
                let first = subscription.acknowledge();
                sender.message(None, &first).await?;
                while let Some(notice) = subscription.next().await {
                    let parts = subscription.parts(&notice);
                    sender.message_in_parts(None, &parts).await?;
                }
                Ok(())
            });
            let guard = self.endpoint.guard();
            let reach_changed = WakeIsolated::new(guard.wait_for_new_reach(&self.who));
            tokio::select! {
                biased;
                sent = sending => sent?,
                _ = reach_changed => {}
            }
        }
        sender.message(None, &self.final_result()).await
    }

    /// The same on a connection that carries everything, until the client cancels the request or disconnects.
    pub async fn relay(mut self, relay: ReplyRelay) {
        let mark = relay.held.mark();
        let line = |bytes| ClientLine::of(bytes, mark.clone());
        {
            let subscription = &mut self.subscription;
            let guard = self.endpoint.guard();
            let mut reach_changed = std::pin::pin!(guard.wait_for_new_reach(&self.who));
            let mut notice = Some(SubscriptionNotice::Own(subscription.acknowledge()));
            while let Some(next) = notice {
                if !relay.is_leaving() {
                    let bytes = subscription.parts(&next).concat();
                    if relay.lines.send(line(bytes)).await.is_err() {
                        return;
                    }
                }
                notice = tokio::select! {
                    biased;
                    () = relay.held.cancelled() => return,
                    _ = &mut reach_changed => None,
                    next = subscription.next() => next,
                };
            }
        }
        let end = end_notification(&self.id).write();
        let _ = relay.lines.send(line(end)).await;
        // A client may use the id again as soon as it has the answer.
        drop(relay.held);
        let _ = relay.lines.send(line(self.final_result())).await;
    }

    fn final_result(&self) -> Vec<u8> {
        let engine = self.endpoint.engine();
        let id: Value = json!(self.id);
        let result = subscription_ended(id, &engine.catalog.server);
        ResponseEnd::of(engine, &self.id, Ok(result))
            .body
            .into_one()
    }
}
