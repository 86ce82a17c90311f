//! The page for notifications: the devices that get Web Push, and an ntfy topic.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::header::Tab;
use super::notification_texts as texts;
use super::page_error::PageError;
use super::parts::{name, proof, time};
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use super::texts::NO_SUCH_ACTION;
use gatewren_base::config::Channel;
use gatewren_gate::owner_actions::OwnerCommand;
use gatewren_store::vault::{NewPushDevice, PageNtfy, PushDevice};
use gatewren_tools::notify::{
    DeliveryError, MessageSource, OwnerMessage, PAGE_NTFY, PUSH, Priority, check_subscription,
    public_key,
};

/// The path of this page.
const PATH: &str = "/owner/notifications";

/// Answers a request for the page, or one of its forms.
pub async fn answer(asked: &SignedInRequest<'_>, posts: bool) -> PageResult {
    if posts {
        act(asked).await
    } else {
        page(asked).await
    }
}

async fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let table = asked.site.vault.push_devices();
    let (devices, ntfy) = (table.list()?, table.ntfy()?);
    let key = public_key(&asked.site.vault).await;
    let key = key.map_err(|cause| PageError::Refused(cause.to_string()))?;
    let content = html! {
        h1 { (texts::NOTIFICATIONS) }
        (asked.render_notice())
        section {
            h2 { (texts::DEVICES) }
            p { (texts::DEVICES_WHAT) }
            @for device in &devices { (render_device(asked, device)) }
            form id="push" method="post" action=(PATH) class="row" hidden data-key=(key) data-denied=(texts::DENIED) {
                (proof(asked.session))
                @for field in ["endpoint", "p256dh", "auth"] { input type="hidden" name=(field); }
                button name="do" value="add" { (texts::ADD) }
                p role="status" {}
            }
            p class="soft" { (texts::DEVICES_NEED) }
            p class="soft" { (texts::REACH) " " code { "sudo gatewren notify push on" } }
        }
        section {
            h2 { (texts::NTFY) }
            p { (texts::NTFY_WHAT) }
            (render_ntfy(asked, ntfy.as_ref()))
            p class="soft" { (texts::NTFY_NOTE) }
        }
    };
    asked.page(Tab::Settings, texts::NOTIFICATIONS, false, content)
}

fn render_device(asked: &SignedInRequest<'_>, device: &PushDevice) -> Markup {
    html! {
        form method="post" action=(PATH) class="card row" {
            (proof(asked.session))
            input type="hidden" name="id" value=(device.id);
            div class="note" {
                strong { (name(&device.subscription.name)) }
                div class="soft" {
                    (texts::ADDED) " " (time(device.created_ms))
                    @if let Some(sent) = device.sent_ms { ", " (texts::LAST_SENT) " " (time(sent)) }
                }
            }
            button class="plain" name="do" value="test" { (texts::TEST) }
            button class="plain" name="do" value="remove" { (texts::REMOVE) }
        }
    }
}

fn render_ntfy(asked: &SignedInRequest<'_>, ntfy: Option<&PageNtfy>) -> Markup {
    let value = |part: fn(&PageNtfy) -> &String| ntfy.map_or("", |ntfy| part(ntfy).as_str());
    html! {
        form method="post" action=(PATH) {
            (proof(asked.session))
            label for="ntfy-url" { (texts::NTFY_URL) }
            input id="ntfy-url" name="url" type="text" inputmode="url" autocapitalize="none" required placeholder="https://ntfy.sh" value=(value(|ntfy| &ntfy.url));
            label for="ntfy-topic" { (texts::NTFY_TOPIC) }
            input id="ntfy-topic" name="topic" type="text" autocapitalize="none" required maxlength="64" pattern="[A-Za-z0-9_\\-]+" value=(value(|ntfy| &ntfy.topic));
            div class="row" {
                button name="do" value="ntfy" { (texts::SAVE) }
                @if ntfy.is_some() {
                    button class="plain" name="do" value="ntfy-test" { (texts::TEST) }
                    button class="plain" name="do" value="ntfy-remove" formnovalidate { (texts::REMOVE) }
                }
            }
        }
    }
}

/// Does what the pressed button says.
async fn act(asked: &SignedInRequest<'_>) -> PageResult {
    match asked.visit.field("do").unwrap_or_default().as_str() {
        // The script sends the form without its button.
        "add" | "" => add(asked).await,
        "remove" => remove(asked).await,
        "test" => {
            let id = asked.visit.field("id").unwrap_or_default();
            send_test(asked, &format!("{PUSH}/{id}"), &Channel::push()).await
        }
        "ntfy" => set_ntfy(asked).await,
        "ntfy-test" => {
            let ntfy = asked.site.vault.push_devices().ntfy()?;
            let ntfy = ntfy.ok_or(PageError::Absent)?;
            let channel = Channel::ntfy(&ntfy.url, &ntfy.topic).map_err(PageError::Refused)?;
            send_test(asked, PAGE_NTFY, &channel).await
        }
        "ntfy-remove" => {
            let table = asked.site.vault.push_devices();
            let command = command("notify ntfy-remove", json!({}));
            let owner = asked.owner_context();
            owner.run_audited(command, table.set_ntfy(None)).await?;
            Ok(redirect_with_notice(PATH, "channel-removed"))
        }
        _ => Err(PageError::Refused(NO_SUCH_ACTION.to_owned())),
    }
}

