//! Buffers the streams of a session, so that a client that lost one can resume it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::watch;
use uuid::Uuid;

use super::event_id::{EventId, StreamOrigin};
use super::stream_buffer::{NextEvent, StreamBuffer};
use gatewren_base::sys::lock;

/// The maximum number of buffered events of a session; beyond it, the oldest that no reader is about to read are
/// dropped.
const MAX_EVENTS: usize = 512;

/// The same limit in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The limit in bytes of all sessions together; beyond it, a session keeps only what is about to be read.
const MAX_BYTES_TOGETHER: usize = 64 << 20;

/// The maximum number of GET streams of a session that no connection reads; then the oldest are dropped.
const MAX_LEFT: usize = 8;

/// The maximum number of streams from before a restart whose continuations are known; then the oldest are dropped,
/// and their clients get what they missed with the next change of the same resource.
const MAX_CONTINUED: usize = 8;

/// A writer waits while its reader is this many events behind.
const MAX_UNREAD: u64 = 64;

/// The number of bytes that all sessions have buffered.
static TOGETHER: AtomicUsize = AtomicUsize::new(0);

/// The streams of one session.
pub struct Replay {
    session: u32,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    open: HashMap<u64, StreamBuffer>,
    /// The streams that continue streams from before a restart, by the last event of those.
    continued: VecDeque<(EventId, u64)>,
    /// Numbers the events over all streams, to find the oldest.
    clock: u64,
}

impl Replay {
    /// Creates the empty buffer of the session with this name.
    pub fn new(session: &Uuid) -> Arc<Self> {
        Arc::new(Self {
            session: session.as_fields().0,
            streams: Mutex::default(),
        })
    }

    /// Opens a stream and its first connection.
    pub fn open(
        self: &Arc<Self>,
        origin: StreamOrigin,
        revision: u64,
    ) -> (ReplayWriter, ReplayReader) {
        let stream = Uuid::new_v4().as_u64_pair().0;
        let mut streams = lock(&self.streams);
        let kept = streams.open.entry(stream);
        let kept = kept.or_insert_with(|| StreamBuffer::new(origin, revision));
        let connection = kept.connect(0);
        let events = kept.listen();
        drop(streams);
        let writer = ReplayWriter {
            replay: self.clone(),
            stream,
            events: events.clone(),
        };
        let reader = ReplayReader {
            replay: self.clone(),
            stream,
            connection,
            origin,
            seen: 0,
            revision,
            events,
        };
        (writer, reader)
    }

    /// Records that a stream continues one from before a restart. Its client may return with the same event: it has
    /// received no id of the new stream yet, and the events that were sent on it may be lost.
    pub fn continues(&self, last: EventId, writer: &ReplayWriter) {
        let continued = &mut lock(&self.streams).continued;
        continued.retain(|(id, _)| *id != last);
        if continued.len() >= MAX_CONTINUED {
            continued.pop_front();
        }
        continued.push_back((last, writer.stream));
    }

    /// Whether a stream was opened that continues after this event from before a restart.
    pub fn has_continued(&self, last: &EventId) -> bool {
        lock(&self.streams).continuation(last).is_some()
    }

    /// Opens another connection to a stream, after an event; the previous connection ends. `None` if there is no
    /// such stream, or no more events can follow.
    pub fn resume(self: &Arc<Self>, last: &EventId) -> Option<ResumedStream> {
        if !self.has_sent(last) {
            return None;
        }
        let mut streams = lock(&self.streams);
        let (stream, seen) = match streams.continuation(last) {
            Some(stream) => (stream, 0),
            None => (last.stream, last.count),
        };
        let kept = streams.open.get_mut(&stream)?;
        if kept.origin() != last.origin || !kept.can_follow(seen) {
            return None;
        }
        // Under the same lock as the connection: until then, the old connection's writer can push more events, and
        // those that the client misses can be dropped to make room.
        let is_whole = kept.is_whole(seen);
        let connection = kept.connect(seen);
        let events = kept.listen();
        drop(streams);
        let writer = ReplayWriter {
            replay: self.clone(),
            stream,
            events: events.clone(),
        };
        let reader = ReplayReader {
            replay: self.clone(),
            stream,
            connection,
            origin: last.origin,
            seen,
            revision: last.revision,
            events,
        };
        Some(ResumedStream {
            writer,
            reader,
            is_whole,
        })
    }

