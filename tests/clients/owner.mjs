// The owner of a box with a browser, by plain requests: signs in, and approves what a program asks.
//   new Owner(base, password)   base is the origin of the box, such as https://127.0.0.1:8443
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"' };

export class Owner {
  #base;
  #password;
  #cookie;

  constructor(base, password) {
    this.#base = base;
    this.#password = password;
  }

  // Follows a program's URL to the page, approves, and resolves to the URL that the browser is sent to.
  async approve(url) {
    const headers = { Cookie: await this.#signedIn() };
    const page = await fetch(url, { headers, redirect: 'manual' });
    const text = await page.text();
    if (page.status !== 200) throw new Error(`the page is ${page.status}: ${text}`);
    const form = new URLSearchParams();
    for (const [, name, value] of text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)) {
      form.append(name, value.replaceAll(/&(\w+);/g, (_, entity) => ENTITIES[entity]));
    }
    form.append('decision', 'approve');
    if (!form.has('agent')) {
      // As most owners do: the name that the page proposes.
      form.append('name', text.match(/name="name" value="([^"]*)"/)[1]);
      form.append('policy', 'observe');
    }
    const origin = this.#base;
    const answer = await fetch(`${this.#base}/connect/authorize`, {
      method: 'POST',
      headers: { ...headers, Origin: origin },
      body: form,
      redirect: 'manual',
    });
    const to = answer.headers.get('location');
    if (answer.status !== 303 || !to) throw new Error(`the answer is ${answer.status}: ${await answer.text()}`);
    return new URL(to);
  }

  async #signedIn() {
    if (this.#cookie) return this.#cookie;
    const answer = await fetch(`${this.#base}/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ password: this.#password }),
    });
    if (answer.status !== 200) throw new Error(`the owner cannot sign in: ${await answer.text()}`);
    this.#cookie = answer.headers.getSetCookie()[0].split(';')[0];
    return this.#cookie;
  }
}
