//! Thousands of connections without an identity: agents are still served, and each connection costs little memory.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Instant;

use crate::support::client::Client;
use crate::support::frames;
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::namespace::{NetworkNamespace, connect_from};
use crate::support::raw::RawSocket;
use crate::support::server::{Server, server};

/// More connections than the server accepts; the number that the security review used.
const FLOOD: usize = 4_400;

/// The number of file descriptors of this process that a flood leaves for other tests.
const OTHER_FILES: usize = 1_500;

/// Settings with which a silent connection lasts as long as a test, unless it must make room.
const PATIENT: &str = "[limits]\nhandshake_timeout = \"1m\"\nheader_timeout = \"5m\"\n";

/// Returns whether this process may open a flood of connections; skips the test if not.
fn has_descriptors() -> bool {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft: usize = line
        .unwrap()
        .split_whitespace()
        .nth(3)
        .unwrap()
        .parse()
        .unwrap();
    let is_enough = soft >= FLOOD + OTHER_FILES;
    if !is_enough {
        skip("this process may open too few files");
    }
    is_enough
}

/// Returns how many of these the server has not closed.
fn open(silent: &[TcpStream]) -> usize {
    let is_open = |socket: &&TcpStream| {
        socket.set_nonblocking(true).unwrap();
        let mut socket: &TcpStream = socket;
        let read = socket.read(&mut [0]);
        matches!(read, Err(cause) if cause.kind() == ErrorKind::WouldBlock)
    };
    silent.iter().filter(is_open).count()
}

/// Requests the owner's metrics as an agent; returns the status, or 0 if the server closed the connection.
fn asked_by_an_agent(server: &Server, socket: &mut RawSocket) -> u16 {
    let token = server.text("token");
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    socket.say(request.as_bytes());
    socket.answer().0
}

#[test]
#[ignore = "long: 4,400 silent connections"]
fn a_flood_of_silent_connections_from_its_own_address_delays_no_agent() {
    if !has_descriptors() {
        return;
    }
    let server = server().policy("admin").settings(PATIENT).start();
    let client = server.client();
    let mut early = client.raw();
    assert_eq!(asked_by_an_agent(&server, &mut early), 200);
    let address = server.address();
    let begun = Instant::now();
    let flood = (0..FLOOD).map(|_| TcpStream::connect(address).unwrap());
    let silent: Vec<TcpStream> = flood.collect();
    for (way, client) in server.clients() {
        assert_eq!(client.modern("tools/list").send().status, 200, "{way}");
    }
    let mut late = client.raw();
    assert_eq!(asked_by_an_agent(&server, &mut late), 200);
    assert_eq!(
        asked_by_an_agent(&server, &mut early),
        200,
        "its old connection stays"
    );
    // A server that waits for the timeouts of silent ones has fewer of them when it has served the agents.
    let (took, left) = (begun.elapsed(), open(&silent));
    assert!(
        (512..=1024).contains(&left),
        "after {took:?}, {left} silent ones are open"
    );
}

/// Returns a machine with addresses `10.98.HIGH.LOW`, and a server on the first of them.
fn crowded(settings: &str) -> Option<(NetworkNamespace, Server)> {
    let machine = NetworkNamespace::new()?;
    machine.run("for low in $(seq 1 210); do ip addr add 10.98.0.$low/32 dev lo; done");
    let server = server().policy("admin").in_namespace(&machine);
    let server = server.listen("10.98.0.1:0").settings(settings).start();
    Some((machine, server))
}

fn source(low: usize) -> IpAddr {
    IpAddr::from([10, 98, 0, u8::try_from(low).unwrap()])
}

/// Opens silent connections from one address.
fn silent_from(
    machine: &NetworkNamespace,
    from: IpAddr,
    to: SocketAddr,
    count: usize,
) -> Vec<TcpStream> {
    machine.within(|| (0..count).map(|_| connect_from(from, to)).collect())
}