    /// Whether an event id is of this session.
    pub fn has_sent(&self, id: &EventId) -> bool {
        id.session == self.session
    }

    /// Drops every stream, which ends its connections.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut lock(&self.streams).open);
        for kept in gone.values() {
            TOGETHER.fetch_sub(kept.bytes(), Ordering::Relaxed);
        }
    }

    /// The number of streams and of bytes.
    #[cfg(test)]
    pub fn holds(&self) -> (usize, usize) {
        let streams = lock(&self.streams);
        let bytes = streams.open.values().map(StreamBuffer::bytes).sum();
        (streams.open.len(), bytes)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Streams {
    fn continuation(&self, last: &EventId) -> Option<u64> {
        let continued = self.continued.iter().find(|(id, _)| id == last);
        continued.map(|(_, stream)| *stream)
    }

    fn push(&mut self, stream: u64, data: Bytes, revision: Option<u64>) {
        let Some(kept) = self.open.get_mut(&stream) else {
            return;
        };
        self.clock += 1;
        TOGETHER.fetch_add(data.len(), Ordering::Relaxed);
        kept.push(self.clock, data, revision);
        self.make_room();
    }

    /// Drops the oldest events until the rest fits.
    fn make_room(&mut self) {
        while !self.fits() {
            let oldest = self
                .open
                .iter()
                .filter_map(|(id, kept)| Some((kept.oldest_that_may_go()?, *id)));
            let Some((_, id)) = oldest.min() else { return };
            let Some(kept) = self.open.get_mut(&id) else {
                return;
            };
            TOGETHER.fetch_sub(kept.drop_oldest(), Ordering::Relaxed);
            if kept.is_finished() {
                self.open.remove(&id);
            }
        }
    }

    fn fits(&self) -> bool {
        let events: usize = self.open.values().map(StreamBuffer::events).sum();
        let bytes: usize = self.open.values().map(StreamBuffer::bytes).sum();
        events <= MAX_EVENTS
            && bytes <= MAX_BYTES
            && TOGETHER.load(Ordering::Relaxed) <= MAX_BYTES_TOGETHER
    }

    fn forget(&mut self, stream: u64) {
        if let Some(kept) = self.open.remove(&stream) {
            TOGETHER.fetch_sub(kept.bytes(), Ordering::Relaxed);
        }
    }

    /// Keeps only the newest of the GET streams that no connection reads.
    fn forget_left(&mut self) {
        loop {
            let left = self.open.iter().filter_map(|(id, kept)| {
                (kept.origin() == StreamOrigin::Session && !kept.is_read())
                    .then_some((kept.newest(), *id))
            });
            let left: Vec<(u64, u64)> = left.collect();
            match left.iter().min() {
                Some((_, id)) if left.len() > MAX_LEFT => self.forget(*id),
                _ => return,
            }
        }
    }
}

/// A stream that its client has resumed.
pub struct ResumedStream {
    pub writer: ReplayWriter,
    pub reader: ReplayReader,
    /// Whether every event after the last one that the client received can be sent again.
    pub is_whole: bool,
}

/// The writing half of a stream.
pub struct ReplayWriter {
    replay: Arc<Replay>,
    stream: u64,
    events: watch::Receiver<()>,
}

impl ReplayWriter {
    /// Adds an event; waits while the reader, if there is one, is far behind.
    pub async fn say(&mut self, message: Bytes, revision: Option<u64>) {
        lock(&self.replay.streams).push(self.stream, message, revision);
        loop {
            self.events.borrow_and_update();
            let behind = match lock(&self.replay.streams).open.get(&self.stream) {
                Some(kept) => kept.is_read() && kept.unread() >= MAX_UNREAD,
                None => false,
            };
            if !behind || self.events.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether a connection reads the stream.
    pub fn has_reader(&self) -> bool {
        let streams = lock(&self.replay.streams);
        streams
            .open
            .get(&self.stream)
            .is_some_and(StreamBuffer::is_read)
    }

    /// Ends the connection after the last event so far; its client reconnects for the rest.
    pub fn end_connection(&self) {
        if let Some(kept) = lock(&self.replay.streams).open.get_mut(&self.stream) {
            kept.end_connection();
        }
    }

    /// Adds the last event, if there is one, and ends the stream.
    pub fn end(&self, last: Option<Vec<u8>>) {
        let mut streams = lock(&self.replay.streams);
        if let Some(last) = last {
            streams.push(self.stream, last.into(), None);
        }
        if let Some(kept) = streams.open.get_mut(&self.stream) {
            kept.end();
            if kept.is_finished() {
                streams.forget(self.stream);
            }
        }
    }

    /// Waits until everything was read, or the stream was dropped.
    pub async fn read_to_the_end(&mut self) {
        loop {
            self.events.borrow_and_update();
            let done = match lock(&self.replay.streams).open.get(&self.stream) {
                Some(kept) => !kept.is_read() && kept.unread() == 0,
                None => true,
            };
            if done || self.events.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the stream is dropped, for example because others need its room.
    pub async fn forgotten(&mut self) {
        while self.events.changed().await.is_ok() {}
    }

    /// Drops the stream with its buffer.
    pub fn forget(self) {
        lock(&self.replay.streams).forget(self.stream);
    }
}

/// A connection's view of a stream; dropping it leaves the stream for the next connection.
pub struct ReplayReader {
    replay: Arc<Replay>,
    stream: u64,
    connection: u64,
    origin: StreamOrigin,
    seen: u64,
    revision: u64,
    events: watch::Receiver<()>,
}

impl ReplayReader {
    /// Returns the id and the message of the next event; `None` if there will be none on this connection.
    pub async fn next(&mut self) -> Option<(String, Bytes)> {
        loop {
            self.events.borrow_and_update();
            match self.take() {
                NextEvent::Event(event) => {
                    self.seen = event.count;
                    return Some((self.id(event.revision, 0), event.data));
                }
                NextEvent::End => return None,
                NextEvent::Later => self.events.changed().await.ok()?,
            }
        }
    }

    fn take(&self) -> NextEvent {
        let mut streams = lock(&self.replay.streams);
        let Some(kept) = streams.open.get_mut(&self.stream) else {
            return NextEvent::End;
        };
        let taken = kept.take(self.connection, self.seen);
        // Events beyond the limit that waited for this reader may be dropped now.
        streams.make_room();
        taken
    }

    /// An id for an event without a message: it contains only the position at which this connection begins.
    pub fn first_id(&self) -> String {
        self.id(self.revision, self.connection)
    }

    fn id(&self, revision: u64, connection: u64) -> String {
        let id = EventId {
            session: self.replay.session,
            origin: self.origin,
            stream: self.stream,
            count: self.seen,
            revision,
            connection,
        };
        id.to_string()
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        let mut streams = lock(&self.replay.streams);
        let Some(kept) = streams.open.get_mut(&self.stream) else {
            return;
        };
        kept.disconnect(self.connection);
        if kept.is_finished() {
            streams.forget(self.stream);
        } else {
            streams.make_room();
            streams.forget_left();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::*;

    fn replay() -> Arc<Replay> {
        Replay::new(&Uuid::new_v4())
    }

    async fn next(reader: &mut ReplayReader) -> Option<(EventId, String)> {
        let (id, data) = reader.next().await?;
        Some((
            id.parse().unwrap(),
            String::from_utf8(data.to_vec()).unwrap(),
        ))
    }

    /// Reads everything that is available on a connection, until it waits or ends.
    async fn all(reader: &mut ReplayReader) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(Some((_, data))) =
            tokio::time::timeout(std::time::Duration::from_secs(1), next(reader)).await
        {
            all.push(data);
        }
        all
    }

    async fn say(writer: &mut ReplayWriter, words: &[&str]) {
        for word in words {
            writer.say(word.as_bytes().to_vec().into(), None).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn z7_a_stream_is_taken_up_again_behind_the_event_that_was_seen() {
        let replay = replay();
        let (mut other, _theirs) = replay.open(StreamOrigin::Call, 0);
        let (mut writer, mut reader) = replay.open(StreamOrigin::Call, 0);
        say(&mut other, &["not mine"]).await;
        say(&mut writer, &["a", "b"]).await;
        let (seen, a) = next(&mut reader).await.unwrap();
        assert_eq!(a, "a");
        drop(reader);
        say(&mut writer, &["c"]).await;
        let mut reader = replay.resume(&seen).unwrap().reader;
        assert_eq!(all(&mut reader).await, ["b", "c"]);
        writer.end(Some(b"d".to_vec()));
        assert_eq!(all(&mut reader).await, ["d"]);
        assert!(reader.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn z7_a_stream_that_continues_another_is_resumed_with_the_last_event_of_that_one() {
        let replay = replay();
        let before = |count| EventId {
            session: replay.session,
            origin: StreamOrigin::Session,
            stream: 7,
            count,
            revision: 3,
            connection: 0,
        };
        assert!(!replay.has_continued(&before(1)));
        let (mut writer, reader) = replay.open(StreamOrigin::Session, 4);
        replay.continues(before(1), &writer);
        say(&mut writer, &["a", "b"]).await;
        drop(reader);
        assert!(replay.resume(&before(2)).is_none(), "another event");
        let resumed = replay.resume(&before(1)).unwrap();
        let (mut reader, is_whole) = (resumed.reader, resumed.is_whole);
        assert!(is_whole);
        assert_eq!(all(&mut reader).await, ["a", "b"]);
        // The client may also come when the stream has gone.
        replay.clear();
        assert!(replay.resume(&before(1)).is_none() && replay.has_continued(&before(1)));
        for count in 2..=MAX_CONTINUED as u64 + 1 {
            replay.continues(before(count), &writer);
        }
        assert!(!replay.has_continued(&before(1)) && replay.has_continued(&before(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn s8_the_connection_before_ends_when_a_stream_is_taken_up_elsewhere() {
        let replay = replay();
        let (mut writer, mut old) = replay.open(StreamOrigin::Session, 0);
        let seen: EventId = old.first_id().parse().unwrap();
        let ResumedStream {
            writer: mut same,
            reader: mut new,
            ..
        } = replay.resume(&seen).unwrap();
        say(&mut writer, &["a"]).await;
        say(&mut same, &["b"]).await;
        assert!(old.next().await.is_none());
        drop(old);
        assert_eq!(all(&mut new).await, ["a", "b"]);
    }

    #[tokio::test]
    async fn z6_no_event_id_is_given_twice_and_each_names_its_stream() {
        let replay = replay();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (mut writer, mut reader) = replay.open(StreamOrigin::Call, 0);
            let first: EventId = reader.first_id().parse().unwrap();
            say(&mut writer, &["a", "b"]).await;
            ids.push(first);
            let (id, _) = next(&mut reader).await.unwrap();
            let mut again = replay.resume(&id).unwrap().reader;
            ids.extend([id, again.first_id().parse().unwrap()]);
            ids.push(next(&mut again).await.unwrap().0);
            assert!(ids.iter().rev().take(4).all(|id| id.stream == first.stream));
        }
        let mut written: Vec<String> = ids.iter().map(ToString::to_string).collect();
        written.sort();
        written.dedup();
        assert_eq!(written.len(), 12, "{ids:?}");
    }

    #[tokio::test]
    async fn z7_an_id_of_another_session_or_of_a_stream_that_is_over_resumes_nothing() {
        let (replay, other) = (replay(), replay());
        let (writer, mut reader) = other.open(StreamOrigin::Call, 0);
        let theirs: EventId = reader.first_id().parse().unwrap();
        assert!(replay.resume(&theirs).is_none() && !replay.has_sent(&theirs));
        let renamed = EventId {
            session: replay.session,
            ..theirs
        };
        assert!(replay.resume(&renamed).is_none() && replay.has_sent(&renamed));
        writer.end(Some(b"last".to_vec()));
        let (last, _) = next(&mut reader).await.unwrap();
        assert!(other.resume(&last).is_none());
        assert!(other.resume(&theirs).is_some(), "the last may be lost");
    }

    fn has_all_behind(replay: &Replay, last: &EventId) -> bool {
        let streams = lock(&replay.streams);
        let kept = streams.open.get(&last.stream);
        kept.is_some_and(|kept| kept.is_whole(last.count))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_of_a_resumed_stream_is_known_when_it_is_connected() {
        let replay = replay();
        let (mut writer, reader) = replay.open(StreamOrigin::Session, 0);
        let primed: EventId = reader.first_id().parse().unwrap();
        drop(reader);
        say(&mut writer, &["a"]).await;
        assert!(replay.resume(&primed).unwrap().is_whole);
        for n in 0..MAX_EVENTS {
            say(&mut writer, &[&n.to_string()]).await;
        }
        let resumed = replay.resume(&primed).unwrap();
        assert!(!resumed.is_whole);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_go_first_and_what_is_there_is_served() {
        let replay = replay();
        let (mut writer, reader) = replay.open(StreamOrigin::Call, 0);
        let primed: EventId = reader.first_id().parse().unwrap();
        drop(reader);
        for n in 0..MAX_EVENTS + 10 {
            say(&mut writer, &[&n.to_string()]).await;
        }
        let mut reader = replay.resume(&primed).unwrap().reader;
        let rest = all(&mut reader).await;
        assert_eq!((rest.len(), rest[0].as_str()), (MAX_EVENTS, "10"));
        drop(reader);
        let large = "x".repeat(MAX_BYTES / 4);
        for _ in 0..6 {
            say(&mut writer, &[&large]).await;
        }
        assert_eq!(replay.holds(), (1, MAX_BYTES));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_which_something_is_gone_says_so() {
        let replay = replay();
        let (mut writer, mut reader) = replay.open(StreamOrigin::Session, 0);
        let primed: EventId = reader.first_id().parse().unwrap();
        assert!(has_all_behind(&replay, &primed));
        say(&mut writer, &["a", "b"]).await;
        let (first, _) = next(&mut reader).await.unwrap();
        drop(reader);
        assert!(has_all_behind(&replay, &primed) && has_all_behind(&replay, &first));
        for _ in 1..MAX_EVENTS {
            say(&mut writer, &["c"]).await;
        }
        assert!(!has_all_behind(&replay, &primed) && has_all_behind(&replay, &first));
        let unknown = EventId { stream: 7, ..first };
        assert!(!has_all_behind(&replay, &unknown));
        // An event that is larger than the limit is dropped at once.
        say(&mut writer, &[&"x".repeat(MAX_BYTES + 1)]).await;
        assert!(!has_all_behind(&replay, &first));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_kept_leaves_no_stream_that_waits_for_it() {
        let replay = replay();
        let (writer, reader) = replay.open(StreamOrigin::Call, 0);
        let primed: EventId = reader.first_id().parse().unwrap();
        drop(reader);
        writer.end(Some(vec![b'x'; MAX_BYTES + 1]));
        assert!(replay.resume(&primed).is_none());
        assert_eq!(replay.holds(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_misses_nothing_however_much_is_said() {
        let replay = replay();
        let (mut writer, mut reader) = replay.open(StreamOrigin::Call, 0);
        let large = "x".repeat(MAX_BYTES / 16);
        let writing = async {
            for _ in 0..MAX_EVENTS {
                say(&mut writer, &[&large]).await;
            }
            writer.end(None);
        };
        let reading = async {
            let mut read = 0;
            while reader.next().await.is_some() {
                read += 1;
                tokio::task::yield_now().await;
            }
            read
        };
        let ((), read) = tokio::join!(writing, reading);
        assert_eq!(read, MAX_EVENTS);
        assert!(replay.holds().1 <= MAX_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn z9_a_connection_ends_behind_what_was_said_before_it_was_hung_up() {
        let replay = replay();
        let (mut writer, mut reader) = replay.open(StreamOrigin::Call, 0);
        let primed: EventId = reader.first_id().parse().unwrap();
        say(&mut writer, &["a"]).await;
        writer.end_connection();
        say(&mut writer, &["b"]).await;
        assert_eq!(all(&mut reader).await, ["a"]);
        assert!(reader.next().await.is_none());
        drop(reader);
        assert!(!writer.has_reader());
        let mut reader = replay.resume(&primed).unwrap().reader;
        assert_eq!(all(&mut reader).await, ["a", "b"]);
    }

    #[tokio::test]
    async fn streams_that_nobody_reads_are_few_and_a_session_that_ends_has_none() {
        let replay = replay();
        let mut ids = Vec::new();
        for n in 0..2 * MAX_LEFT {
            let (mut writer, reader) = replay.open(StreamOrigin::Session, 0);
            ids.push(reader.first_id().parse::<EventId>().unwrap());
            say(&mut writer, &[&n.to_string()]).await;
        }
        assert_eq!(replay.holds().0, MAX_LEFT);
        assert!(replay.resume(&ids[0]).is_none());
        let mut reader = replay.resume(&ids[2 * MAX_LEFT - 1]).unwrap().reader;
        replay.clear();
        assert!(reader.next().await.is_none());
        assert_eq!(replay.holds(), (0, 0));
    }
}