/// Adds the device, and sends it a message: a device that cannot get it is not added.
async fn add(asked: &SignedInRequest<'_>) -> PageResult {
    let field = |name: &str| asked.visit.field(name).unwrap_or_default();
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(field(name)).unwrap_or_default();
    let agent = asked.visit.header("user-agent").unwrap_or_default();
    let new = NewPushDevice {
        name: device_name(agent),
        endpoint: field("endpoint"),
        p256dh: bytes("p256dh"),
        auth: bytes("auth"),
    };
    let settings = asked.site.live.now();
    let checked = check_subscription(&settings, &new);
    checked.map_err(|cause| PageError::Refused(format!("{} {cause}.", texts::NOT_ADDED)))?;
    let table = asked.site.vault.push_devices();
    let command = command("notify add", json!({ "name": new.name }));
    let owner = asked.owner_context();
    let id = owner.run_audited(command, table.add(new)).await?;
    let id = id.ok_or_else(|| PageError::Refused(texts::TOO_MANY.to_owned()))?;
    let message = test_message(texts::WELCOME);
    let sender = &asked.site.notification_sender;
    let target = format!("{PUSH}/{id}");
    match sender.send_to(&target, &Channel::push(), &message).await {
        Ok(_) => Ok(redirect_with_notice(PATH, "device-added")),
        Err(cause) if cause.is_lasting() => {
            table.remove(&id).await?;
            Err(PageError::Refused(format!("{} {cause}.", texts::NOT_ADDED)))
        }
        Err(cause) => Err(PageError::Refused(format!("{} {cause}.", texts::ADDED_BUT))),
    }
}

async fn remove(asked: &SignedInRequest<'_>) -> PageResult {
    let id = asked.visit.field("id").unwrap_or_default();
    let table = asked.site.vault.push_devices();
    let command = command("notify remove", json!({ "device": id }));
    let owner = asked.owner_context();
    if owner.run_audited(command, table.remove(&id)).await? {
        Ok(redirect_with_notice(PATH, "channel-removed"))
    } else {
        Err(PageError::Absent)
    }
}

async fn set_ntfy(asked: &SignedInRequest<'_>) -> PageResult {
    let field = |name: &str| asked.visit.field(name).unwrap_or_default();
    let (url, topic) = (field("url"), field("topic"));
    Channel::ntfy(&url, &topic).map_err(PageError::Refused)?;
    // The topic is left out: who knows it can read the messages.
    let command = command("notify ntfy", json!({ "url": url }));
    let table = asked.site.vault.push_devices();
    let work = table.set_ntfy(Some(PageNtfy { url, topic }));
    asked.owner_context().run_audited(command, work).await?;
    Ok(redirect_with_notice(PATH, "edited"))
}

async fn send_test(asked: &SignedInRequest<'_>, target: &str, channel: &Channel) -> PageResult {
    let sender = &asked.site.notification_sender;
    let message = test_message(texts::TEST_TEXT);
    match sender.send_to(target, channel, &message).await {
        Ok(_) => Ok(redirect_with_notice(PATH, "test-sent")),
        Err(DeliveryError::NoDevice) => Err(PageError::Absent),
        Err(cause) => Err(PageError::Refused(format!("{} {cause}.", texts::NOT_SENT))),
    }
}

fn test_message(text: &str) -> OwnerMessage {
    let source = MessageSource::Us("test");
    OwnerMessage::new(
        source,
        texts::TEST_TITLE.to_owned(),
        text.to_owned(),
        Priority::High,
    )
}

fn command(command: &'static str, what: Value) -> OwnerCommand<'static> {
    OwnerCommand {
        command,
        what,
        target: None,
        change: None,
    }
}

/// Names a device by what its browser says about itself.
fn device_name(agent: &str) -> String {
    // A later name contains an earlier one: Edge calls itself Chrome, and Chrome Safari.
    let first = |words: &[(&str, &'static str)]| {
        let found = words.iter().find(|(word, _)| agent.contains(word));
        found.map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Firefox", "Firefox"),
        ("Edg", "Edge"),
        ("Chrome", "Chrome"),
        ("Safari", "Safari"),
    ]);
    let system = first(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS", "Mac"),
        ("Linux", "Linux"),
    ]);
    let browser = browser.unwrap_or(texts::BROWSER);
    system.map_or_else(
        || browser.to_owned(),
        |system| format!("{browser}, {system}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_by_its_browser_and_system() {
        for (agent, expected) in [
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
                "Chrome, Android",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1",
                "Safari, iPhone",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox, Linux",
            ),
            ("curl/8", "A browser"),
        ] {
            assert_eq!(device_name(agent), expected);
        }
    }
}
