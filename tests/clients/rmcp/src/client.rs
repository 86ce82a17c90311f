//! A client made with rmcp: its connection, its answers to the server, and its notifications.

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, Implementation,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, SamplingMessage,
    ServerNotification, SubscribeRequestParams, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, RequestContext, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::checks::{Outcome, expect, words};

/// A connected client, with its notifications: the URIs of updates, and progress.
pub struct Client {
    pub service: RunningService<RoleClient, Handler>,
    pub notices: UnboundedReceiver<String>,
    pub progress: UnboundedReceiver<f64>,
    heard: UnboundedSender<String>,
}

/// The handler of the server's notifications and requests.
pub struct Handler {
    info: ClientConfig,
    notices: UnboundedSender<String>,
    progress: UnboundedSender<f64>,
}

impl Client {
    /// Connects; `lifecycle` is `initialize` or `discover`.
    pub async fn connect(
        lifecycle: &str,
        url: &str,
        token: &str,
        authorities: &[u8],
    ) -> Outcome<Self> {
        let mut http = reqwest::Client::builder();
        for authority in reqwest::Certificate::from_pem_bundle(authorities).map_err(words)? {
            http = http.add_root_certificate(authority);
        }
        // Without re-initialising, so that a call after a restart shows that the session still exists.
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .auth_header(token)
            .reinit_on_expired_session(false);
        let transport =
            StreamableHttpClientTransport::with_client(http.build().map_err(words)?, config);
        let (heard, notices) = unbounded_channel();
        let (progressed, progress) = unbounded_channel();
        let capabilities =
            serde_json::from_value(json!({ "elicitation": {}, "sampling": {} })).map_err(words)?;
        let info = ClientConfig::new(capabilities, Implementation::new("gatewren-tests", "3"));
        let handler = Handler {
            info,
            notices: heard.clone(),
            progress: progressed,
        };
        let mode = match lifecycle {
            "initialize" => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let service = serve_client_with_lifecycle(handler, transport, mode)
            .await
            .map_err(words)?;
        Ok(Self {
            service,
            notices,
            progress,
            heard,
        })
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Outcome<CallToolResult> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        self.service.call_tool(params).await.map_err(words)
    }

    /// Subscribes on the session, whose stream delivers the notifications to the handler.
    pub async fn subscribe(&self, uris: &[&str]) -> Outcome {
        for uri in uris {
            self.service
                .subscribe(SubscribeRequestParams::new(*uri))
                .await
                .map_err(words)?;
        }
        Ok(())
    }

    /// Subscribes with a separate stream. The receiver gets `true` when that stream ends.
    pub async fn listen(&self, uris: &[&str]) -> Outcome<UnboundedReceiver<bool>> {
        let filter = SubscriptionFilter::builder()
            .resource_subscriptions(uris.iter().copied())
            .build();
        let mut subscription = self.service.listen(filter).await.map_err(words)?;
        let honoured = subscription
            .acknowledged()
            .resource_subscriptions
            .clone()
            .unwrap_or_default();
        expect(
            honoured.len() == uris.len(),
            format!("honoured only {honoured:?}"),
        )?;
        let heard = self.heard.clone();
        let (end, ended) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(notice)) = subscription.next().await {
                if let ServerNotification::ResourceUpdatedNotification(notice) = notice {
                    let _ = heard.send(notice.params.uri);
                }
            }
            let _ = end.send(true);
        });
        Ok(ended)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.notices.send(params.uri);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(params.progress);
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams {
            requested_schema, ..
        } = params
        else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let fields = requested_schema
            .properties
            .keys()
            .map(|field| (field.clone(), json!("Ada")));
        Ok(ElicitResult::new(ElicitationAction::Accept)
            .with_content(Value::Object(fields.collect())))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(CreateMessageResult::new(
            SamplingMessage::assistant_text("Paris"),
            "none".to_owned(),
        ))
    }
}
