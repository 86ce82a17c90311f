//! Sends mail through the host's `sendmail`, only to the recipients that the owner's policy file names.
//!
//! No part of a message can become a header, a recipient or an option: subject and text are encoded, and the caller
//! does not choose recipients.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use gatewren_wire::operations::{
    LETTER_SUBJECT_BYTES, LETTER_TEXT_BYTES, MailMessage, OperationEnd, OperationRefusal, Stream,
};

use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::processes::step_error::{ProgramStep, operation_end};

/// How long sendmail may take. After that it is killed with all that it started.
const TIME: Duration = Duration::from_mins(1);

/// The message, only in the environment of the shell.
const LETTER: &str = "GATEWREN_LETTER";

/// Shell code that pipes the message to the program that follows.
const GIVE: &str =
    "letter=$GATEWREN_LETTER; unset GATEWREN_LETTER; printf %s \"$letter\" | exec \"$@\"";

/// `-oi`: a line with a single dot does not end the message. `-odf`: exim4 delivers before it exits, as no process
/// outlives its call.
const OPTIONS: [&str; 2] = ["-oi", "-odf"];

/// Bytes of a text in one encoded word (RFC 2047: at most 75 characters), and characters in one line of base64.
const WORD_BYTES: usize = 42;
const LINE_CHARS: usize = 76;

/// The most bytes of its stderr that are reported.
const COMPLAINT_BYTES: usize = 512;

/// Sends a message.
pub async fn send(
    context: &mut OperationContext<'_>,
    message: &MailMessage,
) -> Result<OperationEnd, OperationRefusal> {
    let is_long =
        message.subject.len() > LETTER_SUBJECT_BYTES || message.text.len() > LETTER_TEXT_BYTES;
    if is_long
        || message
            .agent
            .as_ref()
            .is_some_and(|name| name.len() > LETTER_SUBJECT_BYTES)
    {
        return Err(OperationRefusal::bad_command("the mail is too long"));
    }
    let to = context.helper.policy.now().mail_to.clone();
    let program = find("sendmail")?.to_string_lossy().into_owned();
    let mut args: Vec<String> = ["-c", GIVE, "sh", &program].map(str::to_owned).into();
    args.extend(OPTIONS.map(str::to_owned));
    args.extend(to.iter().map(ToString::to_string));
    let step = ProgramStep {
        name: "sh",
        args,
        cwd: "/".to_owned(),
        env: BTreeMap::from([(LETTER.to_owned(), format_message(message, &to))]),
        time: TIME,
    };
    let mut complaint = Vec::new();
    let mut on_output = |which: Stream, bytes: &[u8]| {
        let room = COMPLAINT_BYTES.saturating_sub(complaint.len());
        if which == Stream::Stderr {
            complaint.extend(bytes.iter().take(room));
        }
        None
    };
    match context.run_step(step, &mut on_output).await {
        Ok(0) => Ok(OperationEnd::SUCCESS),
        Ok(code) => {
            let complaint = String::from_utf8_lossy(&complaint);
            let why = complaint.lines().next().unwrap_or("no reason given").trim();
            let message = format!("sendmail rejected the mail (exit code {code}): {why}");
            Err(OperationRefusal::failed(message))
        }
        Err(error) => operation_end(Err(error)),
    }
}

/// Formats the message for `sendmail`, which adds sender and date.
fn format_message(message: &MailMessage, to: &[impl ToString]) -> String {
    let to: Vec<String> = to.iter().map(ToString::to_string).collect();
    let from = match &message.agent {
        Some(agent) => encode_header(&format!("agent {agent}")),
        None => "itself".to_owned(),
    };
    let mut text = String::new();
    let mut put = |line: &str| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{line}");
    };
    // A line has at most 998 characters (RFC 5322), so each recipient has its own.
    put(&format!("To: {}", to.join(",\n ")));
    put(&format!("Subject: {}", encode_header(&message.subject)));
    put(&format!("X-Gatewren-From: {from}"));
    put("Auto-Submitted: auto-generated");
    put("MIME-Version: 1.0");
    put("Content-Type: text/plain; charset=utf-8");
    put("Content-Transfer-Encoding: base64");
    put("");
    let body = BASE64_STANDARD.encode(message.text.replace('\n', "\r\n"));
    for line in body.as_bytes().chunks(LINE_CHARS) {
        put(&String::from_utf8_lossy(line));
    }
    text
}

/// Encodes a text for a header: base64 words, each on its own line.
fn encode_header(text: &str) -> String {
    let mut words = vec![String::new()];
    for c in text.chars() {
        if let Some(word) = words.last_mut()
            && word.len() + c.len_utf8() <= WORD_BYTES
        {
            word.push(c);
        } else {
            words.push(c.to_string());
        }
    }
    let words = words.iter();
    let words = words.map(|word| format!("=?UTF-8?B?{}?=", BASE64_STANDARD.encode(word)));
    words.collect::<Vec<_>>().join("\n ")
}

#[cfg(test)]
mod tests {
    use super::super::mail::*;

    #[test]
    fn nothing_that_is_said_becomes_a_header_or_ends_the_letter() {
        let message = MailMessage {
            subject: "a\nBcc: x@example.org\r\n\r\nbody \u{fc}".repeat(20),
            text: "one\n.\ntwo\nBcc: y@example.org\n".repeat(40),
            agent: Some("evil\nX-Other: 1".to_owned()),
        };
        let text = format_message(&message, &["me@example.org", "you@example.org"]);
        let (head, body) = text.split_once("\n\n").unwrap();
        let names: Vec<&str> = head
            .lines()
            .filter(|line| !line.starts_with(' '))
            .map(|line| line.split_once(": ").unwrap().0)
            .collect();
        let known = [
            "To",
            "Subject",
            "X-Gatewren-From",
            "Auto-Submitted",
            "MIME-Version",
            "Content-Type",
            "Content-Transfer-Encoding",
        ];
        assert_eq!(names, known);
        assert!(
            head.lines().all(|line| line.len() <= 78 && line.is_ascii()),
            "{head}"
        );
        assert!(!text.contains("Bcc") && !text.contains("X-Other"));
        let plain = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        assert!(
            body.lines()
                .all(|line| line.len() <= 76 && line.chars().all(plain))
        );
        assert!(head.starts_with("To: me@example.org,\n you@example.org\n"));
    }
}
