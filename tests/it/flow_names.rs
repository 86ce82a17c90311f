//! A server accepts its host's names and addresses, also after they change; an IPv6 network counts as one client.

use std::net::{IpAddr, TcpStream};

use crate::support::client::Client;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::namespace::{NetworkNamespace, connect_from};
use crate::support::raw::RawSocket;
use crate::support::server::server;

/// Sends a request with this host name; returns the status, or 0 if the server disconnected.
fn asked(machine: &NetworkNamespace, client: &Client, host: &str) -> u16 {
    let socket = machine.within(|| TcpStream::connect(client.address).unwrap());
    let mut socket = client.raw_over(socket);
    socket.say(format!("GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    socket.answer().0
}

#[test]
fn an_address_that_comes_or_goes_is_answered_to_or_no_more() {
    let Some(machine) = NetworkNamespace::new() else {
        return;
    };
    let server = server().in_namespace(&machine).start();
    let client = server.client();
    let seen = |host: &str, status: u16| {
        wait_until(host, IN_TIME, || asked(&machine, &client, host) == status);
    };
    assert_eq!(asked(&machine, &client, "10.9.8.7"), 421);
    machine.run("ip addr add 10.9.8.7/24 dev lo");
    seen("10.9.8.7", 200);
    machine.run("ip addr del 10.9.8.7/24 dev lo");
    seen("10.9.8.7", 421);
    assert_eq!(asked(&machine, &client, "box-of-a-test.local"), 421);
    machine.run("echo box-of-a-test > /proc/sys/kernel/hostname");
    seen("box-of-a-test.local", 200);
    seen("box-of-a-test", 200);
}

#[test]
fn a_stranger_of_ipv6_is_its_whole_network() {
    let Some(machine) = NetworkNamespace::new() else {
        return;
    };
    machine.run(
        "echo 0 > /proc/sys/net/ipv6/conf/lo/disable_ipv6
         for address in fd00:1::1 fd00:1::2 fd00:2::1; do ip addr add $address/64 dev lo nodad; done",
    );
    // One a second, so that the bucket is still empty at the neighbour's request.
    let limits = "[limits]\nheader_timeout = \"5m\"\naddress_rate = 1\naddress_burst = 20\n";
    let server = server().in_namespace(&machine).listen("[fd00:1::1]:0");
    let server = server.settings(limits).start();
    let client = server.client();
    let from = |address: &str| {
        let source: IpAddr = address.parse().unwrap();
        let socket = machine.within(|| connect_from(source, client.address));
        client.raw_over(socket)
    };
    let health = |socket: &mut RawSocket| {
        socket.say(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        socket.answer().0
    };
    let (mut one, mut neighbour, mut other) =
        (from("fd00:1::1"), from("fd00:1::2"), from("fd00:2::1"));
    // On a slow machine the bucket may gain one between the two; a bucket of the neighbour's own would have twenty.
    let shared = (0..15).any(|_| {
        let spent = (0..600).any(|_| health(&mut one) == 429);
        assert!(spent, "600 in a row are too many");
        health(&mut neighbour) == 429
    });
    assert!(shared, "the neighbour has a rate of its own");
    assert_eq!(health(&mut other), 200, "another network has its own");
}
