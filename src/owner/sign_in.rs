//! Setting the first password, signing in, and signing out.

use hyper::header::{HeaderValue, REFRESH, RETRY_AFTER};
use hyper::{Response, StatusCode};
use maud::{Markup, html};

use super::frame::{OwnerPage, redirect};
use super::page_error::PageError;
use super::parts;
use super::site::{OwnerSite, PageResult, SignedInRequest};
use super::texts;
use super::theme::Theme;
use gatewren_gate::auth::{LoginError, OwnerCookies, PasswordAttempt, SetUpError};
use gatewren_gate::guard::{OwnerRequest, clear_cookie, set_cookie, set_device_cookie};
use gatewren_gate::http::ResponseBody;

/// Redirects a visitor who is not signed in to the sign-in page, which returns here afterwards.
///
/// A request that follows a link from another site, such as one in a message, has no cookie: browsers send it only
/// with requests from our own pages. So a page of ours repeats the request once.
pub fn ask(visit: &OwnerRequest) -> Response<ResponseBody> {
    let from_elsewhere = matches!(
        visit.header("sec-fetch-site"),
        Some("cross-site" | "same-site")
    );
    let target = visit.target();
    if from_elsewhere && visit.query("again").is_none() {
        let again = if target.contains('?') {
            "&again=1"
        } else {
            "?again=1"
        };
        let content = html! { p { a href=(format!("{target}{again}")) { (texts::GO_ON) } } };
        let mut response = stranger_page(visit, texts::GO_ON, StatusCode::OK, content);
        if let Ok(refresh) = HeaderValue::from_str(&format!("0;url={target}{again}")) {
            response.headers_mut().insert(REFRESH, refresh);
        }
        return response;
    }
    let then = form_urlencoded::Serializer::new(String::new())
        .append_pair("then", target)
        .finish();
    redirect(&format!("/owner/sign-in?{then}"))
}

/// Renders the sign-in page; redirects to the set-up page if no password is set.
pub fn page(site: &OwnerSite, visit: &OwnerRequest) -> PageResult {
    if site.vault.owner().password()?.is_none() {
        return Ok(redirect("/owner/set-up"));
    }
    Ok(stranger_page(
        visit,
        texts::SIGN_IN,
        StatusCode::OK,
        sign_in_form(&sanitize_target(visit.query("then")), None),
    ))
}

/// Checks the password and signs in.
pub async fn sign_in(site: &OwnerSite, visit: &OwnerRequest) -> PageResult {
    let password = visit.secret_field("password").unwrap_or_default();
    let then = sanitize_target(visit.field("then"));
    let attempt = PasswordAttempt {
        password: password.expose(),
        from: visit.from(),
        device: visit.device(),
    };
    match site.logins.sign_in_owner(attempt).await {
        Ok(cookies) => Ok(signed_in(site, &cookies, &then)),
        Err(error) => Ok(render_error(
            visit,
            error,
            sign_in_form(&then, Some(&error.to_string())),
            texts::SIGN_IN,
        )),
    }
}

/// Renders the form for the code and the first password.
pub fn set_up_page(site: &OwnerSite, visit: &OwnerRequest) -> PageResult {
    if site.vault.owner().password()?.is_some() {
        return Ok(redirect("/owner/sign-in"));
    }
    Ok(stranger_page(
        visit,
        texts::SET_UP,
        StatusCode::OK,
        set_up_form(None),
    ))
}

/// Checks the code and sets the password.
pub async fn set_up(site: &OwnerSite, visit: &OwnerRequest) -> PageResult {
    let field = |name: &str| visit.secret_field(name).unwrap_or_default();
    let (code, password) = (field("code"), field("password"));
    if password != field("again") {
        let form = set_up_form(Some(texts::TWO_PASSWORDS));
        return Ok(stranger_page(
            visit,
            texts::SET_UP,
            StatusCode::BAD_REQUEST,
            form,
        ));
    }
    let (code, password) = (code.expose(), password.expose());
    match site.logins.set_up(code, password, visit.from()).await {
        Ok(cookies) => Ok(signed_in(site, &cookies, "/owner")),
        Err(SetUpError::Login(error)) => Ok(render_error(
            visit,
            error,
            set_up_form(Some(&error.to_string())),
            texts::SET_UP,
        )),
        Err(error) => {
            let form = set_up_form(Some(&error.to_string()));
            Ok(stranger_page(
                visit,
                texts::SET_UP,
                StatusCode::BAD_REQUEST,
                form,
            ))
        }
    }
}

