//! The texts of the page for notifications.

pub const NOTIFICATIONS: &str = "Notifications";
pub const NOTIFICATIONS_WHAT: &str = "Requests and problems on your phone.";
pub const DEVICES: &str = "Your devices";
pub const DEVICES_WHAT: &str = "A device gets a notification for each request and problem, also while this page is closed. A tap opens the request.";
pub const DEVICES_NEED: &str = "The browser must trust this server's certificate (Connect). On an iPhone or iPad, first add this page to the home screen.";
pub const REACH: &str = "The service must reach the push service of the browser, on the internet:";
pub const ADD: &str = "Notify this device";
pub const DENIED: &str =
    "The browser does not allow notifications for this page. Allow them in its settings.";
pub const ADDED: &str = "Added";
pub const LAST_SENT: &str = "last notified";
pub const TEST: &str = "Test";
pub const REMOVE: &str = "Remove";
pub const SAVE: &str = "Save";
pub const TOO_MANY: &str = "There are 8 devices already; remove one first.";
pub const NOT_ADDED: &str = "The device was not added:";
pub const ADDED_BUT: &str = "The device was added, but a first message did not reach it:";
pub const NOT_SENT: &str = "The message was not sent:";
pub const WELCOME: &str = "This device gets notifications of gatewren now.";
pub const TEST_TITLE: &str = "gatewren can reach you";
pub const TEST_TEXT: &str = "This is a test, sent from the owner's page.";
pub const BROWSER: &str = "A browser";
pub const NTFY: &str = "ntfy";
pub const NTFY_WHAT: &str =
    "Messages also go to this topic of an ntfy server. Choose a topic that nobody can guess.";
pub const NTFY_URL: &str = "Server";
pub const NTFY_TOPIC: &str = "Topic";
pub const NTFY_NOTE: &str =
    "A server with a token, webhooks and mail are set in gatewren.toml. Test uses what is saved.";
