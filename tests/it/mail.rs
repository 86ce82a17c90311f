//! Mail to the owner through the host's own sendmail (Debian's msmtp-mta), as an SMTP server receives it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::notify::{json_of, notice, notify, send};
use crate::support::machine::{IN_TIME, is_root, skip, wait_until};
use crate::support::server::{Directory, Server, server};

/// Parses a message with Python's library.
const READ: &str = r"
import email, json, sys
from email import policy
letter = email.message_from_bytes(sys.stdin.buffer.read(), policy=policy.default)
names = sorted(name for name in letter.keys() if name not in ('From', 'Date', 'Message-ID'))
print(json.dumps({'headers': names, 'subject': letter['subject'], 'to': letter['to'],
    'agent': letter['x-gatewren-from'], 'text': letter.get_content()}))
";

/// A received message.
#[derive(Clone)]
struct Letter {
    to: Vec<String>,
    data: String,
}

impl Letter {
    fn read(&self) -> Value {
        let mut python = Command::new("python3");
        python
            .args(["-c", READ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        python
            .stdin
            .take()
            .unwrap()
            .write_all(self.data.as_bytes())
            .unwrap();
        let said = python.wait_with_output().unwrap();
        serde_json::from_slice(&said.stdout).unwrap()
    }
}

/// An SMTP server that accepts everything, or rejects each recipient.
#[derive(Clone, Default)]
struct Sink {
    letters: Arc<Mutex<Vec<Letter>>>,
    refusal: Arc<Mutex<Option<&'static str>>>,
    port: u16,
}

impl Sink {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sink = Self {
            port,
            ..Self::default()
        };
        let own = sink.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = own.converse(&stream);
            }
        });
        sink
    }

    fn converse(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let mut letter = Letter {
            to: Vec::new(),
            data: String::new(),
        };
        stream.write_all(b"220 sink\r\n")?;
        while let Some(line) = lines.next() {
            let line = line?;
            let word = line
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_ascii_uppercase();
            let refusal = *self.refusal.lock().unwrap();
            let answer = match (word.as_str(), refusal) {
                ("RCPT", Some(refusal)) => refusal,
                ("RCPT", None) => {
                    let to = line.split(['<', '>']).nth(1).unwrap_or_default();
                    letter.to.push(to.to_owned());
                    "250 ok"
                }
                ("DATA", _) => {
                    stream.write_all(b"354 go on\r\n")?;
                    for line in lines.by_ref() {
                        let line = line?;
                        if line == "." {
                            break;
                        }
                        letter
                            .data
                            .push_str(line.strip_prefix('.').unwrap_or(&line));
                        letter.data.push_str("\r\n");
                    }
                    self.letters.lock().unwrap().push(letter.clone());
                    "250 taken"
                }
                ("QUIT", _) => "221 bye",
                _ => "250 ok",
            };
            stream.write_all(format!("{answer}\r\n").as_bytes())?;
        }
        Ok(())
    }

    fn after(&self, count: usize) -> Vec<Letter> {
        let letters = || self.letters.lock().unwrap().clone();
        wait_until("letters come", IN_TIME, || letters().len() >= count);
        letters()
    }
}

const CHANNEL: &str = "[notify.post]\nkind = \"mail\"\non = [\"error\"]\n";

/// Starts a server on a host whose mail goes to the sink.
fn posting(sink: &Sink, bounds: &str) -> Option<(Server, Directory)> {
    let version = Command::new("/usr/sbin/sendmail").arg("--version").output();
    let is_msmtp = version.is_ok_and(|said| said.stdout.starts_with(b"msmtp"));
    if !is_root() || !is_msmtp {
        skip("it needs root, and msmtp-mta as sendmail");
        return None;
    }
    let etc = Directory::new();
    let account = format!(
        "account default\nhost 127.0.0.1\nport {}\nfrom box@example.org\ntls off\nauth off\n",
        sink.port
    );
    fs::write(etc.join("msmtprc"), account).unwrap();
    let server = server().policy("admin").settings(CHANNEL).bounds(bounds);
    Some((server.with_etc(&etc.0).start(), etc))
}