#[test]
#[ignore = "long: 4,400 silent connections"]
fn a_flood_from_two_hundred_addresses_delays_no_agent() {
    let Some((machine, server)) = crowded(PATIENT).filter(|_| has_descriptors()) else {
        return;
    };
    let to = server.address();
    let agent = source(201);
    let mut early = server
        .client()
        .raw_over(machine.within(|| connect_from(agent, to)));
    assert_eq!(asked_by_an_agent(&server, &mut early), 200);
    let silent: Vec<TcpStream> = machine.within(|| {
        let each = FLOOD / 200;
        let flood = (0..each).flat_map(|_| (1..=200).map(|low| connect_from(source(low), to)));
        flood.collect()
    });
    for low in 202..=205 {
        let socket = machine.within(|| connect_from(source(low), to));
        let mut late = server.client().raw_over(socket);
        assert_eq!(asked_by_an_agent(&server, &mut late), 200, "from {low}");
    }
    assert_eq!(
        asked_by_an_agent(&server, &mut early),
        200,
        "its old connection stays"
    );
    // Connections that came after there were many get two seconds; the server did not wait for the others.
    let left = open(&silent);
    assert!(left >= 1_000, "{left} silent ones are open");
}

#[test]
fn one_address_has_64_connections_without_an_identity_and_a_trusted_proxy_more() {
    let settings = format!("{PATIENT}trusted_proxies = [\"10.98.0.9\"]\n");
    let Some((machine, server)) = crowded(&settings) else {
        return;
    };
    let to = server.address();
    let proxied = silent_from(&machine, source(9), to, 100);
    let mut agents = Vec::new();
    for _ in 0..100 {
        let socket = machine.within(|| connect_from(source(2), to));
        let mut agent = server.client().raw_over(socket);
        assert_eq!(asked_by_an_agent(&server, &mut agent), 200);
        agents.push(agent);
    }
    let silent = silent_from(&machine, source(2), to, 100);
    wait_until("64 are left", IN_TIME, || open(&silent) == 64);
    assert_eq!(open(&silent[36..]), 64, "the newest");
    // They share an address with an agent, so that address is not blocked.
    let socket = machine.within(|| connect_from(source(2), to));
    let mut one_more = server.client().raw_over(socket);
    assert_eq!(asked_by_an_agent(&server, &mut one_more), 200);
    for agent in &mut agents {
        assert_eq!(asked_by_an_agent(&server, agent), 200);
    }
    assert_eq!(open(&proxied), 100);
}

#[test]
fn an_address_that_floods_is_refused_for_a_while_and_no_other() {
    let Some((machine, server)) = crowded(PATIENT) else {
        return;
    };
    let to = server.address();
    let silent = silent_from(&machine, source(2), to, 120);
    wait_until("64 are left", IN_TIME, || open(&silent) <= 64);
    let more = silent_from(&machine, source(2), to, 10);
    wait_until("new ones are closed", IN_TIME, || open(&more) == 0);
    let socket = machine.within(|| connect_from(source(3), to));
    let mut agent = server.client().raw_over(socket);
    assert_eq!(asked_by_an_agent(&server, &mut agent), 200);
}

/// Returns the server's memory, in bytes, without the pages of its program, which vary.
fn resident(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}

/// From so many unauthenticated connections on, new ones are served with less memory.
const CROWD: usize = 256;

/// Returns the server's memory for one connection on which the client has sent these bytes, in a crowd.
fn cost_of_each(http2: bool, said: &[u8]) -> u64 {
    const MANY: usize = 800;
    // Each request is answered as that of a new address is.
    let settings = format!("{PATIENT}address_rate = 100000\naddress_burst = 100000\n");
    let server = server().policy("admin").settings(&settings).start();
    let client = server.client();
    let client = if http2 { client.http2() } else { client };
    // The first connections also allocate memory that is not per connection.
    let mut held: Vec<RawSocket> = Vec::new();
    let mut before = 0;
    for count in 0..CROWD + MANY {
        if count == CROWD {
            before = resident(&server);
        }
        let mut socket = client.raw();
        socket.say(said);
        held.push(socket);
    }
    let mut other = server.client().raw();
    assert_eq!(asked_by_an_agent(&server, &mut other), 200);
    let more = resident(&server).saturating_sub(before);
    more / u64::try_from(MANY).unwrap()
}

