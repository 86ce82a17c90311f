//! A client that follows a few resources, through its own disconnects and the server's restarts.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::client::Client;
use super::rng::Rng;
use super::session::Session;
use super::stream::{Event, Next, Stream};

/// The conditions that the test sets for all of its clients.
#[derive(Clone)]
pub struct Weather {
    /// The server, while there is one.
    pub server: watch::Receiver<Option<Client>>,
    /// Whether clients drop connections and stop reading their streams for a while.
    pub rough: watch::Receiver<bool>,
}

/// The way a client subscribes.
#[derive(Debug, Clone, Copy)]
pub enum Era {
    /// With `subscriptions/listen`.
    Stateless,
    /// With a session of this revision.
    Session(&'static str),
}

/// The updates that a client has received.
#[derive(Debug, Default)]
pub struct Heard {
    /// For each pointer, the revision up to which the client knows the value.
    pub known: BTreeMap<String, u64>,
    /// Each update: its pointer and its revision.
    pub told: Vec<(String, u64)>,
    /// The number of connections that it opened.
    pub connections: usize,
    /// Its last action.
    pub doing: String,
    /// The events that must not happen.
    pub wrong: Vec<String>,
}

/// A client.
pub struct Watcher {
    pub era: Era,
    pub http2: bool,
    pub pointers: Vec<String>,
    pub rng: Rng,
    pub heard: Arc<Mutex<Heard>>,
    session: Option<Session>,
    last_id: Option<String>,
}

impl Watcher {
    pub fn new(era: Era, pointers: &[&str], mut rng: Rng) -> Self {
        Self {
            era,
            http2: rng.one_in(2),
            pointers: pointers.iter().map(|at| (*at).to_owned()).collect(),
            rng,
            heard: Arc::default(),
            session: None,
            last_id: None,
        }
    }

    /// Follows the resources until it is aborted.
    pub async fn run(mut self, mut weather: Weather) {
        loop {
            let server = weather.server.wait_for(Option::is_some).await;
            let Some(client) = server.unwrap().clone() else {
                continue;
            };
            let client = if self.http2 { client.http2() } else { client };
            let opened = match self.era {
                Era::Stateless => self.listen(&client).await,
                Era::Session(version) => self.open(&client, version).await,
            };
            match opened {
                Ok(stream) => self.hear(stream, &weather.rough).await,
                Err(error) => self.note(&format!("could not connect: {error}")),
            }
            sleep(self.up_to(100)).await;
        }
    }

    /// Reads updates until the stream ends or the client drops it.
    async fn hear(&mut self, mut stream: Stream, rough: &watch::Receiver<bool>) {
        self.lock().connections += 1;
        loop {
            self.note("listening");
            let patience = Duration::from_millis(20) + self.up_to(300);
            match stream.hear(patience).await {
                Next::Event(event) => self.take(&event),
                Next::Quiet => {}
                Next::End => return,
            }
            if !*rough.borrow() {
                continue;
            }
            if self.rng.one_in(6) {
                return;
            }
            if self.rng.one_in(6) {
                self.note("asleep");
                sleep(self.up_to(900)).await;
            }
        }
    }

    fn take(&mut self, event: &Event) {
        if event.id.is_some() {
            self.last_id.clone_from(&event.id);
        }
        if event.data.is_empty() {
            return;
        }
        let message = event.json();
        if message.get("result").is_some() {
            return;
        }
        let mut heard = self.lock();
        let revision = message["params"]["_meta"]["gatewren/revision"].as_u64();
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        let pointer = uri.strip_prefix("gatewren://").unwrap_or_default();
        match (heard.known.get_mut(pointer), revision) {
            (Some(known), Some(revision)) => {
                *known = revision.max(*known);
                heard.told.push((pointer.to_owned(), revision));
            }
            _ => heard.wrong.push(format!("not asked for: {message}")),
        }
    }

    async fn listen(&mut self, client: &Client) -> io::Result<Stream> {
        let filter = json!({ "resourceSubscriptions": self.uris() });
        let request = client.modern("subscriptions/listen");
        let request = request.param("notifications", filter);
        let known = self.lock().known.values().min().copied();
        let goes_on = known.filter(|_| self.rng.one_in(2));
        let request = match goes_on {
            Some(known) => request.meta("gatewren/since", json!(known)),
            None => request,
        };
        let mut stream = request.try_open().await?;
        match stream.hear(Duration::from_mins(1)).await {
            Next::Event(event) if event.json()["params"].get("notifications").is_some() => {}
            other => return Err(io::Error::other(format!("not acknowledged: {other:?}"))),
        }
        if goes_on.is_none() {
            self.read(client).await?;
        }
        Ok(stream)
    }

    async fn open(&mut self, client: &Client, version: &str) -> io::Result<Stream> {
        let session = match self.session.take() {
            Some(session) => session.carried_on_by(client),
            None => self.begin(client, version).await?,
        };
        let mut request = session.get();
        self.session = Some(session);
        if let Some(last) = &self.last_id {
            request = request.header("last-event-id", last);
        }
        let stream = request.try_open().await?;
        if stream.status() != 200 {
            let status = stream.status();
            self.lock().wrong.push(format!("a stream is {status}"));
        }
        // Without a first event it has no id to resume from.
        if self.last_id.is_none() {
            self.read(client).await?;
        }
        Ok(stream)
    }

    async fn begin(&self, client: &Client, version: &str) -> io::Result<Session> {
        let session = Session::try_open(client, version).await?;
        for uri in self.uris() {
            let request = session.request("resources/subscribe").uri(&uri);
            let answer = request.try_send().await?;
            assert_eq!(answer.result(), json!({}));
        }
        Ok(session)
    }

    /// Reads the watched resources; all values belong to one revision.
    async fn read(&self, client: &Client) -> io::Result<()> {
        let request = client.modern("resources/read").uri("gatewren:///public");
        let contents = request.try_send().await?.result()["contents"][0].clone();
        let revision = contents["_meta"]["gatewren/revision"].as_u64().unwrap();
        let mut heard = self.lock();
        for pointer in &self.pointers {
            let known = heard.known.entry(pointer.clone()).or_default();
            *known = revision.max(*known);
        }
        Ok(())
    }

    fn uris(&self) -> Vec<String> {
        let uris = self.pointers.iter().map(|at| format!("gatewren://{at}"));
        uris.collect()
    }

    fn up_to(&mut self, milliseconds: u64) -> Duration {
        Duration::from_millis(self.rng.next() % milliseconds)
    }

    fn note(&self, doing: &str) {
        doing.clone_into(&mut self.lock().doing);
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }
}
