//! One sample: a closed loop on keep-alive connections, each with one call in flight.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Error;
use super::connection::{Address, Connection};
use super::machine::CpuClock;
use super::spread::percentile;
use super::wire::{Head, INITIALIZE, INITIALIZED, Judge, Question, Repeated, Wire};

/// Calls on each connection before the clock starts; fewer if they take longer than [`WARM_UP_TIME`].
const WARM_UP: usize = 20;

/// The time limit of warming up one connection; it makes one call at least.
const WARM_UP_TIME: Duration = Duration::from_millis(100);

/// The time limit of warming up all connections: some servers close a connection that was idle for five seconds.
const ALL_WARM: Duration = Duration::from_secs(2);

/// A server and its question.
pub struct Asked<'a> {
    /// The server's address.
    pub address: &'a Address,
    /// The server's process id.
    pub pid: u32,
    /// The question.
    pub question: &'a Question<'a>,
    /// The kind of server.
    pub kind: Kind<'a>,
}

/// The protocol of a server.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// None; its replies have this many bytes.
    Bare(usize),
    /// The same, asked with all headers of a call in a session.
    BareInSession {
        /// The bytes of its replies.
        size: usize,
        /// The token.
        token: &'a str,
        /// The id of the session.
        session: &'a str,
    },
    /// MCP, with this token.
    Mcp(&'a str),
    /// MCP without a token, at this path; sessions only if the server has them.
    Open(&'a str),
    /// The same with a token.
    Guarded {
        /// The path.
        path: &'a str,
        /// The token.
        token: &'a str,
    },
}

/// The figures of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Calls a second.
    pub rate: f64,
    /// The server's CPU time per call, in microseconds.
    pub cpu_us: f64,
    /// The median latency, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of the latency, in microseconds.
    pub p99_us: f64,
    /// The client's share of a core; near 1 the client was the limit.
    pub client: f64,
}

/// Measures for this time on this number of connections.
pub async fn sample(asked: &Asked<'_>, connections: u32, time: Duration) -> Result<Sample, Error> {
    let mut callers = Vec::new();
    let all = Instant::now();
    for _ in 0..connections {
        let mut caller = Caller::open(asked).await?;
        let began = Instant::now();
        for _ in 0..WARM_UP {
            caller.once().await?;
            if began.elapsed() > WARM_UP_TIME || all.elapsed() > ALL_WARM {
                break;
            }
        }
        callers.push(caller);
    }
    let own = std::process::id();
    let (server, client) = (CpuClock::of(asked.pid)?, CpuClock::of(own)?);
    let began = Instant::now();
    let end = began + time;
    let mut loops = JoinSet::new();
    for caller in callers {
        loops.spawn(caller.until(end));
    }
    let mut took = Vec::new();
    while let Some(ended) = loops.join_next().await {
        took.extend(ended??);
    }
    let elapsed = began.elapsed();
    let (server, client) = (server.spent()?, client.spent()?);
    let calls = f64::from(u32::try_from(took.len())?);
    took.sort_unstable();
    let micros = |percent| percentile(&took, percent).unwrap_or_default().as_secs_f64() * 1e6;
    Ok(Sample {
        rate: calls / elapsed.as_secs_f64(),
        cpu_us: server.as_secs_f64() * 1e6 / calls,
        p50_us: micros(50),
        p99_us: micros(99),
        client: client.as_secs_f64() / elapsed.as_secs_f64(),
    })
}

/// One connection with its request.
pub struct Caller {
    connection: Connection,
    request: Repeated,
    judge: Judge,
}

impl Caller {
    /// Connects, and opens a session if the wire has sessions.
    pub async fn open(asked: &Asked<'_>) -> Result<Self, Error> {
        let mut connection = asked.address.open().await?;
        let head = Head::new(asked.address.socket());
        let (head, judge) = match asked.kind {
            Kind::Bare(size) => (head, Judge::Fixed(size)),
            Kind::BareInSession {
                size,
                token,
                session,
            } => {
                let head = head.with("authorization", &format!("Bearer {token}"));
                let head = head.with("mcp-session-id", session);
                (head.with_question(asked.question), Judge::Fixed(size))
            }
            Kind::Mcp(token) => {
                let mut head = head.with("authorization", &format!("Bearer {token}"));
                if asked.question.wire == Wire::Stateful {
                    let (with_session, session) = begin(&mut connection, head).await?;
                    session.ok_or("initialize gave no session")?;
                    head = with_session;
                }
                let known = Vec::new();
                (head.with_question(asked.question), Judge::Result { known })
            }
            Kind::Open(path) | Kind::Guarded { path, .. } => {
                let mut head = Head::to(path, asked.address.socket());
                if let Kind::Guarded { token, .. } = asked.kind {
                    head = head.with("authorization", &format!("Bearer {token}"));
                }
                if asked.question.wire == Wire::Stateful {
                    head = begin(&mut connection, head).await?.0;
                }
                let known = Vec::new();
                (head.with_question(asked.question), Judge::Result { known })
            }
        };
        Ok(Self {
            request: Repeated::new(&head, asked.question),
            connection,
            judge,
        })
    }

    /// Makes one call; returns its duration and the length of its reply.
    pub async fn once(&mut self) -> Result<(Duration, usize), Error> {
        let (request, id) = self.request.next()?;
        let began = Instant::now();
        let reply = self.connection.exchange(request).await?;
        let took = began.elapsed();
        self.judge.check(id, &reply)?;
        Ok((took, reply.body.len()))
    }

    /// Returns the reply to the last call, head and body.
    pub fn reply(&self) -> &[u8] {
        self.connection.reply_bytes()
    }

    async fn until(mut self, end: Instant) -> Result<Vec<Duration>, Error> {
        let mut took = Vec::with_capacity(1 << 14);
        while Instant::now() < end {
            took.push(self.once().await?.0);
        }
        Ok(took)
    }
}

/// Does the handshake of the stateful wire; returns the head of further requests, and the session if there is one.
async fn begin(connection: &mut Connection, head: Head) -> Result<(Head, Option<String>), Error> {
    let reply = connection.exchange(&head.request(INITIALIZE)).await?;
    if reply.status() != "200" {
        return Err(format!("initialize: status {}", reply.status()).into());
    }
    let session = reply.header("mcp-session-id").map(str::to_owned);
    let head = match &session {
        Some(session) => head.with("mcp-session-id", session),
        None => head,
    };
    let told = head.request(INITIALIZED);
    let reply = connection.exchange(&told).await?;
    if reply.status() != "202" {
        return Err(format!("notifications/initialized: status {}", reply.status()).into());
    }
    Ok((head, session))
}