/// Ends this session.
pub async fn sign_out(asked: &SignedInRequest<'_>) -> PageResult {
    if let Some(cookie) = asked.visit.cookie() {
        let ended = asked.site.logins.sign_out(cookie).await;
        ended.map_err(|_| PageError::Unavailable)?;
    }
    let mut response = redirect("/owner/sign-in");
    clear_cookie(&mut response);
    Ok(response)
}

fn signed_in(site: &OwnerSite, cookies: &OwnerCookies, then: &str) -> Response<ResponseBody> {
    let mut response = redirect(then);
    let most_s = site.logins.max_lifetime().as_secs();
    set_cookie(&mut response, cookies.session.expose(), most_s);
    set_device_cookie(&mut response, cookies.device.expose());
    response
}

fn render_error(
    visit: &OwnerRequest,
    error: LoginError,
    form: Markup,
    title: &str,
) -> Response<ResponseBody> {
    let status = match error {
        LoginError::Wrong => StatusCode::UNAUTHORIZED,
        LoginError::Later(_) => StatusCode::TOO_MANY_REQUESTS,
        LoginError::Busy | LoginError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = stranger_page(visit, title, status, form);
    if let LoginError::Later(seconds) = error {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Restricts the target to our own pages: a path that begins with `//` or `\` would lead to another server.
pub fn sanitize_target(asked: Option<String>) -> String {
    let ours = |path: &String| {
        let ours = ["/owner", "/connect"];
        let known = ours.iter().any(|first| {
            let rest = path.strip_prefix(first);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        });
        known
            && path
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    asked.filter(ours).unwrap_or_else(|| "/owner".to_owned())
}

fn stranger_page(
    visit: &OwnerRequest,
    title: &str,
    status: StatusCode,
    content: Markup,
) -> Response<ResponseBody> {
    let page = OwnerPage {
        title,
        header: None,
        theme: Theme::of(visit),
        stamp: None,
        is_live: false,
        content,
    };
    page.response(status)
}

fn sign_in_form(then: &str, wrong: Option<&str>) -> Markup {
    html! {
        h1 { (texts::SIGN_IN) }
        @if let Some(words) = wrong { (parts::notice(words, true)) }
        form method="post" action="/owner/sign-in" {
            input type="hidden" name="then" value=(then);
            // For password managers, which expect a user name next to the password.
            input type="hidden" name="username" value="owner" autocomplete="username";
            (password("password", texts::PASSWORD, "current-password"))
            div class="row" { button { (texts::SIGN_IN) } }
        }
        p class="soft" { (texts::FORGOTTEN) }
    }
}

fn set_up_form(wrong: Option<&str>) -> Markup {
    html! {
        h1 { (texts::SET_UP) }
        p { (texts::SET_UP_HOW) }
        pre { "sudo gatewren owner setup" }
        @if let Some(words) = wrong { (parts::notice(words, true)) }
        form method="post" action="/owner/set-up" {
            div class="field" {
                label for="code" { (texts::CODE) }
                input type="text" id="code" name="code" autocomplete="one-time-code" autocapitalize="characters"
                    spellcheck="false" required;
            }
            input type="hidden" name="username" value="owner" autocomplete="username";
            (password("password", texts::NEW_PASSWORD, "new-password"))
            (password("again", texts::ONCE_MORE, "new-password"))
            div class="row" { button { (texts::SET_IT) } }
        }
    }
}

fn password(id: &str, label: &str, autocomplete: &str) -> Markup {
    html! {
        div class="field" {
            label for=(id) { (label) }
            input type="password" id=(id) name=(id) autocomplete=(autocomplete) required;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comes_back_to_a_page_of_ours_alone() {
        let to = |path: &str| sanitize_target(Some(path.to_owned()));
        for ours in [
            "/owner",
            "/owner/agents",
            "/owner?said=x",
            "/connect/authorize?a=b&c=%20",
        ] {
            assert_eq!(to(ours), ours);
        }
        for other in [
            "//evil.example",
            "https://evil.example/owner",
            "/ownerx",
            "/owner/\\evil",
            "/owner\r\nSet-Cookie: a",
            "/mcp",
            "",
        ] {
            assert_eq!(to(other), "/owner", "{other}");
        }
        assert_eq!(sanitize_target(None), "/owner");
    }
}