#[test]
#[ignore = "long: 6,336 connections with a handshake each"]
fn a_connection_without_an_identity_costs_little() {
    let half_a_head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: {}",
        "x".repeat(8000)
    );
    let preface = frames::preface;
    let half_headers = [preface(), frames::endless_headers(0)].concat();
    let many_headers = [preface(), frames::endless_headers(7_000)].concat();
    let half_a_login = |stream| {
        let head = frames::half_a_post(stream, "/login");
        [head, frames::half_a_body(stream, 4_000)].concat()
    };
    let logins = [preface(), half_a_login(1), half_a_login(3)].concat();
    for (what, http2, said, most_kib) in [
        ("nothing", false, Vec::new(), 20),
        ("half a head", false, half_a_head.into_bytes(), 20),
        ("nothing over HTTP/2", true, Vec::new(), 20),
        ("half of HTTP/2's headers", true, half_headers, 20),
        ("7,000 bytes of headers over HTTP/2", true, many_headers, 20),
        ("two logins without their ends", true, logins, 70),
    ] {
        let each = cost_of_each(http2, &said);
        println!("{what}: {each} bytes");
        assert!(each < most_kib * 1024, "{what}: {each} bytes");
    }
}

/// Returns the protocol that the server chooses for a new connection on which the client offers both.
fn protocol(client: &Client) -> String {
    let mut socket = client.raw_of_either();
    socket.say(&[]);
    String::from_utf8(socket.protocol().unwrap().to_vec()).unwrap()
}

/// Opens silent connections until new ones are in a crowd.
fn crowd(server: &Server) -> Vec<TcpStream> {
    let connect = |_| TcpStream::connect(server.address()).unwrap();
    let silent = (0..CROWD).map(connect).collect();
    let client = server.client();
    wait_until("it is a crowd", IN_TIME, || protocol(&client) == "http/1.1");
    silent
}

#[test]
fn in_a_crowd_without_an_identity_connections_are_served_with_less_memory() {
    let server = server().policy("admin").settings(PATIENT).start();
    let client = server.client();
    let long_head = |socket: &mut RawSocket| {
        let token = server.text("token");
        let filling = "x".repeat(10_000);
        let head = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nX: {filling}\r\n\r\n"
        );
        socket.say(head.as_bytes());
        socket.answer().0
    };
    assert_eq!(protocol(&client), "h2");
    assert_eq!(long_head(&mut client.raw()), 200);
    let silent = crowd(&server);
    assert_eq!(long_head(&mut client.raw()), 431);
    let mut agent = client.raw();
    assert_eq!(asked_by_an_agent(&server, &mut agent), 200);
    drop(silent);
    wait_until("the crowd has gone", IN_TIME, || protocol(&client) == "h2");
    assert_eq!(long_head(&mut client.raw()), 200);
}

#[test]
fn in_a_crowd_a_client_that_offers_only_http2_is_served_with_its_first_request() {
    let server = server().policy("admin").settings(PATIENT).start();
    let _silent = crowd(&server);
    let client = server.client().http2();
    assert_eq!(client.modern("tools/list").send().status, 200);
    let mut socket = client.raw();
    socket.say(&[]);
    let settings = socket.hear().unwrap();
    assert_eq!(settings[3], frames::SETTINGS, "a client may wait for them");
    socket.say(&[frames::preface(), frames::half_a_post(1, "/mcp")].concat());
    assert_eq!(frames::outcome(&mut socket).error(), "agent_required");
}

#[test]
fn in_a_crowd_a_connection_ends_with_the_response_to_a_request_without_an_identity() {
    let server = server().policy("admin").settings(PATIENT).start();
    let anonymous = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut early = server.client().raw();
    for _ in 0..2 {
        early.say(anonymous);
        assert_eq!(early.answer().0, 401);
    }
    let _silent = crowd(&server);
    let mut agent = server.client().raw();
    assert_eq!(asked_by_an_agent(&server, &mut agent), 200);
    agent.say(anonymous);
    assert_eq!(agent.answer().0, 401);
    assert_eq!(asked_by_an_agent(&server, &mut agent), 200, "it stays");

    let mut stranger = server.client().raw();
    stranger.say(anonymous);
    assert_eq!(stranger.answer().0, 401);
    let mut over_http2 = server.client().http2().raw();
    over_http2.say(&[frames::preface(), frames::half_a_post(1, "/mcp")].concat());
    assert_eq!(frames::outcome(&mut over_http2).error(), "agent_required");
    assert!(stranger.ends() && over_http2.ends());
}

#[test]
fn a_connection_sends_few_logins_at_once() {
    let server = server().start();
    let client = server.client().http2();
    let login = |stream| frames::half_a_post(stream, "/login");
    let mut socket = client.raw();
    socket.say(&[frames::preface(), login(1), login(3), login(5)].concat());
    // The other two wait for their bodies.
    assert_eq!(frames::outcome(&mut socket).error(), "too_many_bodies");
}