#[test]
fn an_agents_words_go_to_whom_the_owner_names_and_say_whose_they_are() {
    let sink = Sink::new();
    let to = "mail_to = [\"me@example.org\", \"you@example.org\"]\n";
    let Some((server, _etc)) = posting(&sink, to) else {
        return;
    };
    let client = server.client();
    let title = "Hëllo\r\nBcc: x@example.org\r\n\r\nDear";
    let asked = json!({ "title": title, "message": "one\n.\nBcc: y@example.org\nüber" });
    assert_eq!(send(&client, asked).data()["channel"], "post");
    let letter = sink.after(1).remove(0);
    assert_eq!(letter.to, ["me@example.org", "you@example.org"]);
    let read = letter.read();
    let known = [
        "Auto-Submitted",
        "Content-Transfer-Encoding",
        "Content-Type",
        "MIME-Version",
        "Subject",
        "To",
        "X-Gatewren-From",
    ];
    assert_eq!(read["headers"], json!(known), "{}", letter.data);
    assert_eq!(read["to"], "me@example.org, you@example.org");
    assert_eq!(read["agent"], "agent try");
    let subject = read["subject"].as_str().unwrap();
    assert!(
        subject.contains("] agent try: Hëllo  Bcc: x@example.org"),
        "{subject}"
    );
    let text = read["text"].as_str().unwrap();
    let text = text.replace("\r\n", "\n");
    assert!(
        text.starts_with(
            "one\n.\nBcc: y@example.org\nüber\n\n-- \nA message from an agent, sent by gatewren on "
        ),
        "{text}"
    );
}

#[test]
fn what_comes_up_is_sent_again_until_the_mail_program_takes_it() {
    let sink = Sink::new();
    let Some((server, _etc)) = posting(&sink, "mail_to = [\"me@example.org\"]\n") else {
        return;
    };
    *sink.refusal.lock().unwrap() = Some("451 later");
    notice(&server, 1_000_003, "error");
    let list = || json_of(&notify(&server, &["list", "--json"]));
    wait_until("it waits", IN_TIME, || list()["waiting"][0]["tries"] == 1);
    let why = list()["waiting"][0]["error"].clone();
    assert!(
        why.as_str().unwrap().contains("sendmail rejected the mail"),
        "{why}"
    );
    *sink.refusal.lock().unwrap() = None;
    let read = sink.after(1).remove(0).read();
    assert_eq!(read["agent"], "itself");
    assert!(
        read["subject"].as_str().unwrap().ends_with("] error"),
        "{read}"
    );
    wait_until("nothing waits", IN_TIME, || list()["waiting"] == json!([]));
    let words = String::from_utf8(notify(&server, &["list"]).stdout).unwrap();
    assert!(words.contains("post: mail; gets error"), "{words}");
    let tried = notify(&server, &["test", "--json"]);
    assert_eq!(
        json_of(&tried),
        json!([{ "channel": "post", "delivered": true, "error": null, "local_network": null }])
    );
    assert_eq!(sink.after(2)[1].to, ["me@example.org"]);
}

#[test]
fn nobody_is_sent_mail_whom_the_owner_does_not_name() {
    let sink = Sink::new();
    let Some((server, _etc)) = posting(&sink, "") else {
        return;
    };
    let said = send(&server.client(), json!({ "message": "x" })).failure();
    assert!(
        said.contains("could not send it") && !said.contains("mail_to"),
        "{said}"
    );
    let tried = notify(&server, &["test"]);
    assert_eq!(tried.status.code(), Some(4));
    let words = String::from_utf8(tried.stdout).unwrap();
    assert!(
        words.contains("mail_to") && words.contains("helper.toml"),
        "{words}"
    );
    assert!(sink.letters.lock().unwrap().is_empty());
}
